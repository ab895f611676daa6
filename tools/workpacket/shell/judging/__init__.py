"""Verify the log, and judge the change between a base and the work tree."""
