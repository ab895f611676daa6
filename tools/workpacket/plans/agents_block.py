"""The section that `init` keeps in AGENTS.md, between two marks; every other byte of the file is its owner's."""

from __future__ import annotations

import re

from workpacket.lazy_pattern import lazy_pattern
from workpacket.value import Value

AGENTS = "AGENTS.md"
BEGIN = "<!-- workpacket:begin; written by `workpacket init`, compared by `workpacket init --check` -->"
END = "<!-- workpacket:end -->"
_MARK = lazy_pattern(r"^<!-- workpacket:(begin|end)\b[^\r\n]*-->[ \t]*(?=\r?$)", re.MULTILINE)


class Block(Value):
    """The marked lines in [start, end), without the end of the last line."""

    start: int
    end: int


def find_blocks(text: str) -> tuple[Block, ...] | None:
    """The block, `()` without one; None where the marks are not one pair, so that nobody can say what is ours."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return ()
    if [mark[1] for mark in marks] != ["begin", "end"]:
        return None
    return (Block(marks[0].start(), marks[1].end()),)


def marked(section: str) -> str:
    return f"{BEGIN}\n{section.rstrip()}\n{END}"


def with_block(text: str, blocks: tuple[Block, ...], section: str) -> str:
    """The text with the present section in the place of the old one, or behind everything."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    new = marked(section).replace("\n", line_end)
    if blocks:
        return text[: blocks[0].start] + new + text[blocks[0].end :]
    if not text:
        return f"# Instructions for agents\n\n{new}\n"
    return text + ("" if text.endswith("\n") else line_end) + line_end + new + line_end
