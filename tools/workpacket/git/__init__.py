"""Access to git: locations are found without starting a process; everything else uses one hardened wrapper."""
