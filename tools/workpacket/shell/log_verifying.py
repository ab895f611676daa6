"""Verifying the log of a repository, by itself and against a base revision."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial

from workpacket.audit.standing import may_expire, named_files, standing_faults
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.ledger.lanes import standing
from workpacket.ledger.verify import read_logs, verify_append_only, verify_checkpoints, verify_tree
from workpacket.lifecycle.approval_terms import CONSUMING, HUMAN_GATES
from workpacket.model.event_types import CHECKPOINT_LOG, FORKED
from workpacket.model.events import LOG_FOLDER, Event
from workpacket.model.findings import Finding
from workpacket.shell.log_files import append_only_files, committed_ids, log_files, object_ids
from workpacket.shell.moment import moment
from workpacket.shell.tree import read_bytes
from workpacket.value import Value

_LARGEST_FILE = 64 * 1024 * 1024


class LogsSeen(Value):
    """The lane of each packet that has a log, '' where the log does not hold together; and all that is wrong with them.

    `named` are the files that they rest on. `passing` says that time alone can change the findings. `activated` are the
    packets that were made from a stub; `rests_on_people` says whether any event needs an approval, or names one.
    """

    lanes: Mapping[str, str]
    findings: list[Finding]
    named: Sequence[str] = ()
    passing: bool = False
    activated: Sequence[str] = ()
    rests_on_people: bool = False


def look_at_logs(root: str, now: str = "") -> LogsSeen:
    """What `check` needs to know of the logs and of the files that they name, read once."""
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
            lanes[name] = stand.lane if stand.lane == FORKED or (log.sound and not stand.findings) else ""
    findings += verify_checkpoints(logs, _no_signature_counts)
    own = [log for name, log in logs.items() if name != CHECKPOINT_LOG]
    now = now or moment().now
    digest_of = partial(digest_here, root)
    findings += [fault for log in own for fault in standing_faults(log, digest_of, now)]
    named = sorted({path for log in own for _, path, _ in named_files(log)})
    activated = [name for name, log in logs.items() if any(event.type == "activated" for event in log.events)]
    people = any(_needs_people(event) for log in logs.values() for event in log.events)
    return LogsSeen(lanes, findings, named, any(may_expire(log, now) for log in own), activated, people)


def digest_here(root: str, path: str) -> str | None:
    """The digest of a file of the work tree; None where there is none that can be read."""
    try:
        return hashlib.sha256(read_bytes(root, path, _LARGEST_FILE)).hexdigest()
    except OSError:
        return None


def _needs_people(event: Event) -> bool:
    """Whether the event claims a gate that no policy leaves open, or an approval."""
    return bool(event.attest) or CONSUMING.get(event.type, "") in HUMAN_GATES


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
