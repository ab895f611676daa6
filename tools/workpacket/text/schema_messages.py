"""What a keyword that is not met means, in words.

Sentences name the field as it is written in the document, say what was expected and show what is there, cut to
a length that no document can stretch. They hold what the document holds, control characters included: making that safe
to show is the business of the output door.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from workpacket.text.node import Plain
from workpacket.text.schema_judge import Complaint, Path
from workpacket.text.schema_labels import Labels, shortened

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
    """One sentence without a full stop. The complaint is about one thing (see `schema_violations`)."""
    return _WORDINGS[complaint.keyword](complaint, labels)


def shown(value: Plain) -> str:
    """A value within a sentence."""
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
    """Permitted values, bare if they read as words."""
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


def _counted(count: float, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


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
    return f"{absent} is missing{_within(complaint.path, labels)}"


def _dependent_required(complaint: Complaint, labels: Labels) -> str:
    absent, cause = _keys([complaint.detail, complaint.argument], complaint.path, labels)
    return f"{absent} is missing{_within(complaint.path, labels)}; {cause} needs it"


def _unknown_field(complaint: Complaint, labels: Labels) -> str:
    return f"`{shortened(str(complaint.path[-1]))}` is not a known field{_within(complaint.path[:-1], labels)}"


def _property_names(complaint: Complaint, labels: Labels) -> str:
    noun = complaint.argument.get("x-noun", "name for a field") if complaint.argument else "name for a field"
    return f"{shown(complaint.instance)} is not a valid {noun}{_within(complaint.path[:-1], labels)}"


def _form(complaint: Complaint, labels: Labels) -> str:
    label = labels.of(complaint.path)
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
        return f"only one of {keys} may be given{_within(complaint.path, labels)}"
    titles = [form["title"] for form in forms if "title" in form]
    named = f": {all_of(titles)}" if len(titles) == len(complaint.matches) else ""
    return f"{labels.of(complaint.path)} has more than one of the forms that exclude each other{named}"


def _repetition(complaint: Complaint, labels: Labels) -> str:
    return f"{labels.of(complaint.path)} repeats {complaint.detail}: {shown(complaint.instance)}"


def _contains(complaint: Complaint, labels: Labels) -> str:
    wanted = complaint.schema.get("contains")
    wanted = wanted if isinstance(wanted, dict) else {}
    options = [wanted["const"]] if "const" in wanted else wanted.get("enum", [])
    what = choices(options) if options else f"a valid {wanted.get('x-noun', 'item of the kind it is for')}"
    if complaint.keyword == "maxContains":
        return f"{labels.of(complaint.path)} must not contain {what} more than {_counted(complaint.argument, 'time')}"
    times = f" at least {_counted(complaint.argument, 'time')}" if complaint.keyword == "minContains" else ""
    return f"{labels.of(complaint.path)} must contain {what}{times}"


def _no_more_items(complaint: Complaint, labels: Labels) -> str:
    most = len(complaint.schema.get("prefixItems", ()))
    return f"{labels.of(complaint.path)} has {_counted(len(complaint.instance), 'item')}; at most {most} may be there"


def _too_few(thing: str) -> Callable[[Complaint, Labels], str]:
    def wording(complaint: Complaint, labels: Labels) -> str:
        size = len(complaint.instance)
        state = f"has {_counted(size, thing)}" if size else "is empty"
        return f"{labels.of(complaint.path)} {state}; it needs at least {_counted(complaint.argument, thing)}"

    return wording


def _too_many(thing: str) -> Callable[[Complaint, Labels], str]:
    def wording(complaint: Complaint, labels: Labels) -> str:
        size = _counted(len(complaint.instance), thing)
        return f"{labels.of(complaint.path)} has {size}; at most {complaint.argument} may be there"

    return wording


def _bound(limit: str) -> Callable[[Complaint, Labels], str]:
    return lambda complaint, labels: _must_be(complaint, labels, f"{limit} {complaint.argument}")


_WORDINGS: Mapping[str, Callable[[Complaint, Labels], str]] = {
    "additionalProperties": _unknown_field,
    "const": _const,
    "contains": _contains,
    "dependentRequired": _dependent_required,
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
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    "unevaluatedProperties": _unknown_field,
    "uniqueItems": _repetition,
}
