"""Whether evidence is the proof that a contract demands, and when a verdict waits for a replay."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.stories import COMMIT, TX, Story
from workpacket.approvals.actors import Actors, read_actors
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.lifecycle.authorship import not_apart
from workpacket.lifecycle.contract import Demand, is_complete
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.lifecycle.proofs import PROOF_CODES, replay_unmet, unlike_demand
from workpacket.model.events import Actor

RUN = "pytest tests"
DEMAND = Demand("It greets.", RUN, (), (), None)
EXEMPT = Demand("It greets.", "", (), (), "documentation")
BOTH = Demand("It greets.", RUN, (), (), "speed")
PROVED: dict[str, Any] = {
    "result": "met", "command": RUN, "runner": "pytest", "needed": ["a"], "outcomes": {"needed": 1, "kept": 2},
    "base": COMMIT, "execution": "measured",
}  # fmt: skip


def codes(row: dict[str, Any], demand: Demand | None = DEMAND, *, required: bool = True) -> list[str]:
    found = [fault.code for fault in unlike_demand(row, demand, required=required)]
    assert set(found) <= PROOF_CODES
    return found


def test_the_row_that_was_demanded() -> None:
    assert codes(PROVED) == []
    assert codes({"result": "met", "exempt": "documentation"}, EXEMPT) == []
    assert codes({"result": "met", "exempt": "speed", "command": RUN, "runner": "pytest"}, BOTH) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"command": "true"}, "proof_other_command"),
        ({"command": None}, "proof_other_command"),
        ({"runner": None}, "no_test_executed"),
        ({"needed": []}, "proof_not_needed"),
        ({"needed": None}, "proof_not_needed"),
        ({"outcomes": {"kept": 1}}, "proof_not_needed"),
        ({"outcomes": None}, "proof_not_needed"),
        ({"outcomes": {"needed": 1, "broken": 1}}, "test_failed"),
        ({"outcomes": {"needed": 1, "failing": 1}}, "test_failed"),
        ({"base": None}, "change_not_executed"),
        ({"execution": None}, "change_not_executed"),
        ({"result": "not_applicable", "reason": "x"}, "exemption_unsigned"),
    ],
)
def test_a_row_that_lacks_something(change: dict[str, Any], code: str) -> None:
    row = {key: value for key, value in {**PROVED, **change}.items() if value is not None}
    assert codes(row) == [code]


def test_an_exemption_is_the_one_that_was_signed() -> None:
    assert codes({"result": "met", "exempt": "laziness"}, EXEMPT) == ["exemption_unsigned"]
    assert codes({"result": "met"}, EXEMPT) == ["exemption_unsigned"]
    assert codes({"result": "not_applicable", "reason": "x"}, EXEMPT) == []
    assert codes({"result": "not_applicable", "reason": "x"}, BOTH) == ["exemption_unsigned"]
    assert codes({"result": "met", "exempt": "speed", "command": "true", "runner": "x"}, BOTH) == [
        "proof_other_command"
    ]


@pytest.mark.parametrize("demand", [None, Demand("It greets.", "", ("a",), (), None)])
def test_without_a_demand_only_a_policy_asks_for_one(demand: Demand | None) -> None:
    assert not is_complete(demand)
    assert codes(PROVED, demand) == ["proof_undeclared"]
    assert codes({}, demand, required=False) == []


# --- replay ---

SECOND = EvidencePolicy(replay="second-party")


def waits(story: Story, policy: EvidencePolicy = SECOND) -> str:
    return replay_unmet(story.log().events, policy, Actors())


def replayed(story: Story, who: str, result: str = "same", commit: str = COMMIT) -> None:
    writer = EventWriter(Actor(who, "human"), f"2026-01-02T00:00:{len(story.events):02}Z", TX, "workpacket test")
    happening = NewLogEvent("evidence.replayed", {"commit": commit, "result": result})
    story.events.append(next_event(writer, story.packet, happening, after=story.heads()))


def submitted() -> Story:
    story = Story()
    story.tell("created", "activated", "claimed", "submitted")
    return story


def test_a_verdict_waits_for_the_replay_by_somebody_else() -> None:
    story = submitted()
    assert waits(story, EvidencePolicy()) == ""
    assert waits(story) == "only those who did the work have run the proofs of dddddddddddd again"
    replayed(story, "bob")
    assert waits(story).endswith("only those who did the work have run the proofs of dddddddddddd again")
    replayed(story, "victor", commit="e" * 40)
    assert waits(story).endswith("only those who did the work have run the proofs of dddddddddddd again")
    replayed(story, "victor", "different")
    assert waits(story) == "the replay by victor had a different result"
    replayed(story, "victor")
    assert waits(story) == ""


def key(number: int) -> str:
    return "SHA256:" + str(number) * 43


ACTORS = {
    "ann": {"kind": "person", "keys": [key(1)]},
    "bob": {"kind": "agent", "operator": "olga", "keys": [key(2)]},
    "bob-2": {"kind": "agent", "operator": "olga", "keys": [key(3)]},
    "olga": {"kind": "person", "keys": [key(4)]},
    # Another name of Olga's, with her key.
    "olga-at-home": {"kind": "person", "keys": [key(4), key(5)]},
    "her-agent-at-home": {"kind": "agent", "operator": "olga-at-home", "keys": [key(6)]},
    "victor": {"kind": "person", "keys": [key(7)]},
    "victors-agent": {"kind": "agent", "operator": "victor", "keys": [key(8)]},
}


@pytest.mark.parametrize("who", ACTORS)
def test_who_commissioned_an_agent_counts_as_an_author_whatever_key_they_use(who: str) -> None:
    """Bob did the work. The same people may neither replay his proofs nor judge him."""
    actors = read_actors(dict(ACTORS))
    assert actors.faults == ()
    story = submitted()
    replayed(story, who)
    apart = who.startswith("victor")
    assert (replay_unmet(story.log().events, SECOND, actors) == "") is apart
    assert any(not_apart(who, story.log().events, actors)) is not apart


def test_a_replay_of_what_was_submitted_before_does_not_count() -> None:
    story = submitted()
    replayed(story, "victor")
    story.add("submitted")
    assert waits(story).endswith("only those who did the work have run the proofs of dddddddddddd again")


def test_without_a_submission_there_is_nothing_to_replay() -> None:
    story = Story()
    story.tell("created", "activated")
    assert waits(story) == "only those who did the work have run the proofs of a commit again"
