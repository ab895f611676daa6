"""Answer an auditor's questions about a repository from facts: who signed, what depends on what, what is no longer
valid.
"""
