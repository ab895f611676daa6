"""Answer an auditor's questions about a repository: who signed, what depends on what, what is no longer valid."""
