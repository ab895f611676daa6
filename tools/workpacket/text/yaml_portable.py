"""What YAML readers read differently, found in a text that one of them has accepted.

YAML 1.1 and 1.2, libyaml and PyYAML's own parser agree on nearly everything people write. The rest is refused, so that
a file has one meaning or none, on every machine (the tests compare the two parsers on random text, and both with the
published results of yaml-test-suite):

- a tab anywhere but in a comment, in quotes, or inside the lines of a block scalar;
- a comment without a blank before its '#', which is text to some readers;
- a key marked with '?', and a lone '?' or '-' in brackets;
- a plain key in brackets whose ':' touches the next bracket or comma;
- a block scalar whose last line is blank and ends with the file (one that is the whole document, `yaml_tree` refuses).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.findings import Fix
from workpacket.text.edits import Run, fix_of
from workpacket.text.fault import Fault

Scalar: TypeAlias = tuple[int, int, bool]
"""Where a scalar begins and ends in the text, and whether it stands in brackets."""

# Most texts hold none of these; only one that does is looked at scalar by scalar. Each begins with a character of its
# own, for which a text is searched faster than for what may stand before it.
_SUSPECT = lazy_pattern(
    r"\t|#(?<=\S#)|:(?=[,\[\]{}])|\?(?<![^\s,\[\]{}]\?)(?=[\s,\[\]{}]|\Z)|-(?<![^\s,\[\]{}]-)(?=[,\[\]{}])"
)
_BETWEEN_SCALARS = lazy_pattern(r"#[^\r\n]*+|\t++|[?:]")
_LONE_QUESTION_MARK = lazy_pattern(r"(?<!\S)\?(?=[\s,\[\]{}]|\Z)")
_BLOCK = lazy_pattern(
    r"[|>](?P<marks>[-+0-9]*)(?P<rest>[^\r\n]*)(?:\r\n|\r|\n)?(?P<lead>[ \r\n]*+)(?P<tab>\t)?",
)


def faults(text: str, start: int, scalars: list[Scalar]) -> Iterator[Fault]:
    """The places of `text`, which stands at `start` of its source and has these scalars, that readers dispute."""
    yield from _unfinished(text, start, scalars)
    if _SUSPECT.search(text) is None:
        return
    done, may_be_key = 0, False
    for first, end, in_brackets in scalars:
        yield from _between(text, done, first, start, after_plain=may_be_key)
        yield from _within(text, (first, end, in_brackets), start)
        done, may_be_key = end, in_brackets and first < end and text[first] not in "\"'"
    yield from _between(text, done, len(text), start, after_plain=may_be_key)


def end_of_block_scalar(text: str, start: int, end: int) -> int:
    """Where the last line of the block scalar in [start, end) ends: blank lines after it belong to it only if kept."""
    end = min(end, len(text))
    header = _BLOCK.match(text, start)
    if header is None or header["marks"].strip("-"):
        return end
    lines = text[start:end].splitlines(keepends=True)
    contents = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line.strip()]
    while len(lines) > 1 and not lines[-1].strip() and len(lines[-1].rstrip("\r\n")) <= min(contents, default=-1):
        end -= len(lines.pop())
    return end


def _between(text: str, done: int, first: int, start: int, *, after_plain: bool) -> Iterator[Fault]:
    """What is wrong between the scalar that ends at `done` and the one that begins at `first`."""
    for found in _BETWEEN_SCALARS.finditer(text, done, first):
        at = found.start()
        match text[at]:
            case "\t":
                blank = [Run(text, at, found.end(), start).replaced_by(" ")]
                fix = fix_of((start + at, start + at + 1), blank, safe=True, title="replace it by a blank")
                yield _tab(start + at, "a tab between values", fix)
            case "#" if at and text[at - 1] not in " \t\r\n":
                yield _glued(text, at, start)
            case "?":
                yield _question_mark(start + at)
            case ":" if after_plain and not text[done:at].strip() and text[at + 1] in ",[]{}":
                message = "the ':' of this key touches what comes next"
                yield Fault("yaml_syntax", start + at, start + at + 1, message, "put a blank after the ':'")


def _within(text: str, scalar: Scalar, start: int) -> Iterator[Fault]:
    """What is wrong inside a scalar."""
    first, end, in_brackets = scalar
    if text[first:end].startswith(("'", '"')):
        return
    block = _BLOCK.match(text, first, end)
    if block:
        yield from _within_block(block, start)
        return
    tab = text.find("\t", first, end)
    if tab >= 0:
        yield _tab(start + tab, "a tab in a value without quotes")
    if in_brackets and text[first:end] == "-":
        message = "a '-' alone in brackets is no value"
        yield Fault("yaml_syntax", start + first, start + end, message, "put it in quotes")
    lone = _LONE_QUESTION_MARK.search(text, first, end) if in_brackets else None
    if lone:
        yield _question_mark(start + lone.start())


def _within_block(parts: re.Match[str], start: int) -> Iterator[Fault]:
    before_comment, number_sign, _ = parts["rest"].partition("#")
    if "\t" in before_comment:
        yield _tab(start + parts.start("rest") + before_comment.index("\t"), "a tab after the mark of a block of text")
    if number_sign and not before_comment:
        yield _glued(parts.string, parts.start("rest"), start)
    if parts["tab"] and not parts["marks"].strip("-+"):
        yield _tab(start + parts.start("tab"), "a tab where the indentation of a block of text begins")


def _unfinished(text: str, start: int, scalars: list[Scalar]) -> Iterator[Fault]:
    first, end, _ = scalars[-1] if scalars else (0, 0, False)
    if not text[first:end].startswith(("|", ">")) or text[end:].strip():
        return
    blanks = len(text.rstrip(" "))
    if blanks < len(text) and text[blanks - 1] in "\r\n":
        message = "a block of text ends with a line of blanks that has no line end"
        yield Fault("yaml_unfinished_block", start + blanks, start + len(text), message)


def _tab(at: int, message: str, fix: Fix | None = None) -> Fault:
    return Fault("yaml_tab", at, at + 1, message, fix=fix)


def _glued(text: str, at: int, start: int) -> Fault:
    span = (start + at, start + at + 1)
    blank = [Run(text, at, at, start).replaced_by(" ")]
    fix = fix_of(span, blank, safe=True, title="put a blank before the comment")
    return Fault("yaml_comment_without_blank", *span, "a comment begins without a blank before its '#'", fix=fix)


def _question_mark(at: int) -> Fault:
    message = "a '?' that stands alone marks a key to some readers and is text to others"
    return Fault("yaml_question_mark", at, at + 1, message)
