"""Where runs are kept: the contract of a store, and the three stores that keep it."""
