"""May this run go on, and from where? A pure decision.

All fourteen checks of `resuming/checks.py` run, always, in that order; the first that says no gives the decision its
code, and the others are there to be read. The same state, observations and policy give the same bytes.

What a person may decide is CONFIRM: the question is bound to the checkpoint and to exactly the differences seen, so an
answer holds for no other ones. Everything else that is not right is BLOCK.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from workpacket.model.canonical import Json
from workpacket.runtime.records.jcs import jcs_bytes
from workpacket.runtime.records.state import CheckpointRecord, RunState
from workpacket.runtime.resuming.checks import CHECKS, OF_GOING_ON, Case, Result
from workpacket.runtime.resuming.observations import Observations, ResumePolicy

Action = Literal["RESUME", "RESTART_STEP", "CONFIRM", "BLOCK", "COMPLETE"]


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check. `details` is what a person needs to see: names, old and new."""

    name: str
    result: Result
    code: str = ""
    details: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        return {"check": self.name, "result": self.result, "code": self.code, "details": list(self.details)}


@dataclass(frozen=True, slots=True)
class Decision:
    action: Action
    code: str
    checkpoint: str
    subject: str
    checks: tuple[Check, ...]

    def as_json(self) -> dict[str, Json]:
        return {
            "action": self.action,
            "code": self.code,
            "checkpoint": self.checkpoint,
            "subject": self.subject,
            "checks": [check.as_json() for check in self.checks],
        }

    def to_bytes(self) -> bytes:
        return jcs_bytes(self.as_json())

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()


def decide(state: RunState, point: CheckpointRecord | None, seen: Observations, policy: ResumePolicy) -> Decision:
    case = Case(state, point, seen, policy)
    checks = tuple(Check(check.__name__, *check(case)) for check in CHECKS)
    if state.status == "completed":
        checks = tuple(_as_finished(check) for check in checks)
    checkpoint = "" if point is None else point.id
    subject = _subject(state, checkpoint, seen, checks)
    answer = state.confirmations.get(subject)
    if answer == "yes":
        checks = tuple(_as_confirmed(check) for check in checks)
    action, code = _conclude(state, checks)
    if action == "CONFIRM" and answer == "no":
        action, code = "BLOCK", "confirmation_denied"
    return Decision(action, code, checkpoint, subject, checks)


def _as_finished(check: Check) -> Check:
    """A finished run does nothing more: what would have to be right for going on does not stop it being read."""
    if check.result == "block" and check.name in OF_GOING_ON:
        return Check(check.name, "not_applicable", "", check.details)
    return check


def _as_confirmed(check: Check) -> Check:
    return Check(check.name, "confirmed", check.code, check.details) if check.result == "confirm" else check


def _conclude(state: RunState, checks: Iterable[Check]) -> tuple[Action, str]:
    by_result: dict[Result, str] = {}
    for check in checks:
        by_result.setdefault(check.result, check.code)
    if "block" in by_result:
        return "BLOCK", by_result["block"]
    if "complete" in by_result:
        return "COMPLETE", ""
    if "confirm" in by_result:
        return "CONFIRM", by_result["confirm"]
    # An attempt that did not say how it ended may have had a step in flight, which is then done again.
    return ("RESTART_STEP" if state.status == "running" else "RESUME"), ""


def _subject(state: RunState, checkpoint: str, seen: Observations, checks: Iterable[Check]) -> str:
    """What a confirmation is about: this run, this checkpoint, exactly these differences. '' if nothing is asked."""
    asked: list[Json] = [check.as_json() for check in checks if check.result == "confirm"]
    if not asked:
        return ""
    about: dict[str, Json] = {
        "run": state.stream,
        "attempt": state.attempt,
        "checkpoint": checkpoint,
        "asked": asked,
        "inputs": dict(seen.inputs or {}),
        "digests": dict(seen.digests or {}),
        "environment": dict(seen.environment or {}),
    }
    return hashlib.sha256(jcs_bytes(about)).hexdigest()
