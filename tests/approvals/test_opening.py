"""An envelope in its parts: what can be read of it, and what not."""

from __future__ import annotations

from approvals.gates import envelope, key_of, statement
from workpacket.approvals.envelope import EnvelopeFile, Parts, write_envelope
from workpacket.problem import Problem

ALICE = key_of("alice@example.org")


def parts_of(payload: bytes, signature: bytes) -> Parts:
    parts = EnvelopeFile(*write_envelope(payload, ALICE.fingerprint, signature)).parts
    assert isinstance(parts, Parts)
    return parts


def test_of_a_sound_envelope_everything_can_be_read_and_nothing_is_broken() -> None:
    file = envelope()
    assert isinstance(file.parts, Parts)
    assert (file.parts.unreadable, file.parts.broken) == ((), None)
    assert file.claim == statement()


def test_a_signature_that_cannot_be_read_is_told_of_once_and_what_is_said_is_read_all_the_same() -> None:
    parts = parts_of(statement().payload(), b"no signature")
    assert [each.code for each in parts.unreadable] == ["sshsig_malformed"]
    assert parts.broken is None
    assert parts.statement == statement()


def test_a_signature_over_something_else_is_broken() -> None:
    broken = parts_of(statement().payload(), ALICE.sign(b"something else")).broken
    assert isinstance(broken, Problem)
    assert broken.code == "signature_invalid"


def test_what_cannot_be_read_claims_nothing() -> None:
    assert EnvelopeFile("x.dsse.json", b"{}\n").claim is None
    assert EnvelopeFile(*write_envelope(b"{}", ALICE.fingerprint, ALICE.sign(b""))).claim is None
