"""Asking git: the repository's places without starting a process, everything else through one hardened door."""
