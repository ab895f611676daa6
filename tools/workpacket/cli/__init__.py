"""The command line: one module per command or subject, imported only when it is needed."""
