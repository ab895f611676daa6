"""Verify the log of a repository, by itself and against a base revision."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from workpacket.audit.expired import may_expire, named_files, standing_faults
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.ledger.fold import in_force, standing
from workpacket.ledger.log import Log, read_logs
from workpacket.ledger.verify import Checkpoint, checkpoint_findings, signatures_without_event, verify_logs
from workpacket.lifecycle.gates import CONSUMING, HUMAN_GATES
from workpacket.lifecycle.review import reports_of
from workpacket.model.event_types import CHECKPOINT_LOG, FORKED
from workpacket.model.events import LogEvent
from workpacket.model.layout import CHECKPOINTS_FOLDER, LARGEST_FILE, LOG_FOLDER
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.problem import Location, Problem
from workpacket.shell.actor import moment
from workpacket.shell.judging.append_only import judge_append_only
from workpacket.shell.log_files import append_only_files, log_files, paths_below, read_logged
from workpacket.shell.tree import read_bytes
from workpacket.value import NOTHING, Value


class LogsSeen(Value):
    """The lane of each packet that has a log ('' if the log is inconsistent), and all problems of the logs.

    `named` are the files that they depend on. `by_clock`: time alone can change the findings. `activated` are the
    packets made from a stub; `by_people` says whether any event needs or names an approval. `passed` counts the moves
    into each lane. `contracts` are the logs that name a contract.
    """

    lanes: Mapping[str, str]
    findings: list[Problem]
    named: Sequence[str] = ()
    by_clock: bool = False
    activated: Sequence[str] = ()
    by_people: bool = False
    passed: Mapping[str, int] = NOTHING
    contracts: Sequence[Log] = ()


def look_at_logs(root: str, now: str = "") -> LogsSeen:
    """Return what `check` needs to know about the logs and the files that they name, read once."""
    files = log_files(root)
    if not files:
        return LogsSeen({}, [])
    logs, findings = read_logs(files)
    lanes: dict[str, str] = {}
    passed: Counter[str] = Counter()
    for name, log in logs.items():
        findings += log.findings
        if name != CHECKPOINT_LOG:
            stand = standing(log)
            findings += stand.findings
            lanes[name] = stand.lane if stand.lane == FORKED or (log.sound and not stand.findings) else ""
            passed.update(event.lane_to or "" for event in log.events if event.moves_lane)
    now = now or moment().now
    signatures = {path: read_logged(root, path) for path in paths_below(root, CHECKPOINTS_FOLDER)}
    if signatures or CHECKPOINT_LOG in logs:
        findings += _about_checkpoints(root, logs, {**files, **signatures}, now)
    own = [log for name, log in logs.items() if name != CHECKPOINT_LOG]
    digest_of = partial(digest_here, root)
    reports = reports_of(own)
    findings += [fault for log in own for fault in standing_faults(log, digest_of, now, reports)]
    named = sorted({path for log in own for _, path, _ in named_files(log)})
    activated = [name for name, log in logs.items() if any(event.type == "activated" for event in log.events)]
    by_people = any(_needs_people(event) for log in logs.values() for event in log.events)
    by_clock = CHECKPOINT_LOG in logs or any(may_expire(log, now) for log in own)
    contracts = [log for log in own if in_force(log)]
    return LogsSeen(lanes, findings, named, by_clock, activated, by_people, passed, contracts)


def digest_here(root: str, path: str) -> str | None:
    """Return the digest of a file of the work tree; None if there is no readable one."""
    try:
        return hashlib.sha256(read_bytes(root, path, LARGEST_FILE)).hexdigest()
    except OSError:
        return None


def _needs_people(event: LogEvent) -> bool:
    """Whether the event claims an approval, or a gate that no policy leaves open."""
    return bool(event.attest) or CONSUMING.get(event.type, "") in HUMAN_GATES


def _about_checkpoints(root: str, logs: Mapping[str, Log], files: Mapping[str, bytes], now: str) -> list[Problem]:
    """Report problems with checkpoints, judged by the base. Most repositories have none, so the imports are lazy."""
    from pathlib import Path

    from workpacket.git.repository import find_repository
    from workpacket.shell.judging.log_checkpoints import judged_here

    checkpoints = judged_here(find_repository(Path(root)), "", logs, files, now)
    return [*checkpoint_findings(logs, checkpoints), *signatures_without_event(logs, _below(files))]


def _below(files: Mapping[str, bytes]) -> Iterator[str]:
    return (path for path in files if path.startswith(f"{CHECKPOINTS_FOLDER}/"))


class Verified(Value):
    """The result of `log verify`: the logs, their number of events, the problems, and who vouches for what."""

    logs: Mapping[str, Log]
    files: Mapping[str, bytes]
    events: int
    findings: tuple[Problem, ...]
    checkpoints: tuple[Checkpoint, ...]


def verify_log(repository: Repository, base: str, now: str) -> Verified:
    """Return everything that is wrong with the log, by itself, by its checkpoints and, if one is given, compared with a
    base.
    """
    from workpacket.shell.judging.log_checkpoints import judged_here

    files = append_only_files(str(repository.root))
    events = {path: data for path, data in files.items() if path.startswith(f"{LOG_FOLDER}/")}
    logs, stray = read_logs(events)
    checkpoints = judged_here(repository, base, logs, files, now)
    findings = [*verify_logs(logs, stray, checkpoints), *signatures_without_event(logs, _below(files))]
    if base:
        commit = commit_of(repository, base)
        findings += judge_append_only(repository, commit, files)
    findings.sort(key=lambda finding: finding.order)
    return Verified(logs, files, len(events), tuple(findings), checkpoints)


class Proven(Value):
    """The signatures of all events: how many are proven, how many are by a key that the policy of the base does not
    list for the actor, how many events are unsigned; and the invalid signatures.
    """

    proven: int
    unlisted: int
    unsigned: int
    findings: tuple[Problem, ...]


def verify_signatures(repository: Repository, base: str, verified: Verified) -> Proven:
    """Verify every signature in the log, including those of events on the base.

    If a key was removed from the policy, its earlier events become mere claims, which is not a fault. A signature that
    does not cover its event is a fault.
    """
    from workpacket.approvals.event_signatures import EventSignatures
    from workpacket.shell.base import read_base_policy

    commit = commit_of(repository, base) if base else ""
    signatures = EventSignatures(read_base_policy(repository, commit).lifecycle.actors)
    counts: Counter[str] = Counter()
    findings = []
    for name, log in verified.logs.items():
        if name == CHECKPOINT_LOG:
            continue
        for event in log.events:
            signed = signatures.judge(event, verified.files[event.path])
            invalid = signed.code == "event_signature_invalid"
            counts["invalid" if invalid else signed.state] += 1
            if invalid:
                reason = CHANGE_BY_CODE[signed.code]
                place = Location(event.path)
                findings.append(Problem(signed.code, signed.message, place, reason.remedy, severity=reason.severity))
    return Proven(counts["proven"], counts["refused"], counts["unsigned"], tuple(findings))
