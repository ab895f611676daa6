"""The texts that `init` copies into a repository unchanged; those derived from the lifecycle are in
`lifecycle.starter_documents`.
"""
