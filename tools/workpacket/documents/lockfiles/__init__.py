"""Lock files and manifests of package managers: one module per ecosystem, and a module that compares two states."""
