"""What the state of a run holds of one step, one effect, one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.records.events import Event

Status = Literal["none", "running", "stopped", "cancelled", "completed"]
EffectStatus = Literal[
    "intended", "started", "succeeded", "failed", "failed_unknown", "mark_done", "retry", "compensate"
]


class StepRecord(NamedTuple):
    """A step that is done. `event` vouches for its result; with `redactions` the result could not be kept whole."""

    key: str
    args: Mapping[str, str]
    version: str
    redactions: int
    event: Event


class EffectRecord(NamedTuple):
    """An effect as far as it is known. `event` is the last one about it; its payload is the receipt, if any.

    `args` has the hash of each argument of an effect with a key; None: it was stored before these were. With
    `redactions` the receipt is not what the effect returned; `unkept` says why there is none.
    """

    effect: str
    step: str
    kind: str
    target: str
    args_hash: str
    status: EffectStatus
    attempt: int
    event: Event
    args: Mapping[str, str] | None = None
    target_hash: str = ""
    redactions: int = 0
    unkept: str = ""

    @property
    def name(self) -> str:
        """The name it was asked for by: the last part of its step, without the number."""
        return self.step.rpartition("/")[2].partition("#")[0]

    @property
    def has_receipt(self) -> bool:
        """Whether it is known to have happened and what is stored of its result may be handed out."""
        return self.status in {"succeeded", "mark_done"} and not (self.redactions or self.unkept)


class CheckpointRecord(NamedTuple):
    """Everything up to `version` is durable; from here the next action is the cursor in the payload of `event`."""

    id: str
    name: str
    kind: str
    version: int
    counters: Mapping[str, int]
    preconditions: Mapping[str, Json]
    token_hash: str
    event: Event
