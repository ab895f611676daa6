"""The kinds of governance documents: where each lives, how it is read, what it says.

One module a kind, named after it: a typed view of the document and the reader that makes it. `places` tells which path
holds which kind, `reading` dispatches. The same name finds the rules (`rules/<kind>.py`) and the schema
(`schemas/<kind>.schema.json`).
"""
