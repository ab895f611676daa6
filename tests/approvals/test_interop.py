"""Our envelopes and statements are what the world's libraries take for DSSE and in-toto."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement as InTotoStatement
from in_toto_attestation.v1.statement_pb2 import Statement as InTotoMessage
from securesystemslib.dsse import Envelope as DsseEnvelope

from approvals.gates import envelope, key_of, statement
from workpacket.approvals.envelope import Envelope, pae, read_envelope
from workpacket.approvals.sshsig import SshSignature, check_signature, read_signature


@pytest.fixture
def dsse() -> DsseEnvelope:
    return DsseEnvelope.from_dict(json.loads(envelope().data))


def test_securesystemslib_reads_the_envelope(dsse: DsseEnvelope) -> None:
    ours = read_envelope(envelope().name, envelope().data)
    assert isinstance(ours, Envelope)
    assert (dsse.payload, dsse.payload_type) == (ours.payload, "application/vnd.in-toto+json")
    ((key_id, signature),) = dsse.signatures.items()
    assert key_id == key_of("alice@example.org").fingerprint
    assert bytes.fromhex(signature.signature) == ours.signature


def test_the_bytes_that_securesystemslib_would_verify_are_those_we_sign(dsse: DsseEnvelope) -> None:
    assert dsse.pae() == pae(statement().payload())
    ((_, signature),) = dsse.signatures.items()
    read = read_signature(bytes.fromhex(signature.signature))
    assert isinstance(read, SshSignature)
    assert check_signature(read, dsse.pae()) is None


def test_securesystemslib_writes_the_same_envelope_back(dsse: DsseEnvelope) -> None:
    assert dsse.to_dict() == json.loads(envelope().data)


@pytest.mark.parametrize("changes", [{}, {"spec": None}, {"decision": "reject"}, {"log_heads": (), "scope": ()}])
def test_in_toto_attestation_validates_the_statement(changes: dict[str, Any]) -> None:
    payload = statement(**changes).payload()
    message = json_format.Parse(payload, InTotoMessage())
    InTotoStatement.copy_from_pb(message).validate()
    assert json.loads(json_format.MessageToJson(message)) == json.loads(payload)


def test_this_file_is_the_only_one_that_needs_those_libraries() -> None:
    package = Path(__file__).parents[2] / "tools" / "workpacket"
    sources = [path.read_text("utf-8") for path in package.rglob("*.py")]
    assert not [source for source in sources if "securesystemslib" in source or "in_toto_attestation" in source]
