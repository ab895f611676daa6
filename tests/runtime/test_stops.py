"""The registry of stop reasons: complete, consistent, and the only place that knows exit statuses."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import workpacket.runtime
from workpacket.model import exits
from workpacket.model.reason_tables.stops import REASONS
from workpacket.model.reasons import EXIT_RANGES, Registry, StopReason
from workpacket.runtime.records.failures import reason_of

REGISTRY = Registry(REASONS)
# Every name by which the founding document and its tool call a stop.
NAMES = [
    "stalled",
    "stalled_timeout",
    "guard_violation",
    "lockfile_violation",
    "dirty_worktree",
    "file_collision",
    "verification_failed",
    "verification_failed_max_retries",
    "verification_timeout",
    "review_loop_detected",
    "review_rejected",
    "worker_blocked",
    "implement_blocked",
    "worker_failed",
    "worker_parse_failed",
    "worker_call_timeout",
    "worker_timeout",
    "max_ticks",
    "max_ticks_reached",
    "timeout",
    "time_budget_exceeded",
    "user_stopped",
    "effect_outcome_unknown",
    "view_conflict",
    "not_run",
    "unregistered",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_known_name_is_a_code_or_an_alias(name: str) -> None:
    assert isinstance(REGISTRY[name], StopReason)


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.code)
def test_the_exit_status_lies_in_the_range_of_the_family(reason: StopReason) -> None:
    assert reason.exit_code in EXIT_RANGES[reason.stops]
    assert reason.family == "runtime"


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.code)
def test_everything_a_person_needs_is_said(reason: StopReason) -> None:
    for text in (reason.explanation, reason.diagnosis):
        assert text.endswith(".")
    assert reason.remedy == f"{reason.remedies[0]}."


def test_a_code_that_nobody_registered_has_an_answer_too() -> None:
    assert reason_of("stalled_timeout").code == "stalled"
    assert (reason_of("made_up").code, reason_of("made_up").exit_code) == ("unregistered", exits.INTERNAL)


def test_exit_statuses_tell_the_codes_apart() -> None:
    numbers = [reason.exit_code for reason in REASONS if reason.stops != "user"]
    assert len(numbers) == len(set(numbers))


def test_an_exit_status_outside_the_family_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the family"):
        StopReason(
            code="x", title="X", explanation="E.", remedy="R", family="runtime", exit_code=exits.FINDINGS,
            stops="worker", auto_resume="never", diagnosis="D.", remedies=("R",),
        )  # fmt: skip


def test_a_stop_without_a_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="needs at least one remedy"):
        StopReason(
            code="x", title="X", explanation="E.", remedy="R", family="runtime", exit_code=40,
            stops="worker", auto_resume="never", diagnosis="D.", remedies=(),
        )  # fmt: skip


def codes_in_the_source() -> set[str]:
    """Every text that is given as `code=` or stands as `default_code`, and what decide blocks or asks with."""
    found: set[str] = set()
    for path in Path(workpacket.runtime.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.keyword(arg="code", value=ast.Constant(value=str(code))) if code:
                    found.add(code)
                case ast.Assign(targets=[ast.Name(id="default_code")], value=ast.Constant(value=str(code))):
                    found.add(code)
                case ast.Call(func=ast.Name(id="_block" | "_confirm" | "Problem"), args=[ast.Constant(value=c), *_]):
                    found.add(str(c))
                case _:
                    pass
    return found


def codes_of_bridges() -> set[str]:
    """What the bridges and commands refuse with in the name of a run."""
    package = Path(workpacket.runtime.__file__).parents[1]
    calls = [
        node
        for folder in ("bridges", "cli")
        for path in (package / folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"RunBlocked", "RuntimeFault"}
    ]
    given = [word.value for call in calls for word in call.keywords if word.arg == "code"]
    return {str(value.value) for value in given if isinstance(value, ast.Constant)}


def test_the_bridges_stop_with_registered_codes_too() -> None:
    used = codes_of_bridges()
    assert {"lockfile_violation", "check_not_run", "view_conflict"} <= used
    assert {code for code in used if code not in REGISTRY} == set()


def test_the_runtime_stops_with_registered_codes_only() -> None:
    used = codes_in_the_source()
    assert len(used) > 25
    assert {code for code in used if code not in REGISTRY} == set()
