"""Writes logs of signed events, with a key made for them, for rows about signatures."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.governed_trees import commit, long_history
from workpacket.approvals.keys import read_key_blob
from workpacket.approvals.sshsig import EVENT_NAMESPACE
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent, encode_event, event_id, event_of

KIND: Final = "ssh-ed25519"
EVENTS_OF_A_PACKET: Final = 10


def packed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


class EventSigner:
    """Signs as `ssh-keygen -Y sign` does, without a process for each signature."""

    def __init__(self) -> None:
        self.private = Ed25519PrivateKey.generate()
        raw = self.private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self._blob = packed(KIND.encode(), raw)
        self.fingerprint = read_key_blob(self._blob).fingerprint

    def signed(self, event: LogEvent) -> LogEvent:
        namespace, digest = EVENT_NAMESPACE.encode(), hashlib.sha512(event.signed_bytes()).digest()
        proof = self.private.sign(b"SSHSIG" + packed(namespace, b"", b"sha512", digest))
        signature = packed(KIND.encode(), proof)
        blob = b"SSHSIG" + (1).to_bytes(4, "big") + packed(self._blob, namespace, b"", b"sha512", signature)
        return made({**event.json(), "sig": base64.b64encode(blob).decode()})

    def save(self, path: Path) -> None:
        """Write the key as `ssh-keygen` does, for commands that sign with it."""
        form, encoding = serialization.PrivateFormat.OpenSSH, serialization.Encoding.PEM
        path.write_bytes(self.private.private_bytes(encoding, form, serialization.NoEncryption()))
        path.chmod(0o600)
        form_of_public, encoding_of_public = serialization.PublicFormat.OpenSSH, serialization.Encoding.OpenSSH
        public = self.private.public_key().public_bytes(encoding_of_public, form_of_public)
        path.with_suffix(".pub").write_bytes(public + b" bench\n")

    def chain(self, events: list[LogEvent]) -> list[LogEvent]:
        """Yield the events in order; each names the signed one before it."""
        found: list[LogEvent] = []
        for event in events:
            parents: list[Json] = [found[-1].id] if found else []
            found.append(self.signed(made({**event.json(), "parents": parents})))
        return found


def made(value: dict[str, Json]) -> LogEvent:
    return event_of(value, event_id(encode_event(value)))


def write_signed_logs(root: Path, events: int) -> Path:
    """Make a repository with this many signed events, ten per packet, whose policy lists their key."""
    signer = EventSigner()
    for number in range(events // EVENTS_OF_A_PACKET):
        for event in signer.chain(long_history(f"WP-1-Packet{number}-v1", EVENTS_OF_A_PACKET)):
            path = root / event.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(event.encode())
    write_policy(root, signer)
    commit(root)
    return root


def write_policy(root: Path, signer: EventSigner) -> None:
    """Write the policy that lists the key of the writer of all events."""
    writer = long_history("WP-1-Packet0-v1", 1)[0].actor
    name, kind = writer.id, "agent" if writer.kind == "agent" else "person"
    operator = '\noperator = "operator"\n\n[actors.operator]\nkind = "person"\nkeys = []\n' if kind == "agent" else "\n"
    policy = f'[actors."{name}"]\nkind = "{kind}"\nkeys = ["{signer.fingerprint}"]{operator}'
    folder = root / ".GOV" / "policy"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.toml").write_text(policy)
