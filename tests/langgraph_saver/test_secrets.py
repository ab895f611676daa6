"""A state or write with a secret is refused or encrypted; in metadata and configuration, secrets are hidden."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_saver.worlds import SETTINGS, on, put, require_sound, stored_bytes, thread, values
from workpacket.runtime.errors import PayloadSealed, RuntimeFault, WouldBeAltered
from workpacket.runtime.langgraph import WorkpacketSaver
from workpacket.runtime.langgraph.reader import StateCleaner
from workpacket.runtime.stores.contract import Store

TOKEN = "ghp_" + "a1B2" * 10
SECRETS = (TOKEN, "very-secret-value", "hunter2")


@dataclasses.dataclass
class Held:
    inside: dict[str, Any]


STATES: dict[str, Any] = {
    "text": [f"my token is {TOKEN}"],
    "bytes": b"\xff very-secret-value",
    "messages": [HumanMessage(f"use {TOKEN}")],
    "deep": {"a": [{"b": ("very-secret-value", 1)}]},
    "key": {TOKEN: 2},
    "by its name": {"user": "ann", "password": "zebra" + "7319"},
    "object": Held({"token": TOKEN}),
}
HELD_IN_THEM = (*SECRETS, "zebra" + "7319")
KEY = "00" * 32


def encrypting(store: Store) -> WorkpacketSaver:
    redactor = dataclasses.replace(SETTINGS.redactor, policy="encrypt")
    return WorkpacketSaver(store, settings=dataclasses.replace(SETTINGS, redactor=redactor))


@pytest.mark.parametrize("state", STATES)
def test_a_state_that_would_come_back_altered_is_refused(store: Store, state: str) -> None:
    saver = on(store)
    with pytest.raises(WouldBeAltered, match="the channel 'text'") as caught:
        put(saver, thread("t"), {"text": STATES[state]})
    assert caught.value.details == {"field": "the channel 'text'"}
    stored = put(saver, thread("t"), {"text": "harmless"})
    with pytest.raises(WouldBeAltered, match="the channel 'text'"):
        saver.put_writes(stored, [("text", STATES[state])], "task")
    everything = stored_bytes(store)
    assert [secret for secret in HELD_IN_THEM if secret.encode() in everything] == []


@pytest.mark.parametrize("state", STATES)
def test_an_encrypted_state_comes_back_as_it_was(store: Store, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPACKET_PAYLOAD_KEY", KEY)
    saver = encrypting(store)
    stored = put(saver, thread("t"), {"text": STATES[state]})
    again = put(saver, stored, {"text": STATES[state], "number": 2})
    saver.put_writes(again, [("text", STATES[state])], "task", "path")
    everything = stored_bytes(store)
    assert [secret for secret in HELD_IN_THEM if secret.encode() in everything] == []
    found = encrypting(store).get_tuple(again)
    assert found is not None
    assert (
        str(found.checkpoint["channel_values"]["text"]) == str(STATES[state]).replace("(", "[").replace(")", "]")
        or found.checkpoint["channel_values"]["text"] == STATES[state]
    )
    monkeypatch.setenv("WORKPACKET_PAYLOAD_KEY", "11" * 32)
    with pytest.raises(PayloadSealed, match="is encrypted with key"):
        encrypting(store).get_tuple(again)


def test_no_secret_reaches_the_store(each_store: Store) -> None:
    saver = on(each_store)
    config = thread("t", api_key="hunter2", user="ann", nested=f"x{TOKEN}")
    config["metadata"] = {"authorization": "hunter2", "note": f"has {TOKEN}"}
    stored = put(saver, config, {"text": "x"}, {"writes": {"a": TOKEN}, "extra": {"password": "hunter2", "tokens": 3}})
    saver.put_writes(stored, [("text", "pending")], "task", TOKEN)
    everything = stored_bytes(each_store)
    assert [secret for secret in SECRETS if secret.encode() in everything] == []
    found = on(each_store).get_tuple(stored)
    assert found is not None
    assert found.metadata["user"] == "ann"  # type: ignore[typeddict-item]
    assert found.metadata["api_key"] == "[redacted:name]"  # type: ignore[typeddict-item]
    assert found.metadata["extra"] == {"password": "[redacted:name]", "tokens": 3}  # type: ignore[typeddict-item]
    require_sound(each_store)


@pytest.mark.parametrize("cut", [1, 4, 15])
def test_a_secret_that_grows_out_of_what_was_kept_is_found(store: Store, cut: int) -> None:
    """Only what is new is searched; a secret of which a part was there before is new as well."""
    saver, text = on(store), "lorem ipsum " * 400
    for number, secret in enumerate((TOKEN, "very-secret-value")):
        begun = put(saver, thread(f"t{number}"), {"text": [text, secret[:cut]], "number": 1})
        with pytest.raises(WouldBeAltered):
            put(saver, begun, {"text": [text, secret, text], "number": 2})


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_searched_in_parts_is_what_is_searched_whole(data: st.DataObject) -> None:
    cleaner = StateCleaner(SETTINGS.redactor)
    pieces = st.lists(
        st.sampled_from(
            [
                *SECRETS[:2],
                TOKEN[:20],
                TOKEN[20:],
                "lorem ipsum dolor sit amet " * 3,
                "x",
                "ghp_",
                "very-",
                "secret-value",
            ]
        ),
        max_size=8,
    )
    before, after = "".join(data.draw(pieces)), "".join(data.draw(pieces))
    serde = JsonPlusSerializer()
    known = cleaner.typed(serde.dumps_typed([before]))
    found = serde.loads_typed(cleaner.typed(serde.dumps_typed([after]), known))
    assert found == [SETTINGS.redactor.clean_text(after)]


def test_what_was_redacted_can_still_be_looked_for(store: Store) -> None:
    saver = on(store)
    put(saver, thread("t"), {"text": []}, {"api_key": "hunter2", "note": f"x {TOKEN}"})
    assert len(list(saver.list(thread("t"), filter={"note": f"x {TOKEN}"}))) == 1
    assert len(list(saver.list(None, filter={"api_key": "hunter2"}))) == 1
    assert list(saver.list(thread("t"), filter={"note": "x"})) == []


def test_a_thread_whose_name_holds_a_secret_is_kept_under_another(store: Store) -> None:
    saver = on(store)
    put(saver, thread(f"of {TOKEN}"), {"text": ["here"]})
    assert values(on(store), thread(f"of {TOKEN}")) == {"text": ["here"]}
    assert TOKEN.encode() not in stored_bytes(store)


@pytest.mark.parametrize("name", ["a/b@c", "x" * 5000, "Ä ö \x00 %41", "langgraph/t"])
def test_a_thread_may_have_any_name(store: Store, name: str) -> None:
    saver = on(store)
    put(saver, thread(name), {"text": [name]})
    (listed,) = on(store).list(None)
    assert listed.checkpoint["channel_values"] == {"text": [name]}
    assert values(on(store), listed.config) == {"text": [name]}


@dataclasses.dataclass
class Odd:
    value: object


def test_nothing_is_pickled(store: Store) -> None:
    saver = WorkpacketSaver(store, serde=JsonPlusSerializer(pickle_fallback=True), settings=SETTINGS)
    with pytest.raises(RuntimeFault, match="'pickle'") as caught:
        put(saver, thread("t"), {"text": Odd(int)})
    assert caught.value.code == "redaction_failed"
    assert saver.get_tuple(thread("t")) is None


def test_what_can_not_be_searched_is_not_stored(store: Store) -> None:
    class Cipher:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "reversed", plaintext[::-1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return ciphertext[::-1]

    saver = WorkpacketSaver(store, serde=EncryptedSerializer(Cipher()), settings=SETTINGS)
    with pytest.raises(RuntimeFault, match="cannot be searched for secrets"):
        put(saver, thread("t"), {"text": "x"})
    assert store.heads() == ()


ELSEWHERE: dict[str, Any] = {
    "the step": ({"step": TOKEN}, {}),
    "what is beside the step": ({"step": 2, "note": f"has {TOKEN}"}, {}),
    "the parents": ({"step": 2, "parents": {"": TOKEN}}, {}),
    "a channel": ({"step": 2}, {"channel_versions": {"text": 1, TOKEN: 2}}),
    "a version": ({"step": 2}, {"channel_versions": {"text": TOKEN}}),
    "a node": ({"step": 2}, {"versions_seen": {TOKEN: {"text": 1}}}),
    "what a node has seen": ({"step": 2}, {"versions_seen": {"node": {TOKEN: 1}}}),
    "what was updated": ({"step": 2}, {"updated_channels": [TOKEN]}),
    "a part that LangGraph does not know": ({"step": 2}, {"pending_sends": [TOKEN]}),
}


@pytest.mark.parametrize("place", ELSEWHERE)
def test_what_differs_from_the_checkpoint_before_is_searched(store: Store, place: str) -> None:
    """What was found harmless before is not searched again; what came since is."""
    saver = on(store)
    metadata, rest = ELSEWHERE[place]
    stored = put(saver, thread("t"), {"text": "x"}, {"step": 1})
    for described, more in (({"step": 2}, {}), (metadata, rest)):
        plain = {"channel_values": {"text": "x"}, "channel_versions": {"text": 1}}
        checkpoint: Any = {**empty_checkpoint(), **plain, **more}
        said: Any = {"source": "loop", **described}
        stored = saver.put(stored, checkpoint, said, {})
    assert TOKEN.encode() not in stored_bytes(store)
