"""What is stored: events, their kinds and bytes, the state obtained by folding them, and redaction before storing."""
