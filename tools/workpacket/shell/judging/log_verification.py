"""Verify the log of a repository, by itself and against a base revision."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from workpacket.digests import sha256
from workpacket.git.index import hidden_file
from workpacket.git.objects import blob_id
from workpacket.git.repository import Repository, commit_of
from workpacket.ledger.fold import in_force, standing
from workpacket.ledger.log import Log, read_logs
from workpacket.ledger.verify import (
    Checkpoint,
    NamedHeads,
    Reach,
    checkpoint_faults,
    log_faults,
    lost_heads,
    named_heads,
    reach,
    signatures_without_event,
)
from workpacket.model.event_types import CHECKPOINT_LOG, FORKED
from workpacket.model.events import LogEvent
from workpacket.model.layout import ATTESTATIONS_FOLDER, CHECKPOINTS_FOLDER, LARGEST_FILE, LOG_FOLDER
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.problem import Location, Problem
from workpacket.shell.actor import moment
from workpacket.shell.base import judging_policy
from workpacket.shell.governed_files import is_temporary, logged_packets, paths_below, read_logged
from workpacket.shell.tree import read_bytes
from workpacket.value import NOTHING, NamedTuple, Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.approvals.event_signatures import EventSignatures
    from workpacket.lifecycle.review import Report


class LogsSeen(Value):
    """The lane of each packet that has a log ('' if the log is inconsistent), and all problems in the logs.

    `named` are the files that they depend on. `by_clock`: time alone can change the findings; `until`: not before this
    moment, if it is not ''. `activated` are the packets made from a stub; `by_people` says whether any event needs or
    lists an approval. `passed` counts the moves into each lane. `contracts` are the logs that record a contract;
    `attested` are the packets whose activation lists an envelope.
    """

    lanes: Mapping[str, str]
    findings: list[Problem]
    named: Sequence[str] = ()
    by_clock: bool = False
    until: str = ""
    activated: Sequence[str] = ()
    by_people: bool = False
    passed: Mapping[str, int] = NOTHING
    contracts: Sequence[ContractLog] = ()
    attested: frozenset[str] = frozenset()


class ContractLog(NamedTuple):
    """A log that records a contract, and its heads."""

    packet: str
    heads: tuple[str, ...]


def look_at_logs(root: str, now: str = "") -> LogsSeen:
    """Return what `check` needs to know about the logs and the files that they refer to.

    A log may have more events than fit into memory, so each is read, looked at and discarded.
    """
    names = logged_packets(root)
    if not names:
        return LogsSeen({}, [])
    look = LogLook(root, now or moment().now)
    for name in names:
        look.read(name)
    return look.seen()


class LogLook:
    """What is kept of the logs while they are read one by one."""

    def __init__(self, root: str, now: str) -> None:
        self.findings: list[Problem] = []
        self.taken: set[str] = set()
        self._root = root
        self._now = now
        self._digest_of = partial(digest_here, root)
        self._lanes: dict[str, str] = {}
        self._passed: Counter[str] = Counter()
        self._named: set[str] = set()
        self._until = ""
        self._activated: list[str] = []
        self._by_people = False
        self._contracts: list[ContractLog] = []
        self._attested: set[str] = set()
        self._reports: list[Report] = []
        self._doubted: list[Log] = []
        self._heads: Mapping[str, Sequence[NamedHeads]] = {}
        signatures = {path: read_logged(root, path) for path in paths_below(root, CHECKPOINTS_FOLDER)}
        if signatures or os.path.isdir(os.path.join(root, LOG_FOLDER, CHECKPOINT_LOG)):
            self.findings, self._heads = _about_checkpoints(root, signatures, now)

    def read(self, name: str) -> tuple[Mapping[str, bytes], Mapping[str, Log]]:
        """Read one name below the log folder; return its files by path, and the logs in them."""
        files = {path: read_logged(self._root, path) for path in _paths_of(self._root, name)}
        logs, stray = read_logs(files)
        self.findings += stray
        for packet, log in logs.items():
            self.findings += lost_heads(packet, log, self._heads.get(packet, ()))
            self.take(log)
        return files, logs

    def take(self, log: Log) -> None:
        from workpacket.audit.tracing import named_files, next_expiry, standing_faults
        from workpacket.lifecycle.review import reports_of

        name = log.packet
        self.taken.add(name)
        self.findings += log.findings
        if name != CHECKPOINT_LOG:
            stand = standing(log)
            self.findings += stand.findings
            if not log.is_renamed:  # its documents have the other id
                sound = log.sound and not stand.findings
                self._lanes[name] = stand.lane if stand.lane == FORKED or sound else ""
            self._passed.update(str(event.lane_to) for event in log.events if event.moves_lane)
        if any(event.type == "activated" for event in log.events):
            self._activated.append(name)
            if any(event.type == "activated" and event.attest for event in log.events):
                self._attested.add(name)
        self._by_people = self._by_people or any(map(_needs_people, log.events))
        if log.is_renamed:
            return
        self._named.update(path for _, path, _ in named_files(log))
        self._until = min(filter(None, (self._until, next_expiry(log, self._now))), default="")
        if in_force(log):
            self._contracts.append(ContractLog(name, log.heads))
        self._reports += reports_of([log])
        # What it finds without the reports of other logs, it may not find with them.
        if next(standing_faults(log, self._digest_of, self._now, ()), None) is not None:
            self._doubted.append(log)

    def seen(self) -> LogsSeen:
        from workpacket.audit.tracing import standing_faults

        for name in self._heads.keys() - self.taken:
            self.findings += lost_heads(name, None, self._heads[name])
        for log in self._doubted:
            self.findings += standing_faults(log, self._digest_of, self._now, self._reports)
        return LogsSeen(
            self._lanes,
            self.findings,
            sorted(self._named),
            CHECKPOINT_LOG in self.taken,
            self._until,
            self._activated,
            self._by_people,
            self._passed,
            self._contracts,
            frozenset(self._attested),
        )


def digest_here(root: str, path: str) -> str | None:
    """Return the digest of a file in the work tree; None if it is missing or unreadable."""
    try:
        return sha256(read_bytes(root, path, LARGEST_FILE)).hexdigest()
    except FileNotFoundError:
        # A sparse checkout leaves files out of the work tree that the commit nevertheless has.
        data = hidden_file(root, path)
        return sha256(data).hexdigest() if data is not None else None
    except OSError:
        return None


def _needs_people(event: LogEvent) -> bool:
    """Whether the event claims an approval, or must pass a gate that every policy closes."""
    from workpacket.lifecycle.gates import CONSUMING, HUMAN_GATES

    return bool(event.attest) or CONSUMING.get(event.type, "") in HUMAN_GATES


def _about_checkpoints(
    root: str, signatures: Mapping[str, bytes], now: str
) -> tuple[list[Problem], Mapping[str, Sequence[NamedHeads]]]:
    """Return the problems with checkpoints, judged according to the base, and the heads that they list. Most
    repositories have none, so the imports are lazy."""
    from pathlib import Path

    from workpacket.git.repository import find_repository
    from workpacket.shell.judging.log_checkpoints import judged_here

    own = {path: read_logged(root, path) for path in paths_below(root, f"{LOG_FOLDER}/{CHECKPOINT_LOG}")}
    logs, _ = read_logs(own)
    checkpoints = judged_here(find_repository(Path(root)), "", logs, {**own, **signatures}, now)
    faults = [*checkpoint_faults(checkpoints), *signatures_without_event(logs, _below(signatures))]
    return faults, named_heads(checkpoints)


def _below(files: Mapping[str, bytes]) -> Iterator[str]:
    return (path for path in files if path.startswith(f"{CHECKPOINTS_FOLDER}/"))


class Verified(Value):
    """The result of `log verify`: how much of each packet's log is covered, the number of files in the log, the
    problems, and who vouches for what. `own` are the checkpoints with their signatures, by path; `proven` are the heads
    of the packets in which every event is proven by its signature under the policy with the digest `policy`.
    """

    packets: tuple[Reach, ...]
    events: int
    findings: tuple[Problem, ...]
    checkpoints: tuple[Checkpoint, ...]
    log: Log | None
    own: Mapping[str, bytes]
    signatures: Proven | None = None
    proven: Mapping[str, Sequence[str]] = NOTHING
    policy: str = ""


class Proven(Value):
    """The numbers of events whose signature is proven, is missing, is invalid, or was made by a key that the base's
    policy does not list for the actor.
    """

    proven: int
    unlisted: int
    unsigned: int
    invalid: int


class _Question(Value):
    """What is determined for every packet. `like` is an example of git's ids here, or '' if no ids are needed;
    `signatures` are the actors on the base, with its approving and revoked keys, or None.
    """

    root: str
    like: str
    signatures: tuple[Actors, frozenset[bytes], frozenset[bytes]] | None


class _Seen(Value):
    """What is kept about packets after their events are discarded."""

    packets: list[Reach]
    events: int
    findings: list[Problem]
    ids: dict[str, str]
    signatures: Counter[str]
    proven: dict[str, Sequence[str]]


# A process reads this many packets at a time. Fewer than so many are read faster by one process than by two.
_BATCH = 200
_WORTH_A_PROCESS = 500
_PROCESSES = 2


def verify_log(repository: Repository, base: str, now: str, *, signatures: bool = False) -> Verified:
    """Return everything that is wrong with the log, judged by itself, against its checkpoints and, if one is given,
    against a base; with `signatures`, also return who signed its events, including those on the base. A log may have
    more events than fit into memory, so they are read packet by packet and not kept.
    """
    from workpacket.shell.judging.log_checkpoints import judged_here

    root = str(repository.root)
    names = [name for name in logged_packets(root) if name != CHECKPOINT_LOG]
    own = {path: read_logged(root, path) for folder in _OF_CHECKPOINTS for path in paths_below(root, folder)}
    logs, stray = read_logs({path: data for path, data in own.items() if path.startswith(f"{LOG_FOLDER}/")})
    checkpoints = judged_here(repository, base, logs, own, now)
    named = named_heads(checkpoints)
    commit = commit_of(repository, base) if base else ""
    signing = event_signers(repository, base) if signatures else None
    seen = _read_packets(_Question(root, commit, signing), names, named)
    findings = [*stray, *(fault for log in logs.values() for fault in log.findings), *seen.findings]
    findings += [*checkpoint_faults(checkpoints), *signatures_without_event(logs, _below(own))]
    known = {each.packet for each in seen.packets}
    findings += [fault for name in named.keys() - known for fault in lost_heads(name, None, named[name])]
    if commit:
        from workpacket.shell.judging.merged_tree import judge_append_only

        ids = {path: blob_id(data, commit) for path, data in own.items()}
        ids |= {path: blob_id(read_logged(root, path), commit) for path in paths_below(root, ATTESTATIONS_FOLDER)}
        findings += judge_append_only(repository, commit, {**ids, **seen.ids})
    findings.sort(key=lambda finding: finding.order)
    events = seen.events + sum(path.startswith(f"{LOG_FOLDER}/") for path in own)
    proven = Proven(*(seen.signatures[each] for each in _STATES)) if signatures else None
    log = logs.get(CHECKPOINT_LOG)
    policy = judging_policy(repository, commit) if signatures else ""
    return Verified(tuple(seen.packets), events, tuple(findings), checkpoints, log, own, proven, seen.proven, policy)


_OF_CHECKPOINTS = (f"{LOG_FOLDER}/{CHECKPOINT_LOG}", CHECKPOINTS_FOLDER)
_STATES = ("proven", "refused", "unsigned", "invalid")


def event_signers(repository: Repository, base: str = "") -> tuple[Actors, frozenset[bytes], frozenset[bytes]]:
    """Return the actors in the current policy, and the keys that prove no event: those that approve, and those that are
    revoked."""
    from workpacket.shell.base import approving_keys, judging_commit, read_base_policy, revoked_keys

    chosen = commit_of(repository, base) if base else ""
    actors = read_base_policy(repository, chosen).lifecycle.actors
    readable = judging_commit(repository, chosen)
    return actors, approving_keys(repository, readable), revoked_keys(repository, readable)


def _read_packets(question: _Question, names: Sequence[str], named: Mapping[str, Sequence[NamedHeads]]) -> _Seen:
    """Read all logs except the checkpoint log, in two processes if that is faster."""
    batches = [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]
    asked = [({name: named[name] for name in batch if name in named}, batch) for batch in batches]
    ask = partial(_read_batch, question)
    if len(names) < _WORTH_A_PROCESS or (os.cpu_count() or 1) < _PROCESSES:
        return _joined(map(ask, asked))
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(_PROCESSES) as pool:
        return _joined(pool.map(ask, asked))


def _joined(parts: Iterable[_Seen]) -> _Seen:
    whole = _Seen([], 0, [], {}, Counter(), {})
    for part in parts:
        whole.packets.extend(part.packets)
        whole.findings.extend(part.findings)
        whole.ids.update(part.ids)
        whole.signatures.update(part.signatures)
        whole.proven.update(part.proven)
        whole = replace(whole, events=whole.events + part.events)
    return whole


def _read_batch(question: _Question, asked: tuple[Mapping[str, Sequence[NamedHeads]], Sequence[str]]) -> _Seen:
    named, names = asked
    seen = _Seen([], 0, [], {}, Counter(), {})
    events = 0
    signatures = _event_signatures(question)
    for name in names:
        files = {path: read_logged(question.root, path) for path in _paths_of(question.root, name)}
        events += len(files)
        logs, stray = read_logs(files)
        seen.findings.extend(stray)
        if question.like:
            seen.ids.update((path, blob_id(data, question.like)) for path, data in files.items())
        for log in logs.values():
            heads = named.get(log.packet, ())
            seen.packets.append(reach(log, heads))
            faults = (*log_faults(log), *lost_heads(log.packet, log, heads))
            seen.findings.extend(faults)
            if signatures is not None and _count_signatures(signatures, log, files, seen) and not faults:
                seen.proven[log.packet] = log.heads
    return replace(seen, events=events)


def _paths_of(root: str, name: str) -> Iterator[str]:
    """The files of one packet; if there is a file instead of the folder, that file."""
    path = f"{LOG_FOLDER}/{name}"
    if os.path.isdir(os.path.join(root, path)):
        return paths_below(root, path)
    return (each for each in (path,) if not is_temporary(each))


def _event_signatures(question: _Question) -> EventSignatures | None:
    if question.signatures is None:
        return None
    from workpacket.approvals.event_signatures import EventSignatures

    return EventSignatures(*question.signatures)


def _count_signatures(signatures: EventSignatures, log: Log, files: Mapping[str, bytes], seen: _Seen) -> bool:
    """Count the events of a log by who signed them, and return whether all are proven. If a key has left the policy or
    was revoked, its events are only claims, which is not a fault. A signature that does not cover its event is a fault.
    """
    proven = 0
    for event in log.events:
        signed = signatures.judge(event, files[event.path])
        invalid = signed.code == "event_signature_invalid"
        seen.signatures["invalid" if invalid else signed.state] += 1
        proven += signed.proven
        if invalid:
            reason = CHANGE_BY_CODE[signed.code]
            place = Location(event.path)
            seen.findings.append(Problem(signed.code, signed.message, place, reason.remedy, severity=reason.severity))
    return proven == len(log.events)
