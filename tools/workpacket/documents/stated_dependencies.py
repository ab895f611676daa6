"""What the text of a work package says about its dependencies, besides its front matter.

Two ways of saying it are understood. A command: `spec-kitty implement WP07 --base WP05`. A sentence or field about the
package itself: `This WP depends on WP01 and WP02`, `**Depends on**: WP01 (models) + WP03`, `Dependencies: none`; below
a heading `Dependencies`, each list item that begins with an id. What other packages or subtasks depend on, and prose
that names packages in any other way, says nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.blocks import Block, walk
from workpacket.text.keys import normal_key
from workpacket.text.source import Source

Way = Literal["command", "sentence", "none"]

_ID = r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,76}--)?WP[0-9]{2,9}"
_COMMAND = lazy_pattern(rf"\bimplement\s+(?P<own>WP[0-9]{{2,9}})\b[^\n`]{{0,80}}?--base[ =](?P<base>{_ID})\b")
# What may stand between words, at most and at least; bounded, so that no text takes long.
_GAP = r"[\s*_`>]{0,40}"
_SPACE = r"[\s*_`>]{1,40}"
_SUBJECT = rf"(?:(?:this|the) (?:WP|work package)|it|(?P<own>WP[0-9]{{2,9}})){_SPACE}"
_VERB = rf"depends{_SPACE}(?:only{_SPACE})?(?:up)?on\b|dependenc(?:y|ies)\b(?={_GAP}:)"
_BEGIN = rf"\A|(?<=[.;:!?(,\u2014\u2013])|\n(?={_GAP}[-*+>])"
_SENTENCE = lazy_pattern(
    rf"(?:{_BEGIN})[\s*_`>()+-]{{0,40}}(?:{_SUBJECT})?(?:{_VERB}){_GAP}:?{_GAP}(?:its{_SPACE}predecessors?{_SPACE})?",
    re.IGNORECASE,
)
_ONE = lazy_pattern(rf"(?P<first>{_ID})(?: ?[-\u2013\u2014]{{1,2}} ?(?P<last>WP[0-9]{{2,9}}))?(?![\w-]{{0,80}}\w)")
_BETWEEN = lazy_pattern(rf"{_GAP}(?:\([^()]{{0,200}}\){_GAP})?(?:(?:,|\+|&|/|and\b|;){_GAP}){{1,3}}")
_NONE = lazy_pattern(r"(?:none|nothing|no other|n/a|[\u2014\u2013-])(?:[\s*_.,;(]|\Z)", re.IGNORECASE)
_MOST_IN_A_RANGE = 99
_HEADINGS = frozenset({"dependencies", "depends_on"})


class Stated(NamedTuple):
    """One package that the text names as a dependency, or, with `id` '', that it has none."""

    id: str
    start: int
    end: int
    way: Way


def stated_dependencies(source: Source, blocks: Iterable[Block], own: str) -> list[Stated]:
    """Every statement about the dependencies of the package `own`, in the order of the text."""
    found: list[Stated] = []
    heading = ""
    for block in walk(blocks):
        if not block.spans:
            if block.kind == "item" and heading in _HEADINGS:
                found += _in_item(source.text, block)
            continue
        if block.kind == "heading":
            heading = normal_key(block.text(source.text))
        start, end = block.spans[0][0], block.spans[-1][1]
        if block.kind in {"paragraph", "fence", "code"}:
            found += _in_commands(source.text, start, end, own)
        if block.kind == "paragraph":
            found += _in_sentences(source.text, start, end, own)
    return found


def _in_item(text: str, item: Block) -> Iterator[Stated]:
    """What an item says that begins with an id, or with none."""
    first = item.children[0] if item.children else item
    if first.kind != "paragraph":
        return
    start, end = first.spans[0]
    body = text[start:end]
    begin = len(body) - len(body.lstrip("*_`"))
    if _NONE.match(body, begin):
        yield Stated("", start + begin, start + begin + 1, "none")
    else:
        yield from _ids(body, begin, start)


def _in_commands(text: str, start: int, end: int, own: str) -> Iterator[Stated]:
    if text.find("--base", start, end) < 0:
        return
    for match in _COMMAND.finditer(text, start, end):
        if match["own"] == own:
            yield Stated(match["base"], *match.span("base"), "command")


def _in_sentences(text: str, start: int, end: int, own: str) -> Iterator[Stated]:
    # The pattern is anchored to the beginning of the paragraph, so the paragraph is cut out first.
    body = text[start:end]
    if "epend" not in body and "EPEND" not in body:
        return
    for match in _SENTENCE.finditer(body):
        if match["own"] not in (None, own):
            continue
        at = match.end()
        none = _NONE.match(body, at)
        if none and ":" in match.group():
            yield Stated("", start + none.start(), start + none.start() + 1, "none")
            continue
        yield from _ids(body, at, start)


def _ids(body: str, at: int, offset: int) -> Iterator[Stated]:
    while (one := _ONE.match(body, at)) is not None:
        for name in _range(one["first"], one["last"]):
            yield Stated(name, offset + one.start(), offset + one.end(), "sentence")
        between = _BETWEEN.match(body, one.end())
        if between is None:
            return
        at = between.end()


def _range(first: str, last: str | None) -> list[str]:
    """`WP01`, or all of `WP01-WP03`."""
    if last is None:
        return [first]
    low, high = int(first.rpartition("WP")[2]), int(last[2:])
    if not low <= high <= low + _MOST_IN_A_RANGE:
        return [first, last]
    return [f"WP{number:0{len(last) - 2}d}" for number in range(low, high + 1)]
