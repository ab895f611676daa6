"""Answer an auditor's questions about a repository: who signed, what depends on what, and what is no longer valid."""
