"""The memory, outside of the repository, of the policy last seen: so that bringing back an old one is noticed.

It lies in the person's folder of settings, one file for each repository, named by its first commit. Beside it lies only
what envelopes claim to be about (`envelope_claims`). Where the folder cannot be written, nothing is remembered, and
`approvals verify` says so.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy_files import POLICY_PATH, REVOKED_PATH, SIGNERS_PATH
from workpacket.approvals.refusal import Refusal
from workpacket.approvals.trust import Pin, judge_base, read_pin
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.shell.base.revision import Base, known_to

_LARGEST = 64 * 1024


def settings_folder() -> Path:
    """Where this person's settings of workpacket are kept."""
    own = os.environ.get("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME", "")
    return (Path(own) if own else Path.home() / ".config") / "workpacket"


def trust_path(root_commit: str) -> Path:
    return settings_folder() / "trust" / f"{root_commit}.json"


def judge_pin(base: Base) -> Pin | Refusal | None:
    """The pin to remember, or why this base may not be believed. None where there is no policy to remember yet."""
    if base.policy.policy is None:
        return None
    seen = Pin(base.root_commit, base.commit, policy_digest(base.policy))
    pinned = _read(trust_path(base.root_commit))
    if pinned is None or isinstance(pinned, Refusal):
        return pinned or seen
    ancestors = known_to(base.repository, base.commit, (pinned.base,))
    return judge_base(pinned, seen, pinned_is_ancestor=pinned.base in ancestors)


def remember(pin: Pin) -> bool:
    """Keep the pin; False where that is not possible."""
    return keep(trust_path(pin.root_commit), pin.to_bytes())


def keep(path: Path, data: bytes) -> bool:
    """Have the file of the person's own folder hold these bytes; False where that is not possible."""
    try:
        if path.exists() and path.read_bytes() == data:
            return True
        import tempfile

        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".pin-", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except OSError:
        return False
    return True


def policy_digest(files: PolicyFiles) -> str:
    """One digest for all policy files."""
    parts = ((POLICY_PATH, files.policy), (SIGNERS_PATH, files.allowed_signers), (REVOKED_PATH, files.revoked_keys))
    value: dict[str, Json] = {path: hashlib.sha256(data).hexdigest() for path, data in parts if data is not None}
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def _read(path: Path) -> Pin | Refusal | None:
    try:
        with path.open("rb") as file:
            return read_pin(file.read(_LARGEST), str(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Refusal("trust_file_malformed", error.strerror or "it cannot be read", str(path))
