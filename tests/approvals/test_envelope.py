"""One approval is one file: its name, its form, its one signature."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.approvals.envelope import PAYLOAD_TYPE, Envelope, pae, read_envelope, write_envelope
from workpacket.model.layout import ENVELOPE_SUFFIX
from workpacket.problem import Problem

KEY_ID = "SHA256:" + "A" * 43
NAME, DATA = write_envelope(b"payload", KEY_ID, b"signature")


def named(data: bytes) -> tuple[str, bytes]:
    return hashlib.sha256(data).hexdigest() + ENVELOPE_SUFFIX, data


def code_of(data: bytes) -> str:
    refusal = read_envelope(*named(data))
    assert isinstance(refusal, Problem), refusal
    assert refusal.path == named(data)[0]
    return refusal.code


def changed(**changes: object) -> bytes:
    content = json.loads(DATA) | changes
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@given(st.binary(max_size=200), st.binary(min_size=1, max_size=200))
def test_what_is_written_is_read(payload: bytes, signature: bytes) -> None:
    name, data = write_envelope(payload, KEY_ID, signature)
    assert read_envelope(name, data) == Envelope(name.removesuffix(ENVELOPE_SUFFIX), payload, KEY_ID, signature)


def test_the_name_is_the_digest_of_the_file() -> None:
    assert named(DATA) == (NAME, DATA)


def test_the_encoding_that_is_signed_is_that_of_the_dsse_protocol() -> None:
    assert pae(b"hello world") == b"DSSEv1 28 application/vnd.in-toto+json 11 hello world"


@pytest.mark.parametrize(
    "name", ["", "x", "0" * 64 + ENVELOPE_SUFFIX, NAME.upper(), NAME + ".bak", NAME.removesuffix(ENVELOPE_SUFFIX)]
)
def test_another_name_is_refused(name: str) -> None:
    refusal = read_envelope(name, DATA)
    assert isinstance(refusal, Problem)
    assert (refusal.code, refusal.path) == ("envelope_renamed", name)


SIGNATURE = {"keyid": KEY_ID, "sig": "AAAA"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (changed(), ""),
        (changed(payloadType="text/plain"), "payload_type_wrong"),
        (changed(payloadType=None), "payload_type_wrong"),
        (changed(payload=None), "envelope_malformed"),
        (changed(payload="YQ"), "envelope_malformed"),
        (changed(extra=1), "envelope_malformed"),
        (changed(signatures=[]), "signature_missing"),
        (changed(signatures={}), "signature_missing"),
        (changed(signatures=None), "signature_missing"),
        (changed(signatures={"0": SIGNATURE}), "signature_missing"),
        (changed(signatures="A"), "signature_missing"),
        (changed(signatures=[SIGNATURE] * 2), "signature_surplus"),
        (changed(signatures=["AAAA"]), "envelope_malformed"),
        (changed(signatures=[{"sig": "AAAA"}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"cert": ""}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"keyid": None}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"keyid": ""}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"keyid": KEY_ID + "\n"}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"keyid": KEY_ID + "!"}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"keyid": "MD5:" + "A" * 43}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"sig": 1}]), "envelope_malformed"),
        (changed(signatures=[SIGNATURE | {"sig": "A"}]), "envelope_malformed"),
        (DATA[:-1], "envelope_not_canonical"),
        (DATA + b"\n", "envelope_not_canonical"),
        (b" " + DATA, "envelope_not_canonical"),
        (DATA.replace(b"payloadType", b"payload\\u0054ype"), "envelope_not_canonical"),
        (b"[]\n", "envelope_malformed"),
        (b"null\n", "envelope_malformed"),
        (b"{}\n", "envelope_malformed"),
        (b"", "approval_not_json"),
        (DATA.replace(b'"sig"', b'"sig":"","sig"'), "approval_duplicate_key"),
    ],
)
def test_only_the_closed_canonical_form_is_read(data: bytes, code: str) -> None:
    if code:
        assert code_of(data) == code
    else:
        assert isinstance(read_envelope(*named(data)), Envelope)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(payload="YQ"), "payload is not base64"),
        (changed(payload=1), "payload is not a string"),
        (changed(signatures=[SIGNATURE | {"sig": 1}]), "sig is not a string"),
        (changed(extra=1), "the envelope is not an object with exactly these keys: payload, payloadType, signatures"),
        (changed(signatures=[{}]), "the signature is not an object with exactly these keys: keyid, sig"),
    ],
)
def test_a_complaint_names_the_field(data: bytes, message: str) -> None:
    refusal = read_envelope(*named(data))
    assert isinstance(refusal, Problem)
    assert refusal.message == message


@given(st.integers(0, len(DATA) - 1), st.integers(0, 255))
def test_every_changed_byte_is_noticed_even_under_a_fitting_name(place: int, byte: int) -> None:
    data = DATA[:place] + bytes([byte]) + DATA[place + 1 :]
    envelope = read_envelope(*named(data))
    if isinstance(envelope, Envelope) and data != DATA:
        assert (envelope.payload, envelope.signature, envelope.key_id) != (b"payload", b"signature", KEY_ID)


def test_the_payload_is_plain_base64_in_the_file() -> None:
    assert base64.b64decode(json.loads(DATA)["payload"]) == b"payload"
    assert json.loads(DATA)["payloadType"] == PAYLOAD_TYPE
