"""The door to the world: disk, git, clock, randomness, processes."""
