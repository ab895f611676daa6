"""Gather the facts for an audit: the findings of `check` and of the approvals, every packet, and its history in git.

The clock is not consulted: expiry is judged as of the head commit, so the same repository always produces the same
report. A decision that was used is verified as of the time of its use.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import workpacket
from workpacket.approvals.envelope import PACKET
from workpacket.approvals.fields import write_instant
from workpacket.approvals.policy import Trusted
from workpacket.approvals.verify import Judged
from workpacket.audit.tracing import AuditFacts, KnownCommit, LastChange, SignedDecision, named_files, proved_path
from workpacket.documents.spec_pointer import candidates
from workpacket.git.objects import read_objects, status
from workpacket.git.repository import Repository, default_branch, head_commit, tip_of, without_remote
from workpacket.git.run import run_git
from workpacket.ledger.fold import in_force
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.contract_drift import difference
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import CONSUMING
from workpacket.lifecycle.proofs import evidence_rows
from workpacket.model.events import Actor, LogEvent
from workpacket.model.layout import GOVERNANCE_FOLDER, LARGEST_SPECIFICATION
from workpacket.model.plan import Moment
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.model.reasons import Reason
from workpacket.problem import Location, Problem
from workpacket.shell.approvals.check import check_approvals
from workpacket.shell.approvals.envelopes import logged_packets
from workpacket.shell.approvals.facts import Approvals, open_approvals
from workpacket.shell.approvals.subject import contract_version
from workpacket.shell.base import known_to, lifecycle_of
from workpacket.shell.cache import NO_CACHE, Cache
from workpacket.shell.checking import check
from workpacket.shell.configuration import read_settings
from workpacket.shell.governing.execution import gather
from workpacket.shell.held import judged_in_part
from workpacket.shell.judging.landed_work import landing_faults
from workpacket.shell.judging.log_verification import digest_here
from workpacket.shell.judging.merged_tree import judge_append_only
from workpacket.shell.keys import proven_events
from workpacket.shell.tree import find_documents, read_bytes
from workpacket.text.source import Source
from workpacket.value import Value, replace


def decisions(approvals: Approvals) -> dict[str, list[SignedDecision]]:
    """Return the decisions by packet, in the order in which they were issued."""
    found: dict[str, dict[str, SignedDecision]] = {}
    for packet, gate in sorted({(said.packet, said.gate) for said in approvals.claims.values()}):
        here = found.setdefault(packet, {})
        for consumer in (*_consumers(approvals, packet, gate), None):
            for judged in approvals.verdict(packet, gate, consumer).judged:
                # Judged as of the event that depends on it; as of now only if there is none.
                if judged.opened is not None and judged.name not in here and _is_about(judged, consumer):
                    here[judged.name] = _decision(judged, consumer)
    ordered = {packet: sorted(known.values(), key=_order) for packet, known in found.items()}
    return {packet: known for packet, known in ordered.items() if known}


def _order(decision: SignedDecision) -> tuple[str, str]:
    return decision.issued_at, decision.envelope


def _consumers(approvals: Approvals, packet: str, gate: str) -> Iterator[LogEvent]:
    for event in approvals.log(packet).events:
        if CONSUMING.get(event.type) == gate:
            yield event


def _is_about(judged: Judged, consumer: LogEvent | None) -> bool:
    return consumer is None or judged.name.partition(".")[0] in consumer.attest


def _decision(judged: Judged, consumer: LogEvent | None) -> SignedDecision:
    assert judged.opened is not None
    said = judged.opened.statement
    return SignedDecision(
        gate=said.gate,
        decision=said.decision,
        approver=said.approver,
        role=said.role,
        key=judged.opened.signature.key.fingerprint,
        issued_at=write_instant(said.issued_at),
        expires_at=write_instant(said.expires_at),
        envelope=judged.name.partition(".")[0],
        used_by=consumer.id if consumer is not None else "",
        refusals=tuple((refusal.code, refusal.message) for refusal in judged.refusals),
        covers=said.covers,
    )


def commits(repository: Repository, wanted: Iterable[str], target: str) -> dict[str, KnownCommit]:
    """Return the wanted commits that are in this clone; `target` is the commit of the target branch."""
    contents = read_objects(repository, sorted({each for each in wanted if each}))
    held = known_to(repository, target, contents) if contents else frozenset()
    return {identity: _commit(identity, data, identity in held) for identity, data in contents.items()}


def _commit(identity: str, data: bytes, on_target: bool) -> KnownCommit:
    text = data.decode("utf-8", "replace")
    header, _, message = text.partition("\n\n")
    # Backwards, so that the first line of a name counts: headers may repeat one, such as `parent`.
    fields = dict(line.partition(" ")[::2] for line in reversed(header.split("\n")))
    author = fields.get("author", "").partition(" <")[0]
    moment = fields.get("committer", "0 +0000").rsplit(" ", 2)[-2]
    at = write_instant(datetime.fromtimestamp(int(moment), UTC)) if moment.isdecimal() else "1970-01-01T00:00:00Z"
    return KnownCommit(identity, at, author, message.partition("\n")[0], on_target)


def target_commit(repository: Repository, target: str) -> str:
    """Return the commit of the target branch; otherwise that of the main branch, or the one that is checked out."""
    found = tip_of(repository, target)
    if found is not None:
        return found
    branch = default_branch(repository)
    return branch.commit if branch is not None else head_commit(repository) or ""


def blobs(repository: Repository, names: Iterable[str]) -> dict[str, str | None]:
    """Return the digests of files in commits, by `<commit>:<path>`; None for a missing file."""
    # Git is asked with one name per line.
    wanted = sorted({name for name in names if "\n" not in name})
    found = read_objects(repository, wanted)
    return {name: hashlib.sha256(found[name]).hexdigest() if name in found else None for name in wanted}


def last_changes(repository: Repository, head: str, also: Iterable[str]) -> dict[str, LastChange]:
    """Return, for each governed file and each file in `also`, the last commit that changed that file."""
    if not head:
        return {}
    answer = run_git(
        repository.root, "log", "--no-renames", "--name-only", "--format=%x01%ct %an", "-z", "--end-of-options", head,
        "--", GOVERNANCE_FOLDER, *also,
    )  # fmt: skip
    changes: dict[str, LastChange] = {}
    for block in answer.text.split("\x01")[1:]:
        header, *paths = block.replace("\n", "\0").split("\0")
        moment, _, author = header.partition(" ")
        at = write_instant(datetime.fromtimestamp(int(moment), UTC))
        for path in paths:
            if path:
                # Newest first, so the first commit that names a path is the last one that changed it.
                changes.setdefault(path, LastChange(at, author))
    return changes


_NOBODY = Actor("nobody", "agent")
# Before the first commit, there is no date to judge by.
_BEGINNING = "1970-01-01T00:00:00Z"


class AuditInput(Value):
    """The facts for the audit, the facts that commands use about the same packets, and the kinds of the checked
    files."""

    facts: AuditFacts
    governed: Facts
    files: Mapping[str, str]


def gather_audit(
    repository: Repository, cache: Cache, reasons: Mapping[str, Reason], progress: Callable[[int, int], None]
) -> AuditInput:
    root = str(repository.root)
    head = head_commit(repository) or ""
    # Time is that of the commit, so that an audit of a commit says the same whenever it is made.
    seen = commits(repository, [head], head).get(head)
    now = seen.at if seen is not None else _BEGINNING
    files = find_documents(root)
    checked = check(
        root, files, whole=True, cache=cache, reasons=reasons, settings=read_settings(root), progress=progress, now=now
    )
    governed = gather(repository, None, _NOBODY)
    governed = replace(governed, moment=replace(governed.moment, now=now))
    signed = _signed(repository, now)
    forge = web_address(repository.settings.get("remote.origin.url", ""))
    named = sorted(set(_named(governed.packets.values())))
    facts = AuditFacts(
        # Not the name of the folder, so that an audit of a commit says the same in each clone.
        name=signed.name or forge.rstrip("/").rpartition("/")[2],
        now=now,
        packets=governed.packets,
        policy=governed.policy,
        findings=tuple(judged_in_part(root, (*checked.findings, *signed.findings))),
        decisions=signed.decisions,
        specification=governed.specification,
        specifications=_specifications(root, governed.packets.values()),
        changes=last_changes(repository, head, named),
        # In a clone, the branch has the name of the remote-tracking branch.
        target=without_remote(repository, governed.target_branch),
        head=seen,
        uncommitted=frozenset(entry.path for entry in status(repository, GOVERNANCE_FOLDER, *named)),
        files_checked=len(files),
        proven=proven_events(
            repository,
            governed.policy.actors,
            (event for each in governed.packets.values() for event in each.log.events),
        ),
        rewritten=dict(_rewritten(repository, governed.packets.values())),
        forge=forge,
    )
    return AuditInput(_with_history(repository, facts), governed, {found.path: found.kind for found in files})


def _rewritten(
    repository: Repository, packets: Iterable[PacketFacts]
) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the packets whose contract is no longer the approved one, with the differing parts."""
    for packet in packets:
        approved = in_force(packet.log)
        document = packet.packet or packet.stub
        here = stated(document, packet.refinement) if approved and document is not None else ""
        if not isinstance(here, Contract) or here.digest in approved or len(approved) != 1:
            continue
        before = contract_version(repository, packet.id.text, next(iter(approved)))
        if before is not None:
            yield (
                packet.id.text,
                [(name, "; ".join(old), "; ".join(new)) for name, old, new in difference(before, here)],
            )


# An address of a remote: a URL, or what git takes for SSH. Credentials in it are left out.
_REMOTE: Final = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@\s]*@)?(?P<host>[A-Za-z0-9.-]+)(?::[0-9]+)?/"
    r"|(?:[^/@\s:]+@)?(?P<short>[A-Za-z0-9.-]+):(?!/))"
    r"(?P<path>[A-Za-z0-9._/~-]+?)(?:\.git)?/?\Z"
)
_FORGES: Final = ("github", "gitlab", "codeberg", "gitea", "forgejo")


def web_address(remote: str) -> str:
    """Return the address of the repository's web pages; '' if the host is not a forge whose addresses are known."""
    match = _REMOTE.match(remote)
    host = (match["host"] or match["short"] or "").lower() if match is not None else ""
    if match is None or not any(label in _FORGES for label in host.split(".")):
        return ""
    return f"https://{host}/{match['path'].strip('/')}"


class _Signed(Value):
    name: str
    findings: list[Problem]
    decisions: Mapping[str, list[SignedDecision]]


def _signed(repository: Repository, now: str) -> _Signed:
    with open_approvals(repository, None, Moment(now, "", "")) as approvals:
        findings = check_approvals(approvals, NO_CACHE)
        if approvals.base.commit:
            findings += judge_append_only(repository, approvals.base.commit)
            findings += _landings(approvals)
        trusted = approvals.trusted
        name = trusted.policy.repository if isinstance(trusted, Trusted) else ""
        return _Signed(name, findings, decisions(approvals))


def _landings(approvals: Approvals) -> Iterator[Problem]:
    """Report changes that were merged with a verdict but were not judged, or that no packet covered.

    These are warnings, because the changes are already on the base: the check required at the time may not have
    included coverage. If the policy turns coverage off, nothing is reported.
    """
    policy = lifecycle_of(approvals.base.policy.policy or b"")
    if policy.coverage.mode == "off":
        return
    logs = {name: approvals.log(name) for name in logged_packets(approvals.tree) if PACKET.fullmatch(name)}
    faults = landing_faults(approvals.repository, approvals.base.commit, logs, policy)
    for commit, found in faults.items():
        for one in found:
            what = f"landed in {commit[:12]}: {one.message}"
            yield Problem(one.code, what, Location(one.path), CHANGE_BY_CODE[one.code].remedy, severity="warning")


def _specifications(root: str, packets: Iterable[PacketFacts]) -> dict[str, Source]:
    """Return, from the work tree, every specification that a refinement or a light packet refers to."""
    named, pinned = set[str](), set[str]()
    for packet in packets:
        if packet.refinement is not None:
            named.add(packet.refinement.spec_path)
        elif packet.packet is not None and (anchor := packet.packet.anchor) is not None:
            pinned.add(anchor.path)
    found: dict[str, Source] = {}
    for path in sorted(pinned | {path for name in named for path in candidates(name)}):
        try:
            found[path] = Source.from_bytes(path, read_bytes(root, path, LARGEST_SPECIFICATION))
        except OSError:
            continue
    return found


def _with_history(repository: Repository, facts: AuditFacts) -> AuditFacts:
    """Add what the logs refer to: commits, files as they were at a commit, and files as they are now."""
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
    """Yield the files whose digests are recorded in the logs."""
    return (path for packet in packets for _, path, _ in named_files(packet.log))


def _commits(repository: Repository, facts: AuditFacts) -> dict[str, KnownCommit]:
    named = {
        event.text(key) or ""
        for packet in facts.packets.values()
        for event in packet.state.history
        if event.type in {"submitted", "merged"}
        for key in ("commit", "target_commit")
    }
    return commits(repository, named, target_commit(repository, facts.target)) if named else {}


def _proofs(packets: Iterable[PacketFacts]) -> Iterator[tuple[str, str]]:
    """Yield a commit and a path in it for each code location that is given as proof."""
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


def page_file(name: str) -> str:
    package = os.path.dirname(os.path.abspath(workpacket.__file__))
    with open(os.path.join(package, "report", "page", name), encoding="utf-8") as stream:
        return stream.read()
