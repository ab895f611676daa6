"""Which of many envelopes have a say at one gate, by what they claim. Nothing is verified here, only left out.

Leaving out by claim is safe: a yes that claims another packet would be refused anyway, and a no or a revocation that
claims another one was never meant for this. What cannot be read claims nothing; `log verify` is where it is told of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workpacket.approvals.opening import EnvelopeFile
from workpacket.approvals.statement import Statement


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
