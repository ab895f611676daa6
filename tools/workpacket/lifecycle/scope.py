"""Which files a packet may change: the patterns of IN_SCOPE_PATHS.

A pattern is a path; a path of a folder, which stands for all below it; or a path with `*` (within one folder) and `**`
(any folders). An entry with a blank in it is prose and allows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache


def pattern_of(entry: str) -> str:
    """The pattern that an entry of the list states, '' if it is prose."""
    text = entry.strip()
    if text[:1] == "`" and "`" in text[1:]:
        return text[1 : text.index("`", 1)].removeprefix("./")
    head = text.partition(" (")[0].rstrip(".,;")
    return head.removeprefix("./") if head and not any(character.isspace() for character in head) else ""


def is_pathlike(entry: str) -> bool:
    """Whether an entry of a stub's scope names files: quoted or not, with a folder or an ending."""
    pattern = pattern_of(entry)
    return bool(pattern) and ("/" in pattern or re.search(r"[\w*]\.\w+\Z", pattern) is not None)


def outside(paths: Iterable[str], entries: Sequence[str]) -> list[str]:
    """The paths that no entry allows."""
    patterns = [_compiled(pattern) for entry in entries if (pattern := pattern_of(entry))]
    return [path for path in paths if not any(pattern.fullmatch(path) for pattern in patterns)]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = []
    for piece in re.split(r"(\*\*/?|\*|\?)", pattern.rstrip("/")):
        if piece.startswith("**"):
            parts.append("(?:.*/)?" if piece.endswith("/") else ".*")
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece)))
    return re.compile("".join(parts) + "(?:/.*)?", re.DOTALL)
