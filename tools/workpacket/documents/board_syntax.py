"""One line of a task board as an entry: `- **[WP-1-Parser-v1]** - [READY_FOR_DEV]`, and what people write instead.

    * [WP-1-Parser-v1] — READY_FOR_DEV
    - [ ] **WP-1-Parser-v1**: [Ready for Dev]
    1. `WP-1-Parser-v1` (ready for dev)

A line is an entry if it is an item that begins with an id, and the id is not the first word of a sentence. An id with
blanks in its name, in braces or in angles (`WP-{phase}-{name}`, `[WP_ID]`) is an example of the form.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import ACTIVE_TOKEN, BUILT_IN, LaneTable

Span = tuple[int, int]

# The form that is written; read first because nearly every line has it.
_CANONICAL = lazy_pattern(r"- \*\*\[(?P<id>WP-[A-Za-z0-9.-]*[A-Za-z0-9])\]\*\* - \[(?P<token>[A-Z_]+)\](?![(\[])")
_BEGINNING = lazy_pattern(
    r"(?P<indent>[ \t]*)(?:[-*+\u2022]|[0-9]{1,9}[.)])[ \t]*(?:\[[ xX]\][ \t]+)?"
    r"(?P<open>[*_~`]*)(?:\\?\[(?P<bracketed>[^\[\]]*?)\\?\](?:\([^()\s]*\))?|(?P<plain>(?i:WP)[-_0-9][-\w.{}<>]*))"
    r"(?P<close>[*_~`]*)"
)
_SEPARATOR = lazy_pattern(r"[ \t]*(?:(?:[-\u2013\u2014:|=>\u2192]+|[*_~]+)(?=[\s\[*_`~(]|\Z)[ \t]*)*")
_BRACKETED_TOKEN = lazy_pattern(r"[*_~`(]*\\?\[(?P<token>[^\[\]]*?)\\?\](?:\([^()\s]*\))?(?!\w)[*_~`)]*")
_EXAMPLE = lazy_pattern(r"WP_?ID\b|[{}<>]|\.\.\.", re.IGNORECASE)
_TOKEN_LIKE = lazy_pattern(r"[A-Z][A-Z_ ]+\Z")
_ID_LIKE = lazy_pattern(r"WP-(?:[0-9]+|[A-Z][A-Z0-9]*)-[A-Za-z0-9]", re.IGNORECASE)
_COMMENT = lazy_pattern(r"<!--.*?-->")


class EntrySyntax(NamedTuple):
    """Where things stand in the line. `head` is all up to the end of the token; a span is None if nothing is there."""

    head: Span
    id: Span
    token: Span | None
    rest: Span
    canonical: bool


def read_entry(line: str, lanes: LaneTable = BUILT_IN) -> EntrySyntax | None:
    """The entry that the line is, if it is one."""
    match = _CANONICAL.match(line)
    if match is None:
        return read_any_form(line, lanes)
    end = match.end()
    rest = (end, end) if end == len(line) else _rest(line, end)
    return EntrySyntax((0, end), match.span("id"), match.span("token"), rest, True)


def read_any_form(line: str, lanes: LaneTable = BUILT_IN) -> EntrySyntax | None:
    """The same, the long way, which the canonical form does not need."""
    beginning = _BEGINNING.match(line)
    # Code that opens before the id and does not close behind it quotes more than the id: an example.
    if beginning is None or beginning["open"].count("`") != beginning["close"].count("`"):
        return None
    group = "plain" if beginning["plain"] is not None else "bracketed"
    start, end = _trimmed(line, *beginning.span(group))
    name = line[start:end]
    if _EXAMPLE.search(name):
        return None
    behind = _behind_separator(line, beginning.end())
    token = _token(line, behind, lanes)
    if token is None:
        separated = behind == len(line) or bool(line[beginning.end() : behind].strip(" \t"))
        if beginning["indent"] or not separated or not _ID_LIKE.match(name):
            return None
        return EntrySyntax((0, beginning.end()), (start, end), None, _rest(line, beginning.end()), False)
    unlinked = group == "bracketed" and bool(name) and "](" not in beginning.group()
    whole_form = unlinked and bool(_TOKEN_LIKE.match(line[slice(*token[0])]))
    # Deeper in, only the whole form is an entry: everything else there is a note on the entry above.
    if not whole_form and (beginning["indent"] or name[:2].upper() != "WP"):
        return None
    return EntrySyntax((0, token[1]), (start, end), token[0], _rest(line, token[1]), False)


def _behind_separator(line: str, start: int) -> int:
    match = _SEPARATOR.match(line, start)
    return match.end() if match is not None else start


def _token(line: str, start: int, lanes: LaneTable) -> tuple[Span, int] | None:
    """The span of the token that stands at `start`, and where all that belongs to it ends."""
    bracketed = _BRACKETED_TOKEN.match(line, start)
    if bracketed is not None:
        return _trimmed(line, *bracketed.span("token")), bracketed.end()
    bare = _bare_token(lanes).match(line, start)
    return (bare.span("token"), bare.end()) if bare is not None else None


@cache
def _bare_token(lanes: LaneTable) -> re.Pattern[str]:
    names = {name for lane in lanes.lanes for name in (lane.token, lane.title)} | {ACTIVE_TOKEN, "Done"}
    words = "|".join(re.escape(name).replace("_", "[_ -]") for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"[*_~`(]*(?P<token>(?i:{words}))(?![\w-])[*_~`)]*")


def _rest(line: str, start: int) -> Span:
    """What stands behind the head, without the marks that separate it."""
    return _trimmed(line, _behind_separator(line, start), len(line))


def _trimmed(line: str, start: int, end: int) -> Span:
    while start < end and line[start] in " \t":
        start += 1
    while end > start and line[end - 1] in " \t":
        end -= 1
    return start, end


def without_comments(text: str) -> str:
    """A remark without HTML comments, which the rendered board does not show."""
    return _COMMENT.sub("", text).strip()
