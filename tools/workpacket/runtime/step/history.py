"""What an event log says about one step: its checkpoints, which tokens are spent, which questions are answered.

A pure fold over the lines of the log. A damaged line behind the checkpoint that would be used may have been a later
checkpoint, or the record that its token is spent, so the step does not go on past it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, RunBlocked
from workpacket.runtime.step.log import LogContents, StepLog
from workpacket.runtime.step.model import StepCheckpoint, checkpoint_of, is_checkpoint

CONSUMED = "RetryTokenConsumed"
CONFIRMED = "StepResumeConfirmed"
COMPLETED = "StepCompleted"

Identity = tuple[str, str, str]


class Identified(Protocol):
    @property
    def mission_id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def step_id(self) -> str: ...


def identity_of(step: Identified) -> Identity:
    return step.mission_id, step.run_id, step.step_id


@dataclass(slots=True)
class History:
    identity: Identity
    checkpoints: list[tuple[int, StepCheckpoint]] = field(default_factory=list)
    spent: set[str] = field(default_factory=set)
    answers: dict[str, bool] = field(default_factory=dict)
    completed: bool = False
    damage: tuple[int, str] = (0, "")  # the last line that says nothing

    @classmethod
    def of(cls, log: LogContents, step: Identified) -> History:
        history = cls(identity_of(step))
        for line in log.lines:
            if tuple(line.event.get(name) for name in ("mission_id", "run_id", "step_id")) == history.identity:
                history._apply(line.number, line.event)
        for damaged in log.damaged:
            if not damaged.torn and damaged.number > history.damage[0]:
                history.damage = (damaged.number, str(damaged))
        return history

    def _apply(self, number: int, event: Mapping[str, Json]) -> None:
        kind = event.get("event_type")
        if is_checkpoint(event):
            try:
                self.checkpoints.append((number, checkpoint_of(event)))
            except ValueError as error:
                self.damage = (number, f"line {number}: {error}")
            self.completed = False
        elif kind == CONSUMED:
            self.spent.add(str(event.get("retry_token")))
        elif kind == CONFIRMED:
            self.answers[str(event.get("subject"))] = event.get("answer") == "yes"
        elif kind == COMPLETED:
            self.completed = True
            self.spent |= {checkpoint.retry_token for _, checkpoint in self.checkpoints}

    def wanted(self, token: str) -> StepCheckpoint | None:
        """The checkpoint to go on from; None if the step is to begin. A token never makes it begin."""
        if token:
            self.require_unspent(token)
            found = next((pair for pair in reversed(self.checkpoints) if pair[1].retry_token == token), None)
            if found is None:
                raise RunBlocked(f"{'/'.join(self.identity)} has no checkpoint with the retry token {token}",
                                 code="checkpoint_missing", details={"retry_token": token})  # fmt: skip
        else:
            found = self.checkpoints[-1] if self.checkpoints else None
        if self.damage[0] > (found[0] if found else 0):
            raise LogDamaged("/".join(self.identity), self.damage[0], f"{self.damage[1]}, and it may have been about "
                             "this step")  # fmt: skip
        return None if found is None or (self.completed and not token) else found[1]

    def require_unspent(self, token: str) -> None:
        if token in self.spent:
            raise RunBlocked(f"{'/'.join(self.identity)}: the retry token {token} was used before",
                             code="retry_token_spent", details={"retry_token": token})  # fmt: skip


def load_checkpoint(
    log: StepLog | str | os.PathLike[str], step_id: str, *, mission_id: str = "", run_id: str = ""
) -> StepCheckpoint | None:
    """The latest checkpoint of a step, None if it has none. What a log cannot say is skipped; a resume is stricter."""
    named = {"step_id": step_id} | {k: v for k, v in (("mission_id", mission_id), ("run_id", run_id)) if v}
    lines = (log if isinstance(log, StepLog) else StepLog(log)).read().lines
    for line in reversed(lines):
        if is_checkpoint(line.event) and all(line.event.get(name) == value for name, value in named.items()):
            try:
                return checkpoint_of(line.event)
            except ValueError:
                continue
    return None
