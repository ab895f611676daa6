"""Conflicts that git has written into a document, and that the log settles.

On board and registry both sides have moved entries that stand beside each other: the lines of both are taken, and
drawing from the log takes away what then stands twice. In a packet it is the status, where both sides say something
else and nothing but that. Every other conflict is between people, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.register_text import BOARD_PATH, REGISTRY_PATH
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.findings import Edit
from workpacket.text.edits import apply_edits
from workpacket.text.source import Source

# Of these, lines that both sides wrote are all kept: an entry that then stands twice is put right from the log.
KEEPING_BOTH = (BOARD_PATH, REGISTRY_PATH)

_CONFLICT = lazy_pattern(
    r"^<{7}(?: [^\r\n]*)?(?:\r\n|\n|\r)(?P<ours>.*?)"
    r"(?:^\|{7}(?: [^\r\n]*)?(?:\r\n|\n|\r).*?)?"
    r"^={7}(?:\r\n|\n|\r)(?P<theirs>.*?)"
    r"^>{7}(?: [^\r\n]*)?(?:\r\n|\n|\r|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MARKS = lazy_pattern(r"^(?:<{7}|={7}|>{7}|\|{7})(?:[ \r]|$)", re.MULTILINE)
_STATUS = lazy_pattern(r"^([ \t]*(?:[-*+][ \t]+)?\*\*Status:\*\*)[^\r\n]*", re.MULTILINE)


def without_conflicts(source: Source) -> Source:
    """The document without those of git's conflicts that the log settles: see `KEEPING_BOTH`, and a packet's status."""
    if "<<<<<<<" not in source.text:
        return source
    return apply_edits(source, _settled(source))


def _settled(source: Source) -> Iterator[Edit]:
    both = source.path in KEEPING_BOTH
    for conflict in _CONFLICT.finditer(source.text):
        ours, theirs = conflict["ours"], conflict["theirs"]
        if _MARKS.search(ours) or _MARKS.search(theirs):
            continue  # a heading underlined with seven signs, or a conflict in a conflict: nobody can tell them apart
        if both:
            mine = set(ours.splitlines())
            added = (line for line in theirs.splitlines(keepends=True) if line.rstrip("\r\n") not in mine)
            yield Edit(conflict.start(), conflict.end(), ours + "".join(added))
        elif _STATUS.sub(r"\1", ours) == _STATUS.sub(r"\1", theirs):
            yield Edit(conflict.start(), conflict.end(), ours)
