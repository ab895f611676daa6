"""Why something is asked: the `if` that a complaint stands under, in words."""

from __future__ import annotations

from typing import Any

from workpacket.text.schema_judge import Complaint, Path
from workpacket.text.schema_labels import Labels
from workpacket.text.schema_loading import SCHEMA_LISTS, Schema
from workpacket.text.schema_messages import choices

_NAMED_MEMBERS = frozenset(["properties", "patternProperties", "prefixItems"])
_OTHER_MEMBERS = frozenset(["additionalProperties", "items"])


def condition(complaint: Complaint, schema: Schema, labels: Labels) -> str:
    """ "`VERDICT` is FAIL", if the complaint stands in a `then` whose `if` is as simple as that; else nothing."""
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
                break  # the keyword itself is what complains
            node = node[name]
    return said


def _in_words(asked: Schema, path: Path, labels: Labels) -> str:
    """What an `if` asks, if it is that fields are there and have certain values."""
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
