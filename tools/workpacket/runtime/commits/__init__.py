"""Checkpoint commits: a milestone of a run, durable in git and in the log."""
