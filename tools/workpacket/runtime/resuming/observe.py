"""The one place where a resume looks at the world. What it sees becomes `Observations`; judging them is `decide`'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, NewerSchema, StoreCorrupt
from workpacket.runtime.records.state import CheckpointRecord, RunState
from workpacket.runtime.resuming.observations import Observations
from workpacket.runtime.stores.contract import Store


class Observer(Protocol):
    """Adds to what is promised at a checkpoint, and to what is seen at a resume: git, digests, environment."""

    def preconditions(self) -> Mapping[str, Json]: ...

    def look(self, seen: Observations, point: CheckpointRecord | None) -> Observations: ...


def read_state(store: Store, stream: str, seen: Observations) -> tuple[RunState, Observations]:
    """The state as far as it can be believed, and what is wrong with the rest."""
    state = RunState()
    try:
        for event in store.read(stream):
            state.apply(event)
    except (LogDamaged, StoreCorrupt) as error:
        return state, replace(seen, log_fault=error.message)
    except NewerSchema as error:
        return state, replace(seen, newer_schema=error.message)
    return state, seen


def look_around(observers: tuple[Observer, ...], seen: Observations, point: CheckpointRecord | None) -> Observations:
    for observer in observers:
        seen = observer.look(seen, point)
    return seen


class EnvironmentObserver:
    """Promises that chosen facts about the environment stay: give it what to name and how to find it out."""

    def __init__(self, facts: Mapping[str, str]) -> None:
        self._facts = dict(facts)

    def preconditions(self) -> Mapping[str, Json]:
        return {"environment": dict(self._facts)}

    def look(self, seen: Observations, point: CheckpointRecord | None) -> Observations:
        return replace(seen, environment={**(seen.environment or {}), **self._facts}) if point else seen


class DigestObserver:
    """Promises that definitions (tasks, dependencies, configuration) stay as they are: name -> digest."""

    def __init__(self, digests: Mapping[str, str]) -> None:
        self._digests = dict(digests)

    def preconditions(self) -> Mapping[str, Json]:
        return {"digests": dict(self._digests)}

    def look(self, seen: Observations, point: CheckpointRecord | None) -> Observations:
        return replace(seen, digests={**(seen.digests or {}), **self._digests}) if point else seen
