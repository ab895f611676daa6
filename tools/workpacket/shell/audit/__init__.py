"""Gathering the facts of an audit, and what git knows of the files and commits that the logs name."""
