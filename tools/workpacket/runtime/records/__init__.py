"""What is written down: events, their kinds and bytes, the state they fold to, and what is taken out of them before."""
