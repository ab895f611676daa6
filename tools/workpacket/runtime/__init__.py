"""Checkpoint and resume: runs that lose nothing and repeat nothing. Usable alone; see docs/runtime/tutorial.md."""
