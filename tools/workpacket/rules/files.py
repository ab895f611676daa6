"""Facts about files that documents refer to, gathered before the rules run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from workpacket.text.source import Source
from workpacket.value import Value


class FileFact(Value):
    """What stands at a path. `source` only where a rule asked for the text."""

    state: Literal["file", "folder", "absent"]
    source: Source | None = None


class Files:
    """File facts by path. A path that nobody asked for is a mistake in a rule, not an absent file."""

    def __init__(self, facts: Mapping[str, FileFact]) -> None:
        self._facts = facts

    def __getitem__(self, path: str) -> FileFact:
        return self._facts[path]

    def exists(self, path: str) -> bool:
        return self._facts[path].state != "absent"
