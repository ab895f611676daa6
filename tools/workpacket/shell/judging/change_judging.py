"""`check --base REV`: the change between a revision and the work tree, judged by the policy of that revision."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.ledger.log import Log
from workpacket.ledger.verify import read_logs, verify_append_only
from workpacket.lifecycle.judging import judge_change
from workpacket.lifecycle.policy import POLICY_PATH
from workpacket.lifecycle.reports import reports_of
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import LOG_FOLDER
from workpacket.model.findings import Finding
from workpacket.model.reason_tables.judging import BY_CODE
from workpacket.shell.base.policy import read_base_policy
from workpacket.shell.governed_files import find_governed
from workpacket.shell.judging.change_around import around
from workpacket.shell.judging.log_verifying import digest_here
from workpacket.shell.log_files import append_only_files, committed_ids, object_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.added_lanes import LaneFault


def _brings_moves(logs: Iterable[Log], known: frozenset[str]) -> bool:
    return any(event.moves_lane and event.id not in known for log in logs for event in log.events)


def _unfit(fault: LaneFault) -> Finding:
    """That nobody can say which moves of the change are legal."""
    reason = BY_CODE["base_lanes_unfit"]
    message = f"the policy of the base adds lanes that do not hold: {fault.message}"
    return Finding(reason.code, reason.severity, POLICY_PATH, 0, 0, message, hint=fault.hint)


def judge(repository: Repository, base: str) -> list[Finding]:
    """Everything that stands against the change since `base`."""
    commit = commit_of(repository, base)
    root = str(repository.root)
    files = append_only_files(root)
    there = committed_ids(repository, commit)
    findings = verify_append_only(there, object_ids(files, sha256=len(commit) == 64))
    known = frozenset(path.rpartition("/")[2].removesuffix(".json") for path in there)
    logs, _ = read_logs({path: data for path, data in files.items() if path.startswith(f"{LOG_FOLDER}/")})
    governed = find_governed(root)
    policy = read_base_policy(repository, commit).lifecycle
    findings += [_unfit(fault) for fault in policy.lane_faults[:1] if _brings_moves(logs.values(), known)]
    packets = {name: log for name, log in logs.items() if name in governed.known}
    reports = reports_of(logs.values())
    for name, log in logs.items():
        if name != CHECKPOINT_LOG:
            digest_of = partial(digest_here, root)
            beside = partial(around, repository, commit, governed, packets, name, policy)
            for judged in judge_change(
                log, known, digest_of, beside, governed=bool(known), reports=reports, lanes=policy.lanes
            ):
                reason = BY_CODE[judged.code]
                message = f"{name}: {judged.message}"
                findings.append(
                    Finding(judged.code, reason.severity, judged.event.path, 0, 0, message, hint=reason.remedy)
                )
    return findings
