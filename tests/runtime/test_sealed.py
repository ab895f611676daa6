"""A value with a secret is encrypted if the policy says so, and comes back as it was; or it is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.worlds import World
from workpacket.runtime.errors import PayloadSealed, RedactionFailed, WouldBeAltered
from workpacket.runtime.records.jcs import key_id, sealed, unsealed
from workpacket.runtime.records.redaction import Policy, Redactor

KEY, OTHER = "00" * 32, "11" * 32
SECRET: dict[str, Any] = {"user": "ann", "password": "zebra" + "7319"}


def world(policy: Policy) -> World:
    return World(redactor=replace(Redactor(), policy=policy))


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPACKET_PAYLOAD_KEY", KEY)


def stored(one: World) -> bytes:
    events = [event for head in one.store.heads() for event in one.store.read(head.stream)]
    return repr(events).encode() + b"".join(one.store.payload(event) or b"" for event in events)


@pytest.mark.usefixtures("key")
def test_what_was_encrypted_comes_back_and_nothing_is_done_again() -> None:
    one = world("encrypt")

    def login() -> dict[str, str]:
        one.note("login")
        return SECRET

    for _ in range(2):
        with one.crashing(one.runtime.run("a", key="k")) as run:
            assert run.step("login", login) == SECRET
            assert run.effect("act", login, key="k") == SECRET
            run.publish("at", SECRET)
            run.checkpoint(SECRET)
            one.crash()
    with one.runtime.run("a", key="k") as run:
        assert run.cursor() == SECRET
    assert one.calls == ["login", "login"]
    assert one.runtime.query("a@k", "at") == SECRET
    assert SECRET["password"].encode() not in stored(one)


@pytest.mark.usefixtures("key")
def test_without_its_key_a_payload_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = world("encrypt")
    with one.crashing(one.runtime.run("a")) as run:
        run.step("login", lambda: SECRET)
        one.crash()
    for present, message in (("", "which is not set"), (OTHER, f"contains key {key_id(bytes.fromhex(OTHER))}")):
        monkeypatch.setenv("WORKPACKET_PAYLOAD_KEY", present)
        with one.crashing(one.runtime.run("a")) as run:
            with pytest.raises(PayloadSealed, match=message) as caught:
                run.step("login", lambda: SECRET)
            assert caught.value.code == "payload_sealed"
            one.crash()


@pytest.mark.usefixtures("key")
def test_a_damaged_payload_is_not_opened() -> None:
    closed = sealed(b'"x"')
    assert unsealed(closed) == b'"x"'
    start = closed.index(b'"text":"') + 8
    changed = b"A" if closed[start : start + 1] != b"A" else b"B"
    with pytest.raises(PayloadSealed, match="damaged"):
        unsealed(closed[:start] + changed + closed[start + 1 :])


@pytest.mark.parametrize("text", ["short", "zz" * 32, "00" * 16])
def test_a_text_that_is_not_a_key_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("WORKPACKET_PAYLOAD_KEY", text)
    with pytest.raises(PayloadSealed, match="expected 32 bytes"):
        sealed(b"x")


def test_the_key_may_be_in_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKPACKET_PAYLOAD_KEY", raising=False)
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda *_: KEY))
    assert unsealed(sealed(b"x")) == b"x"
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda *_: None))
    with pytest.raises(PayloadSealed, match="there is no key"):
        sealed(b"x")


def test_with_the_policy_to_refuse_nothing_of_it_is_stored() -> None:
    one = world("refuse")
    with one.crashing(one.runtime.run("a")) as run:
        with pytest.raises(WouldBeAltered, match="the result of login"):
            run.step("login", lambda: SECRET)
        one.crash()
    assert b"zebra" not in stored(one)
    assert b"step.completed" not in stored(one)


@pytest.mark.parametrize("policy", ["hide", "refuse"])
@pytest.mark.parametrize("what", ["cursor", "published value"])
def test_a_state_that_would_come_back_altered_is_refused(policy: Policy, what: str) -> None:
    one = world(policy)
    with one.crashing(one.runtime.run("a")) as run:
        acts: dict[str, Any] = {"cursor": run.checkpoint, "published value": lambda value: run.publish("at", value)}
        with pytest.raises(WouldBeAltered) as caught:
            acts[what](SECRET)
        assert caught.value.code == "would_be_altered"
        one.crash()
    assert b"zebra" not in stored(one)


def test_a_value_that_is_published_under_the_name_of_a_secret_is_refused() -> None:
    one = world("hide")
    with one.crashing(one.runtime.run("a")) as run:
        with pytest.raises(WouldBeAltered):
            run.publish("password", SECRET["password"])
        one.crash()


@pytest.mark.parametrize(
    ("environment", "policy"),
    [
        ({}, "hide"),
        ({"WORKPACKET_PAYLOAD_KEY": KEY}, "encrypt"),
        ({"WORKPACKET_PAYLOAD_KEY": KEY, "WORKPACKET_REDACTION": "hide"}, "hide"),
        ({"WORKPACKET_REDACTION": "refuse"}, "refuse"),
    ],
)
def test_the_policy_is_that_of_the_environment(environment: dict[str, str], policy: Policy) -> None:
    assert Redactor.from_environment(environment).policy == policy


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(RedactionFailed, match="expected hide, encrypt, refuse"):
        Redactor.from_environment({"WORKPACKET_REDACTION": "delete"})
