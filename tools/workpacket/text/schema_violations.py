"""Turn the complaints of `jsonschema` about a value into messages for people.

Branches are resolved, the most informative of several complaints about one scalar is kept (for an empty string, it is
pointless to add that it is not a date), and all complaints are in the order of the value.

The branch of `anyOf` or `oneOf` that the writer most likely meant is chosen, so that one fault is not reported five
times. The choice is made in this order: the branches whose type fits; the branch chosen by a discriminator (a field
whose value distinguishes the branches); what all remaining branches require of one value, as one complaint; the branch
with the fewest complaints or, if there are several, with the deepest ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from workpacket.problem import Location, Problem
from workpacket.text.schema import identity
from workpacket.text.schema_loading import Schema
from workpacket.text.schema_messages import (
    Complaint,
    Labels,
    Path,
    Suggestions,
    choices,
    complaints,
    condition,
    in_place,
    message,
    shown,
)
from workpacket.text.source import Plain
from workpacket.value import replace

_CHOICES = frozenset(["const", "enum"])


class _Branch(NamedTuple):
    schema: Schema
    complaints: tuple[Complaint, ...]

    def at(self, path: Path, *keywords: str) -> list[Complaint]:
        return [found for found in self.complaints if found.path == path and found.keyword in keywords]


def settled(complaint: Complaint) -> tuple[Complaint, ...]:
    """Return the complaints that best explain this one, or this one itself if it is not about branches.

    If a `required` complaint has no detail, its argument is a list of lists of fields, one of which is needed.
    """
    if not complaint.branches:
        return (complaint,)
    inner = (tuple(chain.from_iterable(map(settled, branch))) for branch in complaint.branches)
    branches = list(map(_Branch, complaint.argument, inner))
    of_this_type = [branch for branch in branches if not branch.at(complaint.path, "type")]
    if not of_this_type:
        return _united("type", [found for branch in branches for found in branch.at(complaint.path, "type")])
    chosen = _chosen(complaint, of_this_type)
    return _agreed(complaint, chosen) or min(chosen, key=_distance).complaints


def _chosen(complaint: Complaint, branches: list[_Branch]) -> list[_Branch]:
    """Return the branches that the discriminators allow.

    If a discriminator is wrong, return its complaint as the only branch.
    """
    for name in _discriminators(branches) if isinstance(complaint.instance, dict) else ():
        path = (*complaint.path, name)
        if name in complaint.instance:
            wrong = [branch.at(path, *_CHOICES) for branch in branches]
            if all(wrong):
                return [_Branch(True, _united("enum", list(chain.from_iterable(wrong))))]
            branches = [branch for branch, against in zip(branches, wrong, strict=True) if not against]
        else:
            lacking = [branch.at(complaint.path, "required") for branch in branches]
            lacking = [[found for found in each if found.detail == name] for each in lacking]
            if all(lacking):
                return [_Branch(True, (lacking[0][0],))]
    return branches


def _discriminators(branches: list[_Branch]) -> list[str]:
    """Return the fields for which each of several branches prescribes different values."""
    prescribed: dict[str, list[str]] = {}
    branches_with: dict[str, int] = {}
    for branch in branches:
        for name, values in _prescriptions(branch.schema).items():
            prescribed.setdefault(name, []).extend(values)
            branches_with[name] = branches_with.get(name, 0) + 1
    return [name for name, values in prescribed.items() if branches_with[name] > 1 and len(set(values)) == len(values)]


def _prescriptions(schema: Schema) -> dict[str, set[str]]:
    """Return the identities of the allowed values of each field that the schema restricts to a list."""
    prescribed: dict[str, set[str]] = {}
    for part in in_place(schema):
        for name, field in part.get("properties", {}).items():
            values = [value for within in in_place(field) for value in _options(within)]
            if values:
                prescribed.setdefault(name, set()).update(map(identity, values))
    return prescribed


def _options(schema: dict[str, Any]) -> list[Plain]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _agreed(complaint: Complaint, branches: list[_Branch]) -> tuple[Complaint, ...]:
    """Return one complaint if all branches have the same one: that the value is not in a list, or that it lacks a
    field."""
    everything = list(chain.from_iterable(branch.complaints for branch in branches))
    if len(branches) < 2 or any(found.path != complaint.path for found in everything):
        return ()
    keywords = {found.keyword for found in everything}
    if keywords <= _CHOICES:
        return _united("enum", everything)
    if keywords == {"required"} and all(found.detail for found in everything):
        wanted = [[found.detail for found in branch.complaints] for branch in branches]
        return (replace(everything[0], argument=wanted, detail=""),)
    return ()


def _united(keyword: str, found: list[Complaint]) -> tuple[Complaint, ...]:
    """Return one complaint whose argument lists everything that would satisfy the complaints in `found`."""
    values: list[Any] = []
    for each in found:
        values += each.argument if isinstance(each.argument, list) and each.keyword != "const" else [each.argument]
    return (replace(found[0], keyword=keyword, argument=list({identity(value): value for value in values}.values())),)


def _distance(branch: _Branch) -> tuple[int, int]:
    """Return how far the value is from the branch: the number of complaints, then their depth."""
    return len(branch.complaints), -max(len(found.path) for found in branch.complaints)


_MISSING = frozenset(["required", "dependentRequired"])
_UNKNOWN = frozenset(["additionalProperties", "unevaluatedProperties", "propertyNames"])
# Of several complaints about one scalar, the first of these is the most informative; all others come after them.
_MOST_TELLING = ("type", "const", "enum", "minLength", "format", "maxLength", "pattern")


def violations(schema: Schema, value: Plain) -> tuple[Problem, ...]:
    """Return what is wrong with the value according to the (loaded) schema."""
    labels, suggestions, order = Labels(schema), Suggestions(), _Order(value)
    found = chain.from_iterable(map(settled, complaints(schema, value)))
    told: list[Problem] = []
    for complaint in sorted(_most_telling(found), key=lambda complaint: order.of(complaint.path)):
        because = condition(complaint, schema, labels)
        text = message(complaint, labels) + (f" (because {because})" if because else "")
        hint = _hint(complaint, labels, suggestions)
        told.append(Problem(_code(complaint), text, Location(keys=complaint.path), hint))
    return tuple(dict.fromkeys(told))


def _most_telling(found: Iterable[Complaint]) -> list[Complaint]:
    """Return the complaints, except those made superfluous by a better one about the same scalar."""
    kept: list[Complaint] = []
    best: dict[Path, int] = {}
    for complaint in found:
        if isinstance(complaint.instance, (list, dict)):
            kept.append(complaint)
        elif complaint.path not in best:
            best[complaint.path] = len(kept)
            kept.append(complaint)
        elif _rank(complaint) < _rank(kept[best[complaint.path]]):
            kept[best[complaint.path]] = complaint
    return kept


def _rank(complaint: Complaint) -> int:
    return _MOST_TELLING.index(complaint.keyword) if complaint.keyword in _MOST_TELLING else len(_MOST_TELLING)


def _code(complaint: Complaint) -> str:
    if complaint.keyword in _MISSING:
        return "field_missing"
    if complaint.keyword in _UNKNOWN or (complaint.keyword == "not" and complaint.argument in ({}, True, None)):
        return "field_unknown"
    return "field_type" if complaint.keyword == "type" else "field_value"


def _hint(complaint: Complaint, labels: Labels, suggestions: Suggestions) -> str:
    """Return what the author probably meant, or what would be valid."""
    if complaint.keyword in _UNKNOWN:
        meant = suggestions.nearest(complaint.path[-1], labels.keys(complaint.path[:-1]))
        return f"did you mean `{meant}`?" if meant else ""
    if complaint.keyword in {"enum", "const"}:
        options = complaint.argument if complaint.keyword == "enum" else [complaint.argument]
        meant = suggestions.nearest(complaint.instance, options)
        return f"did you mean {choices([meant])}?" if meant else ""
    if complaint.keyword == "type" and "string" in complaint.argument and isinstance(complaint.instance, (int, float)):
        return "put it in quotes to make it a string"
    wanted = (
        (*complaint.path, complaint.detail) if complaint.keyword in _MISSING and complaint.detail else complaint.path
    )
    examples = [example for example in labels.annotation(wanted, "examples") or () if isinstance(example, str)]
    return f"for example {shown(examples[0])}" if examples else ""


class _Order:
    """The positions of parts of a value, used for sorting."""

    def __init__(self, value: Plain) -> None:
        self._value = value
        self._positions: dict[int, dict[str, int]] = {}

    def of(self, path: Path) -> tuple[int, ...]:
        """Return the position of each step of the path in its list or mapping."""
        node: Any = self._value
        positions: list[int] = []
        for step in path:
            positions.append(step if isinstance(step, int) else self._keys(node)[step])
            node = node[step]
        return tuple(positions)

    def _keys(self, mapping: dict[str, Plain]) -> dict[str, int]:
        if id(mapping) not in self._positions:
            self._positions[id(mapping)] = {key: position for position, key in enumerate(mapping)}
        return self._positions[id(mapping)]
