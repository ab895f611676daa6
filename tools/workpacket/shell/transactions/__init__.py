"""Changing governed files: all of a plan or nothing of it, under one lock, by one door to the disk."""
