"""Could a program on this account approve without its owner? Found out by trying, as a rogue process would.

Every key that the ssh-agent offers and every private key in a file is asked to sign, without a terminal, without any
dialog of ours, and in a namespace that approves nothing. What signs all the same would sign for any program. A key with
a passphrase, a key that the agent confirms first, and a token that waits for a touch do not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from typing import Literal

from workpacket.approvals.keys import PublicKey, read_key_fields
from workpacket.approvals.refusal import RefusalError
from workpacket.shell.keys.own_key import find_ssh_keygen, run_openssh
from workpacket.value import Value

# Signatures in this namespace are refused by every gate.
TRIAL_NAMESPACE = "workpacket-key-doctor@v1"
_TRIAL = b"A trial by `workpacket key doctor`. It approves nothing.\n"
# A token waits for its touch, and an agent for its confirmation, for longer than this.
PATIENCE = 3.0

# From the least effort to the most protection.
LADDER = (
    "Use a key for approvals only, with a passphrase, and never add it to an agent: `workpacket key init` makes one.",
    "If it must be in an agent, have the agent ask each time: `ssh-add -c KEY`.",
    "Approve from another account, or another machine, than the one on which agents work.",
    'Use a FIDO token (`ssh-keygen -t ed25519-sk -O verify-required`), and set `hardware = "touch"` or "pin" at gates.',
)

Place = Literal["agent", "file"]


class Trial(Value):
    """One key, where it was found (with its path if in a file), and whether it signed unasked."""

    key: PublicKey
    place: Place
    path: str
    signed: bool


class Diagnosis(Value):
    """`exposed` are the keys that may approve and that any program of this account can use."""

    trials: tuple[Trial, ...]
    exposed: tuple[Trial, ...]

    @property
    def sentence(self) -> str:
        return f"an agent on this account could approve: {'YES' if self.exposed else 'NO'}"

    @property
    def remedies(self) -> tuple[str, ...]:
        return LADDER if self.exposed else ()


def examine(key_files: Iterable[str], approving: frozenset[bytes] | None, patience: float = PATIENCE) -> Diagnosis:
    """Try the agent's keys and these private keys.

    `approving` are the blobs of the keys that allowed_signers trusts; None, where there is no such list yet, means that
    every key counts.
    """
    tool = find_ssh_keygen()
    trials = (*_try_agent(tool, patience), *_try_files(tool, key_files, patience))
    counts = (trial for trial in trials if approving is None or trial.key.blob in approving)
    return Diagnosis(trials, tuple(trial for trial in counts if trial.signed))


def private_keys(folder: str) -> tuple[str, ...]:
    """The files in `folder` (usually `~/.ssh`) that begin as private keys do."""
    paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder))) if os.path.isdir(folder) else ()
    return tuple(path for path in paths if _begins_as_private_key(path))


def _begins_as_private_key(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            first = file.readline(100)
    except OSError:
        return False
    return first.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in first


def _try_agent(tool: str, patience: float) -> Iterator[Trial]:
    with tempfile.TemporaryDirectory(prefix="workpacket-") as folder:
        # Alone in its folder the public key can only be completed by the agent, not by a private key beside it.
        path = os.path.join(folder, "key.pub")
        for line in _agent_lines():
            key = _read_line(line)
            if key is not None:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(line + "\n")
                yield Trial(key, "agent", "", _signs(tool, path, patience, with_agent=True))


def _agent_lines() -> list[str]:
    tool = shutil.which("ssh-add")
    if tool is None:
        return []
    status, output = run_openssh([tool, "-L"], patience=PATIENCE)
    return output.decode("utf-8", "replace").splitlines() if status == 0 else []


def _try_files(tool: str, paths: Iterable[str], patience: float) -> Iterator[Trial]:
    for path in paths:
        key = _read_line(_public_line(tool, path))
        if key is not None:
            yield Trial(key, "file", path, _signs(tool, path, patience, with_agent=False))


def _public_line(tool: str, private: str) -> str:
    """From the public key beside it, else out of the private key if that has no passphrase."""
    try:
        with open(private + ".pub", encoding="utf-8", errors="replace") as file:
            return file.readline().rstrip("\n")
    except OSError:
        _, output = run_openssh([tool, "-y", "-P", "", "-f", private])
        return output.decode("utf-8", "replace").rstrip("\n")


def _read_line(line: str) -> PublicKey | None:
    """The key of a `.pub` line, if it is of a kind that could approve."""
    kind, _, rest = line.partition(" ")
    try:
        return read_key_fields(kind, rest.partition(" ")[0])
    except RefusalError:
        return None


def _signs(tool: str, path: str, patience: float, *, with_agent: bool) -> bool:
    """Whether the key signs for a process that has no terminal and shows no dialog."""
    hidden = {"DISPLAY", "SSH_ASKPASS"} if with_agent else {"DISPLAY", "SSH_ASKPASS", "SSH_AUTH_SOCK"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["SSH_ASKPASS_REQUIRE"] = "never"
    command = [tool, "-q", "-Y", "sign", "-n", TRIAL_NAMESPACE, "-f", path]
    status, _ = run_openssh(command, _TRIAL, environment=environment, patience=patience)
    return status == 0
