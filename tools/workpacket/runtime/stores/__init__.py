"""Where runs are kept: the contract of a store, and its three implementations."""
