"""The decision: all checks, fixed order, same bytes; and each check with what makes it say no."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.model.reason_tables.stops import REASONS
from workpacket.model.reasons import Registry
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.state import CheckpointRecord, EffectRecord, RunState
from workpacket.runtime.resume.decide import CHECKS, Decision, decide
from workpacket.runtime.resume.observe import Observations, ResumePolicy

REGISTRY = Registry(REASONS)
EVENT = Event("run@1", 3, "checkpoint", 1, 0, 0, "a", "w", 1, None, 0, "{}", None, "", "")
PROMISES = {
    "commit": "abc", "clean": True, "digests": {"tasks": "1"}, "environment": {"python": "3.11", "host": "a"},
}  # fmt: skip
SEEN = Observations(
    name="run", packet="", repository="root", workdir="/here", code_version="1", git="exact", foreign_changes=(),
    digests={"tasks": "1"}, inputs={"month": "h1"}, scope=("src",), environment={"python": "3.11", "host": "a"}, now=50,
)  # fmt: skip


def checkpoint(**changes: Any) -> CheckpointRecord:
    return CheckpointRecord("c1", "here", "run", 3, {}, changes.pop("preconditions", PROMISES), "t1", EVENT)._replace(
        **changes
    )


def state(**changes: Any) -> RunState:
    point = changes.pop("point", checkpoint())
    made = RunState(
        stream="run@1", version=3, status="stopped", name="run", code_version="1", repository="root",
        workdir="/here", scope=("src", "docs"), inputs={"month": "h1"}, attempt=1, checkpoints=[point] if point else [],
    )  # fmt: skip
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def effect(kind: str, status: Any) -> dict[str, EffectRecord]:
    return {"e": EffectRecord("e", "send", kind, "mail", "", status, 1, EVENT)}


def decided(made: RunState | None = None, seen: Observations = SEEN, policy: ResumePolicy | None = None) -> Decision:
    made = made or state()
    return decide(made, made.latest_checkpoint, seen, policy or ResumePolicy())


def test_a_run_that_is_as_it_was_is_resumed_at_its_checkpoint() -> None:
    decision = decided()
    assert (decision.action, decision.code, decision.checkpoint) == ("RESUME", "", "c1")
    assert {check.result for check in decision.checks} <= {"pass", "not_applicable"}


def test_an_attempt_that_did_not_say_how_it_ended_restarts_the_step_in_flight() -> None:
    assert decided(state(status="running")).action == "RESTART_STEP"


def test_a_finished_run_is_complete() -> None:
    assert decided(state(status="completed")).action == "COMPLETE"


@pytest.mark.parametrize(
    "seen",
    [{"lease_holder": "host/1"}, {"git": None}, {"foreign_changes": ("a",)}, {"digests": None}, {"scope": ("b",)}],
    ids=lambda seen: next(iter(seen)),
)
def test_nothing_that_matters_only_for_going_on_keeps_a_finished_run_from_being_read(seen: dict[str, Any]) -> None:
    assert decided(state(), replace(SEEN, **seen)).action == "BLOCK" or "scope" in seen
    assert decided(state(status="completed"), replace(SEEN, **seen)).action == "COMPLETE"


REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("log_intact", {}, {"log_fault": "version 2: bad"}, "BLOCK", "log_damaged"),
    ("schema_known", {}, {"newer_schema": "version 9"}, "BLOCK", "newer_schema"),
    ("lease_free", {}, {"lease_holder": "host/1"}, "BLOCK", "run_busy"),
    ("not_cancelled", {"status": "cancelled"}, {}, "CONFIRM", "run_cancelled"),
    ("not_cancelled", {"cancel_reason": "enough"}, {}, "CONFIRM", "run_cancelled"),
    ("not_terminal", {"status": "none"}, {}, "BLOCK", "checkpoint_missing"),
    ("effects_known", {"effects": effect("manual", "started")}, {}, "BLOCK", "effect_outcome_unknown"),
    ("effects_known", {"effects": effect("manual", "failed_unknown")}, {}, "BLOCK", "effect_outcome_unknown"),
    ("same_identity", {}, {"name": "other"}, "CONFIRM", "identity_changed"),
    ("same_identity", {}, {"packet": "WP-1"}, "CONFIRM", "identity_changed"),
    ("same_identity", {}, {"repository": "fork"}, "CONFIRM", "identity_changed"),
    ("same_identity", {}, {"workdir": "/there"}, "CONFIRM", "identity_changed"),
    ("same_identity", {}, {"code_version": "2"}, "CONFIRM", "code_changed"),
    ("same_identity", {"tokens_spent": {"t1"}}, {"retry_token_hash": "t1"}, "BLOCK", "retry_token_spent"),
    ("same_identity", {}, {"retry_token_hash": "t2"}, "BLOCK", "checkpoint_missing"),
    ("same_identity", {"point": None}, {"retry_token_hash": "t1"}, "BLOCK", "checkpoint_missing"),
    ("same_identity", {"point": None}, {"checkpoint_wanted": "there"}, "BLOCK", "checkpoint_missing"),
    ("git_related", {}, {"git": None}, "BLOCK", "check_not_run"),
    ("git_related", {}, {"git": "rewritten"}, "CONFIRM", "git_diverged"),
    ("git_related", {}, {"git": "unreachable"}, "CONFIRM", "git_diverged"),
    ("tree_clean", {}, {"foreign_changes": None}, "BLOCK", "check_not_run"),
    ("tree_clean", {}, {"foreign_changes": ("b", "a")}, "BLOCK", "dirty_worktree"),
    ("definitions_same", {}, {"digests": None}, "BLOCK", "check_not_run"),
    ("definitions_same", {}, {"digests": {"tasks": "2"}}, "CONFIRM", "definitions_changed"),
    ("inputs_same", {}, {"inputs": None}, "BLOCK", "check_not_run"),
    ("inputs_same", {}, {"inputs": {"month": "h2"}}, "CONFIRM", "inputs_changed"),
    ("inputs_same", {}, {"inputs": {}}, "CONFIRM", "inputs_changed"),
    ("scope_within", {}, {"scope": ("src", "etc")}, "BLOCK", "scope_widened"),
    ("scope_within", {}, {"scope": ()}, "BLOCK", "scope_widened"),
    ("scope_within", {"allow_deps": ("zod",)}, {"allow_deps": ("zod", "left-pad")}, "BLOCK", "scope_widened"),
    ("environment_same", {}, {"environment": None}, "BLOCK", "check_not_run"),
    ("environment_same", {}, {"environment": {"python": "3.12", "host": "a"}}, "CONFIRM", "environment_changed"),
    (
        "environment_same", {"budget": {"until": 99}, "last_recorded_at": 60}, {"now": 40}, "CONFIRM",
        "environment_changed",
    ),
    ("budget_left", {"budget": {"until": 40}}, {}, "CONFIRM", "timeout"),
    ("budget_left", {"budget": {"seconds": 1.5}, "spent_ms": 1500}, {}, "CONFIRM", "budget_exhausted"),
    ("budget_left", {"budget": {"steps": 0}}, {}, "CONFIRM", "max_ticks"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "made", "seen", "action", "code"), REFUSALS)
def test_each_check_refuses_what_it_is_there_for(
    check: str, made: dict[str, Any], seen: dict[str, Any], action: str, code: str
) -> None:
    decision = decided(state(**made), replace(SEEN, **seen))
    assert (decision.action, decision.code) == (action, code)
    (refusing,) = [c for c in decision.checks if c.result in {"block", "confirm"}]
    assert refusing.name == check
    assert code in REGISTRY


ACCEPTED: list[tuple[dict[str, Any], dict[str, Any], ResumePolicy]] = [
    ({"status": "cancelled"}, {}, ResumePolicy(resume_cancelled=True)),
    ({}, {"git": "rewritten"}, ResumePolicy(allow_rewritten_history=True)),
    ({}, {"git": "ahead"}, ResumePolicy()),
    ({}, {"git": "content_equal"}, ResumePolicy()),
    ({}, {"scope": None}, ResumePolicy()),
    ({"scope": ()}, {"scope": ("src",)}, ResumePolicy()),
    ({}, {"environment": {"python": "3.11", "host": "b"}}, ResumePolicy(ignore_environment=("host",))),
    ({}, {"environment": {"python": "3.11", "host": "a", "more": "x"}}, ResumePolicy()),
    ({}, {"retry_token_hash": "t1"}, ResumePolicy()),
    ({}, {"name": None, "packet": None, "code_version": None, "workdir": None, "repository": None}, ResumePolicy()),
    ({"effects": effect("probe", "started")}, {}, ResumePolicy()),
    ({"effects": effect("manual", "succeeded")}, {}, ResumePolicy()),
    ({"budget": {"until": 60, "seconds": 9, "steps": 9}}, {}, ResumePolicy()),
    ({"budget": {"seconds": 9}, "spent_ms": 8999}, {}, ResumePolicy()),
    ({"budget": {"until": 99}, "last_recorded_at": 50}, {}, ResumePolicy()),
    ({"allow_deps": ("zod", "@org/*")}, {"allow_deps": ("@org/a", "zod")}, ResumePolicy()),
    ({"inputs": {}}, {"inputs": None}, ResumePolicy()),
    ({"budget": {"steps": 0}}, {"budget": {"steps": 5}}, ResumePolicy()),
    ({"last_recorded_at": 99}, {"now": 40}, ResumePolicy()),
    ({"point": checkpoint(preconditions={})}, {"git": None, "foreign_changes": None, "digests": None}, ResumePolicy()),
]


@pytest.mark.parametrize(("made", "seen", "policy"), ACCEPTED)
def test_what_is_allowed_is_not_refused(made: dict[str, Any], seen: dict[str, Any], policy: ResumePolicy) -> None:
    assert decided(state(**made), replace(SEEN, **seen), policy).action == "RESUME"


def test_a_decision_as_json_says_all_of_it() -> None:
    decision = decided(seen=replace(SEEN, inputs={"month": "h2"}))
    told = json.loads(decision.to_bytes())
    assert {key: told[key] for key in ("action", "code", "checkpoint")} == {
        "action": "CONFIRM",
        "code": "inputs_changed",
        "checkpoint": "c1",
    }
    assert told["subject"] == decision.subject != ""
    results = {check["check"]: (check["result"], check["code"], check["details"]) for check in told["checks"]}
    assert list(results) == [check.__name__ for check in CHECKS]
    assert results["inputs_same"] == ("confirm", "inputs_changed", ["month"])
    assert results["budget_left"] == ("not_applicable", "", [])
    assert results["tree_clean"] == ("pass", "", [])
    assert decision.digest == hashlib.sha256(decision.to_bytes()).hexdigest()


def test_where_nothing_is_asked_there_is_no_subject() -> None:
    assert decided().subject == ""


def test_all_checks_run_even_after_the_first_refusal() -> None:
    decision = decided(seen=replace(SEEN, log_fault="bad", inputs={}, git=None))
    assert [check.name for check in decision.checks] == [check.__name__ for check in CHECKS]
    assert len(decision.checks) == 14
    refused = {check.name for check in decision.checks if check.result in {"block", "confirm"}}
    assert refused == {"log_intact", "git_related", "inputs_same"}
    assert decision.code == "log_damaged"


def test_a_block_outweighs_a_question_and_a_question_outweighs_nothing_else() -> None:
    assert decided(seen=replace(SEEN, inputs={}, foreign_changes=("x",))).action == "BLOCK"
    assert decided(state(status="completed"), replace(SEEN, inputs={})).action == "COMPLETE"


def test_a_mismatch_names_exactly_the_changed_keys() -> None:
    made = state(inputs={"a": "1", "b": "2", "c": "3"})
    decision = decided(made, replace(SEEN, inputs={"a": "1", "b": "9", "d": "4"}))
    (check,) = [c for c in decision.checks if c.result == "confirm"]
    assert check.details == ("b", "c", "d")


@pytest.mark.parametrize(
    ("made", "seen", "policy", "name", "result"),
    [
        (state(), replace(SEEN, checkpoint_wanted="c1"), ResumePolicy(), "same_identity", "pass"),
        (state(), replace(SEEN, git="rewritten"), ResumePolicy(allow_rewritten_history=True), "git_related", "pass"),
        (
            state(),
            replace(SEEN, git="unreachable"),
            ResumePolicy(allow_rewritten_history=True),
            "git_related",
            "confirm",
        ),
        (state(inputs={}), replace(SEEN, inputs=None), ResumePolicy(), "inputs_same", "not_applicable"),
        (state(inputs={}), SEEN, ResumePolicy(), "inputs_same", "confirm"),
        (state(scope=()), replace(SEEN, scope=()), ResumePolicy(), "scope_within", "pass"),
        (state(), replace(SEEN, scope=None), ResumePolicy(), "scope_within", "not_applicable"),
        (state(), replace(SEEN, scope=None, allow_deps=()), ResumePolicy(), "scope_within", "pass"),
        (
            state(last_recorded_at=99, budget={"until": 200}),
            replace(SEEN, now=0),
            ResumePolicy(),
            "environment_same",
            "pass",
        ),
        (state(last_recorded_at=99, budget={"until": 200}), SEEN, ResumePolicy(), "environment_same", "confirm"),
    ],
)
def test_a_check_looks_at_all_that_it_rests_on(
    made: RunState, seen: Observations, policy: ResumePolicy, name: str, result: str
) -> None:
    checks = {check.name: check.result for check in decided(made, seen, policy).checks}
    assert checks[name] == result


@pytest.mark.parametrize(
    ("made", "seen", "name", "code", "details"),
    [
        (state(), replace(SEEN, orphans=("a: 7",)), "lease_free", "orphan_alive", ("a: 7",)),
        (state(cancel_reason="enough"), SEEN, "not_cancelled", "run_cancelled", ("enough",)),
        (state(status="cancelled"), SEEN, "not_cancelled", "run_cancelled", ("",)),
        (
            state(), replace(SEEN, retry_token_hash="t2"), "same_identity", "checkpoint_missing",
            ("no checkpoint has this retry token",),
        ),
        (
            state(allow_deps=("zod",)), replace(SEEN, allow_deps=("a", "zod", "b")), "scope_within", "scope_widened",
            ("--allow-deps a", "--allow-deps b"),
        ),
        (
            state(), replace(SEEN, scope=()), "scope_within", "scope_widened",
            ("no scope was given, although the run had one",),
        ),
        (
            state(last_recorded_at=51, budget={"until": 200}), SEEN, "environment_same", "environment_changed",
            ("the wall clock is behind the log, and the run has a deadline",),
        ),
        (state(status="none"), SEEN, "not_terminal", "checkpoint_missing", ("the run has no first event",)),
        (state(), replace(SEEN, name="x"), "same_identity", "identity_changed", ("name: 'run' -> 'x'",)),
        (state(), replace(SEEN, packet="x"), "same_identity", "identity_changed", ("packet: '' -> 'x'",)),
        (state(), replace(SEEN, repository="x"), "same_identity", "identity_changed", ("repository: 'root' -> 'x'",)),
        (state(), replace(SEEN, workdir="x"), "same_identity", "identity_changed", ("workdir: '/here' -> 'x'",)),
        (state(), replace(SEEN, environment=None), "environment_same", "check_not_run", ("environment",)),
        (state(), replace(SEEN, digests=None), "definitions_same", "check_not_run", ("digests",)),
        (state(), replace(SEEN, inputs=None), "inputs_same", "check_not_run", ("inputs",)),
        (state(), replace(SEEN, git=None), "git_related", "check_not_run", ("git",)),
        (state(), replace(SEEN, foreign_changes=None), "tree_clean", "check_not_run", ("work tree",)),
        (state(budget={"until": 50}), SEEN, "budget_left", "", ()),
        (state(budget={"until": 49}), SEEN, "budget_left", "timeout", ("the deadline has passed",)),
    ],
)  # fmt: skip
def test_a_check_says_what_it_saw(
    made: RunState, seen: Observations, name: str, code: str, details: tuple[str, ...]
) -> None:
    (check,) = [check for check in decided(made, seen).checks if check.name == name]
    assert (check.code, check.details) == (code, details)


def test_an_answer_holds_for_exactly_the_question() -> None:
    seen = replace(SEEN, inputs={"month": "h2"})
    asked = decided(seen=seen)
    yes = {asked.subject: "yes"}
    assert decided(state(confirmations=yes), seen).action == "RESUME"
    assert decided(state(confirmations={asked.subject: "no"}), seen).code == "confirmation_denied"
    for other in (
        decided(state(confirmations=yes), replace(seen, inputs={"month": "h3"})),
        decided(state(confirmations=yes), replace(seen, code_version="2")),
        decided(state(confirmations=yes, attempt=2), seen),
        decided(state(confirmations=yes, point=checkpoint(id="c2")), seen),
        decided(state(confirmations=yes, stream="run@2"), seen),
        decided(state(confirmations=yes), replace(seen, digests={"tasks": "2"})),
        decided(state(confirmations=yes), replace(seen, environment={"python": "3.12", "host": "a"})),
    ):
        assert other.action == "CONFIRM"


def test_an_answer_is_to_all_that_was_seen_and_not_only_to_what_was_asked() -> None:
    """Of a checkpoint that promised nothing, digests and environment differ without a question."""
    bare = checkpoint(preconditions={})
    seen = replace(SEEN, inputs={"month": "h2"})
    asked = decided(state(point=bare), seen)
    for other in (replace(seen, digests={"tasks": "2"}), replace(seen, environment={"host": "b"})):
        again = decided(state(point=bare, confirmations={asked.subject: "yes"}), other)
        assert (again.action, again.checks == asked.checks) == ("CONFIRM", True)


def test_what_was_confirmed_under_an_earlier_version_still_holds() -> None:
    """The subject of a question is stored with its answer, so it is the same in every version."""
    asked = decided(seen=replace(SEEN, inputs={"month": "h2"}))
    assert asked.subject == "b205571af31767723c4e04e4d06f9f15ba0010c94da302aed6d6e12f5337bcfa"


def test_a_check_that_was_confirmed_says_so() -> None:
    seen = replace(SEEN, inputs={"month": "h2"})
    subject = decided(seen=seen).subject
    checks = {check.name: check.result for check in decided(state(confirmations={subject: "yes"}), seen).checks}
    assert checks["inputs_same"] == "confirmed"


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_an_answer_never_lifts_a_block(answer: str) -> None:
    seen = replace(SEEN, inputs={}, foreign_changes=("x",))
    asked = decided(seen=seen)
    decision = decided(state(confirmations={asked.subject: answer}), seen)
    assert (decision.action, decision.code) == ("BLOCK", "dirty_worktree")


texts = st.sampled_from(["", "a", "b"])
hashes = st.dictionaries(st.sampled_from(["x", "y"]), texts, max_size=2)
observations = st.builds(
    Observations,
    log_fault=texts,
    newer_schema=texts,
    lease_holder=texts,
    name=st.none() | texts,
    repository=st.none() | texts,
    code_version=st.none() | texts,
    git=st.sampled_from([None, "exact", "ahead", "content_equal", "rewritten", "unreachable"]),
    foreign_changes=st.none() | st.tuples(texts),
    digests=st.none() | hashes,
    inputs=st.none() | hashes,
    scope=st.none() | st.tuples(texts),
    environment=st.none() | hashes,
    now=st.integers(0, 99),
    retry_token_hash=texts,
    checkpoint_wanted=texts,
)
states = st.builds(
    state,
    status=st.sampled_from(["none", "running", "stopped", "cancelled", "completed"]),
    point=st.none() | st.just(checkpoint()) | st.just(checkpoint(preconditions={})),
    inputs=hashes,
    budget=st.fixed_dictionaries({}, optional={"until": st.integers(0, 99), "steps": st.integers(0, 2)}),
    effects=st.just({}) | st.just(effect("manual", "started")),
)


@given(states, observations)
def test_the_same_case_gives_the_same_bytes_and_a_registered_code(made: RunState, seen: Observations) -> None:
    decision = decided(made, seen)
    assert decided(made, seen).to_bytes() == decision.to_bytes()
    assert len(decision.checks) == 14
    assert decision.code == "" or decision.code in REGISTRY
    assert (decision.code == "") == (decision.action in {"RESUME", "RESTART_STEP", "COMPLETE"})


@given(states, observations)
def test_nothing_goes_on_while_a_check_says_no(made: RunState, seen: Observations) -> None:
    decision = decided(made, seen)
    results = {check.result for check in decision.checks}
    if decision.action in {"RESUME", "RESTART_STEP"}:
        assert not results & {"block", "confirm", "complete"}
    if decision.action == "COMPLETE":
        assert "block" not in results


@given(states, observations)
def test_saying_yes_turns_a_question_into_going_on(made: RunState, seen: Observations) -> None:
    decision = decided(made, seen)
    if decision.action == "CONFIRM":
        made.confirmations[decision.subject] = "yes"
        assert decided(made, seen).action in {"RESUME", "RESTART_STEP"}
