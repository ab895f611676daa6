"""What a person is shown of inputs that changed: the old and the new value, where neither is sensitive."""

from __future__ import annotations

import json
from collections.abc import Mapping

from workpacket.model.canonical import Json
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.records.secret_rules import names_a_secret
from workpacket.runtime.records.state import RunState
from workpacket.runtime.records.values import value_of
from workpacket.runtime.resuming.observations import changed_keys, hashes_by_key
from workpacket.runtime.resuming.questions import shown_short
from workpacket.runtime.stores.contract import Store

HIDDEN = "[not shown]"


def shown_changes(
    store: Store, state: RunState, present: Mapping[str, Json], redactor: Redactor
) -> dict[str, dict[str, Json]]:
    """For each changed key what it was and what it is; a key that is missing on one side is missing here too."""
    recorded = _recorded(store, state)
    shown: dict[str, dict[str, Json]] = {}
    for key in changed_keys(state.inputs, hashes_by_key(present)):
        sides = {"old": recorded, "new": present}
        shown[key] = {side: _harmless(key, values[key], redactor) for side, values in sides.items() if key in values}
    return shown


def changed_lines(changes: Json | Mapping[str, Json]) -> list[str]:
    """Each change with both of its sides."""
    if not isinstance(changes, Mapping):
        return []
    rows = [(key, sides) for key, sides in changes.items() if isinstance(sides, Mapping)]
    return [f"{key}: {_side(sides, 'old')} -> {_side(sides, 'new')}" for key, sides in rows]


def _side(sides: Mapping[str, Json], which: str) -> str:
    return shown_short(sides[which]) if which in sides else "absent"


def _recorded(store: Store, state: RunState) -> Mapping[str, Json]:
    """The inputs as they were said last; nothing if they were erased."""
    try:
        payload = store.payload(state.inputs_said) if state.inputs_said is not None else None
    except RuntimeFault:
        return {}
    value = value_of(payload) if payload is not None else {}
    inputs = value.get("inputs") if isinstance(value, Mapping) else {}
    return inputs if isinstance(inputs, Mapping) else {}


def _harmless(key: str, value: Json, redactor: Redactor) -> Json:
    if names_a_secret(key):
        return HIDDEN
    return redactor.clean_value(value, json.dumps(value, ensure_ascii=False))[0]
