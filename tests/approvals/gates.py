"""A gate that is satisfied, of which a test changes what it is about."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from softkeys import SoftKey, shared_key
from workpacket.approvals.envelope import EnvelopeFile, RepositoryName, Spec, Statement, Subject, pae, write_envelope
from workpacket.approvals.facts import GateFacts, PacketLog, PolicyFiles
from workpacket.value import replace

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ALICE, BOB = "alice@example.org", "bob@example.org"
SUBJECT = Subject("text.md", "5" * 64)
GENESIS = "0" * 64

POLICY = f"""
[approvals]
repository = "example/rocket"
[approvals.roles]
approver = ["{ALICE}", "{BOB}"]
operator = []
[approvals.gates.activation]
roles = ["approver"]
threshold = 1
separation = []
[approvals.gates.release]
roles = ["approver"]
threshold = 2
separation = []
[approvals.gates.policy]
roles = ["approver"]
threshold = 1
separation = []
"""


def key_of(person: str) -> SoftKey:
    return shared_key("ssh-ed25519", person)


SIGNERS = "".join(f"{key_of(person).line(person)}\n" for person in (ALICE, BOB))


def statement(**changes: Any) -> Statement:
    honest = Statement(
        subjects=(SUBJECT,),
        packet="WP-1-Gauge",
        gate="activation",
        decision="approve",
        role="approver",
        approver=ALICE,
        repository=RepositoryName("example/rocket", "1" * 40),
        base="b" * 40,
        spec=Spec("3.1", "e" * 64),
        policy=hashlib.sha256(POLICY.encode()).hexdigest(),
        log_heads=(GENESIS,),
        scope=("src/",),
        issued_at=NOW - timedelta(hours=1),
        expires_at=NOW + timedelta(days=1),
        nonce="a" * 32,
    )
    return replace(honest, **changes)


def envelope(said: Statement | None = None, key: SoftKey | None = None, **changes: Any) -> EnvelopeFile:
    """A signed envelope of an honest statement, but for the changes."""
    said = said or statement(**changes)
    key = key or key_of(said.approver)
    payload = said.payload()
    return EnvelopeFile(*write_envelope(payload, key.fingerprint, key.sign(pae(payload))))


def facts(*envelopes: EnvelopeFile, **changes: Any) -> GateFacts:
    satisfied = GateFacts(
        now=NOW,
        packet="WP-1-Gauge",
        gate="activation",
        subjects=(SUBJECT,),
        root_commit="1" * 40,
        base_history=frozenset({"b" * 40}),
        spec=Spec("3.1", "e" * 64),
        scope=("src/",),
        parties={},
        log=PacketLog({GENESIS: ()}, frozenset({GENESIS})),
        policy=PolicyFiles(POLICY.encode(), SIGNERS.encode()),
        envelopes=envelopes,
        consumptions={},
    )
    return replace(satisfied, **changes)
