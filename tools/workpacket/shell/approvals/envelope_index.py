"""What each envelope claims to be about, remembered: so that one gate of one packet need not read all envelopes.

The name of an envelope is the digest of its bytes, so what is known of a name holds for ever: a file with other bytes
is no envelope. Only what is left out is decided by this memory; whatever counts is read and verified as ever, and an
envelope that is not known is read. It lies in the person's own folder beside the policy last seen, not in the
repository, where a no could be hidden by whoever writes there. `approvals verify` and `check` never ask it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from workpacket import __version__
from workpacket.approvals.opening import EnvelopeFile
from workpacket.approvals.policy import POLICY_GATE
from workpacket.shell.approvals.envelopes import envelope_digests, read_attestations, with_those_of_base
from workpacket.shell.approvals.subject import POLICY_MATTER
from workpacket.shell.base.policy import keep, settings_folder
from workpacket.shell.base.revision import Base
from workpacket.shell.transactions.safe_paths import Tree

_HEADER = f"workpacket {__version__}: what envelopes claim"
_NOTHING = "-"


class EnvelopeClaim(NamedTuple):
    """`revokes` are the envelopes that it takes back, separated by commas; '-' where there is nothing."""

    packet: str
    gate: str
    revokes: str


def known_claims(root_commit: str) -> dict[str, EnvelopeClaim]:
    """By digest of the envelope. What is damaged, or of another version, counts as unknown."""
    try:
        lines = _path(root_commit).read_text("ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    rows = (line.split(" ") for line in lines[1:]) if lines[0] == _HEADER else ()
    return {row[0]: EnvelopeClaim(*row[1:]) for row in rows if len(row) == 4}


def claims_in(files: Iterable[EnvelopeFile]) -> Iterator[tuple[str, EnvelopeClaim]]:
    """What can be remembered of these: nothing of a file whose bytes are not those that its name says."""
    for file in files:
        digest = file.name.partition(".")[0]
        if hashlib.sha256(file.data).hexdigest() == digest:
            said = file.claim
            if said is None:
                yield digest, EnvelopeClaim(_NOTHING, _NOTHING, _NOTHING)
            elif said.decision == "revoke":
                yield digest, EnvelopeClaim(said.packet, said.gate, ",".join(each.sha256 for each in said.subjects))
            else:
                yield digest, EnvelopeClaim(said.packet, said.gate, _NOTHING)


def remember_claims(root_commit: str, claims: Mapping[str, EnvelopeClaim]) -> bool:
    rows = (" ".join((digest, *claim)) for digest, claim in sorted(claims.items()))
    return keep(_path(root_commit), "\n".join((_HEADER, *rows)).encode())


def others_than(tree: Tree, base: Base, packet: str, named: Iterable[str]) -> frozenset[str]:
    """The envelopes that are neither about the packet, nor named by its events, nor revoke one of these."""
    present = envelope_digests(tree, base)
    claims = known_claims(base.root_commit)
    known = claims.keys() & present
    if len(known) < len(present):
        unknown = with_those_of_base(read_attestations(tree, known), base, known)
        learned = dict(claims_in(unknown))
        claims |= learned
        known |= learned.keys()
        remember_claims(base.root_commit, claims)
    return frozenset(known - concerning(packet, named, claims))


def concerning(packet: str, named: Iterable[str], claims: Mapping[str, EnvelopeClaim]) -> frozenset[str]:
    gate = POLICY_GATE if packet == POLICY_MATTER else ""
    own = {digest for digest, claim in claims.items() if claim.packet == packet or claim.gate == gate} | set(named)
    revoking = (
        digest
        for digest, claim in claims.items()
        if claim.revokes != _NOTHING and not own.isdisjoint(claim.revokes.split(","))
    )
    return frozenset(own.union(revoking))


def _path(root_commit: str) -> Path:
    return settings_folder() / "envelopes" / root_commit
