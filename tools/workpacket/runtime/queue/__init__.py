"""Runs that are offered, and the workers that claim them."""
