"""The event log: strict parsing, replay, and verification. Pure."""
