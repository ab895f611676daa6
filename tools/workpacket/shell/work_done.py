"""What the work on a packet changed, according to git; whether it is on the target branch; and which packet a line
belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from workpacket.digests import sha256
from workpacket.git.merging import differences
from workpacket.git.objects import changed_paths, list_tree, patch_id, read_file_at, status
from workpacket.git.repository import (
    Repository,
    branch_here,
    commit_of,
    head_commit,
    is_ancestor,
    merge_base,
    resolved,
    tip_of,
)
from workpacket.git.run import run_git
from workpacket.ledger.log import Log
from workpacket.lifecycle.coverage import is_governance
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.review import Containment, Work, recorded, report_of, submitted_commit
from workpacket.lifecycle.scope import outside
from workpacket.model.events import LogEvent
from workpacket.model.layout import APPEND_ONLY_FOLDERS, AUDIT_PATH, BOARD_PATH, PACKETS, REFINEMENTS, REGISTRY_PATH
from workpacket.problem import Problem, WorkpacketError
from workpacket.value import Value

# Files that the lifecycle itself writes are not part of the work that it governs.
_OWN_FOLDERS = tuple(f"{folder}/" for folder in (*APPEND_ONLY_FOLDERS, PACKETS, REFINEMENTS))
_OWN_FILES = frozenset({BOARD_PATH, REGISTRY_PATH, AUDIT_PATH})
# The number of commits of the target branch to search for the same change.
_LOOKED_AT = 500


def is_own(path: str) -> bool:
    return path in _OWN_FILES or path.startswith(_OWN_FOLDERS)


def described(repository: Repository, base: str, commit: str, changed: Iterable[str]) -> str:
    """Return a digest of the result of merging the commit into the base, at the paths that the work changes.

    The submission records it, so that a clone that lacks the commit can compare the merged work with the judged work.
    """
    rows = differences(repository, base, commit)
    own = sorted(path for path in set(changed) & rows.keys() if not is_governance(path))
    told = "".join(f"{rows[path].old}\0{rows[path].new}\0{path}\0" for path in own)
    return sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


def is_described(repository: Repository, event: LogEvent, commit: str) -> bool | None:
    """Whether the commit contains the work that a submission describes; None if the submission describes none."""
    said = event.data.get("work")
    if not isinstance(said, Mapping):
        return None
    base = resolved(repository, f"{said['base']}^{{commit}}")
    if base is None or not is_ancestor(repository, base, commit):
        return False
    return described(repository, base, commit, event.texts("changed")) == said["sha256"]


def submission_doubt(repository: Repository, log: Log) -> Problem | None:
    """Return why the last submission cannot be judged here.

    The submission must describe its commit, because later readers rely on the description.
    """
    event = next((each for each in reversed(log.events) if each.type == "submitted"), None)
    if event is None or not isinstance(event.data.get("work"), Mapping):
        return None
    commit = event.text("commit") or ""
    if resolved(repository, f"{commit}^{{commit}}") is None:
        message = f"the submitted commit {commit[:12]} is not in this clone"
        return Problem("changes_unknown", message, hint=f"git fetch origin {commit}")
    if is_described(repository, event, commit):
        return None
    message = f"the submission does not describe the work in its commit {commit[:12]}"
    return Problem("changes_unknown", message, hint=f"ask for changes: workpacket verdict {log.packet} CHANGES")


def work_done(repository: Repository, packet: PacketFacts, target: str, commit: str = "") -> Work:
    """Return the commit to be judged (by default HEAD), and its changes since the work began."""
    head = commit_of(repository, commit) if commit else head_commit(repository) or ""
    if not head:
        return Work("")
    base = packet.state.assignment.base_commit
    tip = tip_of(repository, target)
    if not base and target:
        base = merge_base(repository, head, tip or head) or ""
    onto = merge_base(repository, head, tip) if tip else None
    changed = None
    if base:
        reports = set(reports_at(repository, packet, head))
        differing = _changed(repository, packet, (base, onto or base), head)
        changed = [path for path in differing if not is_own(path) and path not in reports]
    uncommitted = [] if commit else [entry.path for entry in status(repository) if not is_own(entry.path)]
    branch = None if commit else branch_here(repository)
    digest = described(repository, onto, head, changed) if onto and changed is not None else ""
    alike = frozenset(_alike(repository, packet, head))
    return Work(head, base, changed, uncommitted, branch, alike, (onto, digest) if onto and digest else None)


def _changed(repository: Repository, packet: PacketFacts, begun: tuple[str, str], head: str) -> list[str]:
    """Return the paths that the work changes, given the commit where it began and the last one of the target branch
    that it contains. What the target branch has received in between, and this branch has merged, is the work of others,
    unless it is in the packet's own scope.
    """
    base, onto = begun
    since = [change.path for change in changed_paths(repository, base, head)]
    if onto == base or packet.packet is None or not is_ancestor(repository, base, onto):
        return since
    others = set(outside(since, [item.value for item in packet.packet.in_scope_paths]))
    own = {path for path in since if path not in others}
    return sorted(own | {change.path for change in changed_paths(repository, onto, head)})


def reports_at(repository: Repository, packet: PacketFacts, head: str) -> Iterator[str]:
    """Yield the validators' reports on this packet that a verdict lists: they are not part of the work."""
    for event in packet.state.verdicts:
        report = report_of(event)
        data = read_file_at(repository, head, report.path) if report is not None else None
        if report is not None and data is not None and sha256(data).hexdigest() == report.sha256:
            yield report.path


def _alike(repository: Repository, packet: PacketFacts, head: str) -> Iterator[str]:
    """Yield the commits with proofs for this packet that contain the same work as `head`."""
    for commit in sorted({str(row["commit"]) for row in recorded(packet) if "commit" in row}):
        # A commit missing from this clone counts as different work, because that cannot be determined here.
        with suppress(WorkpacketError):
            if same_work(repository, commit_of(repository, commit), head):
                yield commit


def same_work(repository: Repository, one: str, other: str) -> bool:
    """Whether two commits differ only in files that the lifecycle itself writes."""
    return one == other or all(is_own(change.path) for change in changed_paths(repository, one, other))


def containment(repository: Repository, packet: PacketFacts, target: str) -> Containment:
    """Return whether the submitted commit, an identical change, or the same files are on the target branch."""
    commit = submitted_commit(packet)
    target_commit = tip_of(repository, target) or ""
    if not commit or not target_commit:
        return Containment(target if target_commit else "", target_commit, "")
    if resolved(repository, f"{commit}^{{commit}}") is None:
        submitted = next(event for event in reversed(packet.state.history) if event.type == "submitted")
        told = is_described(repository, submitted, target_commit)
        return Containment(target, target_commit, "tree" if told else "")
    if is_ancestor(repository, commit, target_commit):
        return Containment(target, target_commit, "commit")
    base = _base_of(repository, packet, commit, target_commit)
    paths = (
        [change.path for change in changed_paths(repository, base, commit) if not is_own(change.path)] if base else []
    )
    if base and paths and _same_change(repository, base, commit, target_commit, paths):
        return Containment(target, target_commit, "patch_id")
    # Work that changes only the packet's own files leaves nothing that the target could lack.
    if base and (not paths or _same_files(repository, commit, target_commit, paths)):
        return Containment(target, target_commit, "tree")
    return Containment(target, target_commit, "")


def _base_of(repository: Repository, packet: PacketFacts, commit: str, target_commit: str) -> str:
    submitted = [event for event in packet.state.history if event.type == "submitted"]
    said = submitted[-1].text("base_commit") if submitted else ""
    return said or merge_base(repository, commit, target_commit) or ""


def _same_change(repository: Repository, base: str, commit: str, target: str, paths: list[str]) -> bool:
    """Whether a single commit on the target branch makes the same change to these paths, as a squashed merge does."""
    wanted = patch_id(repository, base, commit, *paths)
    listed = run_git(
        repository.root, "rev-list", "--no-merges", f"--max-count={_LOOKED_AT}", "--end-of-options", target, f"^{base}"
    )
    return wanted is not None and any(
        patch_id(repository, f"{candidate}^", candidate, *paths) == wanted for candidate in listed.text.split()
    )


def _same_files(repository: Repository, commit: str, target: str, paths: list[str]) -> bool:
    """Whether the target branch has every changed path exactly as in the commit, as is the case after a rebase or
    several commits."""
    sides = [
        {entry.path: (entry.mode, entry.object_id) for entry in list_tree(repository, side, *paths)}
        for side in (commit, target)
    ]
    return all(sides[0].get(path) == sides[1].get(path) for path in paths)


def proof_base(repository: Repository, commit: str, target: str) -> str:
    """Return the commit with which the proofs of a commit are compared: the one where its work branched off the target
    branch; '' if git cannot tell.
    """
    there = tip_of(repository, target)
    return (merge_base(repository, commit, there) or "") if there and commit else ""


def relative_place(repository: Repository, path: str) -> str:
    """Return a path as the event records it: relative to the repository if it is inside, otherwise unchanged."""
    relation = os.path.relpath(path, repository.root)
    return path if relation.startswith("..") else relation


class LineOrigin(Value):
    """The origin of a line. `commit` is '' for an uncommitted line. `path` is the file's path at the commit."""

    commit: str
    path: str
    author: str = ""
    message: str = ""


def line_origin(repository: Repository, path: str, line: int) -> LineOrigin:
    answer = run_git(
        repository.root, "-c", "core.quotePath=false",
        "blame", "--porcelain", "-L", f"{line},{line}", "--", path, check=False,
    )  # fmt: skip
    if answer.status != 0:
        raise WorkpacketError("path_not_found", f"git does not know line {line} of {path}", hint=f"git log -- {path}")
    rows = answer.text.split("\n")
    commit = rows[0].split(" ")[0]
    fields = dict(row.partition(" ")[::2] for row in reversed(rows[1:]) if not row.startswith("\t"))
    if not commit.strip("0"):
        return LineOrigin("", path)
    said = run_git(repository.root, "show", "--no-patch", "--no-show-signature", "--format=%B", commit).text
    author = f"{fields.get('author', '')} {fields.get('author-mail', '')}"
    return LineOrigin(commit, fields.get("filename", path), author, said)


def packets_of_commit(repository: Repository, packets: Mapping[str, PacketFacts], origin: LineOrigin) -> Iterator[str]:
    """Yield the packets whose submitted work contains the commit, or whose work was merged as this commit."""
    for name, packet in sorted(packets.items()):
        if any(_brought(repository, event, origin) for event in packet.log.events):
            yield name


def _brought(repository: Repository, event: LogEvent, origin: LineOrigin) -> bool:
    if event.type == "merged":
        return event.text("target_commit") == origin.commit
    changed, commit = event.data.get("changed"), event.text("commit") or ""
    # Only commits whose packet changed this file are examined; a repository may have thousands of packets.
    if event.type != "submitted" or not isinstance(changed, (list, tuple)) or origin.path not in changed:
        return False
    if resolved(repository, f"{commit}^{{commit}}") is None or not is_ancestor(repository, origin.commit, commit):
        return False
    base = event.text("base_commit") or ""
    known = base and resolved(repository, f"{base}^{{commit}}") is not None
    return not (known and is_ancestor(repository, origin.commit, base))
