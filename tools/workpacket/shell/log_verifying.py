"""Verifying the log of a repository, by itself and against a base revision."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.ledger.lanes import standing
from workpacket.ledger.verify import read_logs, verify_append_only, verify_checkpoints, verify_tree
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import LOG_FOLDER, Event
from workpacket.model.findings import Finding
from workpacket.shell.log_files import append_only_files, committed_ids, log_files, object_ids
from workpacket.value import Value


class LogsSeen(Value):
    """The lane of each packet that has a log, and all that is wrong with the logs."""

    lanes: Mapping[str, str]
    findings: list[Finding]


def look_at_logs(root: str) -> LogsSeen:
    """What `check` needs to know of the logs, read once."""
    files = log_files(root)
    if not files:
        return LogsSeen({}, [])
    logs, findings = read_logs(files)
    lanes: dict[str, str] = {}
    for name, log in logs.items():
        findings += log.findings
        if name != CHECKPOINT_LOG:
            stand = standing(log)
            findings += stand.findings
            lanes[name] = stand.lane
    findings += verify_checkpoints(logs, _no_signature_counts)
    return LogsSeen(lanes, findings)


def verify_log(repository: Repository, base: str = "") -> tuple[list[Finding], int]:
    """Everything that is wrong with the log, and how many events there are."""
    files = append_only_files(str(repository.root))
    logs = {path: data for path, data in files.items() if path.startswith(f"{LOG_FOLDER}/")}
    findings = verify_tree(logs, _no_signature_counts)
    if base:
        commit = commit_of(repository, base)
        there = committed_ids(repository, commit)
        sha256 = len(commit) == 64
        findings += verify_append_only(there, object_ids(files, sha256=sha256))
    return sorted(findings, key=lambda finding: finding.order), len(logs)


def _no_signature_counts(_event: Event) -> str:
    """Until the approvals layer judges them, a signed checkpoint proves nothing here."""
    return "no signature of a checkpoint can be verified by this version"
