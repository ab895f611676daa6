"""What a new run takes over from another one's checkpoint: steps that are done, effects that succeeded, the cursor.

By value, so that the new run needs nothing of the old one: retention may remove either. An effect that succeeded there
counts as succeeded here, because the mail is out whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import identity
from workpacket.runtime.attempts.recorder import Draft
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.state import CheckpointRecord, EffectRecord, RunState, StepRecord
from workpacket.runtime.stores.contract import Store


def carried_over(store: Store, state: RunState, point: CheckpointRecord, stream: str) -> list[Draft]:
    origin: dict[str, Json] = {"stream": state.stream, "version": point.version, "hash": point.event.hash}
    drafts = [_begin(store, state, origin)]
    drafts += [_step(store, record) for record in state.steps.values()]
    drafts += [draft for record in state.effects.values() for draft in _effect(store, record, stream)]
    drafts.append(_carried(store, point.event))
    drafts.append(Draft("run.stopped", {"code": "user_stopped"}))
    return drafts


def _begin(store: Store, state: RunState, origin: dict[str, Json]) -> Draft:
    (begin,) = store.read(state.stream, 0, 1)
    draft = _carried(store, begin)
    return Draft(draft.type, {**draft.data, "fork_of": origin}, draft.payload)


def _step(store: Store, record: StepRecord) -> Draft:
    return _carried(store, record.event)


def _effect(store: Store, record: EffectRecord, stream: str) -> Iterator[Draft]:
    """What is known of it there is known here: that it happened, with its receipt, or that nobody knows."""
    data: dict[str, Json] = {
        "effect": identity(stream, record.step, record.kind, record.target, record.args_hash),
        "step": record.step,
        "kind": record.kind,
        "target": record.target,
        "args_hash": record.args_hash,
    }
    if record.args is not None:
        data["args"] = dict(record.args)
    if record.target_hash:
        data["target_hash"] = record.target_hash
    if record.status == "succeeded":
        draft = _carried(store, record.event)
        yield Draft("effect.succeeded", {**draft.data, **data}, draft.payload)
    elif record.status == "mark_done":
        draft = _carried(store, record.event)
        yield Draft("effect.doubted", {**data, "carried_from": record.event.hash})
        yield Draft("effect.resolved", {**draft.data, "effect": data["effect"]}, draft.payload)
    elif record.status in {"started", "failed_unknown", "compensate"}:
        yield Draft("effect.doubted", {**data, "carried_from": record.event.hash})


def _carried(store: Store, event: Event) -> Draft:
    data = {name: value for name, value in event.values().items() if name != "dropped"}
    return Draft(event.type, {**data, "carried_from": event.hash}, store.payload(event))
