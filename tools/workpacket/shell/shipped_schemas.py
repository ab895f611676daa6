"""The schemas in the package, read when first needed, and the digests of every text that `init` ever wrote."""

from __future__ import annotations

import os
from functools import cache

from workpacket.shell.fingerprint import schema_folder
from workpacket.text.schema import SchemaSet

STARTER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "starter")
# One line per text that `init` ever wrote: its SHA-256 and its path. `just reference` adds lines and never removes any.
SHIPPED = os.path.join(STARTER, "shipped.sha256")


@cache
def schemas() -> SchemaSet:
    folder = schema_folder()

    def read(name: str) -> bytes:
        with open(os.path.join(folder, f"{name}.schema.json"), "rb") as stream:
            return stream.read()

    return SchemaSet(read)


def read_shipped() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    with open(SHIPPED, encoding="utf-8", newline="") as stream:
        for line in stream.read().splitlines():
            known, _, path = line.partition("  ")
            found.setdefault(path, set()).add(known)
    return {path: frozenset(digests) for path, digests in found.items()}
