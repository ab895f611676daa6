"""Govern work done by people and AI agents in a git repository."""

__version__ = "0.1.0"
