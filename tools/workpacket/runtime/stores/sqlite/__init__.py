"""The store in one SQLite file: for all processes on one machine, without a server."""
