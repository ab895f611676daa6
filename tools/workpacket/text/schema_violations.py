"""From what `jsonschema` has against a value to what a person is told.

Branches are settled, of several complaints about one scalar the most telling stays (a text that is empty need not be
told that it is no date either), and all come in the order of the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from workpacket.text.node import Plain
from workpacket.text.schema_branches import settled
from workpacket.text.schema_conditions import condition
from workpacket.text.schema_judge import Complaint, Path, complaints
from workpacket.text.schema_labels import Labels
from workpacket.text.schema_loading import Schema
from workpacket.text.schema_messages import choices, message, shown
from workpacket.text.schema_suggestions import Suggestions
from workpacket.text.violation import Violation

_MISSING = frozenset(["required", "dependentRequired"])
_UNKNOWN = frozenset(["additionalProperties", "unevaluatedProperties", "propertyNames"])
# Of several complaints about one scalar, the first of these is the most telling; others come after them.
_MOST_TELLING = ("type", "const", "enum", "minLength", "format", "maxLength", "pattern")


def violations(schema: Schema, value: Plain) -> tuple[Violation, ...]:
    """What is wrong with the value under the (loaded) schema."""
    labels, suggestions, order = Labels(schema), Suggestions(), _Order(value)
    found = chain.from_iterable(map(settled, complaints(schema, value)))
    told: list[Violation] = []
    for complaint in sorted(_most_telling(found), key=lambda complaint: order.of(complaint.path)):
        because = condition(complaint, schema, labels)
        text = message(complaint, labels) + (f" (because {because})" if because else "")
        hint = _hint(complaint, labels, suggestions)
        told.append(Violation(complaint.path, _code(complaint), complaint.keyword, text, hint))
    return tuple(dict.fromkeys(told))


def _most_telling(found: Iterable[Complaint]) -> list[Complaint]:
    """The complaints without those that a better one about the same scalar makes superfluous."""
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
    """What the writer probably meant, or what would do."""
    if complaint.keyword in _UNKNOWN:
        meant = suggestions.nearest(complaint.path[-1], labels.keys(complaint.path[:-1]))
        return f"did you mean `{meant}`?" if meant else ""
    if complaint.keyword in {"enum", "const"}:
        options = complaint.argument if complaint.keyword == "enum" else [complaint.argument]
        meant = suggestions.nearest(complaint.instance, options)
        return f"did you mean {choices([meant])}?" if meant else ""
    if complaint.keyword == "type" and "string" in complaint.argument and isinstance(complaint.instance, (int, float)):
        return "put it in quotes to make it text"
    wanted = (
        (*complaint.path, complaint.detail) if complaint.keyword in _MISSING and complaint.detail else complaint.path
    )
    examples = [example for example in labels.annotation(wanted, "examples") or () if isinstance(example, str)]
    return f"for example {shown(examples[0])}" if examples else ""


class _Order:
    """Where things stand in a value, for sorting."""

    def __init__(self, value: Plain) -> None:
        self._value = value
        self._positions: dict[int, dict[str, int]] = {}

    def of(self, path: Path) -> tuple[int, ...]:
        """The position of each step of the path in its list or mapping."""
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
