"""The reasons that do not come from rules, in one table per subject."""
