"""The reasons that are not rules, in one table per subject."""
