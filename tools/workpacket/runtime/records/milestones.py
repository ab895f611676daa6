"""The milestones of a run, as far as the log knows them: which were reached, by which commit, and which one is open.

A milestone is reached in two records. `checkpoint.prepared` says what is going to be committed and gives it an id that
the commit carries as a trailer; `checkpoint_complete` says which commit it became. Between the two only git knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.runtime.records.data_fields import number, text
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.kinds import Data


class Prepared(NamedTuple):
    """A commit that was announced. `base` is the commit it was to follow, '' for none; the event holds the cursor."""

    checkpoint: str
    milestone_index: int
    title: str
    base: str
    event: Event


class Reached(NamedTuple):
    """`changed` is false for a milestone that changed no file: then `commit` is the one that was there."""

    checkpoint: str
    milestone_index: int
    commit: str
    tree: str
    changed: bool
    version: int


@dataclass(slots=True)
class Milestones:
    prepared: Prepared | None = None
    reached: dict[int, Reached] = field(default_factory=dict)

    @property
    def last(self) -> Reached | None:
        """The one that was reached last, which need not be the one with the highest number."""
        return max(self.reached.values(), key=lambda one: one.version, default=None)

    def apply(self, event: Event, data: Data) -> None:
        checkpoint, index = text(data, "checkpoint"), number(data, "milestone_index")
        if event.type == "checkpoint.prepared":
            title, base = text(data, "milestone_title"), text(data, "base")
            self.prepared = Prepared(checkpoint, index, title, base, event)
            return
        commit, tree = text(data, "commit"), text(data, "tree")
        self.reached[index] = Reached(checkpoint, index, commit, tree, data.get("changed") is True, event.version)
        if self.prepared is not None and self.prepared.checkpoint == checkpoint:
            self.prepared = None
