"""Why a signature could not be made on this machine."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _environment(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "environment", exit_code=exits.ENVIRONMENT)


REASONS: tuple[Reason, ...] = (
    _environment(
        "ssh_keygen_missing",
        "The program ssh-keygen is not installed",
        "Signing is done by OpenSSH, so that this package never touches a private key. Verifying works without it.",
        "Install OpenSSH 8.2 or later (Debian, Ubuntu: `apt install openssh-client`; macOS and Windows 10 bring it).",
    ),
    _environment(
        "signing_failed",
        "The program ssh-keygen did not sign",
        "The passphrase was wrong, the token was not touched, or the agent does not hold the key.",
        "Read what `ssh-keygen` said, then run the command again.",
    ),
    _environment(
        "signing_key_unfit",
        "The key signs, but its signatures cannot approve",
        "A signature that a gate would refuse is not worth writing down.",
        "Choose another key, or make one with `workpacket key init`.",
    ),
)
