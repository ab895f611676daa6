"""What test runners report, and what two runs of the same tests prove: pure, without processes or files."""
