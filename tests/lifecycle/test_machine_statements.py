"""What a machine exports, verified by securesystemslib: all of it, and nothing of it that was tampered with.

The ways of tampering are listed in tampered_statements.jsonl, with what becomes of them.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import json_format
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.predicates.vsa.v1.vsa_pb2 import VerificationSummary
from in_toto_attestation.v1.statement_pb2 import Statement as InTotoMessage
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # its own documentation imports it so

from workpacket.approvals.envelope import PAYLOAD_TYPE, pae
from workpacket.approvals.fields import encode_base64
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_log
from workpacket.lifecycle.attestations import (
    SUMMARY,
    AttestedPacket,
    MachineKey,
    VerifiedSource,
    landing_of,
    proofs_of,
    read_machine_key,
    signed_statement,
)
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.events import Actor, LogEvent
from workpacket.problem import WorkpacketError
from workpacket.value import replace

LISTED = Path(__file__).with_name("tampered_statements.jsonl")
CASES = [json.loads(line) for line in LISTED.read_text("utf-8").splitlines()]
PACKETS = 50
ODD = ("It greets", 'It says "hello" \\ and goes', "Sie grüßt 👋", "line\nfeed", "\u202eright to left", "</script>")


def machine(kind: str) -> MachineKey:
    private = Ed25519PrivateKey.generate() if kind == "ed25519" else ec.generate_private_key(ec.SECP256R1())
    usual = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return read_machine_key(private.private_bytes(*usual))


def key_of(key: MachineKey) -> SSlibKey:
    """As somebody else reads the public half: with the default key id of securesystemslib."""
    return SSlibKey.from_crypto(serialization.load_pem_public_key(key.public.encode()))


KEYS = {kind: machine(kind) for kind in ("ed25519", "ecdsa")}


def event(kind: str, number: int, data: dict[str, Json], attest: tuple[str, ...] = ()) -> LogEvent:
    actor, at = Actor("ann", "human"), "2026-03-01T08:00:00Z"
    return LogEvent(f"{number:064x}", kind, "WP-1-Greeting-v1", number, (), at, actor, "x", "tx", (), attest, data)


def packets() -> Iterator[AttestedPacket]:
    """As many as are wanted, each with its own words, results and codes."""
    empty = fold(read_log("WP-1-Greeting-v1", {}))
    for number in range(PACKETS):
        commit, result = f"{number:040x}", ("not_met", "met", "not_applicable")[number % 3]
        rows: list[Json] = [{"criterion": ODD[number % len(ODD)], "result": result, "command": f"pytest -k {number}"}]
        history = (
            event("activated", 1, {"contract": "c" * 64}, ("a" * 64,)),
            event("submitted", 2, {"commit": commit, "evidence": rows}),
        )
        state = replace(empty, packet=f"WP-1-Part-{number}-v1", history=history)
        yield AttestedPacket(state, commit, ("signature_invalid",) if number % 5 == 0 else ())


SOURCE = VerifiedSource(
    name="example/greeter",
    resource="git+https://forge.example/greeter",
    branch="main",
    policy="d" * 64,
    verifier="https://ci.example/verifier",
    version="1",
    at="2026-03-01T08:00:00Z",
)


def exported(key: MachineKey) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for packet in packets():
        landing = landing_of(packet, SOURCE, [])
        assert landing is not None
        found += [json.loads(signed_statement(each, key)) for each in (*proofs_of(packet, SOURCE), landing)]
    return found


def verified(envelope: dict[str, Any], key: SSlibKey) -> bool:
    try:
        return list(Envelope.from_dict(copy.deepcopy(envelope)).verify([key], 1)) == [key.keyid]
    except (VerificationError, UnverifiedSignatureError, ValueError, KeyError):
        return False


@pytest.mark.parametrize("kind", KEYS)
def test_all_that_we_export_is_verified(kind: str) -> None:
    envelopes = exported(KEYS[kind])
    assert len(envelopes) == 2 * PACKETS
    fresh = machine(kind)
    assert key_of(fresh).keyid == fresh.key_id
    assert [number for number, each in enumerate(envelopes) if not verified(each, key_of(KEYS[kind]))] == []


def tampered(case: dict[str, Any], envelopes: list[dict[str, Any]], key: MachineKey) -> dict[str, Any]:
    chosen = envelopes[1 if case.get("of") == "summary" else 0]
    envelope, other = copy.deepcopy(chosen), envelopes[2]
    place = envelope["signatures"][0] if case.get("field") in ("sig", "keyid") else envelope
    if "field" in case:
        name, text = case["field"], place[case["field"]]
        place[name] = changed(text, case) if name != "payloadType" or "append" not in case else text + case["append"]
    if "swap" in case:
        source, target = (each["signatures"][0] if case["swap"] == "sig" else each for each in (other, envelope))
        target[case["swap"]] = source[case["swap"]]
    if "drop" in case:
        envelope[case["drop"]] = []
    if "forge" in case:
        payload = base64.b64decode(envelope["payload"])
        message = {"other": pae(payload), "bare": payload, "base64": envelope["payload"].encode()}[case["forge"]]
        signer = machine("ed25519") if case["forge"] == "other" else key
        envelope["signatures"][0]["sig"] = encode_base64(signer.sign(message))
    if "edit" in case:
        statement = json.loads(base64.b64decode(envelope["payload"]))
        inner = statement
        for step in case["edit"][:-1]:
            inner = inner[step]
        assert inner[case["edit"][-1]] != case["to"], case
        inner[case["edit"][-1]] = case["to"]
        envelope["payload"] = encode_base64(canonical_bytes(statement))
    assert envelope != chosen, case
    return envelope


def changed(text: str, case: dict[str, Any]) -> str:
    if "set" in case:
        return str(case["set"])
    if case.get("upper"):
        return text.upper()
    data = bytearray(base64.b64decode(text))
    if "flip" in case:
        data[case["flip"]] ^= 1
    if "cut" in case:
        del data[-case["cut"] :]
    if "append" in case:
        data += base64.b64decode(case["append"])
    return encode_base64(bytes(len(data)) if case.get("zeros") else bytes(data))


@pytest.mark.parametrize("kind", KEYS)
def test_nothing_that_was_tampered_with_is_verified(kind: str) -> None:
    assert len(CASES) == 30
    key, envelopes = KEYS[kind], exported(KEYS[kind])
    assert verified(envelopes[0], key_of(key))
    accepted = [case["name"] for case in CASES if verified(tampered(case, envelopes, key), key_of(key))]
    assert accepted == []
    assert {case["expect"] for case in CASES} == {"refused"}


def test_the_payload_type_is_that_of_in_toto() -> None:
    assert {each["payloadType"] for each in exported(KEYS["ed25519"])} == {PAYLOAD_TYPE}


def test_statements_and_predicates_are_what_in_toto_reads() -> None:
    """Its messages refuse a field that they do not know, such as the verifier.version of SLSA 1.2."""
    for envelope in exported(KEYS["ed25519"]):
        said = json.loads(base64.b64decode(envelope["payload"]))
        json_format.ParseDict(said, InTotoMessage())
        summary = said["predicateType"] == SUMMARY
        message = VerificationSummary() if summary else test_result_pb2.TestResult()
        predicate = said["predicate"]
        # SLSA wants a list, and so do its verifiers; in this message the field is one text by mistake.
        levels = {"verifiedLevels": " ".join(predicate["verifiedLevels"])} if summary else {}
        version = {"verifier": {"id": predicate["verifier"]["id"]}} if summary else {}
        json_format.ParseDict({**predicate, **levels, **version}, message)


def pem(key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, passphrase: bytes = b"") -> bytes:
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        pem(rsa.generate_private_key(65537, 2048)),
        b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        pem(Ed25519PrivateKey.generate(), b"secret"),
        pem(ec.generate_private_key(ec.SECP384R1())),
    ],
)
def test_other_keys_are_refused(data: bytes) -> None:
    with pytest.raises(WorkpacketError) as caught:
        read_machine_key(data)
    assert caught.value.code == "machine_key_unfit"


def test_a_curve_key_signs_too() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    machine = read_machine_key(pem(private))
    private.public_key().verify(machine.sign(b"message"), b"message", ec.ECDSA(hashes.SHA256()))
    assert len(machine.key_id) == 64
