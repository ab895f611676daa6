"""Syntax errors of YAML, in words for people who do not know its grammar."""

from __future__ import annotations

from workpacket.text.fault import Fault
from workpacket.text.source import Source
from workpacket.text.yaml_events import NotYaml

_QUOTE = "put the whole value in double quotes"
_NO_SIBLING = "this line fits no line above it"

# What libyaml and PyYAML say, what it means, and what to do; the first that fits counts.
_MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "mapping values are not allowed",
        "a ':' that makes a key stands where no key can be",
        f"if it is part of a value, {_QUOTE}; if it begins a new key, check the indentation and the line above",
    ),
    ("could not find expected ':'", "this is neither 'key: value' nor part of what is above", "add the ':' or indent"),
    ("cannot start any token", "no value can begin with this character", _QUOTE),
    ("unexpected end of stream", "this quote is never closed", "close it where the value ends"),
    ("unexpected document", "this quote is not closed before the '---'", "close it where the value ends"),
    ("unknown escape character", "this is no escape of YAML", "double the backslash, or use single quotes"),
    ("Unicode character escape", "this escape names no character", "double the backslash, or use single quotes"),
    ("hex", "this escape is not complete", "double the backslash, or use single quotes"),
    ("',' or ']'", "a list in brackets lacks a ',' or its ']'", ""),
    ("',' or '}'", "a mapping in braces lacks a ',' or its '}'", ""),
    ("comment or line break", "nothing but a comment can follow the mark of a block of text", ""),
    ("chomping or indentation", "nothing but a comment can follow the mark of a block of text", ""),
    (
        "sequence entries are not allowed",
        "a list item stands where no list can begin",
        "begin a new line, or " + _QUOTE,
    ),
    ("did not find expected key", _NO_SIBLING, "align it with its siblings"),
    ("<block end>", _NO_SIBLING, "align it with its siblings"),
    ("expected '-' indicator", _NO_SIBLING, "align it with its siblings, or begin it with '- '"),
)
# Told best where they begin, not where the parser gave up.
_SHOWN_AT_THEIR_START = ("could not find expected ':'", "unexpected document")


def syntax_fault(source: Source, start: int, end: int, error: NotYaml) -> Fault:
    """The fault for the text in [start, end) of `source`, which stops being YAML."""
    at, since = start + error.at, start + error.since
    if source.text[at:end].startswith("\t"):
        return Fault("yaml_tab", at, at + 1, "a tab where blanks must stand", "replace it by blanks")
    line, column = source.line_and_column(at)
    meaning, hint = next(
        ((meaning, hint) for said, meaning, hint in _MEANINGS if said in error.problem), (error.problem, "")
    )
    if meaning == _NO_SIBLING and source.line(line)[: column - 1].strip():
        meaning, hint = "the value has ended before this", _QUOTE
    # What is never closed is no news at the end of the file.
    if any(said in error.problem for said in _SHOWN_AT_THEIR_START) or not source.text[at:end].strip():
        at, line = since, source.line_and_column(since)[0]
    begun = source.line_and_column(since)[0]
    if begun != line:
        meaning = f"{meaning} (it belongs to what begins on line {begun})"
    return Fault("yaml_syntax", at, min(at + 1, end), meaning, hint)
