"""Patterns of JSON Schema, made into Python patterns that mean the same.

JSON Schema takes its patterns from ECMA-262. Given to `re` as they are, most of them work, and a few lie: `$` also
matches before a final line break, `\\d` and `\\w` take digits and letters of every script, `.` takes a carriage return.
`translate` writes out what is meant. What Python has of its own, or reads differently, it refuses with the place: a
schema of ours has to say the same thing here and in the editor of whoever uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.lazy_pattern import lazy_pattern

_DIGITS = "0-9"
_WORD = "A-Za-z0-9_"
_SPACE = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SETS = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_BOUNDARIES = {
    r"\b": f"(?:(?<![{_WORD}])(?=[{_WORD}])|(?<=[{_WORD}])(?![{_WORD}]))",
    r"\B": f"(?:(?<![{_WORD}])(?![{_WORD}])|(?<=[{_WORD}])(?=[{_WORD}]))",
}
_LINE_ENDS = r"\n\r\u2028\u2029"
_SYNTAX = frozenset(r"^$\.*+?()[]{}|/")
_CONTROLS = frozenset("tnvfr")

_TOKEN = lazy_pattern(
    r"""
    (?P<set> \[ (?: \\. | [^\]\\] )* \] )
  | (?P<open> \( (?: \?: | (?!\?) ) )
  | (?P<look> \( \? [=!] )
  | (?P<close> \) )
  | (?P<repeat> (?: [*+?] | \{ [0-9]+ (?: , [0-9]* )? \} ) \?? )
  | (?P<boundary> \\ [bB] )
  | (?P<escape> \\ (?: u[0-9A-Fa-f]{4} | x[0-9A-Fa-f]{2} | . ) )
  | (?P<anchor> [\^$] )
  | (?P<or> \| )
  | (?P<any> \. )
  | (?P<literal> [^\\\[\](){}*+?|.^$] )
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER = lazy_pattern(r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)|.", re.DOTALL)


class UnusablePattern(ValueError):
    """The pattern does not mean the same to Python and to ECMA-262, or nothing at all."""


def translate(pattern: str) -> str:
    """The Python pattern with the meaning that `pattern` has in ECMA-262, for `re.search`."""
    translated = "".join(_pieces(pattern))
    try:
        re.compile(translated)
    except re.error as error:
        raise UnusablePattern(f"the pattern {pattern!r} cannot be read: {error.msg}") from None
    return translated


def _pieces(pattern: str) -> Iterator[str]:
    groups: list[str] = []
    repeatable = False
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        kind = token.lastgroup if token else None
        if token is None or (kind == "repeat" and not repeatable) or (kind == "close" and not groups):
            raise _refusal(pattern, position)
        text = token[0]
        if kind in {"open", "look"}:
            groups.append(kind)
        repeatable = groups.pop() == "open" if kind == "close" else kind in {"set", "escape", "any", "literal"}
        position = token.end()
        try:
            yield _piece(kind, text)
        except KeyError:
            raise _refusal(pattern, token.start()) from None


def _piece(kind: str | None, text: str) -> str:
    if kind == "set":
        return _set(text)
    if kind == "escape":
        return _escape(text)
    if kind == "boundary":
        return _BOUNDARIES[text]
    if kind == "any":
        return f"[^{_LINE_ENDS}]"
    if kind == "literal":
        return re.escape(text)
    return r"\Z" if text == "$" else text


def _escape(text: str) -> str:
    """A `\\` and what it changes the meaning of, outside a set. KeyError: not both languages know it."""
    letter = text[1]
    if letter.lower() in _SETS:
        return f"[{'^' if letter.isupper() else ''}{_SETS[letter.lower()]}]"
    if letter == "-":
        raise KeyError(text)  # a dash is only special, and so only escaped, within a set
    return _character(text)


def _set(text: str) -> str:
    """`[...]`, its members one by one. KeyError: not both languages read it so."""
    negated = text.startswith("[^")
    members = _MEMBER.findall(text[2:-1] if negated else text[1:-1])
    if not members:
        raise KeyError(text)
    written: list[str] = []
    index = 0
    while index < len(members):
        if members[index + 1 : index + 2] == ["-"] and index + 2 < len(members):
            written.append(f"{_character(members[index])}-{_character(members[index + 2])}")
            index += 3
        else:
            member = members[index]
            written.append(_SETS.get(member[1:]) or _character(member))
            index += 1
    return f"[{'^' if negated else ''}{''.join(written)}]"


def _character(text: str) -> str:
    """One character that stands for itself, however it was written."""
    if len(text) == 1:
        return re.escape(text)
    letter, digits = text[1], text[2:]
    if digits:
        code = int(digits, 16)
        if 0xD800 <= code <= 0xDFFF:
            raise KeyError(text)  # half a character: the two languages put the halves together differently
        return re.escape(chr(code))
    if letter in _CONTROLS:
        return text
    if letter in _SYNTAX or letter == "-":
        return re.escape(letter)
    raise KeyError(text)


def _refusal(pattern: str, position: int) -> UnusablePattern:
    shown = pattern[position : position + 8]
    return UnusablePattern(
        f"the pattern {pattern!r} says {shown!r} at offset {position}, which Python and ECMA-262 do not both understand"
    )
