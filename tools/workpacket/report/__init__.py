"""Rendering: values in, text out. Nothing here prints, queries the terminal or reads the environment."""
