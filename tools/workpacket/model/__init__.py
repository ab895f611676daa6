"""Pure values that every other layer uses. No module here has side effects."""
