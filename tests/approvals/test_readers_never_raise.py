"""Whatever bytes come in, a reader answers with a value."""

from __future__ import annotations

import hashlib
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from approvals.gates import POLICY, SIGNERS, envelope, facts, statement
from softkeys import KINDS, packed, shared_key
from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import Envelope, EnvelopeFile, Statement, read_envelope, read_statement
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import Pin, Policy, policy_from_toml, read_pin
from workpacket.approvals.sshsig import (
    Signers,
    SshSignature,
    check_signature,
    read_allowed_signers,
    read_revoked_keys,
    read_signature,
    unarmor,
)
from workpacket.model.layout import ENVELOPE_SUFFIX
from workpacket.problem import Problem


@cache
def seeds() -> tuple[bytes, ...]:
    """Made for the first test that asks: an RSA key takes a second."""
    texts = (envelope().data, statement().payload(), SIGNERS.encode(), POLICY.encode())
    return (*texts, *(shared_key(kind).sign(b"m") for kind in KINDS))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Random bytes, or something real with a piece replaced."""
    seed = draw(st.sampled_from((b"", *seeds())))
    start = draw(st.integers(0, len(seed)))
    end = draw(st.integers(start, min(len(seed), start + 8)))
    return seed[:start] + draw(st.binary(max_size=8)) + seed[end:]


@given(damaged())
def test_every_reader_answers_with_its_value_or_with_refusals(data: bytes) -> None:
    name = hashlib.sha256(data).hexdigest() + ENVELOPE_SUFFIX
    assert isinstance(read_envelope(name, data), Envelope | Problem)
    assert isinstance(read_statement(data), Statement | Problem)
    assert isinstance(read_allowed_signers(data), Signers | tuple)
    assert isinstance(read_revoked_keys(data), frozenset | tuple)
    assert isinstance(policy_from_toml(data), Policy | tuple)
    assert isinstance(read_pin(data), Pin | Problem)
    assert isinstance(unarmor(data.decode("latin-1")), bytes | Problem)


@given(damaged(), st.binary(max_size=3))
def test_every_signature_is_judged(data: bytes, message: bytes) -> None:
    signature = read_signature(data)
    if isinstance(signature, SshSignature):
        assert isinstance(check_signature(signature, message), Problem | None)
    else:
        assert isinstance(signature, Problem)


@given(damaged(), damaged(), damaged(), damaged())
def test_every_gate_gets_a_verdict_and_no_damage_opens_it(
    policy: bytes, signers: bytes, revoked: bytes, file: bytes
) -> None:
    name = hashlib.sha256(file).hexdigest() + ENVELOPE_SUFFIX
    verdict = decide(facts(EnvelopeFile(name, file), policy=PolicyFiles(policy, signers, revoked)))
    assert not verdict.met or (file, policy) == (envelope().data, POLICY.encode())


def test_no_message_repeats_an_endless_text() -> None:
    endless = "x" * 100_000
    key = shared_key("ssh-ed25519")
    documents = [
        f'{{"payload":"","payloadType":"{endless}","signatures":[]}}'.encode(),
        f'{{"{endless}":1,"{endless}":2}}'.encode(),
        f'{{"payload":[{"9" * 1000}]}}'.encode(),
    ]
    files = {hashlib.sha256(document).hexdigest() + ENVELOPE_SUFFIX: document for document in documents}
    refusals = [
        *(read_statement(document) for document in documents),
        *(read_envelope(name, document) for name, document in files.items()),
        read_signature(key.sign(b"", namespace=endless)),
        read_signature(key.sign(b"", algorithm=endless)),
        read_signature(key.sign(b"", key_blob=packed(endless))),
    ]
    for refusal in refusals:
        assert isinstance(refusal, Problem)
        assert len(refusal.message) < 1000
