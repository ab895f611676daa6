"""Gathering the facts of an audit: what `check` and the approvals find, every packet, and what git knows of them.

The clock is not looked at. What expires is judged as of the head commit, so the same repository gives the same report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from workpacket.approvals.policy_files import Trusted
from workpacket.audit.facts import AuditFacts, Commit, Decision
from workpacket.audit.standing import evidence_rows, named_files
from workpacket.audit.tracing import proved_path
from workpacket.git.changes import status
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.model.events import Actor
from workpacket.model.findings import Finding
from workpacket.model.plan import Moment
from workpacket.model.reasons import Reason
from workpacket.plans.facts import Facts, PacketFacts
from workpacket.rules.specification import candidates
from workpacket.shell.approvals.check import append_only, check_approvals
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.audit.decisions import decisions
from workpacket.shell.audit.history import blobs, commits, last_changes, target_commit
from workpacket.shell.checking.cache import Cache
from workpacket.shell.checking.repository import check
from workpacket.shell.configuration import read_settings
from workpacket.shell.governing.gathering import gather
from workpacket.shell.judging.log_verifying import digest_here
from workpacket.shell.judging.partial_tree import judged_in_part
from workpacket.shell.tree import find_documents, read_bytes
from workpacket.text.source import Source
from workpacket.value import Value, replace

_NOBODY = Actor("nobody", "agent")
# Before the first commit there is no date to judge by.
_BEGINNING = "1970-01-01T00:00:00Z"
_SPECIFICATION_LIMIT = 32 * 1024 * 1024


class Gathered(Value):
    """The facts of the audit, those of the commands about the same packets, and the kinds of the files checked."""

    facts: AuditFacts
    governed: Facts
    files: Mapping[str, str]


def gather_audit(
    repository: Repository, cache: Cache, reasons: Mapping[str, Reason], progress: Callable[[int, int], None]
) -> Gathered:
    root = str(repository.root)
    head = head_commit(repository) or ""
    seen = commits(repository, [head], head).get(head)
    now = seen.at if seen is not None else _BEGINNING
    files = find_documents(root)
    checked = check(
        root, files, whole=True, cache=cache, reasons=reasons, settings=read_settings(root), progress=progress, now=now
    )
    governed = gather(repository, None, _NOBODY)
    governed = replace(governed, moment=replace(governed.moment, now=now))
    signed = _signed(repository, now)
    named = sorted(set(_named(governed.packets.values())))
    facts = AuditFacts(
        name=signed.name,
        now=now,
        packets=governed.packets,
        policy=governed.policy,
        findings=tuple(judged_in_part(root, (*checked.findings, *signed.findings))),
        decisions=signed.decisions,
        specification=governed.specification,
        specifications=_specifications(root, governed.packets.values()),
        changes=last_changes(repository, head, named),
        # In a clone the same branch is known by the name of the remote.
        target=governed.target_branch.removeprefix("origin/"),
        head=seen,
        uncommitted=frozenset(entry.path for entry in status(repository, ".GOV", *named)),
        files_checked=len(files),
    )
    return Gathered(_with_history(repository, facts), governed, {found.path: found.kind for found in files})


class _Signed(Value):
    name: str
    findings: list[Finding]
    decisions: Mapping[str, list[Decision]]


def _signed(repository: Repository, now: str) -> _Signed:
    with open_approvals(repository, None, Moment(now, "", "")) as approvals:
        findings = check_approvals(approvals)
        if approvals.base.commit:
            findings += append_only(approvals)
        trusted = approvals.trusted
        name = trusted.policy.repository if isinstance(trusted, Trusted) else ""
        return _Signed(name, findings, decisions(approvals))


def _specifications(root: str, packets: Iterable[PacketFacts]) -> dict[str, Source]:
    """Every specification that a refinement names, as it lies here."""
    named = {packet.refinement.spec_path for packet in packets if packet.refinement is not None}
    found: dict[str, Source] = {}
    for path in sorted({path for name in named for path in candidates(name)}):
        try:
            found[path] = Source.from_bytes(path, read_bytes(root, path, _SPECIFICATION_LIMIT))
        except OSError:
            continue
    return found


def _with_history(repository: Repository, facts: AuditFacts) -> AuditFacts:
    """What the logs name: commits, and the files that they rest on, then and now."""
    proofs = sorted(set(_proofs(facts.packets.values())))
    paths = sorted({path for _, path in proofs} | set(_named(facts.packets.values())))
    root = str(repository.root)
    return replace(
        facts,
        commits=_commits(repository, facts),
        committed=blobs(repository, (f"{commit}:{path}" for commit, path in proofs)),
        digests={path: digest_here(root, path) for path in paths},
    )


def _named(packets: Iterable[PacketFacts]) -> Iterator[str]:
    """The files that the logs hold by digest."""
    return (path for packet in packets for _, path, _ in named_files(packet.log))


def _commits(repository: Repository, facts: AuditFacts) -> dict[str, Commit]:
    named = {
        event.text(key) or ""
        for packet in facts.packets.values()
        for event in packet.state.history
        if event.type in {"submitted", "merged"}
        for key in ("commit", "target_commit")
    }
    return commits(repository, named, target_commit(repository, facts.target)) if named else {}


def _proofs(packets: Iterable[PacketFacts]) -> Iterator[tuple[str, str]]:
    """Pairs of a commit and a path in it that proves something."""
    for packet in packets:
        commit = ""
        for event in packet.state.evidence:
            commit = event.text("commit") or commit
            for row in evidence_rows(event):
                proofs, at = row.get("proof"), str(row.get("commit") or commit)
                for proof in proofs if isinstance(proofs, list) else ():
                    path = proved_path(str(proof))
                    if at and path:
                        yield at, path
