"""The schemas that come with the package, read on first use."""

from __future__ import annotations

import os
from functools import cache

from workpacket.shell.fingerprint import schema_folder
from workpacket.text.schema import SchemaSet


@cache
def schemas() -> SchemaSet:
    folder = schema_folder()

    def read(name: str) -> bytes:
        with open(os.path.join(folder, f"{name}.schema.json"), "rb") as stream:
            return stream.read()

    return SchemaSet(read)
