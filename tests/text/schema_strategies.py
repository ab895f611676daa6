"""Random schemas and random values that have something to do with each other, and mutations of given values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from workpacket.text.source import Plain

NAMES = ("a", "b", "ab", "c1")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

numbers = st.sampled_from([0, 1, 2, 3, -1, 0.0, 1.0, 1.5, 2.5, -0.0, 10**15, 1e300])
texts = st.sampled_from(["", "a", "b", "ab", "abc", "1", "a\n", "é", "2026-01-31", "2026-02-30", "\ud83d", "😀"])
scalars: st.SearchStrategy[Plain] = st.one_of(st.none(), st.booleans(), numbers, texts)
values: st.SearchStrategy[Plain] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from((*NAMES, "d", "é")), inner, max_size=4)
    ),
    max_leaves=8,
)

sizes = st.integers(0, 3)
patterns = st.sampled_from(["a", "^a", "^a$", "b$", "^[ab]*$", "^[0-9]+$", r"^\w\b", "^$", "^.$"])


def schemas(*, formats: bool = True) -> st.SearchStrategy[Any]:
    """Schemas of the keywords that the layer honours. References are the loader's business and not among them."""
    leaf = st.one_of(st.booleans(), st.fixed_dictionaries({}, optional=_leaf_keywords(formats)))
    return st.recursive(leaf, _containing, max_leaves=6)


def _leaf_keywords(formats: bool) -> dict[str, st.SearchStrategy[Any]]:
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.one_of(
            st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
        ),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minLength": sizes,
        "maxLength": sizes,
        "pattern": patterns,
        "minimum": numbers,
        "maximum": numbers,
        "exclusiveMinimum": numbers,
        "exclusiveMaximum": numbers,
        "multipleOf": st.sampled_from([1, 2, 3]),
        "minItems": sizes,
        "maxItems": sizes,
        "uniqueItems": st.booleans(),
        "minProperties": sizes,
        "maxProperties": sizes,
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "dependentRequired": st.dictionaries(
            st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=2, unique=True), max_size=2
        ),
        "title": st.just("A title"),
    }
    return {**keywords, "format": st.sampled_from(["date", "sha1"])} if formats else keywords


def _containing(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["array", "object", ["object", "array", "string"]]),
            "properties": named,
            "patternProperties": st.dictionaries(patterns, inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "propertyNames": inner,
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "dependentSchemas": named,
            "items": inner,
            "prefixItems": several,
            "contains": inner,
            "minContains": sizes,
            "maxContains": sizes,
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    )


def for_python(schema: Any) -> Any:
    """The schema with the patterns of these strategies as Python has to read them; for validators that do not know."""
    if isinstance(schema, list):
        return [for_python(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        _python_pattern(keyword): _python_pattern(part) if keyword == "pattern" else _part_for_python(keyword, part)
        for keyword, part in schema.items()
    }


def _part_for_python(keyword: str, part: Any) -> Any:
    return part if keyword in {"const", "enum", "required", "dependentRequired"} else for_python(part)


def _python_pattern(pattern: str) -> str:
    return pattern.replace("$", r"\Z").replace(r"\w\b", r"[a-z0-9](?![a-z0-9])")


def mutations(value: Plain) -> Iterator[Plain]:
    """Values that differ from `value` at one place: an entry gone, misnamed, added, or replaced by another kind."""
    yield from _REPLACEMENTS
    if isinstance(value, dict):
        yield {**value, "unheard_of": 1}
        for key, item in value.items():
            others = {other: value[other] for other in value if other != key}
            yield others
            yield {**others, f"{key}x": item}
            for mutated in mutations(item):
                yield {**value, key: mutated}
    elif isinstance(value, list):
        yield value * 2
        yield value * 200
        for index, item in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for mutated in mutations(item):
                yield [*value[:index], mutated, *value[index + 1 :]]
    elif isinstance(value, str):
        yield value + "\n"
        yield value.swapcase()
        yield value[:-1]
        yield value * 300
        yield f" {value}"
    elif isinstance(value, int | float):
        yield -value
        yield value + 0.5


_REPLACEMENTS: tuple[Plain, ...] = (None, True, 0, 1.5, "", "x", "<pending>", [], {}, [{}], {"a": []})
