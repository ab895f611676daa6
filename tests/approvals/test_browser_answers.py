"""What a browser hands over: a signature or key as others read it, or one reason why not."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace as changed
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from softkeys import SoftKey, make_key
from workpacket.approvals.keys import read_key_fields
from workpacket.approvals.sshsig import SshSignature, check_signature, read_signature
from workpacket.approvals.webauthn import (
    Declined,
    NewKey,
    Registered,
    Touched,
    challenge_for,
    client_data_of,
    credential_in,
    decode_base64url,
    key_from,
    public_line,
    read_answer,
    signature_from,
)
from workpacket.problem import Problem

KIND = "sk-ecdsa-sha2-nistp256@openssh.com"
ORIGIN = "http://localhost:7363"
MESSAGE = b"what is signed"
CREDENTIAL = b"\1\2\3"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def touched(key: SoftKey, *, flags: int = 1, counter: int = 7, party: str = "localhost", more: bytes = b"") -> Touched:
    """As an honest browser answers, but for the changes."""
    data = hashlib.sha256(party.encode()).digest() + bytes([flags]) + counter.to_bytes(4, "big") + more
    said = client_data_of(challenge_for(MESSAGE), ORIGIN) + b"}"
    assert isinstance(key.private, ec.EllipticCurvePrivateKey)
    return Touched(data, said, key.private.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256())))


def code(found: object) -> str:
    assert isinstance(found, Problem), found
    return found.code


@pytest.mark.parametrize(("flags", "counter"), [(1, 0), (5, 7), (1, 2**32 - 1)])
def test_a_touch_becomes_a_signature(flags: int, counter: int) -> None:
    key = make_key(KIND, "localhost")
    for _ in range(8):  # numbers with and without a leading zero
        blob = signature_from(touched(key, flags=flags, counter=counter), key.public, ORIGIN, MESSAGE)
        assert isinstance(blob, bytes), blob
        signature = read_signature(blob)
        assert isinstance(signature, SshSignature)
        assert check_signature(signature, MESSAGE) is None
        assert signature.fido is not None
        assert (signature.fido.flags, signature.fido.counter) == (flags, counter)


NEGATIVE = bytes.fromhex("3006020101020181")


def with_numbers(answer: Touched, r: int, s: int) -> Touched:
    return Touched(answer.authenticator_data, answer.client_data, encode_dss_signature(r, s))


def test_an_answer_that_is_no_signature_is_refused() -> None:
    key = make_key(KIND, "localhost")
    honest = touched(key)
    r, s = decode_dss_signature(honest.numbers)
    for wrong, expected in (
        (touched(key, party="example.org"), "page_answer_unfit"),
        (touched(key, more=b"\0"), "page_answer_unfit"),
        (Touched(honest.authenticator_data[:-1], honest.client_data, honest.numbers), "page_answer_unfit"),
        (Touched(honest.authenticator_data, honest.client_data, b""), "page_answer_unfit"),
        (Touched(honest.authenticator_data, honest.client_data, honest.numbers + b"\0"), "page_answer_unfit"),
        (with_numbers(honest, 0, s), "sshsig_malformed"),
        (with_numbers(honest, r, 0), "sshsig_malformed"),
        (Touched(honest.authenticator_data, honest.client_data, NEGATIVE), "page_answer_unfit"),
        (with_numbers(honest, s, r), "signature_invalid"),
        (with_numbers(honest, 1, 1), "signature_invalid"),
        (Touched(honest.authenticator_data, honest.client_data[:-1] + b",}", honest.numbers), "client_data_wrong"),
        (touched(key, flags=0), "touch_missing"),
        (touched(key, flags=0x81), "sshsig_malformed"),
        (touched(make_key(KIND, "localhost")), "signature_invalid"),
    ):
        assert code(signature_from(wrong, key.public, ORIGIN, MESSAGE)) == expected
    assert code(signature_from(honest, key.public, ORIGIN, MESSAGE + b"!")) == "client_data_wrong"
    assert code(signature_from(honest, key.public, "http://localhost:7364", MESSAGE)) == "client_data_wrong"


CHALLENGE = b"c" * 32


def cose(key: SoftKey) -> bytes:
    point = key.public.blob[-65 - 13 : -13]
    assert point[0] == 4
    return bytes.fromhex("a5010203262001215820") + point[1:33] + bytes.fromhex("225820") + point[33:]


def registered(key: SoftKey, **changes: Any) -> Registered:
    """As an honest browser answers, but for the changes."""
    party = hashlib.sha256(changes.get("party", "localhost").encode()).digest()
    credential = changes.get("credential", CREDENTIAL)
    data = party + bytes([changes.get("flags", 0x41)]) + bytes(4) + bytes(16)
    data += changes.get("length", len(credential)).to_bytes(2, "big") + credential
    said = client_data_of(
        changes.get("challenge", CHALLENGE), changes.get("origin", ORIGIN), changes.get("kind", "webauthn.create")
    )
    return Registered(data + changes.get("cose", cose(key)) + changes.get("more", b""), said + b"}")


@pytest.mark.parametrize("credential", [b"", CREDENTIAL, b"x" * 300])
def test_a_registered_key_becomes_a_public_key(credential: bytes) -> None:
    key = make_key(KIND, "localhost")
    made = key_from(registered(key, credential=credential), CHALLENGE, ORIGIN, synced=False)
    assert made == NewKey(key.public, credential)
    assert isinstance(made, NewKey)
    line = public_line(made)
    assert read_key_fields(*line.split()[:2]) == key.public
    assert credential_in(line + "\n") == credential


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"kind": "webauthn.get"}, "client_data_wrong"),
        ({"challenge": b"d" * 32}, "client_data_wrong"),
        ({"origin": "http://localhost:7364"}, "client_data_wrong"),
        ({"party": "example.org"}, "page_answer_unfit"),
        ({"flags": 0x01}, "page_answer_unfit"),
        ({"flags": 0x40}, "page_answer_unfit"),
        ({"flags": 0x44}, "page_answer_unfit"),
        ({"length": 2}, "page_answer_unfit"),
        ({"length": 400}, "page_answer_unfit"),
        ({"more": b"\0"}, "page_answer_unfit"),
        ({"cose": b""}, "page_answer_unfit"),
        ({"cose": bytes.fromhex("a5010203262002215820") + bytes(67)}, "page_answer_unfit"),
        ({"cose": bytes.fromhex("a5010203262001215820") + bytes(67)}, "page_answer_unfit"),
        ({"flags": 0x49}, "passkey_synced"),
        ({"flags": 0x59}, "passkey_synced"),
    ],
)
def test_an_answer_that_is_no_new_key_is_refused(changes: dict[str, Any], expected: str) -> None:
    assert (
        code(key_from(registered(make_key(KIND, "localhost"), **changes), CHALLENGE, ORIGIN, synced=False)) == expected
    )


def test_a_key_that_may_be_copied_is_registered_where_the_policy_accepts_it() -> None:
    key = make_key(KIND, "localhost")
    for flags in (0x49, 0x59, 0x4D):
        answer = registered(key, flags=flags)
        assert key_from(answer, CHALLENGE, ORIGIN, synced=True) == NewKey(key.public, CREDENTIAL)


HONEST = {"authenticatorData": "AAAA", "clientDataJSON": "AQ", "signature": "AgM"}


def test_an_answer_is_read_by_what_was_asked() -> None:
    assert read_answer(HONEST, "touched") == Touched(b"\0\0\0", b"\1", b"\2\3")
    new = {name: HONEST[name] for name in ("authenticatorData", "clientDataJSON")}
    assert read_answer(new, "registered") == Registered(b"\0\0\0", b"\1")
    assert read_answer({"declined": True}, "touched") == Declined()
    assert read_answer({"declined": True}, "registered") == Declined()
    assert read_answer({"authenticatorData": "", "clientDataJSON": ""}, "registered") == Registered(b"", b"")


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        HONEST | {"more": 1},
        HONEST | {"signature": 1},
        HONEST | {"signature": "AA="},
        HONEST | {"signature": "AAAA!"},
        HONEST | {"signature": "A"},
        HONEST | {"signature": "A+/A"},
        HONEST | {"signature": "AAAA\n"},
        {"declined": "yes"},
        {"declined": True, "signature": "AAAA"},
    ],
)
def test_an_answer_of_another_form_is_refused(document: object) -> None:
    found = read_answer(document, "touched")
    assert code(found) == "page_answer_unfit"
    assert isinstance(found, Problem)
    assert found.message.startswith("the page sent unexpected data: ")


def test_everything_that_is_wrong_with_an_answer_is_named() -> None:
    found = read_answer({"authenticatorData": 1, "more": 2}, "registered")
    assert isinstance(found, Problem)
    assert found.message == (
        "the page sent unexpected data: authenticatorData is not base64url without padding; "
        "clientDataJSON is missing; more is unknown"
    )


def test_an_answer_to_one_question_is_none_to_the_other() -> None:
    assert code(read_answer(HONEST, "registered")) == "page_answer_unfit"
    assert (
        code(read_answer({name: HONEST[name] for name in ("authenticatorData",)}, "registered")) == "page_answer_unfit"
    )


@pytest.mark.parametrize(
    ("line", "credential"),
    [
        ("kind key webauthn:AQID", b"\1\2\3"),
        ("kind key webauthn:AQID\n", b"\1\2\3"),
        ("kind key webauthn:", b""),
        ("kind key ann@example.org", b""),
        ("kind key", b""),
        ("kind key webauthn:AQI", b""),
        ("kind key webauthn:not base64", b""),
        ("", b""),
    ],
)
def test_the_comment_of_a_public_key_names_its_credential(line: str, credential: bytes) -> None:
    assert credential_in(line) == credential


@pytest.mark.parametrize("length", range(6))
def test_base64url_is_read_without_padding(length: int) -> None:
    data = b"\xff\xfe\xfd\xfc\xfb\xfa"[:length]
    assert decode_base64url(encoded(data)) == data


def test_what_is_asked_to_be_signed_is_what_openssh_wraps() -> None:
    wrapped = challenge_for(MESSAGE)
    assert wrapped.startswith(b"SSHSIG\0\0\0\x16workpacket-approval@v1\0\0\0\0\0\0\0\6sha512\0\0\0\x40")
    assert wrapped.endswith(hashlib.sha512(MESSAGE).digest())
    said = json.loads(client_data_of(wrapped, ORIGIN) + b"}")
    assert decode_base64url(said["challenge"]) == wrapped


def test_a_point_beside_the_curve_makes_no_signature() -> None:
    """A key's point is looked at when something is verified; a new one is only a line in a file."""
    key = make_key(KIND, "localhost")
    other = changed(key, private=make_key(KIND).private)
    assert code(signature_from(touched(other), key.public, ORIGIN, MESSAGE)) == "signature_invalid"
