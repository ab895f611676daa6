"""Scope: the files that a packet may change, by the patterns of IN_SCOPE_PATHS; and the files that need no packet.

A pattern is a path; a path of a folder, which includes everything below it; or a path with `*` (within one folder) and
`**` (any folders). An entry with a space in it is prose and allows nothing.

The guard asks before each write of an agent, so this module imports almost nothing.
"""

from __future__ import annotations

import re
from functools import cache

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import GOVERNANCE_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final


def pattern_of(entry: str) -> str:
    """Return the pattern in an entry of the list; '' if it is prose."""
    text = entry.strip()
    if text[:1] == "`" and "`" in text[1:]:
        return text[1 : text.index("`", 1)].removeprefix("./")
    head = text.partition(" (")[0].rstrip(".,;")
    return head.removeprefix("./") if head and not any(character.isspace() for character in head) else ""


def is_pathlike(entry: str) -> bool:
    """Whether an entry of a stub's scope names files: quoted or not, with a folder or an extension."""
    pattern = pattern_of(entry)
    return bool(pattern) and ("/" in pattern or re.search(r"[\w*]\.\w+\Z", pattern) is not None)


def names_one(entry: str) -> bool:
    """Whether an entry is only a quoted name, such as `justfile`, without a folder or an extension."""
    pattern = pattern_of(entry)
    return bool(pattern) and entry.strip() == f"`{pattern}`" and not is_pathlike(entry)


def outside(paths: Iterable[str], entries: Sequence[str], *, strict: bool = False) -> list[str]:
    """Return the paths that no entry allows. An entry also allows everything below it; with `strict`, only an entry
    like `a/` does. Otherwise `*.md`, which is intended for pages, would also allow everything below a folder named
    `a.md`.
    """
    patterns = [pattern for entry in entries if (pattern := pattern_of(entry))]
    return [path for path in paths if not any(allows(pattern, path, strict=strict) for pattern in patterns)]


def allows(pattern: str, path: str, *, strict: bool) -> bool:
    return path.startswith(_beginning(pattern)) and _compiled(pattern, strict).fullmatch(path) is not None


@cache
def _beginning(pattern: str) -> str:
    """Return what every path begins with that the pattern allows. Most paths are told apart by it, and compiling a
    pattern takes longer than starting Python if there are hundreds.
    """
    return re.split(r"[*?]", pattern, maxsplit=1)[0].rstrip("/")


@cache
def _compiled(pattern: str, strict: bool) -> re.Pattern[str]:
    parts = []
    for piece in re.split(r"(\*\*/?|\*|\?)", pattern.rstrip("/")):
        if piece.startswith("**"):
            parts.append("(?:.*/)?" if piece.endswith("/") else ".*")
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece)))
    below = ("/.*" if pattern.endswith("/") else "") if strict else "(?:/.*)?"
    return re.compile("".join(parts) + below, re.DOTALL)


# Files that are read and never run. Anything else below the folder is a program, and needs a packet like any other
# program.
_DOCUMENTS: Final = (
    ".md", ".markdown", ".rst", ".txt", ".json", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".xml", ".log", ".html",
    ".svg", ".png", ".jpg", ".pdf", ".sshsig",
)  # fmt: skip
_NAMED: Final = frozenset({"allowed_signers", "revoked_keys", ".gitattributes", ".gitignore", ".gitkeep"})
# Pages that an agent follows as it would a program: AGENTS.md, CLAUDE.local.md, CODER_PROTOCOL.md.
_INSTRUCTIONS: Final = lazy_pattern(
    r"(?:agents|claude|gemini|qwen|skill|copilot-instructions)(?:\..*)?\.md|.*_protocol\.md", re.IGNORECASE
)


def instructs_agents(path: str) -> bool:
    return _INSTRUCTIONS.fullmatch(path.rpartition("/")[2]) is not None


def is_governance(path: str) -> bool:
    """Whether the path is one of the governance documents. Other checks judge them, except the specification."""
    name = path.rpartition("/")[2]
    data = name in _NAMED or name.casefold().endswith(_DOCUMENTS)
    return path.startswith(f"{GOVERNANCE_FOLDER}/") and data and not instructs_agents(path)
