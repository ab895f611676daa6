"""The reasons that are not rules, one table a family of things that can go wrong."""
