"""One attempt at a run: how it begins, what it writes, and how its steps and effects are run."""
