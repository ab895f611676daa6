"""The kinds of governance documents: where each is stored, how it is read, and what it contains.

One module per kind, named after it: a typed view of the document and its reader. `places` maps paths to kinds, and
`reading` dispatches. The rules of a kind are in `rules/<kind>.py`, its schema in `schemas/<kind>.schema.json`.
"""
