"""Ways to act as somebody else, or in a role that one has not: `actor_attacks.jsonl`, each refused, and a control that
passes. A control is the case with some of its fields changed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from approvals.gates import key_of
from ledger.stories import PACKET, Story
from softkeys import KINDS, SoftKey, packed, shared_key
from workpacket.approvals.actors import Actors, read_actors
from workpacket.approvals.event_signatures import EventSignatures
from workpacket.approvals.sshsig import EVENT_NAMESPACE
from workpacket.ledger.log import read_log
from workpacket.lifecycle.authorship import not_apart
from workpacket.model.events import LogEvent, encode_event, event_id, event_of
from workpacket.value import replace

CASES = [json.loads(line) for line in Path(__file__).with_name("actor_attacks.jsonl").read_text("utf-8").splitlines()]
EVERYBODY: Final[Mapping[str, Mapping[str, Any]]] = {
    "ann": {"kind": "person", "keys": ["ann"]},
    "ben": {"kind": "person", "keys": ["ben"]},
    "coder": {"kind": "agent", "operator": "ann", "keys": ["coder"]},
    "coder-2": {"kind": "agent", "operator": "ann", "keys": ["coder-2"]},
    "judge": {"kind": "agent", "operator": "ben", "keys": ["judge"]},
}


def key(name: str) -> SoftKey:
    """The key of an actor, or one of another kind."""
    return shared_key(name) if name in KINDS else key_of(name)


def actors_of(case: Mapping[str, Any]) -> Actors:
    """What the policy says: of everybody, with the changes of the case; None takes an actor out."""
    changes: Mapping[str, Any] = case.get("actors") or {}
    table = {}
    for name in {**EVERYBODY, **changes}:
        if changes.get(name, {}) is not None:
            said = {**EVERYBODY.get(name, {}), **changes.get(name, {})}
            table[name] = {**said, "keys": [key(each).fingerprint for each in said["keys"]]}
    separation = case.get("separation")
    return read_actors(table, {"separation": separation} if separation else None)


def with_former(case: Mapping[str, Any]) -> Actors:
    """The same, with those that an earlier policy listed."""
    said: Mapping[str, Any] = case.get("formerly") or {}
    table = {name: {**one, "keys": [key(each).fingerprint for each in one["keys"]]} for name, one in said.items()}
    people = {one["operator"]: {"kind": "person", "keys": []} for one in said.values() if "operator" in one}
    return replace(actors_of(case), former=read_actors({**people, **table}).by_name)


def signed(value: dict[str, Any], by: str, how: Mapping[str, Any], over: bytes | None = None) -> dict[str, Any]:
    if not by:
        return value
    blob = key(by).sign(encode_event(value) if over is None else over, **{"namespace": EVENT_NAMESPACE, **how})
    return {**value, "sig": base64.b64encode(blob).decode()}


def event(kind: str, name: str, by: str, said: str = "agent", **data: Any) -> LogEvent:
    value = {**Story().add(kind, **data).json(), "actor": {"id": name, "kind": said}}
    value = signed(value, by, {})
    return event_of(value, event_id(encode_event(value)))


def judged(case: Mapping[str, Any]) -> bool:
    """Whether somebody may judge this work."""
    actors = with_former(case)
    worked = [event(kind, name, by, **data) for kind, name, by, data in case["worked"]]
    return not actors.faults and not list(not_apart(case["judge"], worked, actors))


def listed(case: Mapping[str, Any]) -> bool:
    """Whether the table lets anyone act."""
    return not actors_of(case).faults


OVER: Final[Mapping[str, Callable[[dict[str, Any]], bytes]]] = {
    "format 1": lambda value: encode_event({**value, "v": 1}),
    "another event": lambda value: encode_event({**value, "at": "2026-01-01T09:00:00Z"}),
    "another packet": lambda value: encode_event({**value, "packet": "WP-1-Other-v1"}),
    "other parents": lambda value: encode_event({**value, "parents": ["f" * 64]}),
    "no line feed": lambda value: encode_event(value).rstrip(b"\n"),
    "empty signature": lambda value: encode_event({**value, "sig": ""}),
    "indented": lambda value: json.dumps(value, indent=2, sort_keys=True).encode() + b"\n",
    "id": lambda value: event_id(encode_event(value)).encode(),
}


def urlsafe(value: dict[str, Any]) -> bytes:
    return encode_event({**value, "sig": value["sig"].replace("+", "-").replace("/", "_")})


def twice(value: dict[str, Any]) -> bytes:
    other = signed({name: each for name, each in value.items() if name != "sig"}, "coder", {})["sig"]
    return encode_event(value).replace(b'"sig":', f'"sig":"{other}","sig":'.encode())


def two_actors(value: dict[str, Any]) -> bytes:
    return encode_event(value).replace(b'{"actor":', b'{"actor":{"id":"ben","kind":"human"},"actor":')


WRITTEN: Final[Mapping[str, Callable[[dict[str, Any]], bytes]]] = {
    "urlsafe": urlsafe,
    "twice": twice,
    "two actors": two_actors,
    "other data": lambda value: encode_event({**value, "data": {**value["data"], "text": "other"}}),
}


def how_of(case: Mapping[str, Any]) -> dict[str, Any]:
    how = dict(case.get("how") or {})
    for name in ("reserved", "trailing"):
        if name in how:
            how[name] = bytes.fromhex(how[name])
    if how.get("key_blob") == "certificate":
        how["key_blob"] = packed("ssh-ed25519-cert-v01@openssh.com") + key("ann").blob
    elif "key_blob" in how:
        how["key_blob"] = key(how["key_blob"]).blob
    return how


def proven(case: Mapping[str, Any]) -> bool:
    """Whether a file of the log proves that its actor, Ann, wrote it."""
    story = Story()
    kind = case.get("type") or "noted"
    story.add("created")
    value = (story.add(kind, text="x") if kind == "noted" else story.add(kind)).json()
    value["actor"] = {"id": case.get("name") or "ann", "kind": case.get("said") or "human"}
    over = case.get("over")
    by = "ann" if case.get("key") is None else case["key"]
    if over == "format 1":
        value["v"] = 1
    value = signed(value, by, how_of(case), OVER[over](value) if over else None)
    write = case.get("write")
    data = WRITTEN[write](value) if write else encode_event(value)
    files = {f"{one.id}.json": one.encode() for one in story.events[:-1]} | {f"{event_id(data)}.json": data}
    log = read_log(PACKET, files)
    found = log.by_id.get(event_id(data))
    if found is None:
        return False
    approving, revoked = (
        frozenset(key(each).blob for each in case.get(what) or ()) for what in ("approving", "revoked")
    )
    return EventSignatures(actors_of(case), approving, revoked).judge(found, data).proven


ASKED: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {"judge": judged, "table": listed, "event": proven}


def test_there_are_as_many_as_were_promised() -> None:
    assert len(CASES) >= 40
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}")
def test_an_attack_is_refused_and_its_control_passes(case: dict[str, Any]) -> None:
    asked = ASKED[case["part"]]
    assert asked({**case, **case["control"]}), f"control of {case['title']}"
    assert not asked(case), case["title"]
