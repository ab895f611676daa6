"""Measurements beside the named peers, in one run: `just bench`."""
