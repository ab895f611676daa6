"""The base: the commit whose policy applies, the files committed there, and the policy that this person saw last.

The base is the revision that CI passes; otherwise the remote's default branch, or the repository's main branch; never
the work tree, and never the change being judged. `Base.place_of` returns the policy that judges an event: every verdict
starts there. The contents of a commit cannot change, so they are read once per process, and many files by one call to
git.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import Pin, judge_base, read_pin
from workpacket.digests import sha256
from workpacket.git.objects import (
    FIRST_PARENTS,
    changes_before,
    each_change_before,
    first_parents,
    line_times,
    list_tree,
    missing_object,
    read_file_at,
    read_objects,
)
from workpacket.git.repository import (
    Repository,
    commit_at,
    commit_of,
    default_branch,
    head_commit,
    is_ancestor,
    main_branch_candidates,
    main_remote,
)
from workpacket.git.run import run_git
from workpacket.lifecycle.gates import ANCHORING
from workpacket.lifecycle.policy import LifecyclePolicy, lifecycle_policy
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.layout import (
    ATTESTATIONS_FOLDER,
    LARGEST_PIN,
    POLICY_FOLDER,
    POLICY_PATH,
    REVOKED_PATH,
    SIGNERS_PATH,
    SPEC_POINTER,
)
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.shell.tree import read_bytes
from workpacket.text.source import DATA
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors, KnownActor
    from workpacket.approvals.policy import GatePolicy, Trusted

_BEFORE = "^1"


class BaseLine:
    """The first-parent history of the base, and the contents of each commit at some paths.

    One call to git covers all commits. Asking for `<commit>:<path>` makes git unpack the trees of that commit for every
    name, which takes longer with every file next to it. `first_seen` gives for each file the first commit that had it,
    and `held_since` gives the commit since which it has never been missing or different, each with the commit's time.
    The two can differ: a branch that was rebased and fast-forwarded may have had a file for only two commits, under a
    different policy. Without `contents`, which for events take much memory, it knows only these two.
    """

    def __init__(self, repository: Repository, commit: str, paths: tuple[str, ...], *, contents: bool) -> None:
        self._covered = paths if contents else ()
        self.first_seen: dict[str, tuple[str, int]] = {}
        self.held_since: dict[str, tuple[str, int]] = {}
        self._places: dict[str, int] = {}
        # For each path, newest first: the number of newer commits after which it changed, and its value from then on.
        self._changed: dict[str, tuple[list[int], list[str]]] = {}
        seen, since = set[str](), ("", 0)
        for found in each_change_before(repository, commit, *paths, options=FIRST_PARENTS):
            if isinstance(found, str):
                identity, _, time = found.partition(" ")
                since, self._places[identity] = (identity, int(time)), len(self._places)
                continue
            if found.path not in seen and found.blob:
                self.held_since[found.path] = since
            seen.add(found.path)
            if found.letter == "A":  # the log runs backwards, so the last match is the first commit
                self.first_seen[found.path] = since
            if contents:
                places, blobs = self._changed.setdefault(found.path, ([], []))
                places.append(len(self._places) - 1)
                blobs.append(found.blob)

    def knows(self, revision: str, path: str) -> bool:
        """Whether this history covers `revision`: a commit that changed some of the paths, or the one before it."""
        covered = any(path == each or path.startswith(f"{each}/") for each in self._covered)
        return covered and revision.removesuffix(_BEFORE) in self._places

    def blob(self, revision: str, path: str) -> str:
        """Return the id of the file at this path in `revision`, or '' if there is none."""
        place = self._places[revision.removesuffix(_BEFORE)] + revision.endswith(_BEFORE)
        places, blobs = self._changed.get(path, ([], []))
        found = bisect_left(places, place)
        return blobs[found] if found < len(places) else ""


@lru_cache(maxsize=16)
def base_line(repository: Repository, commit: str, *paths: str, contents: bool = True) -> BaseLine:
    """Return the first-parent history that ends at `commit`. It cannot change, so it is read once per process."""
    return BaseLine(repository, commit, paths, contents=contents)


# Only limits memory: what is pushed out is read or computed again.
_MANY = 4096
# The policy, and the pointer to the specification: code that needs one of them will need the others.
OF_EVERY_JUDGEMENT = (POLICY_PATH, SIGNERS_PATH, REVOKED_PATH, SPEC_POINTER)
# The number of objects requested from git in one call: this many specifications fit into memory.
_AT_ONCE = 500
# Objects read in advance, by name; None for a missing one.
_READ: dict[Repository, dict[str, bytes | None]] = {}


@lru_cache(maxsize=_MANY)
def committed(repository: Repository, commit: str, paths: tuple[str, ...]) -> dict[str, bytes]:
    """Return the given files that are in the commit. The result is shared, so do not modify it."""
    if not commit:
        return {}
    names = {f"{commit}:{path}": path for path in paths if "\n" not in path}
    known: Mapping[str, bytes | None] = _READ.get(repository, {})
    found: Mapping[str, bytes | None]
    found = known if names.keys() <= known.keys() else read_objects(repository, names)
    return {path: data for name, path in names.items() if (data := found.get(name)) is not None}


def read_ahead(repository: Repository, names: Iterable[str], line: BaseLine | None = None) -> None:
    """Read many files (`<commit>:<path>`) in a few calls to git, for use by `committed`.

    Files that `line` covers are requested by the id of their contents.
    """
    known = _READ.setdefault(repository, {})
    wanted = {name: name for name in names if name not in known and "\n" not in name}
    for name in wanted if line is not None else ():
        revision, _, path = name.partition(":")
        if line is not None and line.knows(revision, path):
            wanted[name] = line.blob(revision, path)
    asked = list(dict.fromkeys(filter(None, wanted.values())))
    # A thousand commits have the same specification, which is kept once.
    found, same = dict[str, bytes](), dict[bytes, bytes]()
    for start in range(0, len(asked), _AT_ONCE):
        read = read_objects(repository, asked[start : start + _AT_ONCE])
        found.update((name, same.setdefault(data, data)) for name, data in read.items())
    for name, identity in wanted.items():
        if identity not in found and identity not in ("", name):
            raise missing_object(identity, name)
        known[name] = found.get(identity)


def committed_file(repository: Repository, commit: str, path: str) -> bytes | None:
    return committed(repository, commit, (path,)).get(path)


# The files that every judgement needs, read by one call of git.
_LISTED_TOGETHER = (POLICY_FOLDER, ATTESTATIONS_FOLDER)
# Above this number of commits, listing the whole history once is faster.
_FEW = 8


class Place(Value):
    """The commit from which policy and specification are read, and the time of judgement.

    For a file on the base, it is the commit before the one that added the file, at that commit's time: a decision that
    was valid under the policy of its time remains valid. For every other file it is the base as it is now.
    `first_landed` is set for a file that was once reverted: the time at which the base first had it, which determines
    whether it was used in time.
    """

    repository: Repository
    policy_commit: str
    brought_by: str = ""
    on_base_since: datetime | None = None
    first_landed: datetime | None = None

    @property
    def policy(self) -> PolicyFiles:
        return policy_at(self.repository, readable_commit(self.repository, self.policy_commit))


class Base(Value):
    """The base. `commit` is '' if there is no base yet; `chosen` says that the caller specified it."""

    repository: Repository
    commit: str
    name: str
    chosen: bool

    @property
    def root_commit(self) -> str:
        return root_commit(self.repository, self.commit) if self.commit else ""

    @property
    def policy(self) -> PolicyFiles:
        """Return the policy files that apply: those of the base or, if they cannot be read, the last readable ones in
        its history.

        It is an error if this clone lacks the list of revoked keys, because then no key would count as revoked.
        """
        commit = readable_commit(self.repository, self.commit)
        files = policy_at(self.repository, commit)
        if files.revoked_keys is None:
            identity = tree_at(self.repository, commit, POLICY_FOLDER).get(REVOKED_PATH)
            if identity is not None:
                raise missing_object(identity, REVOKED_PATH)
        return files

    @property
    def unreadable(self) -> tuple[Problem, ...]:
        """Return why the base's own policy cannot be read; empty if it can, or if there is none."""
        return unreadable(policy_at(self.repository, self.commit))

    def place_of(self, path: str, folder: str) -> Place:
        """Return the place at which to judge the file at `path`, in the write-once folder `folder`."""
        if not self.commit:
            return Place(self.repository, self.commit)
        line = base_line(self.repository, self.commit, folder, contents=False)
        arrived, first = line.held_since.get(path), line.first_seen.get(path)
        returned = first is not None and first != arrived
        landed = landed_at(self.repository, self.commit, first[0]) if returned and first is not None else None
        if arrived is None:
            return Place(self.repository, self.commit, first_landed=landed)
        commit, time = arrived
        # The first commit has no predecessor; the commit that adds the first policy is judged by itself.
        before = commit if commit == self.root_commit else f"{commit}{_BEFORE}"
        return Place(self.repository, before, commit, datetime.fromtimestamp(time, UTC), landed)

    @property
    def policy_files(self) -> dict[str, bytes]:
        """Return all files in the policy folder, including files that are never read."""
        paths = tree_at(self.repository, self.commit, POLICY_FOLDER)
        return committed(self.repository, self.commit, tuple(paths))


def find_base(repository: Repository, revision: str | None = None) -> Base:
    """Return the base; raise WorkpacketError if `revision` does not name a commit, or if the clone lacks history needed
    for judging.
    """
    if (repository.common_dir / "shallow").exists():
        raise WorkpacketError(
            "history_shallow",
            "this clone has only the most recent part of the history, but judging approvals requires all of it",
            hint="git fetch --unshallow; for actions/checkout set fetch-depth: 0",
        )
    if revision is not None:
        return Base(repository, _commit(repository, revision), revision, chosen=True)
    branch = default_branch(repository)
    if branch is None:
        return Base(repository, "", "", chosen=False)
    return Base(repository, branch.commit, branch.name, False)


def unanchored(base: Base) -> Problem:
    """Return the problem for a base without a policy, with the command that adds one."""
    if not base.commit:
        return _without_main_branch(base.repository)
    what = f"the base {base.name} ({base.commit[:12]}) has no {POLICY_PATH}"
    return Problem("policy_unanchored", f"{what}; anchor it there: {ANCHORING}", Location(POLICY_PATH))


def _without_main_branch(repository: Repository) -> Problem:
    head = head_commit(repository)
    if head is None:
        what = "the repository has no main branch with a commit yet"
        return Problem("policy_unanchored", f"{what}; anchor the policy: {ANCHORING}", Location(POLICY_PATH))
    looked = ", ".join(dict.fromkeys(main_branch_candidates(repository)))
    remote = main_remote(repository)
    command = f"git remote set-head {remote} --auto" if remote else "git config init.defaultBranch NAME"
    message = (
        f"the main branch cannot be determined; none of these has a commit: {looked}; specify the branch: {command}"
    )
    return Problem("policy_unanchored", message, Location(POLICY_PATH), f"Specify the main branch: {command}")


def _commit(repository: Repository, revision: str) -> str:
    """Resolve the revision. A full id always means the same commit; a name must be looked up each time.

    git prefers a tag to a branch with the same name, so anyone allowed to push a tag could choose the base.
    """
    if len(revision) in {40, 64} and all(digit in "0123456789abcdef" for digit in revision):
        return _commit_with_id(repository, revision)
    named = {kind: commit_at(repository, f"refs/{kind}/{revision}") for kind in ("tags", "heads", "remotes")}
    meant = [f"refs/{kind}/{revision}" for kind, commit in named.items() if commit is not None]
    if len(meant) > 1:
        raise WorkpacketError(
            "revision_ambiguous",
            f"{revision!r} could be {' or '.join(meant)}",
            hint=f"give its full name: --base {meant[-1]}",
        )
    return commit_of(repository, revision)


@lru_cache(maxsize=_MANY)
def _commit_with_id(repository: Repository, identity: str) -> str:
    return commit_of(repository, identity)


def root_commit(repository: Repository, commit: str) -> str:
    """Return the first commit in the first-parent history: merging an unrelated history does not change a repository's
    identity.
    """
    return first_parents(repository, commit)[-1]


@lru_cache(maxsize=_MANY)
def policy_at(repository: Repository, commit: str) -> PolicyFiles:
    """Return the policy files at the commit; the same call reads the specification, which is needed next."""
    if commit:
        read_ahead(repository, (f"{commit}:{path}" for path in OF_EVERY_JUDGEMENT))
    files = committed(repository, commit, (POLICY_PATH, SIGNERS_PATH, REVOKED_PATH))
    return PolicyFiles(files.get(POLICY_PATH), files.get(SIGNERS_PATH), files.get(REVOKED_PATH))


def no_verdict(base: Base) -> tuple[Problem, ...]:
    """Return why no approval can count on this base, regardless of what was signed; empty if approvals can count."""
    pin = judge_pin(base)
    if isinstance(pin, Problem):
        return (pin,)
    if base.policy.policy is None:
        return (unanchored(base),)
    trusted = _trusted(base.policy)
    return base.unreadable or (trusted if isinstance(trusted, tuple) else ())


def gate_policy(files: PolicyFiles, gate: str) -> GatePolicy | None:
    """Return what the policy requires at the gate; None if there is no readable policy."""
    trusted = _trusted(files)
    return None if isinstance(trusted, tuple) else trusted.policy.rules_of(gate)


def _trusted(files: PolicyFiles) -> Trusted | tuple[Problem, ...]:
    from workpacket.approvals.policy import read_policy_files  # most commands need no approvals

    return read_policy_files(files, files.revoked_keys)


# The fault of a policy without approvers, which can still be read.
NOBODY_YET = frozenset({"policy_unanchored", "approvers_unnamed"})


def unreadable(files: PolicyFiles) -> tuple[Problem, ...]:
    """Return why these files cannot be read as a policy; a policy without approvers is readable."""
    trusted = _trusted(files)
    if not isinstance(trusted, tuple) or {each.code for each in trusted} <= NOBODY_YET:
        return ()
    return trusted


@lru_cache(maxsize=_MANY)
def readable_commit(repository: Repository, commit: str) -> str:
    """Return the commit, or the last one before it in its first-parent history with a readable policy; if there is
    none, the commit itself.
    """
    if not commit or not unreadable(policy_at(repository, commit)):
        return commit
    changes = changes_before(repository, commit, POLICY_FOLDER, options=FIRST_PARENTS)
    before = (header.partition(" ")[0] for header, _ in changes)
    return next((each for each in before if not unreadable(policy_at(repository, each))), commit)


def judging_commit(repository: Repository, base: str = "") -> str:
    """Return the last commit with a readable policy, from this one or else from the main branch on."""
    branch = None if base else default_branch(repository)
    return readable_commit(repository, branch.commit if branch is not None else base)


def judging_policy(repository: Repository, base: str = "") -> str:
    """Return the digest of the policy that judges signatures; '' if the main branch has no readable one."""
    branch = None if base else default_branch(repository)
    files = policy_at(repository, branch.commit if branch is not None else base)
    return policy_digest(files) if files.policy is not None and not unreadable(files) else ""


def approving_keys(repository: Repository, commit: str) -> frozenset[bytes]:
    """Return the keys that may approve under the policy at the commit; they may not sign events."""
    from workpacket.approvals.policy import Trusted, read_policy_files

    trusted = read_policy_files(policy_at(repository, readable_commit(repository, commit)))
    if not isinstance(trusted, Trusted):
        return frozenset()
    return frozenset(blob for blob, signer in trusted.signers.by_key.items() if signer.may_approve)


def revoked_keys(repository: Repository, commit: str) -> frozenset[bytes]:
    """Return the keys that the policy at the commit has revoked. An unreadable list is reported elsewhere."""
    from workpacket.approvals.sshsig import read_revoked_keys

    found = read_revoked_keys(policy_at(repository, readable_commit(repository, commit)).revoked_keys or b"")
    return found if isinstance(found, frozenset) else frozenset()


def landed_at(repository: Repository, commit: str, landing: str) -> datetime:
    """Return when the base's first-parent history reached the merge. A commit never counts as older than its
    predecessors."""
    latest = 0
    for each, time in line_times(repository, commit):
        latest = max(latest, time)
        if each == landing:
            break
    return datetime.fromtimestamp(latest, UTC)


@lru_cache(maxsize=256)
def tree_at(repository: Repository, commit: str, *folders: str) -> dict[str, str]:
    """Return the paths of the files at or below these folders, with the ids of their contents."""
    if not commit:
        return {}
    if len(folders) == 1 and folders[0] in _LISTED_TOGETHER:
        listed = tree_at(repository, commit, *_LISTED_TOGETHER)
        return {path: identity for path, identity in listed.items() if path.startswith(f"{folders[0]}/")}
    return {entry.path: entry.object_id for entry in list_tree(repository, commit, *folders) if entry.is_file}


def known_to(repository: Repository, commit: str, asked: Iterable[str]) -> frozenset[str]:
    """Return the given commits that are `commit` or its ancestors."""
    if not commit:
        return frozenset()
    wanted = frozenset(asked)
    if len(wanted) > _FEW:
        return wanted & _history(repository, commit)
    # Nearly always, it is one of the commits that were the base before.
    line = frozenset(first_parents(repository, commit))
    return frozenset(each for each in wanted if each in line or _is_ancestor(repository, each, commit))


@lru_cache(maxsize=_MANY)
def _is_ancestor(repository: Repository, ancestor: str, descendant: str) -> bool:
    try:
        return is_ancestor(repository, ancestor, descendant)
    except WorkpacketError:
        return False  # git does not have the commit at all


@lru_cache(maxsize=4)
def _history(repository: Repository, commit: str) -> frozenset[str]:
    return frozenset(run_git(repository.root, "rev-list", "--end-of-options", commit).text.split())


def held_since(repository: Repository, commit: str, folder: str) -> dict[str, tuple[str, int]]:
    """Return, for each file below `folder`, the commit since which the base has had the file, and that commit's
    time."""
    return base_line(repository, commit, folder, contents=False).held_since if commit else {}


# The policy seen last is stored per repository, outside it, so that a forced return to an old policy is noticed. If
# that file cannot be written, `approvals verify` reports it.


def settings_folder() -> Path:
    """Return the folder with this person's workpacket settings."""
    own = os.environ.get("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME", "")
    return (Path(own) if own else Path.home() / ".config") / "workpacket"


def trust_path(root_commit: str) -> Path:
    return settings_folder() / "trust" / f"{root_commit}.json"


def judge_pin(base: Base) -> Pin | Problem | None:
    """Return the pin to remember, or why this base cannot be trusted; None if there is no policy to remember yet."""
    if base.policy.policy is None:
        return None
    seen = Pin(base.root_commit, base.commit, policy_digest(base.policy))
    pinned = _read(trust_path(base.root_commit))
    if pinned is None or isinstance(pinned, Problem):
        return pinned or seen
    ancestors = known_to(base.repository, base.commit, (pinned.base,))
    return judge_base(pinned, seen, pinned_is_ancestor=pinned.base in ancestors)


def remember_base(base: Base) -> bool:
    """Remember the policy of this base; return False if that failed."""
    pin = judge_pin(base)
    return base.chosen or not isinstance(pin, Pin) or remember(pin)


def remember(pin: Pin) -> bool:
    """Store the pin; return False if that is not possible."""
    return keep(trust_path(pin.root_commit), pin.to_bytes())


def keep(path: Path, data: bytes) -> bool:
    """Write the bytes to a file in the user's home directory; return False if that is not possible."""
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
    """Return one digest for all policy files."""
    parts = ((POLICY_PATH, files.policy), (SIGNERS_PATH, files.allowed_signers), (REVOKED_PATH, files.revoked_keys))
    value: dict[str, Json] = {path: sha256(data).hexdigest() for path, data in parts if data is not None}
    return sha256(canonical_bytes(value)).hexdigest()


def _read(path: Path) -> Pin | Problem | None:
    try:
        with path.open("rb") as file:
            return read_pin(file.read(LARGEST_PIN), str(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Problem("trust_file_malformed", error.strerror or "it cannot be read", Location(str(path)))


@lru_cache(maxsize=64)
def lifecycle_of(data: bytes) -> LifecyclePolicy:
    """Return the lifecycle section of a `policy.toml`. Cached, because a history has few policies, and each judges many
    events."""
    from workpacket.documents.policy import PolicyDocument

    policy = PolicyDocument.from_bytes(data)
    return lifecycle_policy(policy.root, policy.source)


def with_former(repository: Repository, commit: str, actors: Actors) -> Actors:
    """Return the actors, including those that only earlier policies in the commit's first-parent history listed, to
    judge whose work it is. Removing an agent and its key from the policy does not change who is responsible for its
    work.
    """
    if not actors.present or not commit:
        return actors
    left = {name: actor for name, actor in _listed(repository, commit).items() if name not in actors.by_name}
    return replace(actors, former=left) if left else actors


@lru_cache(maxsize=16)
def _listed(repository: Repository, commit: str) -> Mapping[str, KnownActor]:
    """Return every actor that a policy in the commit's first-parent history listed, as last listed."""
    commits = [each for each, _ in changes_before(repository, commit, POLICY_PATH, options=FIRST_PARENTS, form="%H")]
    read_ahead(repository, (f"{each}:{POLICY_PATH}" for each in commits))
    found: dict[str, KnownActor] = {}
    for each in commits:
        found = {**lifecycle_of(committed_file(repository, each, POLICY_PATH) or b"").actors.by_name, **found}
    return found


def _with_others(repository: Repository, commit: str, others: Iterable[str]) -> bytes | None:
    read_ahead(repository, (f"{commit}:{path}" for path in (*OF_EVERY_JUDGEMENT, *others)))
    return committed_file(repository, commit, POLICY_PATH)


class BasePolicy(Value):
    """The current policy. `where` is the commit from which it was read, or the work tree."""

    lifecycle: LifecyclePolicy
    anchored: bool
    target_branch: str
    where: str


def read_base_policy(repository: Repository, base: str = "", ahead: Iterable[str] = ()) -> BasePolicy:
    """Read the policy from `base`; otherwise from the remote's default branch, or from the main branch; permissions
    count only from there. If no commit has a policy, lane settings are read from the work tree and no one is trusted.

    `ahead` are other files that the caller will need: the same call reads them.
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
    target = policy.target_branch or (branch.name if branch else "")
    where = f"commit {commit[:12]}" if anchored else "in the work tree: it is not on the base yet"
    return BasePolicy(policy, anchored, target, where)
