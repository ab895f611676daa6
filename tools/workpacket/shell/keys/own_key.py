"""The key with which a person approves: found, made, and never read. Only its public half is looked at."""

from __future__ import annotations

import os
from pathlib import Path

from workpacket.approvals.keys import PublicKey, read_key_fields
from workpacket.approvals.refusal import Refused
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.errors import WorkpacketError
from workpacket.shell.keys.ssh_keygen import find_ssh_keygen, run_openssh
from workpacket.value import Value

KEY_VARIABLE = "WORKPACKET_KEY"


class OwnKey(Value):
    """`path` is what ssh-keygen is given to sign with."""

    path: str
    public: PublicKey


def default_path() -> Path:
    return Path(os.environ.get(KEY_VARIABLE) or Path.home() / ".ssh" / "workpacket_approval")


def find_key(named: str = "") -> OwnKey:
    """The key named, else the one of the environment, else the one that `key init` makes."""
    path = Path(named) if named else default_path()
    public = path if path.suffix == ".pub" else Path(f"{path}.pub")
    try:
        line = public.read_text("utf-8", "replace")
    except OSError as error:
        raise WorkpacketError(
            "approval_key_missing",
            f"there is no public key {public}: {error.strerror}",
            hint=f"workpacket key init makes one; or name yours: --key PATH, or {KEY_VARIABLE}",
            path=str(public),
        ) from error
    fields = line.split()
    try:
        return OwnKey(str(path), read_key_fields(*fields[:2]))
    except (Refused, TypeError) as fault:
        reason = fault.message if isinstance(fault, Refused) else "it holds no key"
        raise WorkpacketError("signing_key_unfit", f"{public} cannot approve: {reason}", path=str(public)) from fault


def make_key(path: Path, comment: str) -> OwnKey:
    """A new key in a file, protected by a passphrase that ssh-keygen asks for in the person's terminal."""
    tool = find_ssh_keygen()
    if path.exists() or Path(f"{path}.pub").exists():
        raise WorkpacketError(
            "key_exists",
            "there is a file of that name",
            hint="name another file: workpacket key init PATH",
            path=str(path),
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    status, _ = run_openssh([tool, "-q", "-t", "ed25519", "-C", comment, "-f", str(path)], in_terminal=True)
    if status != 0 or not path.exists():
        raise WorkpacketError("signing_failed", f"ssh-keygen made no key (status {status})", path=str(path))
    if has_no_passphrase(tool, path):
        path.unlink()
        Path(f"{path}.pub").unlink(missing_ok=True)
        raise WorkpacketError(
            "key_without_passphrase",
            "no passphrase was given, so any program of this account could have approved; the key was deleted",
            hint="run the command again and give a passphrase",
        )
    return find_key(str(path))


def has_no_passphrase(tool: str, path: Path) -> bool:
    status, _ = run_openssh([tool, "-y", "-P", "", "-f", str(path)])
    return status == 0


def signers_line(principal: str, key: PublicKey) -> str:
    """The line of allowed_signers that lets the person approve with this key."""
    from workpacket.approvals import base64_strict

    return f'{principal} namespaces="{NAMESPACE}" {key.kind} {base64_strict.encode(key.blob)}'
