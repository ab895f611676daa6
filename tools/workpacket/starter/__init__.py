"""What `init` copies into a repository as it is; what follows from the lifecycle is written by `plans.starting`."""
