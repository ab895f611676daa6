"""The entry point to JSON Schema: whether a value matches the schema of its kind, and if not, what is wrong with it.

Schemas are JSON Schema 2020-12, in files `<name>.schema.json`. schemas/README.md describes what they may contain, and
the annotations `x-label` and `x-noun`, which let messages use the words of the document. Nothing here opens a file:
file contents come from the function given to `SchemaSet`, and references lead nowhere else.

A valid value is recognized by a compiled acceptor. For any other value, `jsonschema` is imported to decide; its
complaints are then reworded for the author of the document.

An acceptor is a schema compiled to nested closures. Nearly every value is valid, and `jsonschema` takes 50 ms to import
and milliseconds to confirm it; an acceptor takes microseconds. It can only say yes; if it does not, `jsonschema`
decides and explains. A schema with an unknown keyword has no acceptor at all. tests/text/test_acceptor.py proves that
both agree, including on the published test suite.

A schema becomes a table from the type of a value to the test that a value of this type must pass; a type missing from
the table is refused. Combining schemas means combining tables, so `oneOf` a string and a list takes one lookup. Values
come from a strict loader, so they have exactly these types and contain no NaN.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.text.formats import FORMATS, FormatCheck
from workpacket.text.schema_loading import Loader, Read, Schema, UnusableSchema, is_annotation
from workpacket.text.source import Plain

Test: TypeAlias = Callable[[Any], bool]
Table: TypeAlias = dict[type, Test]

__all__ = ["SchemaSet", "UnusableSchema"]


def identity(value: Plain) -> str:
    """Return a string that two values share if and only if they are the same JSON value.

    `True == 1` is true in Python but not in JSON Schema; `1 == 1.0` is true in both. With strings, a set finds
    repetitions in one pass even in hostile lists: hashes of strings are keyed, while hashes of numbers and tuples can
    be made to collide.
    """
    return json.dumps(_whole(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def repetitions(items: list[Plain]) -> list[tuple[int, int]]:
    """Return, for each item that equals an earlier one, its index and the index of the first such item."""
    first: dict[str, int] = {}
    repeated: list[tuple[int, int]] = []
    for index, item in enumerate(items):
        earlier = first.setdefault(identity(item), index)
        if earlier != index:
            repeated.append((index, earlier))
    return repeated


def _whole(value: Plain) -> Plain:
    """Return the value with every whole-number float replaced by an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value


class EvaluatedFields:
    """The fields of a mapping that an accepting schema has evaluated, for `unevaluatedProperties`.

    A field counts if the schema, or a schema that it applies to the same value (`allOf`, the matching branches of
    `anyOf` and `oneOf`, `if` and its consequence), names it, has a pattern for it or has a rule for all others.
    `jsonschema` computes this with lists that it searches again for every field; here it is linear, and shared by
    acceptor and judge. `holds` returns the test for whether a schema matches.
    """

    def __init__(self, schema: dict[str, Any], holds: Callable[[Schema], Test]) -> None:
        self._names: set[str] = set()
        self._patterns: list[str] = []
        self._everything = False
        self._conditional: list[tuple[Test, EvaluatedFields]] = []
        self._holds = holds
        self._add(schema, whole=False)

    def rest(self, value: dict[str, Any]) -> list[str]:
        """Return the fields of `value` that no schema has evaluated."""
        layers = [self]
        for layer in layers:
            layers += [inner for applies, inner in layer._conditional if applies(value)]
        if any(layer._everything for layer in layers):
            return []
        search = re.compile("|".join(pattern for layer in layers for pattern in layer._patterns) or r"(?!)").search
        return [name for name in value if not any(name in layer._names for layer in layers) and not search(name)]

    def _add(self, schema: Schema, *, whole: bool = True) -> None:
        """Add the fields that a schema evaluates if it matches; `whole` includes its own rule for all other fields."""
        if isinstance(schema, bool):
            return
        self._names.update(schema.get("properties", ()))
        self._patterns += schema.get("patternProperties", ())
        self._everything |= "additionalProperties" in schema or (whole and "unevaluatedProperties" in schema)
        for also in schema.get("allOf", ()):
            self._add(also)
        for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            self._add_if(self._holds(branch), branch)
        if "if" in schema:
            condition = self._holds(schema["if"])
            self._add_if(condition, schema["if"], schema.get("then", True))
            self._add_if(lambda value: not condition(value), schema.get("else", True))
        for name, also in schema.get("dependentSchemas", {}).items():
            self._add_if(self._holds({"required": [name]}), also)

    def _add_if(self, applies: Test, *schemas: Schema) -> None:
        self._conditional.append((applies, EvaluatedFields({"allOf": schemas}, self._holds)))


class UnknownKeyword(Exception):
    """Raised if the schema uses a keyword that this module does not know."""


def always(_value: object) -> bool:
    return True


def every(tests: Iterable[Test]) -> Test:
    """Return a single test that passes only if all of the given tests do."""
    asked = [test for test in tests if test is not always]
    if len(asked) < 2:
        return asked[0] if asked else always
    first, second, *rest = asked
    if not rest:
        return lambda value: first(value) and second(value)
    # A generator would take as long as two tests, and three tests are the most common number.
    third = every(rest)
    return lambda value: first(value) and second(value) and third(value)


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
    """Return the table for an enumeration. Numbers are one kind of value, whatever their type; booleans are another."""
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
    tests: list[Test] = [_length(schema.get("minLength", 0), schema.get("maxLength"))]
    if "format" in schema:
        complaint = _format(schema["format"])
        tests.append(lambda value: not complaint(value))
    if "pattern" in schema:
        pattern = lazy_pattern(schema["pattern"])
        tests.append(lambda value: pattern.search(value) is not None)
    return every(tests)


def _length(least: float, most: float | None) -> Test:
    """Return the test for the length of a string, list or mapping."""
    if most is None:
        return (lambda value: len(value) >= least) if least else always
    return lambda value: least <= len(value) <= most


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
            raise UnknownKeyword("multipleOf with a fraction, which floats cannot check exactly")
        tests.append(lambda value: not value % divisor)
    return every(tests)


def _compared(holds: Callable[[Any, Any], bool], bound: float) -> Test:
    return lambda value: holds(value, bound)


_ALL_TYPES = (type(None), bool, int, float, str, list, dict)
_COMBINING = frozenset(["allOf", "anyOf", "oneOf", "not", "if", "then", "else"])
_OF_VALUES = frozenset(["type", "const", "enum"])
_OF_TEXT = frozenset(["minLength", "maxLength", "pattern", "format"])
_OF_NUMBERS = frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
_OF_LISTS = frozenset(
    ["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"]
)
_OF_MAPPINGS = frozenset(
    ["properties", "patternProperties", "additionalProperties", "required", "propertyNames", "minProperties",
     "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"]
)  # fmt: skip
_KNOWN = _COMBINING | _OF_VALUES | _OF_TEXT | _OF_NUMBERS | _OF_LISTS | _OF_MAPPINGS


def compile_acceptor(schema: Schema) -> Callable[[Plain], bool] | None:
    """Return a function that is true only for values that the (loaded) schema accepts; None if it cannot be
    compiled.
    """
    try:
        table = _table(schema)
    except UnknownKeyword:
        return None

    def accepts(value: Plain) -> bool:
        test = table.get(type(value))
        return test is not None and test(value)

    return accepts


_ANYTHING: Table = dict.fromkeys(_ALL_TYPES, always)
_NOTHING: Table = {}


def _table(schema: Schema) -> Table:
    """Return the tests for a schema. Every part of the schema becomes a table; a value passes if it passes all of
    them."""
    if isinstance(schema, bool):
        return _ANYTHING if schema else _NOTHING
    for keyword in schema:
        if keyword not in _KNOWN and not is_annotation(keyword):
            raise UnknownKeyword(keyword)
    parts: list[Table] = []
    if "type" in schema:
        parts.append(types(schema["type"]))
    if "enum" in schema:
        parts.append(members(schema["enum"]))
    if "const" in schema:
        parts.append(members([schema["const"]]))
    for keywords, kinds, test_of in _FAMILIES:
        if not keywords.isdisjoint(schema):
            parts.append({**_ANYTHING, **dict.fromkeys(kinds, test_of(schema))})
    parts += _combined(schema)
    return _all(parts)


def _all(parts: Iterable[Table]) -> Table:
    tables = list(parts)
    return {
        kind: every([table[kind] for table in tables]) for kind in _ALL_TYPES if all(kind in table for table in tables)
    }


def _list_test(schema: Mapping[str, Any]) -> Test:
    tests: list[Test] = [_length(schema.get("minItems", 0), schema.get("maxItems"))]
    if "prefixItems" in schema or "items" in schema:
        tests.append(
            _each_item([_table(item) for item in schema.get("prefixItems", ())], _table(schema.get("items", True)))
        )
    if "contains" in schema:
        tests.append(_containing(_table(schema["contains"]), schema.get("minContains", 1), schema.get("maxContains")))
    if schema.get("uniqueItems"):
        tests.append(lambda value: not repetitions(value))
    return every(tests)


def _each_item(prefix: list[Table], rest: Table) -> Test:
    def items(value: list[Plain]) -> bool:
        for item in value:
            test = rest.get(type(item))
            if test is None or not test(item):
                return False
        return True

    if not prefix:
        return items
    return lambda value: all(map(_passes, prefix, value)) and items(value[len(prefix) :])


def _passes(table: Table, value: Plain) -> bool:
    test = table.get(type(value))
    return test is not None and test(value)


def _containing(table: Table, least: float, most: float | None) -> Test:
    def contains(value: list[Plain]) -> bool:
        count = sum(_passes(table, item) for item in value)
        return count >= least and (most is None or count <= most)

    return contains


def _mapping_test(schema: dict[str, Any]) -> Test:
    tests: list[Test] = [_length(schema.get("minProperties", 0), schema.get("maxProperties"))]
    if "required" in schema:
        required = frozenset(schema["required"])
        tests.append(lambda value: required <= value.keys())
    if not _FIELDS.isdisjoint(schema):
        tests.append(_each_field(schema))
    if "propertyNames" in schema:
        names = _table(schema["propertyNames"])
        tests.append(lambda value: all(_passes(names, name) for name in value))
    if not _DEPENDENT.isdisjoint(schema):
        tests.append(_dependent(schema))
    if "unevaluatedProperties" in schema:
        left, others = EvaluatedFields(schema, _holds).rest, _table(schema["unevaluatedProperties"])
        tests.append(lambda value: all(_passes(others, value[name]) for name in left(value)))
    return every(tests)


def _dependent(schema: Mapping[str, Any]) -> Test:
    """Return the test for conditions on a present field: `dependentRequired` counts as a schema with `required`."""
    needed = ((name, {"required": names}) for name, names in schema.get("dependentRequired", {}).items())
    tables = [(name, _table(also)) for name, also in (*needed, *schema.get("dependentSchemas", {}).items())]
    return lambda value: all(name not in value or _passes(table, value) for name, table in tables)


def _holds(schema: Schema) -> Test:
    return _table(schema).get(dict, lambda _value: False)


def _each_field(schema: Mapping[str, Any]) -> Test:
    tables = {name: _table(field) for name, field in schema.get("properties", {}).items()}
    patterns = [(lazy_pattern(name), _table(field)) for name, field in schema.get("patternProperties", {}).items()]
    rest = _table(schema.get("additionalProperties", True))

    def named(value: dict[str, Plain]) -> bool:
        for name, field in value.items():
            test = tables.get(name, rest).get(type(field))
            if test is None or not test(field):
                return False
        return True

    def matched(value: dict[str, Plain]) -> bool:
        for name, field in value.items():
            asked = [table for pattern, table in patterns if pattern.search(name)]
            if name in tables:
                asked.append(tables[name])
            if not all(_passes(table, field) for table in asked or (rest,)):
                return False
        return True

    return matched if patterns else named


_DEPENDENT = frozenset(["dependentRequired", "dependentSchemas"])
_FIELDS = frozenset(["properties", "patternProperties", "additionalProperties"])
_FAMILIES: tuple[tuple[frozenset[str], tuple[type, ...], Callable[[dict[str, Any]], Test]], ...] = (
    (_OF_TEXT, (str,), text_test),
    (_OF_NUMBERS, (int, float), number_test),
    (_OF_LISTS, (list,), _list_test),
    (_OF_MAPPINGS, (dict,), _mapping_test),
)


def _combined(schema: Mapping[str, Any]) -> Iterator[Table]:
    """Yield a table for each keyword that combines schemas."""
    if "allOf" in schema:
        yield _all(map(_table, schema["allOf"]))
    if "anyOf" in schema:
        yield _tabulated(_any_of, list(map(_table, schema["anyOf"])))
    if "oneOf" in schema:
        yield _tabulated(_one_of, list(map(_table, schema["oneOf"])))
    if "not" in schema:
        yield _tabulated(_none_of, [_table(schema["not"])])
    if "if" in schema:
        condition, otherwise = _table(schema["if"]), _table(schema.get("else", True))
        consequence = _table(schema.get("then", True))
        yield _tabulated(
            _any_of, [_all([condition, consequence]), _all([_tabulated(_none_of, [condition]), otherwise])]
        )


def _tabulated(combine: Callable[[list[Test]], Test | None], tables: list[Table]) -> Table:
    """Combine, for each type, the tests from the tables that contain it; None rejects the type."""
    combined = {kind: combine([table[kind] for table in tables if kind in table]) for kind in _ALL_TYPES}
    return {kind: test for kind, test in combined.items() if test is not None}


def _any_of(tests: list[Test]) -> Test | None:
    if always in tests:
        return always
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda value: any(test(value) for test in tests)


def _one_of(tests: list[Test]) -> Test | None:
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda value: sum(test(value) for test in tests) == 1


def _none_of(tests: list[Test]) -> Test | None:
    if always in tests:
        return None
    return (lambda value: not any(test(value) for test in tests)) if tests else always


class SchemaSet:
    """Judges values against schemas; each schema is loaded once. `read` returns the schema file with a given name:
    "stub".
    """

    def __init__(self, read: Read) -> None:
        self._loader = Loader(read)
        self._loaded: dict[str, tuple[Schema, Callable[[Plain], bool] | None]] = {}

    def violations(self, name: str, value: Plain) -> tuple[Problem, ...]:
        """Return what is wrong with `value` under the schema `name` ("stub"), in the order of the value; () if nothing
        is wrong.

        The value must come from a strict loader: finite numbers, limited depth. Raises `UnusableSchema` if a schema
        file has unsupported content.
        """
        schema, accepts = self._load(name)
        if accepts is not None and accepts(value):
            return ()
        from workpacket.text.schema_violations import violations

        return violations(schema, value)

    def _load(self, name: str) -> tuple[Schema, Callable[[Plain], bool] | None]:
        if name not in self._loaded:
            schema = self._loader.load(name)
            self._loaded[name] = schema, compile_acceptor(schema)
        return self._loaded[name]
