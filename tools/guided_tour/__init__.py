"""`just tour`: the whole life of a work packet, played in a scratch repository with a throw-away key."""
