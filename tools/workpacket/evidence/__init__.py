"""The reports of test runners, and what two runs of the same tests prove. Pure: no processes, no files."""
