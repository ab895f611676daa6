"""Signing, and a second opinion on signatures, by the person's own `ssh-keygen`.

The private key, its passphrase and its token are the business of OpenSSH and of the person at the terminal; this
package never reads them. Arguments are lists and never pass a shell; what is signed goes in by standard input.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime

from workpacket.approvals.refusal import Refusal
from workpacket.approvals.sshsig import NAMESPACE, armor, check_signature, read_signature, unarmor
from workpacket.errors import WorkpacketError

# What is reported for a program that was stopped because it waited for somebody.
WAITED = -1


def find_ssh_keygen() -> str:
    """The path of the tool; without it, an error that says how to get it."""
    tool = shutil.which("ssh-keygen")
    if tool is None:
        raise WorkpacketError(
            "ssh_keygen_missing",
            "ssh-keygen was not found, and signing is done by OpenSSH",
            hint="Install OpenSSH 8.2 or later, for instance `apt install openssh-client`; verifying works without it",
        )
    return tool


def sign(message: bytes, key: str, namespace: str = NAMESPACE) -> bytes:
    """The SSHSIG blob of the key over the message.

    `key` is the path of a private key, or of a public key whose private half an agent or a token holds. The tool asks
    for passphrase, PIN and touch in the person's terminal, which is why its words are not caught. The signature is
    verified before it is returned, so that nothing is written down which a gate would refuse.
    """
    command = [find_ssh_keygen(), "-q", "-Y", "sign", "-n", namespace, "-f", key]
    status, output = run_openssh(command, message, in_terminal=True)
    if status != 0:
        raise WorkpacketError(
            "signing_failed",
            f"ssh-keygen did not sign with {key} (status {status})",
            hint="Its own words above say why; check the path, the passphrase, and that the token was touched",
            path=key,
        )
    usable = _usable(output.decode("ascii", "replace").replace("\r\n", "\n"), message, namespace)
    if isinstance(usable, Refusal):
        raise WorkpacketError("signing_key_unfit", f"signatures of {key} do not count: {usable.message}", path=key)
    return usable


def second_opinion(blob: bytes, message: bytes, principal: str, signers: bytes, at: datetime) -> bool | None:
    """What `ssh-keygen -Y verify` says with this content of allowed_signers; None if the tool is not here.

    It judges less than we do (touch flags, roles, time of use), so its yes is no approval. Its no to our yes is an
    alarm.
    """
    tool = shutil.which("ssh-keygen")
    if tool is None:
        return None
    with tempfile.TemporaryDirectory(prefix="workpacket-") as folder:
        signers_path, signature_path = (os.path.join(folder, name) for name in ("allowed_signers", "signature"))
        for path, content in ((signers_path, signers), (signature_path, armor(blob).encode("ascii"))):
            with open(path, "wb") as file:
                file.write(content)
        when = at.astimezone(UTC).strftime("verify-time=%Y%m%d%H%M%SZ")
        options = ["-n", NAMESPACE, "-I", principal, "-f", signers_path, "-s", signature_path, "-O", when]
        status, _ = run_openssh([tool, "-Y", "verify", *options], message)
    return status == 0


def run_openssh(
    command: list[str],
    message: bytes = b"",
    *,
    in_terminal: bool = False,
    environment: Mapping[str, str] | None = None,
    patience: float | None = None,
) -> tuple[int, bytes]:
    """Status and output of a program of OpenSSH. Unless `in_terminal`, it has no terminal to ask anybody in."""
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - a list, and the program is the one the person has in PATH
            command,
            input=message,
            stdout=subprocess.PIPE,
            stderr=None if in_terminal else subprocess.DEVNULL,
            env=environment,
            timeout=patience,
            check=False,
            start_new_session=not in_terminal,
        )
    except subprocess.TimeoutExpired:
        return WAITED, b""
    return done.returncode, done.stdout


def _usable(armored: str, message: bytes, namespace: str) -> bytes | Refusal:
    """The signature, if a gate would take it."""
    blob = unarmor(armored)
    if isinstance(blob, Refusal):
        return blob
    signature = read_signature(blob, namespace)
    if isinstance(signature, Refusal):
        return signature
    return check_signature(signature, message) or blob
