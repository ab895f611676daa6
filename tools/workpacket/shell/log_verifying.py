"""Verifying the log of a repository, by itself and against a base revision."""

from __future__ import annotations

from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.ledger.verify import verify_append_only, verify_tree
from workpacket.model.events import LOG_FOLDER, Event
from workpacket.model.findings import Finding
from workpacket.shell.log_files import append_only_files, committed_ids, object_ids


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
