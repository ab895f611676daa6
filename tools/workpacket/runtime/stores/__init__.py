"""Stores of runs: the contract of a store, and its three implementations."""
