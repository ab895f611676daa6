"""Whether a run may continue, and from where: a pure decision by fourteen checks of the observations.

  1 the log is intact                8 the recorded commit is in this history
  2 its schema is known              9 the work tree has no foreign changes
  3 no one else holds the run       10 task, dependencies and configuration are the recorded ones
  4 it was not cancelled            11 the inputs are the recorded ones
  5 it is not finished              12 scope and allowed dependencies are as recorded or narrower
  6 every effect's outcome is known 13 the environment is the recorded one
  7 it is the recorded work         14 there is budget left

All checks always run, in this order; the first one that fails determines the decision's code, and the others are
reported too. The same state, observations and policy give the same bytes.

CONFIRM leaves the decision to a person: the question is bound to the checkpoint and to exactly the observed
differences, so an answer covers no others. Any other failure is BLOCK.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from workpacket.model.canonical import Json
from workpacket.model.ids import covers
from workpacket.runtime.records.jcs import jcs_bytes
from workpacket.runtime.records.state import CheckpointRecord, RunState
from workpacket.runtime.resume.observe import Observations, ResumePolicy, changed_keys
from workpacket.value import Value

Result = Literal["pass", "not_applicable", "confirmed", "confirm", "block", "complete"]


class Case(Value):
    """The facts that a check can use."""

    state: RunState
    point: CheckpointRecord | None
    seen: Observations
    policy: ResumePolicy

    def promised(self, name: str) -> Json:
        """Return the value that the checkpoint recorded under this name, or None if there is none."""
        return None if self.point is None else self.point.preconditions.get(name)

    def promised_texts(self, name: str) -> Mapping[str, str] | None:
        value = self.promised(name)
        return {key: str(item) for key, item in value.items()} if isinstance(value, Mapping) else None


Verdict = tuple[Result, str, tuple[str, ...]]
PASS: Verdict = ("pass", "", ())
NOT_APPLICABLE: Verdict = ("not_applicable", "", ())


def _block(code: str, *details: str) -> Verdict:
    return ("block", code, details)


def _confirm(code: str, *details: str) -> Verdict:
    return ("confirm", code, details)


def log_intact(case: Case) -> Verdict:
    return _block("log_damaged", case.seen.log_fault) if case.seen.log_fault else PASS


def schema_known(case: Case) -> Verdict:
    return _block("newer_schema", case.seen.newer_schema) if case.seen.newer_schema else PASS


def lease_free(case: Case) -> Verdict:
    if case.seen.lease_holder:
        return _block("run_busy", case.seen.lease_holder)
    return _block("orphan_alive", *case.seen.orphans) if case.seen.orphans else PASS


def not_cancelled(case: Case) -> Verdict:
    asked = case.state.status == "cancelled" or case.state.cancel_reason is not None
    if not asked or case.policy.resume_cancelled:
        return PASS
    return _confirm("run_cancelled", case.state.cancel_reason or "")


def not_terminal(case: Case) -> Verdict:
    if case.state.status == "none":
        return _block("checkpoint_missing", "the run has no first event")
    if case.state.status == "moved":
        return _confirm("run_moved", f"exported to {case.state.moved_to}")
    return ("complete", "", ()) if case.state.status == "completed" else PASS


def effects_known(case: Case) -> Verdict:
    """Accept effects that can be repeated or probed, because the run settles them when it reaches them. Any other
    effect must first be settled by a person.
    """
    unknown = sorted(f"{e.step}: {e.target or e.effect}" for e in case.state.unknown_effects if e.kind == "manual")
    return _block("effect_outcome_unknown", *unknown) if unknown else PASS


def same_identity(case: Case) -> Verdict:
    token = _token(case)
    if token is not None:
        return token
    pairs = (
        ("name", case.state.name, case.seen.name),
        ("packet", case.state.packet, case.seen.packet),
        ("repository", case.state.repository, case.seen.repository),
        ("workdir", case.state.workdir, case.seen.workdir),
    )
    differing = [f"{what}: {old!r} -> {new!r}" for what, old, new in pairs if new is not None and new != old]
    if differing:
        return _confirm("identity_changed", *differing)
    version = case.seen.code_version
    if version is not None and version != case.state.code_version:
        return _confirm("code_changed", f"code_version: {case.state.code_version!r} -> {version!r}")
    return PASS


def _token(case: Case) -> Verdict | None:
    """Check that a requested checkpoint exists, and that a retry token belongs to it and has not been used."""
    wanted, token = case.seen.checkpoint_wanted, case.seen.retry_token_hash
    if wanted and case.point is None:
        return _block("checkpoint_missing", wanted)
    if not token:
        return None
    if token in case.state.tokens_spent:
        return _block("retry_token_spent")
    if case.point is None or case.point.token_hash != token:
        return _block("checkpoint_missing", "no checkpoint has this retry token")
    return None


def git_related(case: Case) -> Verdict:
    recorded = case.promised("commit")
    if recorded is None:
        return NOT_APPLICABLE
    if case.seen.git is None:
        return _block("check_not_run", "git")
    if case.seen.git in {"exact", "ahead", "content_equal"}:
        return PASS
    if case.seen.git == "rewritten" and case.policy.allow_rewritten_history:
        return PASS
    return _confirm("git_diverged", f"{recorded}: {case.seen.git}")


def tree_clean(case: Case) -> Verdict:
    if case.promised("clean") is not True:
        return NOT_APPLICABLE
    if case.seen.foreign_changes is None:
        return _block("check_not_run", "work tree")
    return _block("dirty_worktree", *sorted(case.seen.foreign_changes)) if case.seen.foreign_changes else PASS


def definitions_same(case: Case) -> Verdict:
    return _compared(case.promised_texts("digests"), case.seen.digests, "definitions_changed", "digests")


def inputs_same(case: Case) -> Verdict:
    if case.seen.inputs is None and not case.state.inputs:
        return NOT_APPLICABLE
    return _compared(case.state.inputs, case.seen.inputs, "inputs_changed", "inputs")


def scope_within(case: Case) -> Verdict:
    more_leave = [
        f"--allow-deps {wanted}"
        for wanted in case.seen.allow_deps or ()
        if not any(covers(given, wanted) for given in case.state.allow_deps)
    ]
    if more_leave:
        return _block("scope_widened", *more_leave)
    if case.seen.scope is None:
        return NOT_APPLICABLE if case.seen.allow_deps is None else PASS
    wider = sorted(set(case.seen.scope) - set(case.state.scope)) if case.state.scope else []
    dropped = not case.seen.scope and case.state.scope
    if dropped:
        return _block("scope_widened", "no scope was given, although the run had one")
    return _block("scope_widened", *wider) if wider else PASS


def environment_same(case: Case) -> Verdict:
    if case.seen.now and case.seen.now < case.state.last_recorded_at and case.state.budget.get("until"):
        return _confirm("environment_changed", "the wall clock is behind the log, and the run has a deadline")
    recorded = case.promised_texts("environment")
    if recorded is None:
        return NOT_APPLICABLE
    ignored = set(case.policy.ignore_environment)
    recorded = {name: value for name, value in recorded.items() if name not in ignored}
    present = case.seen.environment
    if present is not None:
        present = {name: value for name, value in present.items() if name in recorded}
    return _compared(recorded, present, "environment_changed", "environment")


def budget_left(case: Case) -> Verdict:
    budget = {**case.state.budget, **(case.seen.budget or {})}
    seconds, steps, until = (budget.get(name) for name in ("seconds", "steps", "until"))
    if not isinstance(seconds, int | float) and not isinstance(steps, int) and not isinstance(until, int):
        return NOT_APPLICABLE
    if isinstance(until, int) and case.seen.now > until:
        return _confirm("timeout", "the deadline has passed")
    if isinstance(seconds, int | float) and case.state.spent_ms >= seconds * 1000:
        return _confirm("budget_exhausted", f"{case.state.spent_ms / 1000:g} of {seconds:g} s")
    if isinstance(steps, int) and len(case.state.steps) >= steps:
        return _confirm("max_ticks", f"{len(case.state.steps)} of {steps} steps")
    return PASS


def _compared(recorded: Mapping[str, str] | None, present: Mapping[str, str] | None, code: str, what: str) -> Verdict:
    if recorded is None:
        return NOT_APPLICABLE
    if present is None:
        return _block("check_not_run", what)
    differing = changed_keys(recorded, present)
    return _confirm(code, *differing) if differing else PASS


CHECKS: tuple[Callable[[Case], Verdict], ...] = (
    log_intact,
    schema_known,
    lease_free,
    not_cancelled,
    not_terminal,
    effects_known,
    same_identity,
    git_related,
    tree_clean,
    definitions_same,
    inputs_same,
    scope_within,
    environment_same,
    budget_left,
)

# Checks that matter only if there is more to do.
OF_GOING_ON = frozenset(
    check.__name__
    for check in (lease_free, git_related, tree_clean, definitions_same, inputs_same, scope_within, environment_same)
)


Action = Literal["RESUME", "RESTART_STEP", "CONFIRM", "BLOCK", "COMPLETE"]


class Check(Value):
    """The outcome of one check. `details` is what a person needs to see: names, old and new values."""

    name: str
    result: Result
    code: str = ""
    details: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        return {"check": self.name, "result": self.result, "code": self.code, "details": list(self.details)}


class Decision(Value):
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
    """Relax the check for a finished run: conditions for continuing do not prevent reading it."""
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
    # An attempt that did not record its end may have had a step in progress, which is then repeated.
    return ("RESTART_STEP" if state.status == "running" else "RESUME"), ""


def _subject(state: RunState, checkpoint: str, seen: Observations, checks: Iterable[Check]) -> str:
    """Return the subject of a confirmation: this run, checkpoint and exact differences; '' if nothing is asked."""
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
