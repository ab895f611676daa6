"""What `policy trust` writes into a policy: rules for every gate, the actors of this account, coverage."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from workpacket.approvals.policy import Policy, policy_from_toml
from workpacket.lifecycle.moves import Planned
from workpacket.lifecycle.trust import OwnActor, Trusting, plan_trust
from workpacket.model.layout import POLICY_PATH, SIGNERS_PATH
from workpacket.model.plan import Moment
from workpacket.problem import WorkpacketError
from workpacket.text.source import Source
from workpacket.value import replace

ANN = OwnActor("ann", agent=False, fingerprint=f"SHA256:{'a' * 43}")
CODER = OwnActor("coder 1", agent=True, fingerprint=f"SHA256:{'b' * 43}")
LINE = 'ann@example.org namespaces="workpacket-approval@v1" ssh-ed25519 AAAA'
WHOM = Trusting("rocket", "ann@example.org", LINE, "ann", (), first=True)
MOMENT = Moment("2026-11-19T03:00:00Z", "tx", "nonce")
STARTED = '[check]\nprofile = "strict"\n\n[coverage]\nmode = "warn"\n'


def planned(policy: str = STARTED, whom: Trusting = WHOM, signers: str | None = None) -> Planned:
    lists = Source.from_bytes(SIGNERS_PATH, signers.encode()) if signers is not None else None
    return plan_trust(MOMENT, Source.from_bytes(POLICY_PATH, policy.encode()), lists, whom)


def text_of(plan: Planned, path: str = POLICY_PATH) -> str:
    (data,) = [change.new for change in plan.plan.changes if change.path == path]
    assert data is not None
    return data.decode()


def rules(text: str) -> dict[str, Any]:
    assert isinstance(policy_from_toml(text.encode()), Policy), policy_from_toml(text.encode())
    return tomllib.loads(text)


def test_every_gate_has_its_rules_and_every_change_needs_a_packet() -> None:
    found = rules(text_of(planned()))
    gates = found["approvals"]["gates"]
    assert set(gates) == {"activation", "amendment", "verdict", "waiver", "override", "resolve", "policy"}
    assert gates["verdict"] == {"roles": ["validator"], "threshold": 1, "separation": ["coder"]}
    assert found["coverage"] == {"mode": "required"}
    assert found["check"] == {"profile": "strict"}


def test_without_event_keys_only_the_judge_is_another_one_and_a_note_says_why() -> None:
    plan = planned()
    found = rules(text_of(plan))
    assert "actors" not in found
    assert found["approvals"]["gates"]["activation"]["separation"] == []
    assert "key init --event" in plan.notes[0]


def test_the_event_keys_of_the_account_are_named_with_the_person_behind_them() -> None:
    found = rules(text_of(planned(whom=replace(WHOM, actors=(ANN, CODER)))))
    assert found["actors"] == {
        "ann": {"kind": "person", "principal": "ann@example.org", "keys": [ANN.fingerprint]},
        "coder 1": {"kind": "agent", "operator": "ann", "keys": [CODER.fingerprint]},
    }
    assert found["verdict"] == {"separation": ["coder"]}
    separation = {gate: table["separation"] for gate, table in found["approvals"]["gates"].items()}
    assert separation == {
        "activation": ["author"],
        "amendment": ["author"],
        "verdict": ["coder"],
        "waiver": ["author"],
        "override": ["author"],
        "resolve": ["coder"],
        "policy": [],
    }


def test_the_operator_of_an_agent_is_in_the_table_also_without_a_key() -> None:
    found = rules(text_of(planned(whom=replace(WHOM, actors=(CODER,)))))
    assert found["actors"]["ann"]["keys"] == []


@pytest.mark.parametrize(
    ("before", "mode"),
    [("", "required"), ('[coverage]\nmode = "off"\n', "off"), ('[coverage]\nmode = "required"\n', "required")],
)
def test_only_a_warning_becomes_an_error(before: str, mode: str) -> None:
    assert rules(text_of(planned(before)))["coverage"]["mode"] == mode


def test_a_policy_that_names_approvers_only_gets_the_actors_that_it_lacks() -> None:
    before = text_of(planned(whom=replace(WHOM, actors=(ANN,))))
    again = planned(before, replace(WHOM, actors=(ANN,)), signers=f"{LINE}\n")
    assert again.plan.changes == ()
    after = text_of(planned(before, replace(WHOM, actors=(ANN, CODER)), signers=f"{LINE}\n"))
    assert after.startswith(before)
    assert set(rules(after)["actors"]) == {"ann", "coder 1"}


def test_the_line_of_the_key_is_added_once() -> None:
    assert text_of(planned(), SIGNERS_PATH) == f"{LINE}\n"
    assert text_of(planned(signers="# keys"), SIGNERS_PATH) == f"# keys\n{LINE}\n"
    assert [change.path for change in planned(signers=f"{LINE}\n").plan.changes] == [POLICY_PATH]


@pytest.mark.parametrize("first", [True, False])
def test_a_second_person_is_told_that_they_have_no_role(first: bool) -> None:
    before = text_of(planned())
    line = LINE.replace("ann@", "vic@")
    plan = planned(before, Trusting("rocket", "vic@example.org", line, "vic", (), first=first), signers=f"{LINE}\n")
    assert plan.said == "vic@example.org has no role yet, so their key cannot open any gate"
    assert plan.then == "workpacket policy trust --principal vic@example.org --role ROLE"


def test_a_second_key_of_a_person_needs_no_role() -> None:
    before = text_of(planned())
    plan = planned(before, replace(WHOM, line=LINE.replace("AAAA", "BBBB"), first=False), signers=f"{LINE}\n")
    assert plan.said == "ann@example.org may approve with this key, once it is on the base"
    assert plan.then == "workpacket approve policy --gate policy"


def test_the_key_of_a_page_comes_with_the_page() -> None:
    found = rules(text_of(planned(whom=replace(WHOM, port=7363))))
    page = {"rp_ids": ["localhost"], "origins": ["http://localhost:7363"], "port": 7363}
    assert found["approvals"]["webauthn"] == page
    assert "webauthn" not in rules(text_of(planned()))["approvals"]


def test_a_page_that_the_policy_names_already_stays() -> None:
    before = text_of(planned(whom=replace(WHOM, port=7363))).replace("7363", "7400")
    later = planned(before, replace(WHOM, port=7363, first=False), signers="")
    assert [change.path for change in later.plan.changes] == [SIGNERS_PATH]
    plain = text_of(planned())
    added = rules(text_of(planned(plain, replace(WHOM, port=7363, first=False), signers="")))
    assert added["approvals"]["webauthn"]["port"] == 7363


def with_roles() -> str:
    return text_of(planned(whom=replace(WHOM, actors=(ANN, CODER))))


def test_a_person_gets_a_role_beside_those_who_have_it() -> None:
    bob = replace(WHOM, principal="bob@example.org", line="bob", first=False, role="validator")
    plan = planned(with_roles(), bob)
    roles = rules(text_of(plan))["approvals"]["roles"]
    assert roles["validator"] == ["ann@example.org", "bob@example.org"]
    assert roles["approver"] == ["ann@example.org"]
    assert plan.then == "workpacket approve policy --gate policy"
    again = planned(text_of(plan), bob, "bob\n")
    assert (again.plan.changes, again.said) == (
        (), "bob@example.org is already trusted with this key as validator, once it is on the base"
    )  # fmt: skip


@pytest.mark.parametrize("written", ["[]", "[\n]", '["ann@example.org",]', '[\n  "ann@example.org",\n]'])
def test_a_list_of_any_layout_gets_the_person(written: str) -> None:
    bob = replace(WHOM, principal="bob@example.org", line="bob", first=False, role="validator")
    before = with_roles().replace('validator = ["ann@example.org"]', f"validator = {written}")
    found = rules(text_of(planned(before, bob)))["approvals"]["roles"]["validator"]
    assert found == [*tomllib.loads(f"x = {written}")["x"], "bob@example.org"]


def test_a_role_that_the_policy_lacks_is_refused() -> None:
    with pytest.raises(WorkpacketError, match="approver, operator, validator"):
        planned(with_roles(), replace(WHOM, first=False, role="judge"))
