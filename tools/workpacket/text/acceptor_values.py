"""The acceptor's tests of single values: enumerations, types, texts and numbers.

A test is a function of a value of the type that it is for; see `acceptor` for how tests become schemas.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from workpacket.text.formats import FORMATS, FormatCheck
from workpacket.text.node import Plain
from workpacket.text.sameness import identity

Test: TypeAlias = Callable[[Any], bool]
Table: TypeAlias = dict[type, Test]


class UnknownKeyword(Exception):
    """The schema asks something that this module does not know."""


def always(_value: object) -> bool:
    return True


def every(tests: Iterable[Test]) -> Test:
    """One test in the place of several that must all be passed."""
    asked = [test for test in tests if test is not always]
    if len(asked) < 2:
        return asked[0] if asked else always
    if len(asked) == 2:
        first, second = asked
        return lambda value: first(value) and second(value)
    return lambda value: all(test(value) for test in asked)


def types(names: str | list[str]) -> Table:
    wanted = [names] if isinstance(names, str) else names
    table: Table = {_BY_NAME[name]: always for name in wanted if name in _BY_NAME}
    if "number" in wanted:
        table |= {int: always, float: always}
    elif "integer" in wanted:
        table |= {int: always, float: float.is_integer}
    return table


_BY_NAME: Mapping[str, type] = {"null": type(None), "boolean": bool, "string": str, "array": list, "object": dict}


def members(values: list[Plain]) -> Table:
    """The table of an enumeration. Numbers are one kind of value, whatever their type; truth values are another."""
    table: Table = {}
    for kinds in ((type(None),), (bool,), (int, float), (str,)):
        allowed = frozenset(value for value in values if type(value) in kinds)
        if allowed:
            table |= dict.fromkeys(kinds, allowed.__contains__)
    for kind in (list, dict):
        identities = frozenset(identity(value) for value in values if type(value) is kind)
        if identities:
            table[kind] = _among(identities)
    return table


def _among(identities: frozenset[str]) -> Test:
    return lambda value: identity(value) in identities


def text_test(schema: Mapping[str, Any]) -> Test:
    tests: list[Test] = []
    if "minLength" in schema:
        least = schema["minLength"]
        tests.append(lambda value: len(value) >= least)
    if "maxLength" in schema:
        most = schema["maxLength"]
        tests.append(lambda value: len(value) <= most)
    if "format" in schema:
        complaint = _format(schema["format"])
        tests.append(lambda value: not complaint(value))
    if "pattern" in schema:
        search = re.compile(schema["pattern"]).search
        tests.append(lambda value: search(value) is not None)
    return every(tests)


def _format(name: str) -> FormatCheck:
    if name not in FORMATS:
        raise UnknownKeyword(f"format {name}")
    return FORMATS[name]


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}


def number_test(schema: Mapping[str, Any]) -> Test:
    tests = [_compared(holds, schema[keyword]) for keyword, holds in _COMPARISONS.items() if keyword in schema]
    if "multipleOf" in schema:
        divisor = schema["multipleOf"]
        if not isinstance(divisor, int):
            raise UnknownKeyword("multipleOf a fraction, of which floats have opinions of their own")
        tests.append(lambda value: not value % divisor)
    return every(tests)


def _compared(holds: Callable[[Any, Any], bool], bound: float) -> Test:
    return lambda value: holds(value, bound)
