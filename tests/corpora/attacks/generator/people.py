"""The people of the corpus and their keys, made by the real `ssh-keygen` in a folder that is thrown away.

Only FIDO keys are simulated, since they need a token. The private keys never leave the folder; what is kept of them are
signatures and public keys.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from softkeys import SoftKey, make_key
from workpacket.approvals.sshsig import NAMESPACE, unarmor
from workpacket.problem import Problem

ALICE, BOB, CAROL = "alice@example.org", "bob@example.org", "carol@example.org"
OSCAR = "oscar@example.org"
MALLORY = "mallory@example.org"

_SSH_KEYGEN_TYPES = {
    "ssh-ed25519": ("ed25519", "256"),
    "ecdsa-sha2-nistp256": ("ecdsa", "256"),
    "ecdsa-sha2-nistp384": ("ecdsa", "384"),
    "ecdsa-sha2-nistp521": ("ecdsa", "521"),
    "ssh-rsa": ("rsa", "3072"),
}


class People:
    """Keys by owner and kind, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._keys: dict[tuple[str, str, str], SoftKey] = {}
        self._paths: dict[bytes, Path] = {}

    def key(self, owner: str, kind: str = "ssh-ed25519", bits: str = "") -> SoftKey:
        wanted = (owner, kind, bits)
        if wanted not in self._keys:
            self._keys[wanted] = make_key(kind) if kind.startswith("sk-") else self._by_ssh_keygen(kind, bits)
        return self._keys[wanted]

    def sign(self, key: SoftKey, message: bytes) -> bytes:
        """The SSHSIG blob: by `ssh-keygen` for a key in a file, by software for a simulated token."""
        path = self._paths.get(key.blob)
        if path is None:
            return key.sign(message)
        command = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(path)]
        done = subprocess.run(command, input=message, capture_output=True, check=True)
        blob = unarmor(done.stdout.decode("ascii"))
        assert not isinstance(blob, Problem), blob
        return blob

    def _by_ssh_keygen(self, kind: str, bits: str) -> SoftKey:
        name, usual_bits = _SSH_KEYGEN_TYPES[kind]
        path = self._folder / f"key{len(self._keys)}"
        command = ["ssh-keygen", "-q", "-t", name, "-b", bits or usual_bits, "-N", "", "-C", "", "-f", str(path)]
        subprocess.run(command, check=True)
        private = load_ssh_private_key(path.read_bytes(), None)
        assert isinstance(private, Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
        key = SoftKey(private, kind)
        self._paths[key.blob] = path
        return key
