"""Verifying the log, and judging the change between a base and what is here."""
