"""What a change makes of the governed files: whether the work tree matches HEAD, which the change would merge, and
whether the log, the attestations and the checkpoints of the base are still present and unchanged.

Attributes in a change can make a checkout show different bytes from those merged. With a base, every file below `.GOV`
is therefore compared with the one in HEAD, and files that readers on another system, or a later version, would
interpret differently are refused before they are merged. Files that are already on the base are not checked again.

Nothing is ever deleted from the log except by reverting the whole merge that added it: its events, its envelopes and
its code. The events that a change removes, or restores, identify these merges; the rest of the change is then judged
against the base without them, so a partial revert is just a difference from that base. Rejections and revocations among
the envelopes stay forever, so that no revert restores a key; so does a signed amendment or a signed FAIL while what it
decided about stays, so that no revert brings back a contract or work that a person refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from workpacket.approvals.envelope import EnvelopeFile
from workpacket.digests import sha256
from workpacket.git.index import ATTRIBUTES, attributes_of
from workpacket.git.merging import TrialMerges, trial_merges
from workpacket.git.objects import (
    FIRST_PARENTS,
    TreeEntry,
    blob_id,
    changed_paths,
    changes_before,
    list_tree,
    read_blobs,
    tree_names,
    tree_of,
)
from workpacket.git.repository import Repository, commit_of, head_commit, is_ancestor, merge_base, resolved
from workpacket.ledger.log import fault, read_logs
from workpacket.ledger.verify import verify_append_only
from workpacket.lifecycle.change_checks import dropped_decisions
from workpacket.model import layout
from workpacket.model.layout import (
    APPEND_ONLY_FOLDERS,
    ATTESTATIONS_FOLDER,
    GOVERNANCE_FOLDER,
    LARGEST_FILE,
    LOG_FOLDER,
    POLICY_FOLDER,
    TEMPORARY_PREFIX,
)
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.model.wording import counted
from workpacket.problem import Location, Problem, Severity
from workpacket.shell.base import committed_file, tree_at
from workpacket.shell.governed_files import append_only_paths, committed_ids, is_temporary, read_logged
from workpacket.shell.held import paths_below
from workpacket.shell.tree import read_bytes
from workpacket.value import NOTHING, Value, replace

_BELOW = f"{GOVERNANCE_FOLDER}/"
# Here the bytes themselves are signed or named by digest; elsewhere a checkout may have CRLF for LF.
_EXACT = tuple(f"{folder}/" for folder in (*APPEND_ONLY_FOLDERS, POLICY_FOLDER))
_WRITE_ONCE = tuple(f"{folder}/" for folder in APPEND_ONLY_FOLDERS)


class MergedTree(Value):
    """The entries of base and HEAD below the governance folder, and the names at the top level of HEAD."""

    repository: Repository
    before: Mapping[str, TreeEntry]
    after: Mapping[str, TreeEntry]
    top: Sequence[str]
    attribute_files: tuple[tuple[TreeEntry, ...], tuple[TreeEntry, ...]]

    def brought(self) -> Iterator[TreeEntry]:
        """Yield the entries that are missing from the base or have different contents there."""
        return (entry for path, entry in self.after.items() if self.before.get(path) != entry)


def judge_merged(
    repository: Repository, base: str, *, worktree: bool, ids: Mapping[str, str] = NOTHING
) -> list[Problem]:
    """Return what prevents HEAD from being merged, and from being judged by the work tree. With `worktree`, differences
    in the work tree are only reported, for someone who has not committed yet. `ids` are the git ids of files in the
    work tree that are already known.
    """
    head = head_commit(repository)
    if head is None:
        return []
    commit = commit_of(repository, base)
    before = list_tree(repository, commit, GOVERNANCE_FOLDER, ATTRIBUTES)
    after = list_tree(repository, head, GOVERNANCE_FOLDER, ATTRIBUTES) if head != commit else before
    tree = MergedTree(
        repository,
        {entry.path: entry for entry in before},
        {entry.path: entry for entry in after if entry.path.startswith(_BELOW)},
        tree_names(repository, head),
        (_attribute_files(before), _attribute_files(after)),
    )
    found = [*_foreign(tree), *_twins(tree), *_attributes(tree)]
    severity: Severity = "info" if worktree else "error"
    return [*found, *(replace(each, severity=severity) for each in _uncommitted(tree, ids))]


def _problem(code: str, path: str, message: str) -> Problem:
    reason = CHANGE_BY_CODE[code]
    return Problem(code, message, Location(path), reason.remedy, severity=reason.severity)


def _foreign(tree: MergedTree) -> Iterator[Problem]:
    """Report entries that no reader recognizes: they might be ignored by some readers and accepted by others."""
    if GOVERNANCE_FOLDER in tree.top and not tree.after:
        yield _problem("tree_entry_foreign", GOVERNANCE_FOLDER, "it is not a folder of files")
    for entry in tree.brought():
        if entry.mode == "160000":
            yield _problem("tree_entry_foreign", entry.path, "it is a submodule")
        elif entry.mode == "120000":
            yield _problem("tree_entry_foreign", entry.path, "it is a symbolic link")
        elif any(part.startswith(TEMPORARY_PREFIX) for part in entry.path.split("/")):
            what = (
                f"its name begins with {TEMPORARY_PREFIX}, like that of a file that a command is about to move into "
                "place"
            )
            yield _problem("tree_entry_foreign", entry.path, what)


# Code points that some file systems ignore when they compare names.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SHORT = re.compile(r"gov~\d+\Z")
_AT_THE_TOP = (GOVERNANCE_FOLDER, ATTRIBUTES)
_FIXED = tuple(value for value in vars(layout).values() if str(value).startswith(_BELOW))


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """Return a name as the file systems of macOS and Windows compare it."""
    plain = _IGNORED.sub("", unicodedata.normalize("NFC", name)).casefold().partition(":")[0].rstrip(". ")
    return GOVERNANCE_FOLDER.casefold() if _SHORT.match(plain) else plain


def _twins(tree: MergedTree) -> Iterator[Problem]:
    """Report names that equal another name when case is ignored."""
    for name in tree.top:
        other = next((each for each in _AT_THE_TOP if name != each and folded(name) == folded(each)), "")
        if other:
            yield _problem("path_twin", name, f"on some file systems it is the same as {other}")
    brought = list(tree.brought())
    if not brought:
        return
    known: dict[str, set[str]] = {}
    attributes = {f"{path.rpartition('/')[0]}/{ATTRIBUTES}" for path in tree.after}
    for place in (place for path in (*_FIXED, *tree.after, *attributes) for place in _on_the_way(path)):
        known.setdefault(_folded_path(place), set()).add(place)
    for entry in brought:
        others = (known[_folded_path(place)] - {place} for place in _on_the_way(entry.path))
        other = next((min(found) for found in others if found), "")
        if other:
            yield _problem("path_twin", entry.path, f"on some file systems, it is the same as {other} or is inside it")


def _folded_path(path: str) -> str:
    return "/".join(map(folded, path.split("/")))


def _on_the_way(path: str) -> Iterator[str]:
    return accumulate(path.split("/"), "{}/{}".format)


_CONVERTING = ("working-tree-encoding", "filter", "ident")
_LINE_ENDS = ("text", "eol", "crlf")
_OFF = frozenset({"unspecified", "unset"})
# The values by which git, or a host, does not show what changes in a file.
_HIDDEN: Mapping[str, frozenset[str]] = {
    "diff": frozenset({"unset"}),
    "linguist-generated": frozenset({"set", "true"}),
    "gitlab-generated": frozenset({"set", "true"}),
}
_HIDING = tuple(_HIDDEN)


def _attribute_files(entries: Iterable[TreeEntry]) -> tuple[TreeEntry, ...]:
    """Return the attribute files, including links: when git reads attributes from a tree, it reads the target of a link
    as the lines of the file.
    """
    return tuple(entry for entry in entries if entry.path.rpartition("/")[2] == ATTRIBUTES)


def _attributes(tree: MergedTree) -> Iterator[Problem]:
    """Report attributes that make a checkout of the governance folder differ from the committed bytes, and those that
    leave its files out of the diffs that people review.
    """
    before, after = tree.attribute_files
    if before == after:
        return
    paths = [path for path, entry in tree.after.items() if entry.is_file]
    names = (*_CONVERTING, *_LINE_ENDS, *_HIDING)
    here = attributes_of(tree.repository, after, paths, names)
    effects = {path: (_converts(path, values), _hides(values)) for path, values in here.items()}
    asked = [path for path, effect in effects.items() if any(effect)]
    there = attributes_of(tree.repository, before, asked, names)
    kinds = (
        ("attribute_converts", (*_CONVERTING, *_LINE_ENDS), "makes a checkout show different bytes"),
        ("attribute_hides", _HIDING, "keeps it out of the diffs that people review"),
    )
    for kind, (code, own, what) in enumerate(kinds):
        for path in asked:
            old = there.get(path, {})
            if effects[path][kind] and any(here[path][name] != old.get(name) for name in own):
                name, _, value = effects[path][kind].partition("=")
                yield _problem(code, path, f"the attribute {name}{'' if value == 'set' else f'={value}'} {what}")
                break


def _hides(values: Mapping[str, str]) -> str:
    """Return `name=value` of the attribute that hides a file from diffs; '' if none does."""
    name = next((name for name in _HIDING if values[name] in _HIDDEN[name]), "")
    return f"{name}={values[name]}" if name else ""


def _converts(path: str, values: Mapping[str, str]) -> str:
    """Return, as `name=value`, the attribute that changes bytes; '' if none does. Line endings matter only for
    byte-exact files.
    """
    asked = [*_CONVERTING, *(("text", "crlf") if path.startswith(_WRITE_ONCE) else ())]
    found = next((name for name in asked if values[name] not in _OFF), "")
    if not found and values["eol"] == "crlf" and values["text"] != "unset":
        found = "eol"
    return f"{found}={values[found]}" if found else ""


def _uncommitted(tree: MergedTree, ids: Mapping[str, str]) -> Iterator[Problem]:
    """Return one problem that lists all files that differ from HEAD."""
    root = str(tree.repository.root)
    files = {path: entry.object_id for path, entry in tree.after.items() if entry.is_file}
    here = set(paths_below(root, GOVERNANCE_FOLDER))
    unknown = (path for path in here - tree.after.keys() if not is_temporary(path))
    told = dict.fromkeys(unknown, "it is not in HEAD")
    for path, identity in files.items():
        if path not in here:
            told[path] = "it is in HEAD, but missing here"
        elif ids.get(path) != identity and not _same(root, path, identity):
            told[path] = "its bytes differ from HEAD"
    if told:
        path = min(told)
        others = f"; and {len(told) - 1} more below {GOVERNANCE_FOLDER}" if len(told) > 1 else ""
        yield _problem(
            "not_committed", path, f"{told[path]}; the version in HEAD is the one that would be merged{others}"
        )


def _same(root: str, path: str, identity: str) -> bool:
    try:
        data = read_bytes(root, path, LARGEST_FILE)
    except OSError:
        return False
    if blob_id(data, identity) == identity:
        return True
    return not path.startswith(_EXACT) and blob_id(data.replace(b"\r\n", b"\n"), identity) == identity


class HeadDigests:
    """The SHA-256 of files in HEAD; None for missing ones."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._head = head_commit(repository)

    def __call__(self, path: str) -> str | None:
        data = committed_file(self._repository, self._head, path) if self._head is not None else None
        return sha256(data).hexdigest() if data is not None else None


# A command line has room for this many paths; beyond that, all events are read.
_FEW = 200


class Revert(Value):
    """The reverted merges, newest first, and a commit that represents the base without them."""

    landings: tuple[str, ...]
    commit: str


def reverted(repository: Repository, trials: TrialMerges, base: str, head: str) -> Revert | None:
    """Return what the change from `base` to `head` reverts in the base's first-parent history; None if it reverts
    nothing."""
    undone = {landing: resolved(repository, f"{landing}^1^{{commit}}") for landing in _undone(repository, base, head)}
    # The first commit cannot be reverted: there is nothing before it.
    landings = {landing: before for landing, before in undone.items() if before is not None}
    if not landings:
        return None
    commit = base
    for landing, before in landings.items():
        # Merging a commit that follows the landing and has the tree from before it has the same effect as `git revert`.
        opposite = trials.commit(tree_of(repository, before), landing)
        commit = trials.commit(trials.merge(commit, opposite).tree, commit)
    return Revert(tuple(landings), commit)


def _undone(repository: Repository, base: str, head: str) -> Iterator[str]:
    """Yield the first-parent commits of the base that last added or removed an event and that `head` undoes,
    newest first.
    """
    changes = {change.path: change.letter for change in changed_paths(repository, base, head, LOG_FOLDER)}
    wanted = {path: "A" if letter == "D" else "D" for path, letter in changes.items() if letter in "AD"}
    if not wanted:
        return
    paths = tuple(wanted) if len(wanted) <= _FEW else (LOG_FOLDER,)
    for identity, commit_changes in changes_before(repository, base, *paths, options=FIRST_PARENTS, form="%H"):
        undone = [change.path for change in commit_changes if wanted.get(change.path) == change.letter]
        for path in undone:
            del wanted[path]
        if undone:
            yield identity


def judge_append_only(
    repository: Repository,
    base: str,
    ids: Mapping[str, str] | None = None,
    *,
    worktree: bool = False,
    changed: Collection[str] | None = None,
) -> list[Problem]:
    """Return the write-once files on the base that are lost or changed. `ids` are the git ids of those in the work
    tree, if already known; with `worktree`, reverts are not searched for, because they would not be committed yet.
    If `changed` is given, the logs of all other packets are the same on the base, and `ids` lacks them.
    """
    there, root = _on_base(repository, base, changed), str(repository.root)
    if ids is None:
        ids = {path: blob_id(read_logged(root, path), base) for path in append_only_paths(root)}
    found, head = verify_append_only(there, ids), head_commit(repository)
    if head is not None and any(each.code == "log_file_deleted" for each in found):
        found = _without_later(repository, (base, head), (there, ids), found)
    if worktree or head is None or not any(each.code == "log_file_deleted" for each in found):
        return found
    with trial_merges(repository) as trials:
        begun = base if is_ancestor(repository, base, head) else merge_base(repository, base, head) or base
        revert = reverted(repository, trials, begun, head)
        if revert is None:
            return found
        taken = frozenset(_taken_back(repository, trials, (begun, head), revert))
    rest = [each for each in found if each.path not in taken]
    return [*rest, *_told(revert)] if taken else found


def _on_base(repository: Repository, base: str, changed: Collection[str] | None) -> Mapping[str, str]:
    """Return the ids of the write-once files on the base, of the log only those of these packets."""
    if changed is None:
        return committed_ids(repository, base)
    others = [folder for folder in APPEND_ONLY_FOLDERS if folder != LOG_FOLDER]
    if len(changed) <= _FEW:
        return committed_ids(repository, base, *others, *(f"{LOG_FOLDER}/{name}" for name in sorted(changed)))
    every, of_log = committed_ids(repository, base), f"{LOG_FOLDER}/"
    return {path: each for path, each in every.items() if not path.startswith(of_log) or path.split("/")[2] in changed}


def _without_later(
    repository: Repository,
    change: tuple[str, str],
    files: tuple[Mapping[str, str], Mapping[str, str]],
    found: list[Problem],
) -> list[Problem]:
    """Report once what was merged into the base after the branch of HEAD began, instead of reporting each file as
    deleted; and packets on both sides that have the same id.
    """
    base, head = change
    begun = merge_base(repository, base, head)
    if begun is None:
        return found
    before, (there, here) = committed_ids(repository, begun), files
    later = {each.path for each in found if each.code == "log_file_deleted" and each.path not in before}
    if not later:
        return found
    known = {path.rpartition("/")[0] for path in there.keys() & here.keys()}
    twins = ({path.rpartition("/")[0] for path in later} & {path.rpartition("/")[0] for path in here}) - known
    taken = [
        fault("log_second_genesis", folder, "the base has a different packet with this id")
        for folder in sorted(twins)
        if folder.startswith(f"{LOG_FOLDER}/")
    ]
    reason = CHANGE_BY_CODE["base_not_merged"]
    message = f"the base has {counted(len(later), 'file')} of the log, merged after this branch began"
    ahead = Problem(reason.code, message, Location(GOVERNANCE_FOLDER), reason.remedy, severity=reason.severity)
    return [*(each for each in found if each.path not in later), *taken, ahead]


def _taken_back(repository: Repository, trials: TrialMerges, change: tuple[str, str], revert: Revert) -> Iterator[str]:
    """Yield the write-once files that were reverted as a whole; nothing if any part of the merges that added them is
    still here."""
    before, head = change
    undone, left = trials.differences(before, revert.commit), trials.differences(revert.commit, head)
    removed = {path: undone[path].old for path in undone if path.startswith(_WRITE_ONCE) and not undone[path].new}
    kept = [path for path in undone.keys() & left.keys() if path in removed or not _is_governed(path)]
    if kept or any(_says_no(repository, removed)) or any(_drops(repository, before, removed)):
        return
    yield from removed


def _is_governed(path: str) -> bool:
    """Whether the path is governed. Board, registry and packets change after a merge, so a revert's version of them is
    generated from the log.
    """
    return path.startswith(f"{GOVERNANCE_FOLDER}/")


def _says_no(repository: Repository, removed: Mapping[str, str]) -> Iterator[bool]:
    """Yield, for each envelope, whether it is unreadable or not an approval."""
    folder = f"{ATTESTATIONS_FOLDER}/"
    names = {
        path.removeprefix(folder): row.rpartition(" ")[2] for path, row in removed.items() if path.startswith(folder)
    }
    contents = read_blobs(repository, names.values())
    for name, identity in names.items():
        claim = EnvelopeFile(name, contents[identity]).claim
        yield claim is None or claim.decision != "approve"


def _drops(repository: Repository, before: str, removed: Iterable[str]) -> Iterator[bool]:
    """Yield true for each signed decision among the removed events that would be removed without what it decided
    about."""
    events = {path.rpartition("/")[2].removesuffix(".json") for path in removed}
    names = {path.split("/")[2] for path in removed}
    there = {path: blob for name in names for path, blob in tree_at(repository, before, f"{LOG_FOLDER}/{name}").items()}
    contents = read_blobs(repository, there.values())
    logs, _ = read_logs({path: contents[blob] for path, blob in there.items()})
    yield from (True for log in logs.values() for _ in dropped_decisions(log, events))


def _told(revert: Revert) -> Iterable[Problem]:
    reason = CHANGE_BY_CODE["landing_reverted"]
    for landing in revert.landings:
        what = f"the merge {landing[:12]} is reverted as a whole, with the events that it added"
        yield Problem(reason.code, what, Location(GOVERNANCE_FOLDER), reason.remedy, severity=reason.severity)
