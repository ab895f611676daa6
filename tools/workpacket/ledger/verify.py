"""Verifies the logs beyond what one log shows by itself. A log by itself reveals every change inside it (`read_log`):
an edited byte, other line endings, swapped names, a missing or forged event, an event from elsewhere, a wrong clock, a
second first event. It does not reveal that its end was cut off or replaced with a consistent one. That needs something
outside the log:

- a base revision: nothing under log, approvals and checkpoints may be changed or deleted since;
- a signed checkpoint (`checkpoints`): the heads that CI saw on the protected branch must still exist. Neither reveals
  events that were never written, or ends that were cut off before any base or checkpoint saw them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from workpacket.ledger.checkpoints import Checkpoint, checkpoint_findings
from workpacket.ledger.fold import standing
from workpacket.ledger.log import Log, fault
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.layout import ATTESTATIONS_FOLDER, CHECKPOINTS_FOLDER, LOG_FOLDER
from workpacket.problem import Problem

APPEND_ONLY_FOLDERS: Final = (LOG_FOLDER, ATTESTATIONS_FOLDER, CHECKPOINTS_FOLDER)


def verify_logs(logs: Mapping[str, Log], stray: Iterable[Problem], checkpoints: Iterable[Checkpoint]) -> list[Problem]:
    """Everything that is wrong with these logs, and with the files beside them."""
    findings = [*stray]
    for log in logs.values():
        findings += log.findings
        if log.packet != CHECKPOINT_LOG:
            findings += standing(log).findings
    findings += checkpoint_findings(logs, checkpoints)
    return sorted(findings, key=lambda finding: finding.order)


def verify_append_only(base: Mapping[str, str], head: Mapping[str, str]) -> list[Problem]:
    """Files of the base that are missing or changed; both arguments map paths to digests of the same kind."""
    findings: list[Problem] = []
    for path, digest in base.items():
        if not path.startswith(tuple(f"{folder}/" for folder in APPEND_ONLY_FOLDERS)):
            continue
        if path not in head:
            findings.append(fault("log_file_deleted", path, "it is on the base but missing here"))
        elif head[path] != digest:
            findings.append(fault("log_file_modified", path, "it differs from the base"))
    return findings
