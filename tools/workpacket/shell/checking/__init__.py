"""`check` as the shell sees it: files, what is remembered of them, examining, the repository as a whole."""
