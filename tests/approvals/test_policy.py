"""The rules of approval: leniency is written down, an unknown key is a fault, all faults are named."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest

from workpacket.approvals.policy import LEGACY_WORDS, GatePolicy, Policy, policy_from_toml, read_policy
from workpacket.problem import Problem

GATE = {"roles": ["approver"], "threshold": 1, "separation": ["author"]}
TABLE: dict[str, Any] = {
    "repository": "example/rocket",
    "roles": {"approver": ["alice", "bob"], "validator": ["carol"], "ci": []},
    "gates": {"activation": GATE, "policy": GATE | {"separation": []}},
}


def read(table: object) -> Policy:
    policy = read_policy(table)
    assert isinstance(policy, Policy), policy
    return policy


def with_gate(**changes: object) -> dict[str, Any]:
    """The table with another gate `activation`; the value `...` takes a key away."""
    table = copy.deepcopy(TABLE)
    gate = {key: value for key, value in (GATE | changes).items() if value is not ...}
    table["gates"]["activation"] = gate
    return table


def faults(table: object) -> list[str]:
    refusals = read_policy(table, "the policy")
    assert isinstance(refusals, tuple), refusals
    assert {(refusal.code, refusal.path) for refusal in refusals} == {("policy_malformed", "the policy")}
    return [refusal.message for refusal in refusals]


def test_what_may_be_left_out_means_the_usual() -> None:
    assert read(TABLE).gates["activation"] == GatePolicy(
        roles=("approver",),
        threshold=1,
        separation=("author",),
        hardware="none",
        max_age=timedelta(days=30),
        legacy_tokens=False,
    )


def test_everything_can_be_said() -> None:
    said = {
        "roles": ["validator", "approver"],
        "threshold": 3,
        "separation": ["coder", "author"],
        "hardware": "pin",
        "max_age_days": 7,
    }
    assert read(with_gate(**said)).gates["activation"] == GatePolicy(
        ("validator", "approver"), 3, ("coder", "author"), "pin", timedelta(days=7), False
    )
    assert read(with_gate(legacy_tokens=LEGACY_WORDS)).gates["activation"].legacy_tokens


@pytest.mark.parametrize("hardware", ["none", "touch", "pin"])
def test_hardware_is_one_of_three(hardware: str) -> None:
    assert read(with_gate(hardware=hardware)).gates["activation"].hardware == hardware


def test_roles_are_held_by_those_who_are_named() -> None:
    policy = read(TABLE)
    assert policy.holds("alice", "approver")
    assert not policy.holds("Alice", "approver")
    assert not policy.holds("alice", "validator")
    assert not policy.holds("alice", "nobody")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"roles": ...}, "roles is missing"),
        ({"threshold": ...}, "threshold is missing"),
        ({"separation": ...}, "separation is missing"),
        ({"threshold": 0}, "threshold is not a whole number from 1 to 1000"),
        ({"threshold": -1}, "threshold is not a whole number from 1 to 1000"),
        ({"threshold": True}, "threshold is not a whole number from 1 to 1000"),
        ({"threshold": 1.0}, "threshold is not a whole number from 1 to 1000"),
        ({"threshold": "1"}, "threshold is not a whole number from 1 to 1000"),
        ({"threshold": 1001}, "threshold is not a whole number from 1 to 1000"),
        ({"threshold": 3}, "threshold is 3, but only 2 people have one of the gate's roles"),
        ({"roles": ["ci"]}, "threshold is 1, but only 0 people have one of the gate's roles"),
        ({"roles": []}, "threshold is 1, but only 0 people have one of the gate's roles"),
        ({"roles": "approver"}, "roles is not a list of names of roles"),
        ({"roles": ["approver", "approver"]}, "roles contains the same item twice"),
        ({"roles": ["approver", "boss"]}, "roles names the role 'boss', which is not in [approvals.roles]"),
        ({"separation": ["auther"]}, "separation is not a list of parties: author, coder, operator"),
        ({"separation": "author"}, "separation is not a list of parties: author, coder, operator"),
        ({"hardware": "yes"}, "hardware is not one of none, touch, pin"),
        ({"hardware": True}, "hardware is not one of none, touch, pin"),
        ({"max_age_days": 0}, "max_age_days is not a whole number from 1 to 30"),
        ({"max_age_days": 31}, "max_age_days is not a whole number from 1 to 30"),
        ({"legacy_tokens": True}, f"legacy_tokens is not the words '{LEGACY_WORDS}'"),
        ({"legacy_tokens": "yes"}, f"legacy_tokens is not the words '{LEGACY_WORDS}'"),
        ({"treshold": 2}, "treshold is unknown"),
    ],
)
def test_a_fault_of_a_gate_is_named(changes: dict[str, object], fault: str) -> None:
    assert f"approvals.gates.activation.{fault}" in faults(with_gate(**changes))


def test_the_gate_of_answers_asks_one_person() -> None:
    table = with_gate()
    roles = {"roles": ["approver"], "threshold": 1, "separation": []}
    table["gates"]["answer"] = roles
    assert read(table).gates["answer"].threshold == 1
    for change in ({"threshold": 2}, {"separation": ["author"]}, {"legacy_tokens": LEGACY_WORDS}):
        table["gates"]["answer"] = roles | change
        assert "approvals.gates.answer requires threshold = 1, separation = [], and no legacy_tokens" in faults(table)


def test_a_threshold_as_high_as_there_are_persons_is_read() -> None:
    assert read(with_gate(threshold=2)).gates["activation"].threshold == 2
    assert read(with_gate(threshold=3, roles=["approver", "validator"])).gates["activation"].threshold == 3


def test_a_person_with_two_roles_or_two_spellings_is_one_person() -> None:
    table = with_gate(threshold=2, roles=["approver", "validator"])
    table["roles"] = {"approver": ["alice"], "validator": ["alice", "ALICE"]}
    fault = "approvals.gates.activation.threshold is 2, but only 1 people have one of the gate's roles"
    assert faults(table)[0] == fault


def test_old_tokens_cannot_be_counted_as_persons() -> None:
    fault = (
        "approvals.gates.activation.legacy_tokens is above 1, "
        "but the gate's approvers cannot be counted as individual people"
    )
    assert faults(with_gate(threshold=2, legacy_tokens=LEGACY_WORDS)) == [fault]


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("repository", ..., "approvals.repository is missing"),
        ("repository", "a b", "approvals.repository is not the name of a repository"),
        ("roles", ..., "approvals.roles is missing"),
        ("roles", [], "approvals.roles is not a table of keys and values"),
        ("gates", ..., "approvals.gates is missing"),
        ("gates", 1, "approvals.gates is not a table of keys and values"),
        ("legacy", True, "approvals.legacy is unknown"),
    ],
)
def test_a_fault_of_the_table_is_named(path: str, value: object, fault: str) -> None:
    table = {key: item for key, item in (TABLE | {path: value}).items() if item is not ...}
    assert fault in faults(table)


@pytest.mark.parametrize("table", [None, [], "x", 1])
def test_what_is_no_table_says_so(table: object) -> None:
    assert faults(table) == ["approvals is not a table of keys and values"]


def test_a_policy_says_how_it_is_changed() -> None:
    table = copy.deepcopy(TABLE)
    del table["gates"]["policy"]
    assert faults(table) == ["approvals.gates.policy is missing: no one could approve a change to this policy"]


def test_a_gate_is_a_table() -> None:
    table = copy.deepcopy(TABLE)
    table["gates"]["activation"] = ["approver"]
    assert "approvals.gates.activation is not a table of keys and values" in faults(table)


@pytest.mark.parametrize("name", ["Activation", "1st", "g" * 41, "a b"])
def test_names_of_gates_and_roles_have_one_form(name: str) -> None:
    table = copy.deepcopy(TABLE)
    table["gates"][name] = GATE
    table["roles"][name] = []
    form = "lower-case letters, digits, '_' and '-'"
    assert faults(table) == [
        f"approvals.roles.{name} is not the name of a role: {form}",
        f"approvals.gates.{name} is not the name of a gate: {form}",
    ]


LITERAL = "is not a list of literal principals"


@pytest.mark.parametrize(
    ("people", "fault"),
    [
        (["*"], LITERAL),
        (["alice,bob"], LITERAL),
        ("alice", LITERAL),
        ([1], LITERAL),
        (["alice", "alice"], "contains the same item twice"),
    ],
)
def test_a_role_is_held_by_literal_principals(people: object, fault: str) -> None:
    table = copy.deepcopy(TABLE)
    table["roles"]["validator"] = people
    assert faults(table)[0] == f"approvals.roles.validator {fault}"


TOML = b"""
[lanes]
free = "for others"
[approvals]
repository = "r"
roles.approver = ["alice"]
[approvals.gates.policy]
roles = ["approver"]
threshold = 1
separation = []
"""


def test_the_table_is_read_from_toml_and_other_tables_are_left_alone() -> None:
    policy = policy_from_toml(TOML)
    assert isinstance(policy, Policy)
    assert list(policy.gates) == ["policy"]


@pytest.mark.parametrize("data", [b"", b"[aprovals]"])
def test_a_policy_without_the_table_names_nobody(data: bytes) -> None:
    refusals = policy_from_toml(data, "p")
    assert isinstance(refusals, tuple)
    assert [(refusal.code, refusal.path) for refusal in refusals] == [("approvers_unnamed", "p")]
    assert refusals[0].message == "the [approvals] table is missing, so no one may approve"


def test_a_fault_is_told_of_the_file_that_has_it_by_its_usual_name() -> None:
    for refusals in (policy_from_toml(b""), read_policy({})):
        assert isinstance(refusals, tuple)
        assert {refusal.path for refusal in refusals} == {"policy.toml"}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\xff", "not TOML: 'utf-8' codec can't decode"),
        (b"[approvals\n", "not TOML: "),
        (b"[approvals]\nrepository = 'a'\nrepository = 'b'", "not TOML: Cannot overwrite a value"),
        (b"a = " + b"[" * 50_000, "not TOML: "),
        (b"approvals = 1", "approvals is not a table of keys and values"),
    ],
)
def test_what_is_no_policy_is_refused(data: bytes, complaint: str) -> None:
    refusals = policy_from_toml(data, "p")
    assert isinstance(refusals, tuple)
    assert [(refusal.code, refusal.path) for refusal in refusals] == [("policy_malformed", "p")]
    assert complaint in refusals[0].message
    assert isinstance(refusals[0], Problem)
