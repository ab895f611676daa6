"""The text that a person is shown besides the files: the changes since the last approval, and the work that a verdict
is about.

Only an authentic envelope that fits the gate identifies the previously approved version: with an envelope made by
another key, harmless lines could look like the only new ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime

from workpacket.approvals.envelope import Statement
from workpacket.documents.packet import Packet
from workpacket.documents.spec_pointer import passages
from workpacket.git.objects import AS_COMMITTED, read_objects
from workpacket.git.repository import Repository, is_ancestor, landing_of, merge_base, resolved
from workpacket.git.run import run_git
from workpacket.ledger.fold import in_force
from workpacket.lifecycle.contract import Contract
from workpacket.lifecycle.gates import AMENDMENT_GATE, VERDICT_GATE
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.shell.approvals.envelopes import read_file
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.approvals.subject import ApprovalSubject, contract_version
from workpacket.text.source import Source
from workpacket.value import Value

# The number of versions of one file that are searched, newest first.
_MOST = 500
# Codes that can invalidate an approval that was good when given: time, use, and later changes.
_MOVED_ON = frozenset(
    {
        "approval_expired",
        "approval_too_old",
        "approved_spec_moved",
        "base_unknown",
        "contract_mismatch",
        "contract_unreadable",
        "key_out_of_time",
        "log_head_unknown",
        "log_moved",
        "nonce_used",
        "policy_moved",
        "scope_moved",
        "statement_outdated",
        "subject_mismatch",
    }
)


# The fields of a proof in an event, and their labels here.
_TOLD = {"command": "command", "exit_code": "ended with", "commit": "at", "reason": "because"}


class LastApproved(Value):
    """The approver and the time of an approval; `data` is None if no commit contains that version."""

    approver: str
    at: datetime
    data: bytes | None


def _approved_before(approvals: Approvals, packet: str, gate: str) -> list[Statement]:
    """Return the statements of valid approvals at this gate, oldest first."""
    judged = approvals.verdict(packet, gate).judged
    said = [
        each.opened.statement
        for each in judged
        if each.opened is not None and {refusal.code for refusal in each.refusals} <= _MOVED_ON
    ]
    return sorted((each for each in said if each.decision == "approve"), key=lambda each: each.issued_at)


def last_approved(approvals: Approvals, packet: str, gate: str, path: str) -> LastApproved | None:
    """Return the latest approval of this file."""
    for said in reversed(_approved_before(approvals, packet, gate)):
        for subject in said.subjects:
            if subject.name == path:
                return LastApproved(said.approver, said.issued_at, _version(approvals.repository, path, subject.sha256))
    return None


def _version(repository: Repository, path: str, digest: str) -> bytes | None:
    if "\n" in path:
        return None
    answer = run_git(repository.root, "log", "--all", f"--max-count={_MOST}", "--format=%H", "--", path)
    versions = read_objects(repository, (f"{commit}:{path}" for commit in answer.text.split()))
    return next((data for data in versions.values() if hashlib.sha256(data).hexdigest() == digest), None)


class ContractBefore(Value):
    """A previously approved contract, and its label; None if no commit contains it."""

    contract: Contract | None
    since: str


def contract_before(approvals: Approvals, packet: str, gate: str) -> ContractBefore | None:
    """Return the contract that was current before an amendment; otherwise the one last approved at this gate."""
    held = in_force(approvals.log(packet)) if gate == AMENDMENT_GATE else frozenset()
    if len(held) == 1:
        (digest,) = held
        return ContractBefore(contract_version(approvals.repository, packet, digest), "the current contract")
    for said in reversed(_approved_before(approvals, packet, gate)):
        if said.contract is not None:
            since = f"{said.approver} approved it at {said.issued_at:%Y-%m-%d %H:%M}Z"
            return ContractBefore(contract_version(approvals.repository, packet, said.contract), since)
    return None


def what_is_required(approvals: Approvals, matter: ApprovalSubject) -> Iterator[str]:
    """Yield the section of the specification that a light packet pins, which may be merged together with the work. A
    full packet yields nothing, because its refinement quotes the lines.
    """
    for path, data in matter.files if matter.light else ():
        anchor = Packet(Source.from_bytes(path, data)).anchor
        text = read_file(approvals.tree, anchor.path) if anchor is not None else None
        if anchor is None or text is None:
            continue
        found = passages(Source.from_bytes(anchor.path, text))
        pinned = next((one for one in found if one.digest == anchor.sha256), None)
        yield from pinned.text.split("\n") if pinned is not None else (f"{anchor.heading} has changed since",)


def what_was_submitted(approvals: Approvals, packet: str, gate: str) -> Iterator[str]:
    """Describe the commit that a verdict is about, its changes, and its claimed proofs; return '' at other gates."""
    if gate != VERDICT_GATE:
        return
    event = next((each for each in reversed(approvals.log(packet).events) if each.type == "submitted"), None)
    if event is None:
        yield "nothing was submitted"
        return
    yield f"commit {event.text('commit')}"
    yield f"submitted by {event.actor.id} ({event.actor.kind}) at {event.at}, according to the event"
    yield from _changes(approvals, event)
    rows = event.data.get("evidence")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping):
            yield _evidence(row)


def _changes(approvals: Approvals, event: LogEvent) -> Iterator[str]:
    """Yield added and removed lines by file, as reported by git (and not by the event)."""
    repository, base = approvals.repository, approvals.base
    said, last = event.text("base_commit") or "", event.text("commit") or ""
    first = _left_base(repository, base.commit, last)
    if not first:
        first = said or f"{last}^"
        yield (
            f"changes since {first}, according to the event: git cannot determine where the work diverged from "
            f"{base.name}"
        )
    elif not said or (resolved(repository, f"{said}^{{commit}}") and is_ancestor(repository, said, first)):
        yield f"changes since the work diverged from {base.name} at {first}"
    else:
        yield f"changes since the work diverged from {base.name} at {first}; the event names {said} instead"
    answer = run_git(
        repository.root, "diff-tree", "-r", "-z", "--numstat", "--no-renames", *AS_COMMITTED,
        "--end-of-options", first, last, check=False,
    )  # fmt: skip
    if answer.status != 0:
        yield "the changes are unknown: a commit that the event names is missing here"
        return
    for row in answer.text.split("\0"):
        added, _, rest = row.partition("\t")
        removed, _, path = rest.partition("\t")
        if path:
            yield f"+{added} -{removed} {path}"


def _left_base(repository: Repository, base: str, commit: str) -> str:
    """Return where the work branched off the base; '' if that is unknown. The work's submitter could choose a later
    commit."""
    if not base or resolved(repository, f"{commit}^{{commit}}") is None:
        return ""
    first = merge_base(repository, commit, base) or ""
    if first != commit:
        return first
    landing = landing_of(repository, base, commit)
    first = merge_base(repository, commit, f"{landing}^1") or "" if landing is not None else ""
    return first if first != commit else ""


def _evidence(row: Mapping[str, Json]) -> str:
    said = [f"{name}: {row[key]}" for key, name in _TOLD.items() if key in row]
    places = row.get("proof")
    said += [f"places: {', '.join(map(str, places))}"] if isinstance(places, list) else []
    return f"{row.get('result')}: {row.get('criterion')}" + (f" ({'; '.join(said)})" if said else "")
