r"""Schema files prepared for judging: every `$ref` replaced by its target, every pattern translated for Python.

A schema refers to its own `#/$defs/<name>` or to `common.schema.json#/$defs/<name>`, and to nothing else: nothing is
ever fetched. Anything this layer would not honor (an unknown keyword, a format without a check, a pattern that two
languages read differently, a circle of references) is refused here, because a schema that is silently weaker than it
reads is worse than none. These are faults of the package, not of a user's document, and are therefore exceptions.

JSON Schema takes its patterns from ECMA-262. Passed to `re` unchanged, most of them work, but a few mislead: `$` also
matches before a final line break, `\d` and `\w` match digits and letters of every script, `.` matches a carriage
return. `translate` spells out the ECMA-262 meaning. Whatever Python alone supports, or reads differently, is refused
with its position: our schemas must mean the same here and in the user's editor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.formats import FORMATS
from workpacket.value import Value

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
    """Raised if the pattern is invalid, or means something different in Python and in ECMA-262."""


def translate(pattern: str) -> str:
    """Return the Python pattern for `re.search` with the meaning that `pattern` has in ECMA-262."""
    translated = "".join(_pieces(pattern))
    try:
        _ = lazy_pattern(translated).pattern
    except re.error as error:
        raise UnusablePattern(f"the pattern {pattern!r} cannot be parsed: {error.msg}") from None
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
    """Translate a `\\` and the character that it modifies, outside a set. Raises KeyError if one of the languages does
    not support it.
    """
    letter = text[1]
    if letter.lower() in _SETS:
        return f"[{'^' if letter.isupper() else ''}{_SETS[letter.lower()]}]"
    if letter == "-":
        raise KeyError(text)  # a dash is special, and therefore escaped, only within a set
    return _character(text)


def _set(text: str) -> str:
    """Translate `[...]`, member by member. Raises KeyError if the two languages read it differently."""
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
    """Return one literal character, regardless of how it was written."""
    if len(text) == 1:
        return re.escape(text)
    letter, digits = text[1], text[2:]
    if digits:
        code = int(digits, 16)
        if 0xD800 <= code <= 0xDFFF:
            raise KeyError(text)  # a lone surrogate: the two languages combine surrogates differently
        return re.escape(chr(code))
    if letter in _CONTROLS:
        return text
    if letter in _SYNTAX or letter == "-":
        return re.escape(letter)
    raise KeyError(text)


def _refusal(pattern: str, position: int) -> UnusablePattern:
    shown = pattern[position : position + 8]
    return UnusablePattern(
        f"the pattern {pattern!r} contains {shown!r} at offset {position}, which Python and ECMA-262 do not both "
        "support"
    )


Schema: TypeAlias = "bool | dict[str, Any]"
Read: TypeAlias = Callable[[str], bytes]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SHARED = "common"

REFERENCE = lazy_pattern(rf"(?P<shared>{SHARED}\.schema\.json)?#/\$defs/(?P<name>[A-Za-z0-9_-]+)\Z")

HEADER = frozenset(["$schema", "$id", "$comment", "$defs"])
ANNOTATIONS = frozenset(["title", "description", "examples", "default", "deprecated", "readOnly", "writeOnly"])
ONE_SCHEMA = frozenset(
    ["additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedProperties"]
)
SCHEMA_LISTS = frozenset(["allOf", "anyOf", "oneOf", "prefixItems"])
SCHEMA_MAPS = frozenset(["dependentSchemas", "patternProperties", "properties"])
ASSERTIONS = frozenset(
    ["const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems",
     "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
     "multipleOf", "pattern", "required", "type", "uniqueItems"]
)  # fmt: skip
# Under these keywords, jsonschema, the acceptor and the messages recognize `false`; elsewhere it becomes {"not": {}}.
_MAY_BE_FALSE = frozenset(["additionalProperties", "items", "unevaluatedProperties"])


class UnusableSchema(ValueError):
    """Raised if a schema file uses something unsupported; the message gives the file and the location."""


def is_annotation(keyword: str) -> bool:
    """Whether the keyword only informs people and tools, without constraining a value."""
    return keyword in ANNOTATIONS or keyword.startswith("x-")


class Loader:
    """Loads schemas by name ("stub" for the file stub.schema.json); each file is requested once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._files: dict[str, dict[str, Any]] = {}
        self._definitions: dict[tuple[str, str], Schema] = {}

    def load(self, name: str) -> Schema:
        return self._ready(self._file(name), _Place(name, "", ()))

    def _file(self, name: str) -> dict[str, Any]:
        if name not in self._files:
            self._files[name] = parse_schema(name, self._read(name))
        return self._files[name]

    def _ready(self, schema: object, place: _Place) -> Schema:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise place.refusal("is not a schema")
        ready: dict[str, Any] = {
            keyword: self._argument(keyword, argument, place.below(keyword))
            for keyword, argument in schema.items()
            if keyword not in {"$comment", "$ref"} and not (place.is_root and keyword in HEADER)
        }
        if "$ref" not in schema:
            return ready
        target = self._referred(schema["$ref"], place.below("$ref"))
        if not ready:
            return target
        if isinstance(target, dict) and all(map(is_annotation, ready)):
            return {**target, **ready}
        return {**ready, "allOf": [target, *ready.get("allOf", [])]}

    def _argument(self, keyword: str, argument: object, place: _Place) -> object:
        if keyword in ASSERTIONS:
            return _assertion(keyword, argument, place)
        if keyword in ONE_SCHEMA:
            return self._ready(argument, place) if keyword in _MAY_BE_FALSE else self._inner(argument, place)
        if keyword in SCHEMA_LISTS and isinstance(argument, list):
            return [self._inner(schema, place.below(str(index))) for index, schema in enumerate(argument)]
        if keyword in SCHEMA_MAPS and isinstance(argument, dict):
            named = {name: self._inner(schema, place.below(name)) for name, schema in argument.items()}
            return named if keyword != "patternProperties" else {_pattern(name, place): named[name] for name in named}
        if is_annotation(keyword):
            return argument
        raise place.refusal("is not a supported keyword, or has the wrong type of argument")

    def _inner(self, schema: object, place: _Place) -> Schema:
        ready = self._ready(schema, place)
        return {"not": {}} if ready is False else ready

    def _referred(self, reference: object, place: _Place) -> Schema:
        match = REFERENCE.match(reference) if isinstance(reference, str) else None
        if match is None:
            raise place.refusal(
                f"refers to {reference!r}; only `#/$defs/<name>` and `{SHARED}.schema.json#/$defs/<name>` are followed"
            )
        key = (SHARED if match["shared"] else place.file, match["name"])
        if key in place.trail:
            raise place.refusal(f"refers to itself: {' -> '.join(name for _, name in (*place.trail, key))}")
        if key not in self._definitions:
            definitions = self._file(key[0]).get("$defs", {})
            if key[1] not in definitions:
                raise place.refusal(f"refers to {reference!r}, which does not exist")
            target = _Place(key[0], f"/$defs/{key[1]}", (*place.trail, key))
            self._definitions[key] = self._inner(definitions[key[1]], target)
        return self._definitions[key]


class _Place(Value):
    """The loader's position: the file, the JSON pointer in it, and the definitions that led there."""

    file: str
    pointer: str
    trail: tuple[tuple[str, str], ...]

    @property
    def is_root(self) -> bool:
        return not self.pointer

    def below(self, step: str) -> _Place:
        return _Place(self.file, f"{self.pointer}/{step}", self.trail)

    def refusal(self, why: str) -> UnusableSchema:
        return UnusableSchema(f"{self.file}.schema.json#{self.pointer} {why}")


def parse_schema(name: str, text: bytes) -> dict[str, Any]:
    """Return the JSON value of a schema file, without resolving anything."""
    place = _Place(name, "", ())
    try:
        schema = json.loads(text, object_pairs_hook=_without_repetition)
    except ValueError as error:
        raise place.refusal(f"is not JSON: {error}") from None
    if not isinstance(schema, dict) or schema.get("$schema") != DIALECT:
        raise place.refusal(f'does not have `"$schema": "{DIALECT}"`')
    return schema


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError(f"duplicate key; the keys are {sorted(unique)}")
    return unique


def _assertion(keyword: str, argument: object, place: _Place) -> object:
    if keyword == "pattern":
        return _pattern(argument, place)
    if keyword == "format" and not (isinstance(argument, str) and argument in FORMATS):
        raise place.refusal(f"specifies the format {argument!r}; supported formats are {', '.join(FORMATS)}")
    return argument


def _pattern(pattern: object, place: _Place) -> str:
    if not isinstance(pattern, str):
        raise place.refusal("cannot be used: a pattern must be a string")
    try:
        return translate(pattern)
    except UnusablePattern as unusable:
        raise place.refusal(f"cannot be used: {unusable}") from None
