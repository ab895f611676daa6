"""An envelope in its parts, read once however often it is asked about. Nothing in it is believed yet."""

from __future__ import annotations

from functools import cached_property

from workpacket.approvals.envelope import Envelope, pae, read_envelope
from workpacket.approvals.refusal import Refusal
from workpacket.approvals.sshsig import SshSignature, check_signature, read_signature
from workpacket.approvals.statement import Statement, read_statement
from workpacket.value import Value


class Parts(Value):
    """What is in a sound envelope, each part readable or not."""

    envelope: Envelope
    signature: SshSignature | Refusal
    statement: Statement | Refusal

    @cached_property
    def unreadable(self) -> tuple[Refusal, ...]:
        return tuple(part for part in (self.signature, self.statement) if isinstance(part, Refusal))

    @cached_property
    def broken(self) -> Refusal | None:
        """What is wrong with a readable signature over the statement's bytes."""
        if isinstance(self.signature, Refusal):
            return None
        return check_signature(self.signature, pae(self.envelope.payload))


class EnvelopeFile(Value):
    """A file of `.GOV/attestations/`; `name` without folders."""

    name: str
    data: bytes

    @cached_property
    def parts(self) -> Parts | Refusal:
        envelope = read_envelope(self.name, self.data)
        if isinstance(envelope, Refusal):
            return envelope
        return Parts(envelope, read_signature(envelope.signature), read_statement(envelope.payload))

    @property
    def claim(self) -> Statement | None:
        """What it says, believed or not; None if that cannot be read."""
        if isinstance(self.parts, Refusal) or isinstance(self.parts.statement, Refusal):
            return None
        return self.parts.statement
