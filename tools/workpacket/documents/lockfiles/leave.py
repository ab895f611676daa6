"""Which dependencies may change. Light: every command that reads a policy imports it."""

from __future__ import annotations

from typing import Final

from workpacket.model.name_patterns import matches
from workpacket.value import Value

# More new packages than this in one file are worth a look, whoever allowed what brought them.
NEW_PACKAGES: Final = 50


class Leave(Value):
    """Which direct dependencies may change (`*` stands for any characters), and how many new packages are many."""

    patterns: tuple[str, ...] = ()
    threshold: int = NEW_PACKAGES

    def covers(self, name: str) -> bool:
        return any(matches(pattern, name) for pattern in self.patterns)
