"""Problems in the contents of any store: broken chains, payloads, and an index that differs from the log. A store that
can tell more about itself has the methods of `Verifiable` or `Inspectable`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from workpacket.runtime.errors import PayloadErased, RuntimeFault
from workpacket.runtime.records.events import Event, IndexEntry, index_of
from workpacket.runtime.stores.contract import Store


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """One problem; `code` is a stop reason."""

    code: str
    message: str


@runtime_checkable
class Verifiable(Protocol):
    """A store that can verify more than its contents, such as the pages of a file."""

    def problems(self) -> tuple[StoreProblem, ...]:
        """Verify everything, contents included."""
        ...


class StoreCheck(NamedTuple):
    """One line of `runtime doctor`: what was checked, what is wrong, and what was found."""

    name: str
    problems: tuple[StoreProblem, ...]
    found: str


@runtime_checkable
class Inspectable(Protocol):
    """A store whose surroundings `runtime doctor` should check: versions, durability, rights."""

    @property
    def shown(self) -> str:
        """Return the location, without a password."""
        ...

    def checks(self) -> Iterator[StoreCheck]: ...


def problems_of(store: Store) -> tuple[StoreProblem, ...]:
    """Return everything that is wrong with a store, as far as it can tell."""
    return store.problems() if isinstance(store, Verifiable) else tuple(contents_of(store))


def contents_of(store: Store) -> list[StoreProblem]:
    """Read and verify every event and payload."""
    problems: list[StoreProblem] = []
    kept: list[Event] = []
    for head in store.heads():
        problems += stream_problems(store, head.stream, kept)
    return problems + _index(store, kept)


def stream_problems(store: Store, stream: str, kept: list[Event] | None = None) -> list[StoreProblem]:
    """Return the problems of one stream; its sound events are added to `kept`."""
    problems: list[StoreProblem] = []
    try:
        for event in store.read(stream):
            if kept is not None:
                kept.append(event)
            problems += _payload(store, event)
    except RuntimeFault as fault:
        problems.append(StoreProblem(fault.code, fault.message))
    return problems


def _payload(store: Store, event: Event) -> list[StoreProblem]:
    try:
        store.payload(event)
    except PayloadErased:
        return []  # intentional
    except RuntimeFault as fault:
        return [StoreProblem(fault.code, fault.message)]
    return []


def _index(store: Store, events: list[Event]) -> list[StoreProblem]:
    wanted: set[IndexEntry] = set(index_of(events).values())
    kinds = {entry.kind for entry in wanted} | set(store.index_kinds())
    present = {entry for kind in kinds for entry in store.entries(kind)}
    if wanted == present:
        return []
    return [
        StoreProblem(
            "store_corrupt",
            f"the index differs from the log in {len(wanted ^ present)} entries; rebuild it: "
            "workpacket runtime doctor --repair-index",
        )
    ]
