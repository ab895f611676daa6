"""Use cases: facts and an intent in; a plan of edits, new files and events out, or all that stands against it. Pure."""
