"""Who the policy says may act, and who is the same person as whom: asked of tables, without an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from workpacket.approvals.actors import Actors, KnownActor, read_actors

KEYS = {name: f"SHA256:{name:x<43}" for name in ("one", "two", "three", "four")}


def person(*keys: str, **said: Any) -> dict[str, Any]:
    return {"kind": "person", "keys": [KEYS[key] for key in keys], **said}


def agent(operator: str, *keys: str) -> dict[str, Any]:
    return {"kind": "agent", "operator": operator, "keys": [KEYS[key] for key in keys]}


def actors(table: Mapping[str, Any], *separation: str) -> Actors:
    return read_actors(table, {"separation": list(separation)} if separation else None)


@pytest.mark.parametrize(
    "unseen",
    ["\u0085", "\u200b", "\u202e", "\ue000", "\u2028", "\u2029"],
    ids=["control", "format", "direction", "private", "line", "paragraph"],
)
def test_a_name_with_a_character_that_cannot_be_seen_is_refused(unseen: str) -> None:
    (fault,) = actors({f"an{unseen}n": person("one")}).faults
    assert "invisible characters" in fault


@pytest.mark.parametrize("name", [" ann", "ann ", "\u00a0ann"])
def test_a_name_that_begins_or_ends_with_a_blank_is_refused(name: str) -> None:
    (fault,) = actors({name: person("one")}).faults
    assert "begins or ends with a space" in fault


@pytest.mark.parametrize(("name", "twin"), [("ann", "ANN"), ("jürgen", "JU\u0308RGEN"), ("ann", "\uff41nn")])
def test_two_spellings_of_a_name_are_refused(name: str, twin: str) -> None:
    (fault,) = actors({name: person("one"), twin: person("two")}).faults
    assert f"differs from the name {name!r} only in spelling" in fault


def test_one_person_with_two_names_does_not_judge_the_own_work() -> None:
    known = actors({"ann": person("one", principal="a@x"), "eve": person("two", principal="a@x")})
    why = known.why_not_apart("ann", "eve")
    assert why == "ann and eve, who worked on the packet, share a key or a principal with the same person"


def test_an_agent_and_its_operator_are_the_same_person() -> None:
    known = actors({"ann": person("one"), "coder": agent("ann", "two")})
    why = "ann and coder, who worked on the packet, are the same person: ann"
    assert known.why_not_apart("ann", "coder") == why
    assert known.why_not_apart("coder", "ann") == why.replace("ann and coder", "coder and ann")
    assert known.why_not_apart("ann", "ben") == ""


def test_a_person_may_judge_the_own_agent_if_the_policy_says_so_and_an_agent_may_not() -> None:
    known = actors({"ann": person("one"), "coder": agent("ann", "two"), "other": agent("ann", "three")}, "coder")
    assert known.why_not_apart("ann", "coder") == ""
    assert known.why_not_apart("other", "coder") != ""
    assert known.why_not_apart("coder", "ann") != ""


def test_people_who_share_something_with_a_third_are_one_person() -> None:
    """The third is listed last, and joins two groups that had nothing in common."""
    table = {
        "ann": person("one"),
        "ben": person("two"),
        "cem": person("one", "two"),
        "dan": person("three"),
    }
    known = actors(table)
    assert known.why_not_apart("ann", "ben") != ""
    assert known.why_not_apart("ben", "ann") != ""
    assert known.why_not_apart("ann", "dan") == ""


def test_a_group_that_was_joined_is_not_asked_again() -> None:
    """A name is looked up in the first group that has it: one that was left behind would know too little."""
    table = {"ann": person("one"), "cem": person("one", "two"), "ben": person("two", "three"), "dan": person("three")}
    known = actors(table)
    pairs = [(one, other) for one in table for other in table if one != other]
    assert [pair for pair in pairs if not known.why_not_apart(*pair)] == []


def test_the_operator_of_an_agent_of_before_is_known_by_name_alone() -> None:
    known = Actors(present=True, former={"old": KnownActor("old", "agent", frozenset({KEYS["four"]}), "Ann")})
    assert known.why_not_apart("Ann", "old") == "Ann and old, who worked on the packet, are the same person: Ann"


def test_whoever_has_left_the_policy_still_has_a_person_behind_them() -> None:
    former = {"old": KnownActor("old", "agent", frozenset({KEYS["four"]}), "ann")}
    known = Actors(actors({"ann": person("one")}).by_name, present=True, former=former)
    assert known.person("old") == "ann"
    assert known.why_not_apart("ann", "old") != ""
    assert known.principals(("old", "ann")) == {"old", "ann"}
