"""The facts about a submission from git and the packet: the commit, its changes, and where its evidence was
obtained.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress

from workpacket.git.objects import changed_paths, changes_before, object_names, read_blobs, read_file_at
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit, is_ancestor, merge_base, resolved
from workpacket.lifecycle.change_checks import SubmittedWork, evidence_rows
from workpacket.lifecycle.contract import provable
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.proofs import demands_of
from workpacket.lifecycle.scope import outside
from workpacket.model.events import LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.shell.governed_files import GovernedFiles
from workpacket.shell.tree import read_bytes
from workpacket.shell.work_done import is_described, is_own, reports_at, same_work
from workpacket.text.source import MARKDOWN


def submitted_work(
    repository: Repository,
    base: str,
    governed: GovernedFiles,
    packet: PacketFacts,
    event: LogEvent,
    *,
    required: bool = False,
) -> SubmittedWork:
    """Gather the facts about a submission. `required`: whether the policy requires that the contract demands a proof of
    each criterion.
    """
    asked = provable(packet.packet, packet.refinement)
    scope = _scope_of(packet)
    commit = resolved(repository, f"{event.text('commit')}^{{commit}}")
    fork = merge_base(repository, commit, base) if commit else None
    head = head_commit(repository) or ""
    if commit is None and is_described(repository, event, head):
        # After a squash, the commit may be gone with its branch; the landed work then takes its place.
        changed = event.texts("changed")
        return SubmittedWork(
            asked.criteria, scope, changed, same=frozenset({event.text("commit") or ""}), exempt=asked.exempt
        )
    if commit is None or fork is None:
        return SubmittedWork(asked.criteria, scope, None)
    later = (other for other in packet.log.events if other.type == "amended")
    return SubmittedWork(
        asked.criteria,
        scope,
        _changed(repository, governed, packet, (fork, commit)),
        older=is_ancestor(repository, commit, base) and not _knows_claim(repository, packet, event, commit),
        amended=any(event.id in packet.log.ancestry(other.parents) for other in later),
        same=frozenset(_same(repository, event, commit)),
        absent=frozenset(_absent(repository, event, commit)),
        exempt=asked.exempt,
        misdescribed=is_described(repository, event, commit) is False,
        demands=demands_of(packet),
        required=required,
    )


def _scope_of(packet: PacketFacts) -> list[str]:
    return [entry.value for entry in packet.packet.in_scope_paths] if packet.packet is not None else []


def _changed(
    repository: Repository, governed: GovernedFiles, packet: PacketFacts, between: tuple[str, str]
) -> list[str]:
    """Return the paths that the work changes. If the work is based on another packet's work, it begins where that
    ended, for paths in that packet's scope. A report named by a verdict belongs to the validator.
    """
    fork, commit = between
    reports = set(reports_at(repository, packet, commit))
    paths = (change.path for change in changed_paths(repository, fork, commit))
    changed = [path for path in paths if not is_own(path) and path not in reports]
    begun, name = packet.state.assignment.base_commit, packet.state.assignment.base_packet
    other = governed.packet(WorkPacketId(name)) if name in governed.known else None
    if other is None or not _is_between(repository, begun, other, packet):
        return changed
    since = {change.path for change in changed_paths(repository, begun, commit)}
    foreign = set(outside(changed, _scope_of(other)))
    return [path for path in changed if path in since or path in foreign]


def _is_between(repository: Repository, commit: str, other: PacketFacts, packet: PacketFacts) -> bool:
    """Whether, at this commit, the work on the other packet had begun and that on this packet had not. The person who
    prepares a packet chooses where its work begins; with a later commit, part of the work would count as the other
    packet's.
    """
    if not resolved(repository, f"{commit}^{{commit}}"):
        return False
    begun = [f"{commit}:{event.path}" for event in other.log.events if event.type == "claimed"]
    own = [f"{commit}:{event.path}" for event in packet.log.events if event.type == "claimed"][-1:]
    held = object_names(repository, (*begun, *own))
    return not held.keys().isdisjoint(begun) and held.keys().isdisjoint(own)


def _knows_claim(repository: Repository, packet: PacketFacts, event: LogEvent, commit: str) -> bool:
    """Whether the commit contains the claim under which it is submitted; a packet adopted in progress has no claim."""
    before = packet.log.ancestry(event.parents)
    claims = [other for other in packet.log.events if other.type == "claimed" and other.id in before]
    return not claims or read_file_at(repository, commit, claims[-1].path) is not None


def _same(repository: Repository, event: LogEvent, commit: str) -> Iterator[str]:
    for said in {str(row["commit"]) for row in evidence_rows(event) if "commit" in row}:
        proved = resolved(repository, f"{said}^{{commit}}")
        if proved is not None and same_work(repository, proved, commit):
            yield said


def _absent(repository: Repository, event: LogEvent, commit: str) -> Iterator[str]:
    """Yield the places `path:line` that are named as proof but missing from the commit."""
    for row in evidence_rows(event):
        places = row.get("proof")
        for place in places if isinstance(places, list) else ():
            path, _, line = str(place).rpartition(":")
            data = read_file_at(repository, commit, path) if path else None
            if data is None or not line.isdecimal() or not 1 <= int(line) <= len(data.splitlines()):
                yield str(place)


def submitted_versions(repository: Repository, packet: PacketFacts, path: str) -> Mapping[str, bytes]:
    """Return the bytes of the file in every commit of this clone, and here, by digest; nothing if a submitted commit is
    not in this clone.

    A squash removes the versions between the moves of a branch, so that nothing is left to compare with.
    """
    submitted = [event.text("commit") for event in packet.log.events if event.type == "submitted"]
    if any(resolved(repository, f"{commit}^{{commit}}") is None for commit in submitted):
        return {}
    head = head_commit(repository) or ""
    options = ("--all", "--diff-merges=separate")
    versions = changes_before(repository, head, path, options=options, form="%H")
    blobs = {change.blob for _, changes in versions for change in changes if change.path == path and change.blob}
    found = list(read_blobs(repository, blobs).values())
    with suppress(OSError):
        found.append(read_bytes(str(repository.root), path, MARKDOWN.size))
    return {hashlib.sha256(data).hexdigest(): data for data in found}
