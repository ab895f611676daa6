"""Gather the facts for an audit: the findings of `check` and of the approvals, every packet, and its history in git.

The clock is not consulted: expiry is judged as of the head commit, so the same repository always produces the same
report. A decision that was used is verified as of the time of its use.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import workpacket
from workpacket.approvals.envelope import PACKET
from workpacket.approvals.event_signatures import EventSignatures
from workpacket.approvals.fields import write_instant
from workpacket.approvals.policy import Trusted
from workpacket.approvals.verify import Judged
from workpacket.audit.tracing import AuditFacts, KnownCommit, LastChange, SignedDecision, named_files, proved_path
from workpacket.documents.spec_pointer import candidates
from workpacket.git.objects import blob_id, folder_id, folder_ids, read_objects, status
from workpacket.git.repository import Repository, default_branch, head_commit, tip_of, without_remote
from workpacket.git.run import run_git
from workpacket.ledger.fold import in_force
from workpacket.ledger.log import Log, read_log
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.contract_drift import difference
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import CONSUMING
from workpacket.lifecycle.proofs import evidence_rows
from workpacket.model.events import Actor, LogEvent
from workpacket.model.layout import APPEND_ONLY_FOLDERS, GOVERNANCE_FOLDER, LARGEST_SPECIFICATION, LOG_FOLDER
from workpacket.model.plan import Moment
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.model.reasons import Reason
from workpacket.problem import Location, Problem
from workpacket.shell.approvals.check import ApprovalsCheck
from workpacket.shell.approvals.facts import Approvals, open_approvals
from workpacket.shell.approvals.subject import contract_version
from workpacket.shell.base import judging_policy, known_to, lifecycle_of
from workpacket.shell.cache import NO_CACHE, Cache
from workpacket.shell.checking import check
from workpacket.shell.configuration import read_settings
from workpacket.shell.governed_files import find_governed, logged_packets, paths_below, read_logged
from workpacket.shell.governing.execution import gather
from workpacket.shell.held import judged_in_part
from workpacket.shell.judging.landed_work import landing_faults, passed_verdicts
from workpacket.shell.judging.log_verification import LogLook, digest_here, event_signers
from workpacket.shell.judging.merged_tree import judge_append_only
from workpacket.shell.kept_logs import keep_proven, listed
from workpacket.shell.tree import find_documents, read_bytes
from workpacket.text.source import Source
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors


def decisions(approvals: Approvals, packets: Container[str] | None = None) -> dict[str, list[SignedDecision]]:
    """Return the decisions by packet, or only those of some `packets`, in the order in which they were issued."""
    found: dict[str, dict[str, SignedDecision]] = {}
    claimed = {(said.packet, said.gate) for said in approvals.claims.values()}
    for packet, gate in sorted(each for each in claimed if packets is None or each[0] in packets):
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


def last_changes(
    repository: Repository, head: str, also: Iterable[str], of_log: Container[str]
) -> dict[str, LastChange]:
    """Return, for each governed file and each file in `also`, the last commit that changed that file. Of the log, which
    may have a hundred times as many files as the rest, only the paths in `of_log` are returned.
    """
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
        change = LastChange(write_instant(datetime.fromtimestamp(int(moment), UTC)), author)
        for path in paths:
            if path and (path in of_log or not path.startswith(f"{LOG_FOLDER}/")):
                # Newest first, so the first commit that names a path is the last one that changed it.
                changes.setdefault(path, change)
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
    repository: Repository,
    cache: Cache,
    reasons: Mapping[str, Reason],
    progress: Callable[[int, int], None],
    take: Callable[[AuditFacts], None],
) -> AuditInput:
    """Gather the facts. `take` is called with the facts about some packets at a time, because the logs of all may not
    fit into memory."""
    root = str(repository.root)
    head = head_commit(repository) or ""
    # Time is that of the commit, so that an audit of a commit says the same whenever it is made.
    seen = commits(repository, [head], head).get(head)
    now = seen.at if seen is not None else _BEGINNING
    files = find_documents(root)
    policy = partial(judging_policy, repository)
    governed = gather(repository, None, _NOBODY, read_all=partial(listed, cache=cache, policy_of_base=policy))
    governed = replace(governed, moment=replace(governed.moment, now=now))
    forge = web_address(repository.settings.get("remote.origin.url", ""))
    facts = AuditFacts(
        name="",
        now=now,
        packets=governed.packets,
        policy=governed.policy,
        specification=governed.specification,
        # In a clone, the branch has the name of the remote-tracking branch.
        target=without_remote(repository, governed.target_branch),
        head=seen,
        files_checked=len(files),
        forge=forge,
        lanes={name: packet.lane for name, packet in governed.packets.items()},
    )
    with open_approvals(repository, None, Moment(now, "", "")) as approvals:
        reading = _Reading(repository, cache, approvals, facts)
        for batch in reading.batches():
            take(batch)
        trusted = approvals.trusted
        findings = reading.findings()
    checked = check(
        root, files, whole=True, cache=cache, reasons=reasons, settings=read_settings(root), progress=progress,
        logs=reading.look.seen(),
    )  # fmt: skip
    findings = judged_in_part(root, (*checked.findings, *findings))
    name = trusted.policy.repository if isinstance(trusted, Trusted) else ""
    facts = replace(
        facts,
        # Not the name of the folder, so that an audit of a commit says the same in each clone.
        name=name or forge.rstrip("/").rpartition("/")[2],
        findings=tuple(findings),
        specifications=reading.specifications,
        changes=last_changes(repository, head, sorted(reading.named), {found.path for found in findings}),
        uncommitted=frozenset(entry.path for entry in status(repository, GOVERNANCE_FOLDER, *sorted(reading.named))),
        again=reading.whole,
    )
    return AuditInput(facts, governed, {found.path: found.kind for found in files})


# The events of this many packets are in memory at the same time.
_AT_ONCE: Final = 250


class _Reading:
    """Reads the packets of an audit, some at a time: each file of the log once, for everything that needs it."""

    def __init__(self, repository: Repository, cache: Cache, approvals: Approvals, facts: AuditFacts) -> None:
        self.root = str(repository.root)
        self.look = LogLook(self.root, facts.now)
        self.specifications: dict[str, Source] = {}
        self.named: set[str] = set()
        self._repository, self._cache, self._approvals, self._facts = repository, cache, approvals, facts
        self._governed = find_governed(self.root)
        self._check = ApprovalsCheck(approvals, NO_CACHE)
        self._append_only = _AppendOnly(repository, approvals.base.commit)
        self._target = target_commit(repository, facts.target)
        self._signatures = _Signatures(repository, cache, facts.policy.actors)
        self._passed: dict[str, str] = {}

    def batches(self) -> Iterator[AuditFacts]:
        logged = frozenset(logged_packets(self.root))
        approved = frozenset(self._check.packets)
        names = sorted({*logged, *approved, *self._facts.packets})
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            logs: dict[str, Log] = {}
            self._signatures.begin(some)
            for name in some:
                logs |= self._read(name) if name in logged else {}
            self._check.take(name for name in some if name in approved)
            packets = {name: self._packet(name, logs.get(name)) for name in some if name in self._facts.packets}
            yield self._with_history(packets)
            self._approvals.forget_logs()
        self._signatures.keep()

    def _read(self, name: str) -> Mapping[str, Log]:
        before = len(self.look.findings)
        files, logs = self.look.read(name)
        self._append_only.take(name, files)
        self._passed |= passed_verdicts({each: log for each, log in logs.items() if PACKET.fullmatch(each)})
        for log in logs.values():
            self._approvals.know(log)
            self._signatures.take(log, files, sound=len(self.look.findings) == before)
        return logs

    def _packet(self, name: str, log: Log | None) -> PacketFacts:
        known, governed = self._facts.packets[name], self._governed
        places = (governed.stubs, governed.packets, governed.refinements)
        stub, document, refinement = (governed.document(each, name) for each in places)
        packet = PacketFacts(known.id, log or read_log(name, {}), stub, document, refinement)
        return packet.as_landed() if known.landed else packet

    def whole(self, name: str) -> PacketFacts:
        """Read a packet again."""
        return self._packet(name, self._governed.log(name))

    def _with_history(self, packets: Mapping[str, PacketFacts]) -> AuditFacts:
        """Return the facts about these packets, with everything that their logs refer to: commits, files as they were
        at a commit, and files as they are now."""
        repository = self._repository
        proofs = sorted(set(_proofs(packets.values())))
        named = set(_named(packets.values()))
        self.named |= named
        known = self.specifications
        known.update(_specifications(self.root, packets.values(), known))
        return replace(
            self._facts,
            packets=packets,
            decisions=decisions(self._approvals, packets),
            specifications=known,
            commits=commits(repository, _commits_named(packets.values()), self._target),
            committed=blobs(repository, (f"{commit}:{path}" for commit, path in proofs)),
            digests={path: digest_here(self.root, path) for path in sorted({*named, *(path for _, path in proofs)})},
            proven=self._signatures.proven,
            rewritten=dict(_rewritten(repository, packets.values())),
        )

    def findings(self) -> list[Problem]:
        """Return what is wrong with the approvals and with the files on the base, after all packets were read."""
        found = self._check.findings()
        if self._approvals.base.commit:
            found += self._append_only.findings()
            found += _landings(self._approvals, self._passed)
        return found


class _AppendOnly:
    """Compares the files of the log with the base. Git's id of a folder tells whether any file in it differs, so the
    ids of files are kept only where one does."""

    def __init__(self, repository: Repository, base: str) -> None:
        self._repository, self._base = repository, base
        self._folders = folder_ids(repository, base, LOG_FOLDER) if base else {}
        self._changed = set(self._folders)
        self._ids: dict[str, str] = {}

    def take(self, name: str, files: Mapping[str, bytes]) -> None:
        if not self._base:
            return
        start = len(f"{LOG_FOLDER}/{name}/")
        ids = {path: blob_id(data, self._base) for path, data in files.items()}
        if self._folders.get(name) == folder_id({path[start:]: identity for path, identity in ids.items()}):
            self._changed.discard(name)
            return
        self._changed.add(name)
        self._ids.update(ids)

    def findings(self) -> list[Problem]:
        root = str(self._repository.root)
        others = (path for folder in APPEND_ONLY_FOLDERS if folder != LOG_FOLDER for path in paths_below(root, folder))
        ids = {**self._ids, **{path: blob_id(read_logged(root, path), self._base) for path in others}}
        return judge_append_only(self._repository, self._base, ids, changed=self._changed)


class _Signatures:
    """The events whose signature proves their actor, of some packets at a time. A packet whose log was proven before is
    not verified again while the log and the policy are the same."""

    def __init__(self, repository: Repository, cache: Cache, actors: Actors) -> None:
        self.proven: frozenset[str] = frozenset()
        self._cache = cache
        self._judge = EventSignatures(*event_signers(repository)) if actors.present else None
        self._policy = judging_policy(repository) if actors.present else ""
        self._known: Mapping[str, str] = {}
        self._learned: dict[str, Sequence[str]] = {}

    def begin(self, names: Sequence[str]) -> None:
        self.proven = frozenset()
        self._known = self._cache.recall("proven", names) if self._policy else {}

    def take(self, log: Log, files: Mapping[str, bytes], *, sound: bool) -> None:
        if self._judge is None:
            return
        if self._policy and self._known.get(log.packet) == f"{self._policy} {' '.join(log.heads)}":
            self.proven |= log.by_id.keys()
            return
        judged = {event.id for event in log.events if event.sig and self._judge.judge(event, files[event.path]).proven}
        self.proven |= judged
        if sound and judged and len(judged) == len(log.by_id):
            self._learned[log.packet] = log.heads

    def keep(self) -> None:
        keep_proven(self._cache, self._policy, self._learned)


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


def _landings(approvals: Approvals, passed: Mapping[str, str]) -> Iterator[Problem]:
    """Report changes that were merged with a verdict but were not judged, or that no packet covered.

    These are warnings, because the changes are already on the base: the check required at the time may not have
    included coverage. If the policy turns coverage off, nothing is reported.
    """
    policy = lifecycle_of(approvals.base.policy.policy or b"")
    if policy.coverage.mode == "off":
        return
    faults = landing_faults(approvals.repository, approvals.base.commit, passed, policy)
    for commit, found in faults.items():
        for one in found:
            what = f"landed in {commit[:12]}: {one.message}"
            yield Problem(one.code, what, Location(one.path), CHANGE_BY_CODE[one.code].remedy, severity="warning")


def _specifications(root: str, packets: Iterable[PacketFacts], known: Container[str]) -> dict[str, Source]:
    """Return, from the work tree, every specification that a refinement or a light packet refers to and that is not
    known yet.
    """
    named, pinned = set[str](), set[str]()
    for packet in packets:
        if packet.refinement is not None:
            named.add(packet.refinement.spec_path)
        elif packet.packet is not None and (anchor := packet.packet.anchor) is not None:
            pinned.add(anchor.path)
    found: dict[str, Source] = {}
    for path in sorted(pinned | {path for name in named for path in candidates(name)}):
        if path in known:
            continue
        try:
            found[path] = Source.from_bytes(path, read_bytes(root, path, LARGEST_SPECIFICATION))
        except OSError:
            continue
    return found


def _named(packets: Iterable[PacketFacts]) -> Iterator[str]:
    """Yield the files whose digests are recorded in the logs."""
    return (path for packet in packets for _, path, _ in named_files(packet.log))


def _commits_named(packets: Iterable[PacketFacts]) -> set[str]:
    return {
        event.text(key) or ""
        for packet in packets
        for event in packet.state.history
        if event.type in {"submitted", "merged"}
        for key in ("commit", "target_commit")
    }


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
