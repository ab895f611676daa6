"""What is stored: events, their kinds and bytes, the state that they fold to, and redaction before storing."""
