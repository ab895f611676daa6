"""The store in one SQLite file: for all processes of one machine, with no server."""
