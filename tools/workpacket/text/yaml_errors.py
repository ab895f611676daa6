"""Syntax errors of YAML, in words for people who do not know its grammar."""

from __future__ import annotations

from workpacket.text.fault import Fault
from workpacket.text.source import Source
from workpacket.text.yaml_events import NotYaml

QUOTE_IT = "put the value in double quotes"

# What libyaml and PyYAML say, what it means, and what to do; the first that fits counts.
_MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "mapping values are not allowed",
        "a ':' that makes a key stands where no key can be",
        f"if the ':' is part of a value, {QUOTE_IT}; if this begins a new key, check the indentation",
    ),
    ("could not find expected ':'", "this is neither 'key: value' nor part of what is above", "add the ':' or indent"),
    ("cannot start any token", "no value can begin with this character", QUOTE_IT),
    ("unexpected end of stream", "this quote is never closed", "close it where the value ends"),
    ("unexpected document separator", "this quote is not closed before the '---'", "close it where the value ends"),
    ("unknown escape character", "this is no escape of YAML", "double the backslash, or use single quotes"),
    ("Unicode character escape", "this escape names no character", ""),
    ("hexadecimal", "this escape is not complete", "double the backslash, or use single quotes"),
    ("',' or ']'", "a list in brackets lacks a ',' or its ']'", ""),
    ("',' or '}'", "a mapping in braces lacks a ',' or its '}'", ""),
    ("did not find expected key", "this line fits no line above it", "align it with its siblings"),
    ("<block end>", "this line fits no line above it", "align it with its siblings"),
    ("block sequence entries are not allowed", "a list item stands where no list can begin", ""),
    ("expected '-' indicator", "a list goes on with something that is no item", "begin the line with '- '"),
)
# Told best where they begin, not where the parser gave up.
_SHOWN_AT_THEIR_START = ("could not find expected ':'", "unexpected document separator")


def syntax_fault(source: Source, start: int, end: int, error: NotYaml) -> Fault:
    """The fault for the text in [start, end) of `source`, which stops being YAML."""
    at, since = start + error.at, start + error.since
    if source.text[at:end].startswith("\t"):
        return Fault("yaml_tab", at, at + 1, "a tab where blanks must stand", "replace it by blanks")
    meaning, hint = next(
        ((meaning, hint) for said, meaning, hint in _MEANINGS if said in error.problem), (error.problem, "")
    )
    # What is never closed is no news at the end of the file.
    if error.problem.endswith(_SHOWN_AT_THEIR_START) or not source.text[at:end].strip():
        at = since
    begun = source.line_and_column(since)[0]
    if begun != source.line_and_column(at)[0]:
        meaning = f"{meaning} (it belongs to what begins on line {begun})"
    return Fault("yaml_syntax", at, min(at + 1, end), meaning, hint)
