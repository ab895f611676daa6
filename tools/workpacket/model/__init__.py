"""Pure values that every other layer uses. Nothing here has side effects."""
