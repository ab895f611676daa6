"""Runs offered as jobs, and the workers that claim them."""
