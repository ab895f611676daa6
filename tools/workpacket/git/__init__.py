"""Access to git: locations are found without starting a process, everything else goes through one hardened wrapper."""
