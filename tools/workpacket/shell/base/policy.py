"""The policy in force: as it stands on the base, never as it lies in the work tree.

The memory, outside of the repository, of the policy last seen: so that bringing back an old one is noticed.

It lies in the person's folder of settings, one file for each repository, named by its first commit. Beside it lies
only what envelopes claim to be about (`envelope_claims`). Where the folder cannot be written, nothing is remembered,
and `approvals verify` says so.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.refusal import Refusal
from workpacket.approvals.trust import Pin, judge_base, read_pin
from workpacket.git.objects import read_file_at
from workpacket.git.repository import Repository
from workpacket.git.revisions import default_branch, head_commit
from workpacket.lifecycle.policy import LifecyclePolicy, lifecycle_policy
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.layout import POLICY_PATH, REVOKED_PATH, SIGNERS_PATH
from workpacket.shell.base.revision import OF_EVERY_JUDGEMENT, Base, committed_file, known_to, read_ahead
from workpacket.shell.tree import read_bytes
from workpacket.text.limits import DATA
from workpacket.value import Value

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


@lru_cache(maxsize=64)
def lifecycle_of(data: bytes) -> LifecyclePolicy:
    """What a `policy.toml` says of the lifecycle. A history has few policies, and every event is judged by one."""
    from workpacket.documents.policy import PolicyDocument

    policy = PolicyDocument.from_bytes(data)
    return lifecycle_policy(policy.root, policy.source)


def _with_others(repository: Repository, commit: str, others: Iterable[str]) -> bytes | None:
    read_ahead(repository, (f"{commit}:{path}" for path in (*OF_EVERY_JUDGEMENT, *others)))
    return committed_file(repository, commit, POLICY_PATH)


class BasePolicy(Value):
    """`where` says which commit the policy was read from, or that it is the one of the work tree."""

    lifecycle: LifecyclePolicy
    anchored: bool
    target_branch: str
    where: str


def read_base_policy(repository: Repository, base: str = "", ahead: Iterable[str] = ()) -> BasePolicy:
    """From `base`, else from the default branch of the remote, else from the main branch; who may do what counts only
    from there. Without a commit that holds it, lane settings are read from the work tree and nobody is trusted.

    `ahead` are further files of which the caller knows that they will be asked for: they are read by the same call.
    """
    branch = default_branch(repository)
    commit = branch.commit if branch is not None else head_commit(repository) or ""
    if base:
        commit, data = base, read_file_at(repository, base, POLICY_PATH)
    else:
        data = _with_others(repository, commit, ahead) if commit else None
    anchored = data is not None
    if data is None:
        try:
            data = read_bytes(str(repository.root), POLICY_PATH, DATA.size)
        except OSError:
            data = b""
    policy = lifecycle_of(data)
    target = policy.target_branch or (
        branch.ref.removeprefix("refs/heads/").removeprefix("refs/remotes/") if branch else ""
    )
    where = f"commit {commit[:12]}" if anchored else "the work tree: no commit of the base holds it yet"
    return BasePolicy(policy, anchored, target, where)
