"""Which of many envelopes have a say at one gate, by what they claim. Nothing is verified here, only left out.

Leaving out by claim is safe: a yes that claims another packet would be refused anyway, and a no or a revocation that
claims another one was never meant for this. What cannot be read claims nothing; `log verify` is where it is told of.
"""

from __future__ import annotations

from collections.abc import Iterable

from workpacket.approvals.envelope import read_envelope
from workpacket.approvals.facts import EnvelopeFile
from workpacket.approvals.refusal import Refusal
from workpacket.approvals.statement import Statement, read_statement


def claimed_statement(file: EnvelopeFile) -> Statement | None:
    """What the envelope says, believed or not; None if it cannot be read."""
    envelope = read_envelope(file.name, file.data)
    if isinstance(envelope, Refusal):
        return None
    statement = read_statement(envelope.payload)
    return None if isinstance(statement, Refusal) else statement


def select(files: Iterable[EnvelopeFile], packet: str, gate: str) -> tuple[EnvelopeFile, ...]:
    """The envelopes about this gate of this packet, and those that revoke one of them, whatever packet they name."""
    about: dict[str, EnvelopeFile] = {}
    revocations: list[tuple[EnvelopeFile, Statement]] = []
    for file in files:
        statement = claimed_statement(file)
        if statement is None:
            continue
        if statement.decision == "revoke":
            revocations.append((file, statement))
        elif (statement.packet, statement.gate) == (packet, gate):
            about[file.name.partition(".")[0]] = file
    revoking = (file for file, said in revocations if any(subject.sha256 in about for subject in said.subjects))
    return (*about.values(), *revoking)
