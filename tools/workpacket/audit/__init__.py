"""What an auditor asks of a repository, answered from facts: who signed, what rests on what, what no longer holds."""
