"""Lock files and manifests of package managers: one module per ecosystem, and the comparison of two states."""
