"""The kinds of governance documents: where they are stored, how they are read, and what they contain.

One module per kind, named after it: a typed view of the document and its reader. `places` maps paths to kinds, and
`reading` dispatches. The rules of a kind are in `rules/<kind>.py`, its schema in `schemas/<kind>.schema.json`.
"""
