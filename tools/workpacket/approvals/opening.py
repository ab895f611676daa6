"""An envelope in its parts, read once however often it is asked about. Nothing in it is believed yet.

Which of many envelopes have a say at one gate, by what they claim. Nothing is verified here, only left out.

Leaving out by claim is safe: a yes that claims another packet would be refused anyway, and a no or a revocation that
claims another one was never meant for this. What cannot be read claims nothing; `log verify` is where it is told of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from workpacket.approvals.envelope import Envelope, pae, read_envelope
from workpacket.approvals.sshsig import SshSignature, check_signature, read_signature
from workpacket.approvals.statement import Statement, read_statement
from workpacket.problem import Problem
from workpacket.value import Value


class Parts(Value):
    """What is in a sound envelope, each part readable or not."""

    envelope: Envelope
    signature: SshSignature | Problem
    statement: Statement | Problem

    @cached_property
    def unreadable(self) -> tuple[Problem, ...]:
        return tuple(part for part in (self.signature, self.statement) if isinstance(part, Problem))

    @cached_property
    def broken(self) -> Problem | None:
        """What is wrong with a readable signature over the statement's bytes."""
        if isinstance(self.signature, Problem):
            return None
        return check_signature(self.signature, pae(self.envelope.payload))


class EnvelopeFile(Value):
    """A file of `.GOV/attestations/`; `name` without folders."""

    name: str
    data: bytes

    @cached_property
    def parts(self) -> Parts | Problem:
        envelope = read_envelope(self.name, self.data)
        if isinstance(envelope, Problem):
            return envelope
        return Parts(envelope, read_signature(envelope.signature), read_statement(envelope.payload))

    @property
    def claim(self) -> Statement | None:
        """What it says, believed or not; None if that cannot be read."""
        if isinstance(self.parts, Problem) or isinstance(self.parts.statement, Problem):
            return None
        return self.parts.statement


class Selection:
    """Many envelopes, read once, in the order in which they were given. `claims`: what each readable one says."""

    def __init__(self, files: Iterable[EnvelopeFile]) -> None:
        self._about: dict[tuple[str, str], list[EnvelopeFile]] = {}
        self._revoking: dict[str, list[EnvelopeFile]] = {}
        claims: dict[str, Statement] = {}
        for file in files:
            said = file.claim
            if said is None:
                continue
            claims[file.name] = said
            if said.decision == "revoke":
                for digest in {subject.sha256 for subject in said.subjects}:
                    self._revoking.setdefault(digest, []).append(file)
            else:
                self._about.setdefault((said.packet, said.gate), []).append(file)
        self.claims: Mapping[str, Statement] = claims

    def about(self, packet: str, gate: str) -> tuple[EnvelopeFile, ...]:
        """The envelopes about this gate of this packet, and those that revoke one of them, of any packet."""
        own = self._about.get((packet, gate), [])
        revoking = (each for file in own for each in self._revoking.get(file.name.partition(".")[0], ()))
        return tuple(dict.fromkeys((*own, *revoking)))
