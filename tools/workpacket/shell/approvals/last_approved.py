"""The version of a file that was approved last, looked up in the history by its digest."""

from __future__ import annotations

import hashlib
from datetime import datetime

from workpacket.git.objects import read_objects
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.git.run import run_git
from workpacket.shell.approvals.facts import Approvals
from workpacket.value import Value

# Versions of one file that are looked at, the newest first.
_MOST = 500


class LastApproved(Value):
    """By whom and when; `data` is None where no commit holds that version."""

    approver: str
    at: datetime
    data: bytes | None


def last_approved(approvals: Approvals, packet: str, gate: str, path: str) -> LastApproved | None:
    """The latest approval that its envelope claims for this file. It is only shown, and never counted."""
    said = [
        (each.issued_at, each.approver, subject.sha256)
        for each in approvals.claims.values()
        if (each.packet, each.gate, each.decision) == (packet, gate, "approve")
        for subject in each.subjects
        if subject.name == path
    ]
    if not said:
        return None
    at, approver, digest = max(said)
    return LastApproved(approver, at, _version(approvals.repository, path, digest))


def _version(repository: Repository, path: str, digest: str) -> bytes | None:
    if head_commit(repository) is None or "\n" in path:
        return None
    answer = run_git(repository.root, "log", "--all", f"--max-count={_MOST}", "--format=%H", "--", path)
    versions = read_objects(repository, (f"{commit}:{path}" for commit in answer.text.split()))
    return next((data for data in versions.values() if hashlib.sha256(data).hexdigest() == digest), None)
