"""Separation and thresholds count people: plays of one person with several names, keys and agents, at each gate.

Each play of `one_person.jsonl` is judged at every gate whose party it names.
"""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from approvals.gates import NOW, envelope, facts
from approvals.gates import statement as honest
from ledger.stories import Story
from softkeys import shared_key
from workpacket.approvals.actors import Actors, read_actors
from workpacket.approvals.decide import decide
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import GatePolicy
from workpacket.lifecycle.authorship import not_apart
from workpacket.lifecycle.gates import APPROVAL_GATES
from workpacket.model.events import Actor
from workpacket.shell.approvals.subject import ApprovalSubject
from workpacket.shell.approvals.uses import FirstAuthors, parties_of
from workpacket.value import replace

PLAYS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("one_person.jsonl").read_text("utf-8").splitlines()
]
# Also those that only a policy brings: for standing packets, for the policy itself, and added ones.
GATES = (*(gate.name for gate in APPROVAL_GATES), "standing", "policy", "tested")
PRINCIPALS = ("ann", "ann.laptop", "ben", "cat", "dan", "eve", "before", "zoe")


def key(number: int) -> str:
    return f"SHA256:{chr(64 + number) * 43}"


def person(principal: str, *keys: int) -> dict[str, Any]:
    return {"kind": "person", "principal": f"{principal}@example.org", "keys": list(map(key, keys))}


def agent(operator: str, *keys: int) -> dict[str, Any]:
    return {"kind": "agent", "operator": operator, "keys": list(map(key, keys))}


TABLE = {
    "ann": person("ann", 1),
    "ann-laptop": person("ann.laptop", 1, 9),
    "ann-two": person("ann", 2),
    "ben": person("ben", 3),
    "robot": agent("ann", 4),
    "robot-2": agent("ann", 5),
    "helper": agent("ann-laptop", 6),
    "judge": agent("ben", 7),
    "cat": person("cat", 8),
    "cats-robot": agent("cat", 8),
    "dan": person("dan", 10),
    "eve": person("eve", 11),
    "shared": agent("dan", 12),
    "shared-2": agent("eve", 12),
}
LEFT = {"ann-before": person("before", 1)}


def actors(separation: list[str] | None = None) -> Actors:
    verdict = {"separation": separation} if separation and "coder" in separation else None
    return replace(read_actors(TABLE, verdict), former=read_actors(LEFT).by_name)


class NobodyInGit(FirstAuthors):
    def __init__(self) -> None:
        pass

    def of(self, path: str) -> frozenset[str]:
        return frozenset({"Somebody <somebody@example.org>"})


def story(worker: str) -> Story:
    """A packet that this actor drafted and worked on."""
    told = Story("WP-1-Gauge")
    told.add("created", writer=Actor(worker, "human"))
    told.add("activated")
    told.add("claimed", writer=Actor(worker, "human"), holder=worker)
    told.add("submitted", writer=Actor(worker, "human"))
    return told


def policy(gate: str, separation: list[str], threshold: int) -> bytes:
    roles = json.dumps([f"{name}@example.org" for name in PRINCIPALS])
    rules = f'roles = ["approver"]\nthreshold = {threshold}\nseparation = {json.dumps(separation)}\n'
    gates = "".join(f"[approvals.gates.{name}]\n{rules}" for name in dict.fromkeys((gate, "activation", "policy")))
    text = f'[approvals]\nrepository = "example/rocket"\n[approvals.roles]\napprover = {roles}\noperator = []\n{gates}'
    return text.encode()


def approved(play: dict[str, Any], gate: str) -> set[str]:
    """The codes of what is wrong with the approvals; empty if the gate opens."""
    separation = play["separation"]
    text = policy(gate, separation, 1 if separation else 2)
    signers = "".join(
        shared_key("ssh-ed25519", name).line(f"{name}@example.org") + "\n" for name in PRINCIPALS
    ).encode()

    def said(name: str, nonce: int, **changes: Any) -> Any:
        digest = hashlib.sha256(text).hexdigest()
        who = f"{name}@example.org"
        statement = honest(approver=who, gate=gate, policy=digest, nonce=f"{nonce:032x}", **changes)
        return envelope(statement, shared_key("ssh-ed25519", name))

    envelopes = [said(name, number) for number, name in enumerate(play["approvers"])]
    if "rejected" in play:
        envelopes.append(said(play["rejected"], 99, decision="reject", issued_at=NOW - timedelta(hours=2)))
    known = actors(separation)
    rules = GatePolicy(("approver",), 1, tuple(separation), "none", timedelta(days=1), legacy_tokens=False)
    matter = ApprovalSubject(((".GOV/x.md", b"x"),))
    parties = parties_of(cast("FirstAuthors", NobodyInGit()), story(play["worker"]).log(), matter, rules, known)
    asked = facts(*envelopes, gate=gate, policy=PolicyFiles(text, signers), parties=parties, people=known.people)
    return {each.code for each in decide(asked).unmet}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("play", [each for each in PLAYS if "judge" not in each], ids=lambda play: play["id"])
def test_people_are_told_apart_and_not_names(play: dict[str, Any], gate: str) -> None:
    found = approved(play, gate)
    assert play["expect"] in found if play["expect"] else not found


@pytest.mark.parametrize("play", [each for each in PLAYS if "judge" in each], ids=lambda play: play["id"])
def test_a_verdict_is_given_by_someone_else(play: dict[str, Any]) -> None:
    refused = list(not_apart(play["judge"], story(play["worker"]).events, actors()))
    assert bool(refused) == bool(play["expect"])


def test_what_was_judged_by_names_on_the_base_stays_judged() -> None:
    rules = GatePolicy(("approver",), 1, ("author", "operator"), "none", timedelta(days=1), legacy_tokens=False)
    matter = ApprovalSubject(((".GOV/x.md", b"x"),))
    authors, log = cast("FirstAuthors", NobodyInGit()), story("ann").log()
    before = parties_of(authors, log, matter, rules, actors(), linked=False)
    assert before["operator"] == {"ann", "ann@example.org"}
    assert "ann.laptop@example.org" not in before["author"]
    assert parties_of(authors, log, matter, rules, actors())["operator"] == {
        "ann", "ann-laptop", "ann-two", "ann-before",
        "ann@example.org", "ann.laptop@example.org", "before@example.org",
    }  # fmt: skip
