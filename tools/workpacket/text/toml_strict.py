from __future__ import annotations
import tomllib
class L:
    def __init__(s,r,f): s.root=r; s.faults=f
def load_toml(source):
    return L(None,())
