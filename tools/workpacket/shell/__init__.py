"""Access to the outside world: disk, git, clock, randomness, processes."""
