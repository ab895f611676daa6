"""The event log: reading it strictly, replaying it, and proving that it is what was written. Pure."""
