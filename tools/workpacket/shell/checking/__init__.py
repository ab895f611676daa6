"""`check` in the shell: finding files, caching their results, examining them, and checking the repository as a
whole.
"""
