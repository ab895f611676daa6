"""What `check --base` says of a submission's evidence: not what the rows call themselves, but what they show."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.stories import Story
from workpacket.lifecycle.change_checks import SubmittedWork, submission_faults
from workpacket.lifecycle.contract import Demand
from workpacket.value import replace

COMMIT = "c" * 40
ONE, TWO = "It greets.", "It ends with a  line feed."
WORK = SubmittedWork((ONE, TWO), ("`src/`",), ("src/a.py",), same=frozenset({COMMIT}))
STOPPED = "its command was stopped"
UNSHOWN = "is marked as met, but no command or location proves it"
MET: dict[str, Any] = {"result": "met", "command": "true", "exit_code": 0}


def faults(*rows: dict[str, Any], work: SubmittedWork = WORK) -> list[tuple[str, str]]:
    story = Story()
    story.tell("created", "activated", "claimed")
    event = story.add("submitted", commit=COMMIT, evidence=list(rows))
    return [(fault.code, fault.message) for fault in submission_faults(event, work)]


def test_every_criterion_with_a_command_that_succeeded_or_a_place_is_proved() -> None:
    assert faults({"criterion": ONE, **MET}, {"criterion": TWO, "result": "met", "proof": ["src/a.py:1"]}) == []
    other = {"criterion": TWO, "result": "not_applicable", "reason": "it prints nothing"}
    exempting = replace(WORK, exempt=frozenset({"It ends with a line feed."}))
    assert faults({"criterion": ONE, **MET, "commit": COMMIT}, other, work=exempting) == []
    assert faults({"criterion": ONE, **MET}, {"criterion": "It ends with a line  feed.", **MET}) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"result": "not_met", "command": "true", "exit_code": 0}, "was not met"),
        ({"result": "met", "command": "false", "exit_code": 1}, "was not met: its command exited with 1"),
        ({"result": "met", "command": "true"}, "was not met: its command exited with no exit code"),
        ({"result": "met", "command": "true", "exit_code": 0, "limit": "time"}, f"was not met: {STOPPED}"),
        ({"result": "met"}, UNSHOWN),
        ({"result": "met", "proof": []}, UNSHOWN),
        (
            {"result": "met", "proof": ["src/a.py:1", "src/none.py:1"]},
            "was not met: src/none.py:1 is not in the commit",
        ),
        (
            {"result": "met", "command": "true", "exit_code": 0, "commit": "d" * 40},
            "was proved at dddddddddddd, where the work differs",
        ),
        (
            {"result": "not_applicable", "reason": "x"},
            "is marked as not applicable, but the contract does not exempt it from proof",
        ),
    ],
)
def test_what_a_row_calls_itself_proves_nothing(row: dict[str, Any], said: str) -> None:
    work = replace(WORK, absent=frozenset({"src/none.py:1"}))
    ((code, message),) = faults({"criterion": ONE, **MET}, {"criterion": TWO, **row}, work=work)
    assert (code, message) == ("evidence_missing", f"{TWO!r} {said}")


def test_the_last_row_about_a_criterion_counts() -> None:
    failed = {"criterion": ONE, "result": "not_met", "command": "false", "exit_code": 1}
    met = {"criterion": ONE, **MET}
    other = {"criterion": TWO, **MET}
    assert faults(failed, met, other) == []
    assert [code for code, _ in faults(met, failed, other)] == ["evidence_missing"]


def test_criteria_are_those_of_the_packet_and_all_of_them() -> None:
    assert faults({"criterion": ONE, **MET}, {"criterion": "Something else.", **MET}) == [
        ("evidence_missing", "'Something else.' is not a criterion of the packet"),
        ("evidence_missing", f"{TWO!r} has no evidence"),
    ]


def test_a_submission_in_which_nothing_applies_proves_nothing() -> None:
    rows = [{"criterion": each, "result": "not_applicable", "reason": "x"} for each in (ONE, TWO)]
    exempting = replace(WORK, exempt=frozenset({ONE, TWO}))
    assert faults(*rows, work=exempting) == [("evidence_missing", "no criterion was met")]


def test_what_the_contract_exempts_still_needs_a_reason() -> None:
    exempting = replace(WORK, exempt=frozenset({TWO}))
    rows = [{"criterion": ONE, **MET}, {"criterion": TWO, "result": "not_applicable"}]
    ((_, message),) = faults(*rows, work=exempting)
    assert message == f"{TWO!r} is marked as not applicable, but no reason is given"


def test_a_packet_without_criteria_asks_for_no_proof() -> None:
    row = {"criterion": ONE, "result": "not_met"}
    assert faults(row, work=replace(WORK, criteria=())) == [
        ("evidence_missing", f"{ONE!r} is not a criterion of the packet")
    ]


def test_the_commit_is_the_work_and_nothing_else() -> None:
    rows = [{"criterion": each, **MET} for each in (ONE, TWO)]
    assert [code for code, _ in faults(*rows, work=replace(WORK, changed=None))] == ["changes_unknown"]
    assert [code for code, _ in faults(*rows, work=replace(WORK, older=True))] == ["changes_unknown"]
    outside = faults(*rows, work=replace(WORK, changed=("src/a.py", "lib/evil.py")))
    assert outside == [("outside_scope", "lib/evil.py is outside the scope")]


def test_what_was_submitted_under_another_contract_is_not_compared_with_this_one() -> None:
    work = replace(WORK, criteria=("Quite another.",), scope=("`lib/`",), amended=True)
    assert faults({"criterion": ONE, **MET}, work=work) == []
    assert [code for code, _ in faults({"criterion": ONE, **MET}, work=replace(work, older=True))] == [
        "changes_unknown"
    ]


def test_an_event_that_misdescribes_its_commit_is_refused() -> None:
    rows = [{"criterion": each, **MET} for each in (ONE, TWO)]
    ((code, message),) = faults(*rows, work=replace(WORK, misdescribed=True))
    assert (code, message) == ("changes_unknown", "the event does not describe the work in commit cccccccccccc")


RUN = Demand(ONE, "pytest -q", ("test_it",), (), None)
EXEMPT = Demand(ONE, "", (), (), "prose")
PROVED = {
    "criterion": ONE, "result": "met", "command": "pytest -q", "exit_code": 0, "runner": "pytest", "needed": ["t"],
    "outcomes": {"needed": 1}, "execution": "measured", "base": COMMIT,
}  # fmt: skip


def demanded(demand: Demand | None, *rows: dict[str, Any]) -> list[tuple[str, str]]:
    """The faults about the first criterion of a contract that requires this proof of it."""
    demands = {ONE: demand} if demand is not None else {}
    work = replace(WORK, criteria=(ONE, TWO), demands=demands, required=True)
    found = faults({"criterion": TWO, **MET}, *rows, work=work)
    return [(code, said.removeprefix(f"{ONE!r} ")) for code, said in found if said.startswith(repr(ONE))]


NO_PROOF = ("proof_undeclared", "is not proved: the contract specifies no proof")


@pytest.mark.parametrize(
    ("demand", "rows", "said"),
    [
        (RUN, [PROVED], []),
        (
            RUN,
            [PROVED | {"command": "true"}],
            [("proof_other_command", "is not proved: the contract demands pytest -q")],
        ),
        # Both the evidence itself and its difference from the demand are reported.
        (
            RUN,
            [PROVED | {"command": "true", "exit_code": 1}],
            [
                ("evidence_missing", "was not met: its command exited with 1"),
                ("proof_other_command", "is not proved: the contract demands pytest -q"),
            ],
        ),
        (RUN, [], [("evidence_missing", "has no evidence")]),
        # Nobody can prove a criterion without a proof in the contract: that is the fault, not missing evidence.
        (None, [], [NO_PROOF]),
        (None, [{"criterion": ONE, **MET}], [NO_PROOF]),
        (replace(RUN, command=""), [], [NO_PROOF]),
        (
            replace(RUN, command=""),
            [{"criterion": ONE, **MET, "exit_code": 1}],
            [("evidence_missing", "was not met: its command exited with 1"), NO_PROOF],
        ),
        # A person who looked at what is exempt has neither a command nor a place to name.
        (EXEMPT, [{"criterion": ONE, "result": "met", "exempt": "prose"}], []),
        (
            EXEMPT,
            [{"criterion": ONE, "result": "met", "exempt": "lies"}],
            [("exemption_unsigned", "is not proved: its exemption differs from the one in the contract")],
        ),
        (EXEMPT, [], [("evidence_missing", "has no evidence")]),
    ],
)
def test_a_criterion_needs_the_proof_that_its_contract_requires(
    demand: Demand | None, rows: list[dict[str, Any]], said: list[tuple[str, str]]
) -> None:
    assert demanded(demand, *rows) == said


def test_a_criterion_without_evidence_is_reported_once_where_no_proof_is_required() -> None:
    assert faults({"criterion": ONE, **MET}) == [("evidence_missing", f"{TWO!r} has no evidence")]
