"""What `jsonschema` has against a value.

This module is imported only when an acceptor could not say yes, because `jsonschema` costs 50 ms to import. The
validator never sees a reference (the loader has resolved them all) and has an empty registry, so that nothing could be
fetched even if it did.

Some keywords are our own. `format` uses our checks, always. `pattern` leaves a text alone that `maxLength` refuses
anyway: no pattern runs on a megabyte. Those about fields say which field, one by one and in the order of the document;
`uniqueItems` says which item repeats which; and it and `unevaluatedProperties` take time in proportion to the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import create
from referencing import Registry

from workpacket.text.coverage import Coverage
from workpacket.text.formats import FORMATS
from workpacket.text.node import Plain
from workpacket.text.sameness import repetitions
from workpacket.text.schema_loading import Schema
from workpacket.value import Value

Path = tuple[str | int, ...]


class Complaint(Value):
    """One keyword that is not met: which, by what, and where in the value and in the schema (both from the root).

    `branches` holds, for `anyOf` and `oneOf`, what each branch complains of, if none holds; `matches` the branches of
    `oneOf` that hold, if they are too many. `detail` is what a check of our own adds: the missing field, what is
    wrong with the form, the item that is repeated.
    """

    keyword: str
    argument: Any
    instance: Any
    schema: dict[str, Any]
    path: Path
    schema_path: Path
    detail: str = ""
    branches: tuple[tuple[Complaint, ...], ...] = ()
    matches: tuple[int, ...] = ()


def complaints(schema: Schema, value: Plain) -> list[Complaint]:
    """Everything that the (loaded) schema has against the value."""
    validator = _validator_class()(schema, registry=Registry())
    return [_complaint(error, validator) for error in validator.iter_errors(value)]


def _complaint(error: ValidationError, validator: Validator) -> Complaint:
    branches: dict[int, list[Complaint]] = {}
    for inner in error.context:
        branches.setdefault(int(inner.relative_schema_path[0]), []).append(_complaint(inner, validator))
    keyword = str(error.validator) if error.validator else "not"
    crowded = keyword == "oneOf" and not branches
    return Complaint(
        keyword=keyword,
        argument=error.validator_value,
        instance=error.instance,
        schema=error.schema if isinstance(error.schema, dict) else {},
        path=tuple(error.absolute_path),
        schema_path=tuple(error.absolute_schema_path),
        detail=error.message if keyword in _OWN else "",
        branches=tuple(tuple(branches[index]) for index in sorted(branches)),
        matches=tuple(_matches(validator, error)) if crowded else (),
    )


def _matches(validator: Validator, error: ValidationError) -> Iterator[int]:
    branches: Any = error.validator_value
    instance: Any = error.instance
    for index, branch in enumerate(branches):
        if validator.evolve(schema=branch).is_valid(instance):
            yield index


def _format(_validator: Validator, name: str, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, str) and (complaint := FORMATS[name](instance)):
        yield ValidationError(complaint)


def _pattern(_validator: Validator, pattern: str, instance: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
    if not isinstance(instance, str) or len(instance) > schema.get("maxLength", len(instance)):
        return
    if not re.search(pattern, instance):
        yield ValidationError("")


def _unique_items(_validator: Validator, unique: bool, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    if unique and isinstance(instance, list):
        for index, earlier in repetitions(instance):
            yield ValidationError(f"item {earlier + 1}", path=[index], instance=instance[index])


def _required(_validator: Validator, names: list[str], instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        yield from (ValidationError(name) for name in names if name not in instance)


def _dependent_required(
    _validator: Validator, needs: dict[str, list[str]], instance: Any, _schema: Schema
) -> Iterator[ValidationError]:
    for cause, names in needs.items() if isinstance(instance, dict) else ():
        if cause in instance:
            yield from (ValidationError(name, validator_value=cause) for name in names if name not in instance)


def _property_names(validator: Validator, names: Schema, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    inner = validator.evolve(schema=names)
    for name in instance if isinstance(instance, dict) else ():
        if not inner.is_valid(name):
            yield ValidationError("", path=[name], instance=name)


def _additional_properties(
    validator: Validator, allowed: Schema, instance: Any, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    named: dict[str, Any] = {
        keyword: schema[keyword] for keyword in ("properties", "patternProperties") if keyword in schema
    }
    yield from _rest(validator, allowed, instance, named)


def _unevaluated_properties(
    validator: Validator, allowed: Schema, instance: Any, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    yield from _rest(validator, allowed, instance, schema)


def _rest(validator: Validator, allowed: Schema, instance: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
    """What `allowed` has against the fields that `schema` does not look at."""
    if not isinstance(instance, dict):
        return
    inner = validator.evolve(schema=allowed)
    for name in Coverage(schema, lambda branch: validator.evolve(schema=branch).is_valid).rest(instance):
        if allowed is False:
            yield ValidationError("", path=[name], instance=instance[name])
        else:
            for error in inner.iter_errors(instance[name]):
                error.path.appendleft(name)
                yield error


_OWN: Mapping[str, Callable[..., Iterator[ValidationError]]] = {
    "additionalProperties": _additional_properties,
    "dependentRequired": _dependent_required,
    "format": _format,
    "pattern": _pattern,
    "propertyNames": _property_names,
    "required": _required,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}


@cache
def _validator_class() -> type[Validator]:
    stock = Draft202012Validator
    return create(stock.META_SCHEMA, {**stock.VALIDATORS, **_OWN}, type_checker=stock.TYPE_CHECKER)
