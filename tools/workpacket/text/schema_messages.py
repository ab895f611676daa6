"""Messages for keywords that a value does not satisfy.

Sentences name the field as written in the document, say what was expected and show what was found, truncated to a
length that no document can extend. They repeat the document's text, including control characters; the output layer
makes it safe to display. If a condition (`if`) applies to a complaint, it is put into words too. This module is
imported only when an acceptor has not accepted a value, because `jsonschema` takes 50 ms to import. The loader has
resolved all references, and the validator has an empty registry, so that nothing can ever be fetched.

Some keywords have our own implementation. `format` always uses our checks. `pattern` skips a string that `maxLength`
refuses anyway, so that no pattern runs on a megabyte. Keywords about fields name each field, in document order;
`uniqueItems` says which item repeats which; it and `unevaluatedProperties` take time proportional to the value.

A reader may store `USER_SIGNATURE` under `metadata` as `user_signature`, but the author of the document has seen only
the first form. A property may therefore have `"x-label": "USER_SIGNATURE"`, its key as written, and a schema
`"x-noun": "work packet id"`, the noun for what it accepts. Both are looked up here along the path of the value, through
every schema that applies in place (`allOf`, branches, `then`), because the schema that complains rarely has the name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import create
from referencing import Registry

from workpacket.model.wording import counted
from workpacket.text.formats import FORMATS
from workpacket.text.schema import EvaluatedFields, repetitions
from workpacket.text.schema_loading import SCHEMA_LISTS, Schema
from workpacket.text.source import Plain
from workpacket.value import Value

Path = tuple[str | int, ...]

LONGEST_SHOWN = 60


def shortened(text: str) -> str:
    """Return at most `LONGEST_SHOWN` characters of a document's text, so that no message grows with the document."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def in_place(schema: Schema) -> Iterator[dict[str, Any]]:
    """Yield the schema and all schemas that it may apply to the same value."""
    if isinstance(schema, bool):
        return
    yield schema
    for keyword in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(keyword, ()):
            yield from in_place(inner)
    for keyword in ("if", "then", "else"):
        yield from in_place(schema.get(keyword, True))
    for inner in schema.get("dependentSchemas", {}).values():
        yield from in_place(inner)


class Labels:
    """The names of the parts of a schema's values, by path."""

    def __init__(self, schema: Schema) -> None:
        self._schemas: dict[Path, list[dict[str, Any]]] = {(): list(in_place(schema))}

    def schemas(self, path: Path) -> list[dict[str, Any]]:
        """Return all the schemas that may apply to the value at `path`."""
        if path not in self._schemas:
            outer, step = self.schemas(path[:-1]), path[-1]
            self._schemas[path] = [
                schema for above in outer for below in _steps(above, step) for schema in in_place(below)
            ]
        return self._schemas[path]

    def annotation(self, path: Path, keyword: str) -> Any:
        """Return the first annotation with this name at `path`, or None."""
        return next((schema[keyword] for schema in self.schemas(path) if keyword in schema), None)

    def key(self, path: Path) -> str:
        """Return the key at the end of `path`, as written in the document."""
        return shortened(str(self.annotation(path, "x-label") or path[-1]))

    def keys(self, path: Path) -> Iterator[str]:
        """Yield the known keys of the mapping at `path`, as written."""
        names = dict.fromkeys(name for schema in self.schemas(path) for name in schema.get("properties", ()))
        yield from (self.key((*path, name)) for name in names)

    def of(self, path: Path) -> str:
        """Return the name of the value at `path`, for use in a sentence."""
        if not path:
            return str(self.annotation(path, "x-label") or "the document")
        if isinstance(path[-1], int):
            return f"item {path[-1] + 1} of {self.of(path[:-1])}"
        return f"`{self.key(path)}`"


def _steps(schema: dict[str, Any], step: str | int) -> Iterator[Schema]:
    """Yield the schemas that `schema` applies to the member `step` of a value."""
    if isinstance(step, int):
        prefix = schema.get("prefixItems", [])
        yield prefix[step] if step < len(prefix) else schema.get("items", True)
        return
    named = step in schema.get("properties", {})
    if named:
        yield schema["properties"][step]
    matching = [field for name, field in schema.get("patternProperties", {}).items() if re.search(name, step)]
    yield from matching
    if not named and not matching:
        yield schema.get("additionalProperties", True)


_LONGEST = 80
_SEARCHES = 50


class Suggestions:
    """Finds the nearest known word, at most fifty times: a search is slow, and when there are more errors, they are
    rarely typos."""

    def __init__(self) -> None:
        self._searches_left = _SEARCHES

    def nearest(self, word: object, known: Iterable[object]) -> str:
        """Return the known word of which `word` is a misspelling; "" if there is none."""
        if not isinstance(word, str) or len(word) > _LONGEST or not self._searches_left:
            return ""
        self._searches_left -= 1
        by_spelling = {_spelling(option): option for option in known if isinstance(option, str)}
        spelling = _spelling(word)
        if spelling in by_spelling:
            return by_spelling[spelling]
        import difflib

        close = difflib.get_close_matches(spelling, by_spelling, n=1, cutoff=0.7)
        return by_spelling[close[0]] if close else ""


def _spelling(word: str) -> str:
    """Return a word in lower case and without punctuation, so that `Created at` and CREATED_AT are the same."""
    return "".join(character for character in word.casefold() if character.isalnum())


class Complaint(Value):
    """One unsatisfied keyword: its name, its argument, the faulty value, and the paths in the value and in the schema
    (both from the root).

    For `anyOf` and `oneOf`, `branches` has the complaints of each branch, if none matches, and `matches` has the
    matching branches of `oneOf`, if there are too many. `detail` is added by our own checks: the missing field, what is
    wrong with the form, the repeated item.
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
    """Return every complaint that the (loaded) schema has about the value."""
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


def _judge_required(
    _validator: Validator, names: list[str], instance: Any, _schema: Schema
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        yield from (ValidationError(name) for name in names if name not in instance)


def _judge_dependent_required(
    _validator: Validator, needs: dict[str, list[str]], instance: Any, _schema: Schema
) -> Iterator[ValidationError]:
    for cause, names in needs.items() if isinstance(instance, dict) else ():
        if cause in instance:
            yield from (ValidationError(name, validator_value=cause) for name in names if name not in instance)


def _judge_property_names(
    validator: Validator, names: Schema, instance: Any, _schema: Schema
) -> Iterator[ValidationError]:
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
    """Yield the complaints of `allowed` about the fields that `schema` does not evaluate."""
    if not isinstance(instance, dict):
        return
    inner = validator.evolve(schema=allowed)
    for name in EvaluatedFields(schema, lambda branch: validator.evolve(schema=branch).is_valid).rest(instance):
        if allowed is False:
            yield ValidationError("", path=[name], instance=instance[name])
        else:
            for error in inner.iter_errors(instance[name]):
                error.path.appendleft(name)
                yield error


_OWN: Mapping[str, Callable[..., Iterator[ValidationError]]] = {
    "additionalProperties": _additional_properties,
    "dependentRequired": _judge_dependent_required,
    "format": _format,
    "pattern": _pattern,
    "propertyNames": _judge_property_names,
    "required": _judge_required,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}


@cache
def _validator_class() -> type[Validator]:
    stock = Draft202012Validator
    return create(stock.META_SCHEMA, {**stock.VALIDATORS, **_OWN}, type_checker=stock.TYPE_CHECKER)


_NAMED_MEMBERS = frozenset(["properties", "patternProperties", "prefixItems"])
_OTHER_MEMBERS = frozenset(["additionalProperties", "items"])


def condition(complaint: Complaint, schema: Schema, labels: Labels) -> str:
    """Return "`VERDICT` is FAIL" if the complaint is in a `then` whose `if` requires only that; otherwise ''."""
    said = ""
    node: Any = schema
    depth = 0  # how many steps of the value's path have been taken
    steps = iter(complaint.schema_path)
    for step in steps:
        if step == "then":
            said = _in_words(node["if"], complaint.path[:depth], labels) or said
        depth += step in _NAMED_MEMBERS or step in _OTHER_MEMBERS
        node = node[step]
        if step in _NAMED_MEMBERS or step in SCHEMA_LISTS or step == "dependentSchemas":
            name = next(steps, None)
            if name is None:
                break  # the complaint is about the keyword itself
            node = node[name]
    return said


def _in_words(asked: Schema, path: Path, labels: Labels) -> str:
    """Return an `if` in words, if it only requires that fields are present and have certain values."""
    if not isinstance(asked, dict) or "required" not in asked:
        return ""
    said = []
    for name in asked["required"]:
        field = asked.get("properties", {}).get(name)
        if not isinstance(field, dict) or field.keys().isdisjoint(("const", "enum")):
            return ""
        said.append(
            f"`{labels.key((*path, name))}` is {choices([field['const']] if 'const' in field else field['enum'])}"
        )
    return " and ".join(said)


_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "empty",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
_HUGE = 10**30
_MOST_CHOICES = 24


def message(complaint: Complaint, labels: Labels) -> str:
    """Return one sentence without a final period. The complaint is about one thing (see `schema_violations`)."""
    return _WORDINGS[complaint.keyword](complaint, labels)


def shown(value: Plain) -> str:
    """Return a value formatted for a sentence."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, str):
        return f"`{shortened(value)}`"
    if value is None or isinstance(value, bool):
        return {None: "empty", True: "true", False: "false"}[value]
    return f"{value}" if -_HUGE < value < _HUGE else "a huge number"


def choices(values: Iterable[Plain]) -> str:
    """Return the permitted values, without quotes if they read as words."""
    words = [_choice(value) for value in values]
    return any_of(words) if len(words) <= _MOST_CHOICES else f"one of {', '.join(words[:_MOST_CHOICES])}, …"


def any_of(words: Iterable[str]) -> str:
    return _joined(list(words), "or")


def all_of(words: Iterable[str]) -> str:
    return _joined(list(words), "and")


def _joined(words: list[str], last: str) -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def _choice(value: Plain) -> str:
    if isinstance(value, (list, dict)):
        return f"`{shortened(json.dumps(value))}`"
    is_word = isinstance(value, str) and value.replace("_", "").replace("-", "").isalnum()
    return f"{value}" if is_word else shown(value)


def _must_be(complaint: Complaint, labels: Labels, wanted: str) -> str:
    label, value = labels.of(complaint.path), complaint.instance
    if value is None or value == "":
        return f"{label} is empty; it must be {wanted}"
    kind = "the text " if isinstance(value, str) and complaint.keyword == "type" else ""
    return f"{label} must be {wanted}, not {kind}{shown(value)}"


def _type(complaint: Complaint, labels: Labels) -> str:
    names = [complaint.argument] if isinstance(complaint.argument, str) else complaint.argument
    return _must_be(complaint, labels, any_of(_TYPES[name] for name in names))


def _enum(complaint: Complaint, labels: Labels) -> str:
    return _must_be(complaint, labels, choices(complaint.argument))


def _const(complaint: Complaint, labels: Labels) -> str:
    return _must_be(complaint, labels, choices([complaint.argument]))


def _within(path: Path, labels: Labels) -> str:
    return f" in {labels.of(path)}" if path else ""


def _keys(names: Iterable[str], path: Path, labels: Labels) -> list[str]:
    return [f"`{labels.key((*path, name))}`" for name in names]


def _required(complaint: Complaint, labels: Labels) -> str:
    alternatives = [[complaint.detail]] if complaint.detail else complaint.argument
    absent = any_of(all_of(_keys(names, complaint.path, labels)) for names in alternatives)
    missing = f"{absent} is missing{_within(complaint.path, labels)}"
    if complaint.keyword == "required":
        return missing
    (cause,) = _keys([complaint.argument], complaint.path, labels)
    return f"{missing}; {cause} needs it"


def _field_name(complaint: Complaint, labels: Labels) -> str:
    """Describe an unknown field, or a field whose name has an invalid form."""
    if complaint.keyword != "propertyNames":
        return f"`{shortened(str(complaint.path[-1]))}` is not a known field{_within(complaint.path[:-1], labels)}"
    noun = complaint.argument.get("x-noun", "name for a field") if complaint.argument else "name for a field"
    return f"{shown(complaint.instance)} is not a valid {noun}{_within(complaint.path[:-1], labels)}"


def _form(complaint: Complaint, labels: Labels) -> str:
    label = labels.of(complaint.path)
    allowed = complaint.schema.get("x-allowed")
    if allowed:
        return _must_be(complaint, labels, choices(allowed))
    if complaint.instance == "":
        return f"{label} is empty"
    noun = complaint.schema.get("x-noun") or labels.annotation(complaint.path, "x-noun")
    why = f" ({complaint.detail})" if complaint.detail else ""
    wrong = f"is not a valid {noun}" if noun else "does not have the right form"
    return f"{label} {wrong}: {shown(complaint.instance)}{why}"


def _not(complaint: Complaint, labels: Labels) -> str:
    label, excluded = labels.of(complaint.path), complaint.argument
    if excluded in ({}, True, None):
        return f"{label} is not allowed here"
    if excluded.keys() == {"required"}:
        names = _keys(excluded["required"], complaint.path, labels)
        together = " together" if len(names) > 1 else ""
        return f"{all_of(names)} must not be given{together}{_within(complaint.path, labels)}"
    if excluded.keys() == {"const"} or excluded.keys() == {"enum"}:
        return f"{label} must not be {choices([excluded['const']] if 'const' in excluded else excluded['enum'])}"
    return _form(complaint, labels)


def _too_many_forms(complaint: Complaint, labels: Labels) -> str:
    forms = [form for form in map(complaint.argument.__getitem__, complaint.matches) if isinstance(form, dict)]
    fields = dict.fromkeys(name for form in forms for name in form.get("required", ()))
    if len(fields) == len(complaint.matches) == sum(len(form.get("required", ())) for form in forms):
        keys = all_of(_keys(fields, complaint.path, labels))
        return f"only one of {keys} can be given{_within(complaint.path, labels)}"
    titles = [form["title"] for form in forms if "title" in form]
    named = f": {all_of(titles)}" if len(titles) == len(complaint.matches) else ""
    return f"{labels.of(complaint.path)} matches more than one of several mutually exclusive forms{named}"


def _repetition(complaint: Complaint, labels: Labels) -> str:
    return f"{labels.of(complaint.path)} repeats {complaint.detail}: {shown(complaint.instance)}"


def _contains(complaint: Complaint, labels: Labels) -> str:
    wanted = complaint.schema.get("contains")
    wanted = wanted if isinstance(wanted, dict) else {}
    options = [wanted["const"]] if "const" in wanted else wanted.get("enum", [])
    what = choices(options) if options else f"a valid {wanted.get('x-noun', 'item of the kind it is for')}"
    if complaint.keyword == "maxContains":
        return f"{labels.of(complaint.path)} must not contain {what} more than {counted(complaint.argument, 'time')}"
    times = f" at least {counted(complaint.argument, 'time')}" if complaint.keyword == "minContains" else ""
    return f"{labels.of(complaint.path)} must contain {what}{times}"


def _at_most(most: int) -> str:
    return f"at most {most} allowed" if most else "none are allowed"


def _no_more_items(complaint: Complaint, labels: Labels) -> str:
    most = len(complaint.schema.get("prefixItems", ()))
    return f"{labels.of(complaint.path)} has {counted(len(complaint.instance), 'item')}; {_at_most(most)}"


def _too_few(thing: str) -> Callable[[Complaint, Labels], str]:
    def wording(complaint: Complaint, labels: Labels) -> str:
        size = len(complaint.instance)
        state = f"has {counted(size, thing)}" if size else "is empty"
        return f"{labels.of(complaint.path)} {state}; it must have at least {counted(complaint.argument, thing)}"

    return wording


def _too_many(thing: str) -> Callable[[Complaint, Labels], str]:
    def wording(complaint: Complaint, labels: Labels) -> str:
        size = counted(len(complaint.instance), thing)
        return f"{labels.of(complaint.path)} has {size}; {_at_most(complaint.argument)}"

    return wording


def _bound(limit: str) -> Callable[[Complaint, Labels], str]:
    return lambda complaint, labels: _must_be(complaint, labels, f"{limit} {complaint.argument}")


_WORDINGS: Mapping[str, Callable[[Complaint, Labels], str]] = {
    "additionalProperties": _field_name,
    "const": _const,
    "contains": _contains,
    "dependentRequired": _required,
    "enum": _enum,
    "exclusiveMaximum": _bound("less than"),
    "exclusiveMinimum": _bound("more than"),
    "format": _form,
    "items": _no_more_items,
    "maxContains": _contains,
    "maxItems": _too_many("item"),
    "maxLength": _too_many("character"),
    "maxProperties": _too_many("field"),
    "maximum": _bound("at most"),
    "minContains": _contains,
    "minItems": _too_few("item"),
    "minLength": _too_few("character"),
    "minProperties": _too_few("field"),
    "minimum": _bound("at least"),
    "multipleOf": _bound("a multiple of"),
    "not": _not,
    "oneOf": _too_many_forms,
    "pattern": _form,
    "propertyNames": _field_name,
    "required": _required,
    "type": _type,
    "unevaluatedProperties": _field_name,
    "uniqueItems": _repetition,
}
