"""Keys that are trusted no more, whatever they signed and whenever: the list that `ssh-keygen -r` reads.

Public keys, one a line. A binary key revocation list is refused: it would be skipped as unreadable, in the one file
where skipping is fatal. A key too weak to approve may well stand here; only its blob matters.
"""

from __future__ import annotations

from workpacket.approvals import base64_strict
from workpacket.approvals.allowed_signers import meaningful_lines
from workpacket.approvals.refusal import Refusal

CODE = "revoked_keys_malformed"


def read_revoked_keys(data: bytes, path: str = "revoked_keys") -> frozenset[bytes] | tuple[Refusal, ...]:
    """The blobs of the revoked keys; or every fault in the file."""
    blobs: set[bytes] = set()
    faults: list[Refusal] = []
    for number, line in meaningful_lines(data):
        fields = line.split()
        blob = _blob(fields)
        if blob is None:
            faults.append(Refusal(CODE, "the line is not a public key: key-type base64-key", path, number))
        else:
            blobs.add(blob)
    return tuple(faults) or frozenset(blobs)


def _blob(fields: list[str]) -> bytes | None:
    if len(fields) < 2:
        return None
    try:
        blob = base64_strict.decode(fields[1])
    except ValueError:
        return None
    kind = fields[0].encode()
    return blob if blob.startswith(len(kind).to_bytes(4, "big") + kind) else None
