"""The lifecycle of a work packet as data and pure functions: transitions, gates, and next steps."""
