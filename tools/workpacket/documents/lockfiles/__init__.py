"""Lock files and manifests of package managers: one module a format, and the comparison of two states of one file."""
