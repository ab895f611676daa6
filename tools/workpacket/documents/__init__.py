"""The kinds of governance documents: where each is stored, how it is read, and what it contains.

One module per kind, named after it: a typed view of the document and its reader. `places` tells which path holds which
kind, `reading` dispatches. Rules (`rules/<kind>.py`) and the schema (`schemas/<kind>.schema.json`).
"""
