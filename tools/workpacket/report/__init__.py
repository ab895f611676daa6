"""Rendering: values in, text out. Nothing here prints, asks the terminal or reads the environment."""
