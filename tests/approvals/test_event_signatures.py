"""Who signed an event: which signatures prove an actor, and that neither kind of key counts as the other."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.gates import ALICE, POLICY, SIGNERS, envelope, facts, key_of
from ledger.stories import Story
from softkeys import KINDS, SoftKey, shared_key
from workpacket.approvals import event_signatures
from workpacket.approvals.actors import ROLES, Actors, KnownActor, read_actors
from workpacket.approvals.decide import decide
from workpacket.approvals.event_signatures import ROLE_OF, EventSignatures, WhoSigned, signing_key, without_signature
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import policy_from_toml
from workpacket.approvals.sshsig import EVENT_NAMESPACE, NAMESPACE, read_signature
from workpacket.model.event_types import DATA
from workpacket.model.events import Actor, LogEvent, encode_event, event_id, event_of

KEY, OTHER = shared_key("ssh-ed25519", "ann"), shared_key("ssh-ed25519", "coder")
ACTORS = Actors(
    {
        "ann": KnownActor("ann", "person", frozenset({KEY.fingerprint}), principal=ALICE),
        "coder": KnownActor("coder", "agent", frozenset({OTHER.fingerprint}), operator="ann"),
    },
    present=True,
)


def event(**changes: Any) -> LogEvent:
    """By ann, a person."""
    return made({**Story().add("created").json(), **changes})


def made(value: dict[str, Any]) -> LogEvent:
    return event_of(value, event_id(encode_event(value)))


def signed(by: SoftKey = KEY, over: LogEvent | None = None, **how: Any) -> LogEvent:
    subject = over or event()
    blob = by.sign(subject.signed_bytes(), **{"namespace": EVENT_NAMESPACE, **how})
    return made({**subject.json(), "sig": base64.b64encode(blob).decode()})


def judged(subject: LogEvent, actors: Actors = ACTORS, approving: frozenset[bytes] = frozenset()) -> WhoSigned:
    signatures = EventSignatures(actors, approving)
    first = signatures.judge(subject)
    assert first == signatures.judge(subject, subject.encode()), "the file itself, and a key met before, change nothing"
    return first


@pytest.mark.parametrize("hash_name", ["sha256", "sha512"])
def test_a_listed_key_proves_its_actor(hash_name: str) -> None:
    assert judged(signed(hash_name=hash_name)) == WhoSigned("proven", KEY.fingerprint)


def test_an_agent_is_proven_by_its_own_key() -> None:
    assert judged(signed(OTHER, event(actor={"id": "coder", "kind": "agent"}))).proven
    assert not judged(signed(OTHER, event(actor={"id": "coder", "kind": "human"}))).proven


def test_an_unsigned_event_is_a_claim() -> None:
    found = judged(event())
    assert (found.state, found.code, found.proven) == ("unsigned", "event_unsigned", False)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ssh-ed25519"])
def test_only_ed25519_keys_of_files_sign_events(kind: str) -> None:
    found = judged(signed(shared_key(kind)))
    assert (found.state, found.code) == ("refused", "event_signature_invalid")
    assert f"events must be signed with ssh-ed25519 keys, not {kind}" in found.message


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"namespace": NAMESPACE}, "made for the namespace 'workpacket-approval@v1', not 'workpacket-event@v1'"),
        ({"namespace": "file"}, "made for the namespace 'file'"),
        ({"reserved": b"x"}, "reserved field"),
        ({"version": 2}, "its version is 2"),
        ({"trailing": b"x"}, "bytes"),
        ({"hash_name": "sha1"}, "hashed with 'sha1'"),
        ({"key_blob": OTHER.blob}, "does not match this event"),
    ],
)
def test_a_signature_for_something_else_is_none(how: dict[str, Any], message: str) -> None:
    found = judged(signed(**how))
    assert found.code == "event_signature_invalid"
    assert message in found.message


@pytest.mark.parametrize("blob", [b"", b"SSHSIG", b"x" * 64, bytes(300)])
def test_bytes_that_are_no_signature(blob: bytes) -> None:
    found = judged(made({**event().json(), "sig": base64.b64encode(blob).decode() or "AAAA"}))
    assert found.code == "event_signature_invalid"


def test_base64_has_one_spelling() -> None:
    text = signed().sig
    for other in (f"{text}=", f"{text}==", text[:-1], f"{text}A"):
        assert judged(made({**event().json(), "sig": other})).code == "event_signature_invalid"


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_flipped_bit_of_a_signature_is_found(place: int, bit: int) -> None:
    genuine = signed()
    blob = bytearray(base64.b64decode(genuine.sig))
    blob[place % len(blob)] ^= 1 << bit
    signatures = EventSignatures(ACTORS)
    assert signatures.judge(genuine).proven  # so that the key has been met before
    forged = made({**genuine.json(), "sig": base64.b64encode(bytes(blob)).decode()})
    assert not signatures.judge(forged).proven


@pytest.mark.parametrize("key", sorted(set(event().json()) - {"sig"}))
def test_every_field_of_an_event_is_signed(key: str) -> None:
    other: dict[str, Any] = {"v": 1, "clock": 2, "parents": ["a" * 64], "subjects": [], "attest": ["a" * 64]}
    other |= {
        "actor": {"id": "coder", "kind": "agent"},
        "data": {},
        "subjects": [{"path": "x", "prev": None, "sha256": None}],
    }
    value = {**signed().json(), key: other.get(key, "other")}
    found = EventSignatures(ACTORS).judge(made(value))
    assert found.code == "event_signature_invalid"


@pytest.mark.parametrize(
    ("subject", "code", "message"),
    [
        (lambda: signed(shared_key("ssh-ed25519", "eve")), "actor_key_unknown", "does not list this key for any actor"),
        (lambda: signed(OTHER), "actor_not_allowed", "may act as coder, not as ann"),
        (
            lambda: signed(KEY, event(actor={"id": "ann", "kind": "agent"})),
            "actor_not_allowed",
            "ann is listed as human, but the event says agent",
        ),
        (lambda: signed(KEY, event(actor={"id": "ann", "kind": "ci"})), "actor_not_allowed", "the event says ci"),
        (lambda: signed(KEY, event(actor={"id": "Ann", "kind": "human"})), "actor_not_allowed", "not as Ann"),
    ],
)
def test_a_key_acts_as_its_own_actor_only(subject: Callable[[], LogEvent], code: str, message: str) -> None:
    found = judged(subject())
    assert (found.state, found.code) == ("refused", code)
    assert message in found.message


@pytest.mark.parametrize(
    ("kind", "roles", "allowed"),
    [
        ("created", ("author",), True),
        ("created", ("coder", "validator"), False),
        ("claimed", ("author", "validator"), False),
        ("verdict.given", ("coder",), False),
        ("verdict.given", ("validator",), True),
        ("noted", ("validator",), True),
    ],
)
def test_a_role_is_asked_for(kind: str, roles: tuple[str, ...], allowed: bool) -> None:
    story = Story()
    story.add("created")
    subject = story.add(kind) if kind != "created" else story.events[0]
    actors = Actors({"ann": KnownActor("ann", "person", frozenset({KEY.fingerprint}), roles=roles)}, present=True)
    found = judged(signed(KEY, subject), actors)
    assert (found.proven, found.code) == (allowed, "" if allowed else "actor_not_allowed")
    assert set(roles) <= set(ROLES)


def test_a_key_proves_nothing_once_it_is_revoked_or_not_listed() -> None:
    said = f"{KEY.fingerprint} signed as ann, but the policy"
    found = EventSignatures(ACTORS, revoked=frozenset({KEY.blob})).judge(signed())
    assert (found.code, found.message) == ("actor_key_unknown", f"{said} revoked this key")
    found = EventSignatures(Actors(present=True)).judge(signed())
    assert (found.code, found.message) == ("actor_key_unknown", f"{said} does not list this key for any actor")


def test_a_key_that_may_approve_signs_no_event() -> None:
    """Even where the policy lists it among the keys of its owner."""
    found = judged(signed(), approving=frozenset({KEY.blob}))
    assert (found.state, found.code) == ("refused", "approval_key_in_event")


def test_an_event_key_opens_no_gate_even_where_allowed_signers_lists_it() -> None:
    listed = f'{POLICY}\n[actors."{ALICE}"]\nkind = "person"\nkeys = ["{key_of(ALICE).fingerprint}"]\n'
    file = envelope()
    honest = decide(facts(file))
    policy = PolicyFiles(listed.encode(), SIGNERS.encode(), None)
    refused = decide(facts(file, policy=policy))
    assert (honest.met, refused.met) == (True, False)
    assert "event_key_at_gate" in {each.code for one in refused.judged for each in one.refusals}


def test_the_signature_is_cut_out_of_a_file_as_it_was_put_in() -> None:
    tricky = made({**event().json(), "tool": 'x,"sig":"' + "A" * 20 + '","subjects":'})
    subject = signed(KEY, tricky)
    assert without_signature(subject.encode(), subject.sig) == subject.signed_bytes() == tricky.encode()
    assert judged(subject).proven
    assert json.loads(subject.encode())["sig"] == subject.sig


PEOPLE = f"""
[actors.ann]
kind = "person"
keys = ["{KEY.fingerprint}"]
[actors."coder 1"]
kind = "agent"
operator = "ann"
keys = ["{OTHER.fingerprint}"]
roles = ["coder"]
"""


def read(text: str) -> Actors:
    import tomllib

    table = tomllib.loads(text)
    return read_actors(table.get("actors"), table.get("verdict"))


def test_a_table_is_read() -> None:
    actors = read(PEOPLE)
    assert actors.faults == ()
    assert actors.by_name["coder 1"] == KnownActor(
        "coder 1", "agent", frozenset({OTHER.fingerprint}), "ann", "", ("coder",)
    )
    assert actors.by_name["ann"].principal == "ann"
    assert read(PEOPLE.replace('"person"', '"person"\nprincipal = "ann@example.org"')).principals(["ann", "x"]) == {
        "ann",
        "ann@example.org",
        "x",
    }
    assert actors.principals(["coder 1"]) == {"coder 1"}
    assert (actors.person("coder 1"), actors.person("ann"), actors.person("eve")) == ("ann", "ann", "eve")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"person"', '"robot"', "actors.ann.kind is not person or agent"),
        ('operator = "ann"\n', "", "actors.coder 1.operator is missing"),
        ('operator = "ann"', 'operator = "eve"', "has the operator 'eve', who is not listed as a person in this table"),
        ('operator = "ann"', 'operator = "coder 1"', "who is not listed as a person in this table"),
        ('["coder"]', '["king"]', "roles is not a list of roles: author, coder, validator"),
        (
            'operator = "ann"',
            'operator = "ann"\nprincipal = "x"',
            "actors.coder 1.principal is unknown",
        ),
        ("SHA256:", "MD5:", "keys is not a list of fingerprints"),
        ('"]\n[actors."coder', '!"]\n[actors."coder', "keys is not a list of fingerprints"),
        ('"coder 1"', f'"{"x" * 200}!"', "is not a single-line name"),
        ('"person"\n', '"person"\noperator = "ann"\n', "actors.ann.operator is unknown"),
        ('"coder 1"', '"coder\\n1"', "is not a single-line name"),
        ("[actors.ann]", '[verdict]\nseparation = ["operator"]\n[actors.ann]', "verdict.separation lacks 'coder'"),
        ("[actors.ann]", '[verdict]\nseparation = ["author"]\n[actors.ann]', "is not a list of parties"),
        (
            "[actors.ann]",
            '[verdict]\nseparation = ["coder"]\nx = 1\n[actors.ann]',
            "verdict.x is unknown",
        ),
    ],
)
def test_with_a_fault_nobody_is_known_and_the_policy_opens_no_gate(old: str, new: str, fault: str) -> None:
    text = PEOPLE.replace(old, new)
    assert text != PEOPLE
    actors = read(text)
    assert (dict(actors.by_name), actors.present) == ({}, True)
    assert fault in " ".join(actors.faults)
    policy = policy_from_toml(f"{text}\n{POLICY}".encode())
    assert isinstance(policy, tuple)
    assert {each.code for each in policy} == {"policy_malformed"}


def test_a_policy_without_the_table_knows_nobody_and_asks_for_nothing() -> None:
    assert read("") == Actors()
    assert not read('[verdict]\nseparation = ["coder"]').present
    assert read_actors("x").faults == ("actors is not a table of keys and values",)


@pytest.mark.parametrize(
    ("judge", "coder", "separation", "apart"),
    [
        ("ann", "ann", ("coder",), False),
        ("ann", "coder", ("coder", "operator"), False),
        ("ann", "coder", ("coder",), True),
        ("coder", "ann", ("coder",), False),
        ("coder", "coder-2", ("coder",), False),
        ("coder", "ben", ("coder", "operator"), True),
        ("twin", "ben", ("coder", "operator"), False),
        ("eve", "coder", ("coder", "operator"), True),
        ("ann", "eve", ("coder", "operator"), True),
    ],
)
def test_separation_is_over_keys_and_people(judge: str, coder: str, separation: tuple[str, ...], apart: bool) -> None:
    keys = frozenset({"SHA256:x"})
    known = {
        "ann": KnownActor("ann", "person", frozenset()),
        "ben": KnownActor("ben", "person", keys),
        "twin": KnownActor("twin", "person", keys),
        "coder": KnownActor("coder", "agent", frozenset(), "ann"),
        "coder-2": KnownActor("coder-2", "agent", frozenset(), "ann"),
    }
    actors = Actors(known, separation, present=True)
    said = actors.why_not_apart(judge, coder)
    assert said == "" if apart else "worked on the packet" in said
    assert actors.commissioned("ann", ["coder"])
    assert actors.commissioned("ann", ["ben", "coder"])
    assert not actors.commissioned("ann", ["ann", "ben"])


def names_of_people() -> Actors:
    shared = frozenset({"SHA256:x"})
    known = {
        "ann": KnownActor("ann", "person", shared, principal="ann@example.org"),
        "twin": KnownActor("twin", "person", shared, principal="twin@example.org"),
        "ben": KnownActor("ben", "person", frozenset({"SHA256:y"}), principal="ben@example.org"),
        "borrower": KnownActor("borrower", "agent", shared, "ann"),
        "coder": KnownActor("coder", "agent", frozenset({"SHA256:z"}), "ann"),
    }
    return Actors(known, (), present=True)


def test_for_events_of_the_base_a_name_has_only_its_own_principal() -> None:
    names = names_of_people().principals(["ann", "coder", "eve"], linked=False)
    assert names == {"ann", "ann@example.org", "coder", "eve"}


def test_a_person_has_all_names_under_one_key_and_no_others() -> None:
    actors = names_of_people()
    ann = {"ann", "ann@example.org", "twin", "twin@example.org"}
    assert actors.principals(["ann"]) == ann
    assert actors.principals(["ben"]) == {"ben", "ben@example.org"}
    assert actors.principals(["coder"]) == {"coder"}
    assert actors.principals(["borrower"]) == ann | {"borrower"}, "an agent with the key of a person"


def test_a_name_that_the_policy_lists_acts_in_the_kind_that_it_gives() -> None:
    assert ACTORS.acting(Actor("coder", "human")) == Actor("coder", "agent")
    assert ACTORS.acting(Actor("ann", "ci")) == Actor("ann", "human")
    assert ACTORS.acting(Actor("eve", "ci")) == Actor("eve", "ci")


def test_the_roles_are_asked_of_these_events() -> None:
    assert dict(ROLE_OF) == {
        "created": "author",
        "adopted": "author",
        "refinement.recorded": "author",
        "refinement.presented": "author",
        "activated": "author",
        "amended": "author",
        "claimed": "coder",
        "lease.renewed": "coder",
        "submitted": "coder",
        "evidence.recorded": "coder",
        "verdict.given": "validator",
    }


@pytest.mark.parametrize(
    ("said", "separation"), [('["coder"]', ("coder",)), ('["operator", "coder"]', ("operator", "coder"))]
)
def test_the_policy_says_from_whom_a_judge_differs(said: str, separation: tuple[str, ...]) -> None:
    actors = read(f"[verdict]\nseparation = {said}\n{PEOPLE}")
    assert (actors.separation, actors.present, actors.faults) == (separation, True, ())
    assert read(PEOPLE).separation == ("coder", "operator")
    assert read('[verdict]\nseparation = ["operator"]').separation == ("coder", "operator")
    assert read('[verdict]\nseparation = ["coder"]').separation == ("coder",)


def test_a_key_is_read_once_however_many_events_it_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def reading(blob: bytes, namespace: str) -> Any:
        seen.append(blob)
        return read_signature(blob, namespace)

    monkeypatch.setattr(event_signatures, "read_signature", reading)
    signatures = EventSignatures(ACTORS)
    for at in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"):
        assert signatures.judge(signed(KEY, event(at=at))).proven
    assert len(seen) == 1


def test_the_key_that_a_signature_names_is_known_without_any_policy() -> None:
    assert signing_key(signed()) == KEY.fingerprint
    for text in ("", "*", base64.b64encode(b"SSHSIG").decode()):
        assert signing_key(signed()._replace(sig=text)) == ""


# Types of events that an actor with any role may sign.
ANY_ROLE = {
    "abandoned",
    "advanced",
    "approval.recorded",
    "blocked",
    "checkpoint",
    "evidence.replayed",
    "fork.resolved",
    "handed_over",
    "merged",
    "noted",
    "overridden",
    "prepared",
    "reapproved",
    "released",
    "reopened",
    "run.closed",
    "run.linked",
    "superseded",
    "unblocked",
    "waived",
}


def test_every_type_of_event_says_which_role_may_sign_it() -> None:
    assert DATA.keys() - ROLE_OF.keys() == ANY_ROLE, (
        "name the role in ROLE_OF in tools/workpacket/approvals/event_signatures.py, or the type in ANY_ROLE here"
    )
