"""What is stored: events, their kinds and bytes, the state they fold to, and the redaction applied first."""
