"""Proving that the logs are what was written, beyond what one log shows by itself.

By itself a log shows every change inside it (`read_log`): an edited byte, other line ends, exchanged names, a missing
or re-made event, an event from elsewhere, a false clock, a second beginning. It does not show that its end was cut off,
or replaced from some point on by a consistent other end. That shows against something outside of it:

- a base revision: nothing under the log and the approvals may be changed or deleted since;
- a signed checkpoint: the heads that CI saw on the protected branch must still be there.

What neither shows: events that were never written, and ends that were cut off before any base or checkpoint saw them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from workpacket.ledger.append import Happening
from workpacket.ledger.faults import fault
from workpacket.ledger.lanes import standing
from workpacket.ledger.log import Log, read_log
from workpacket.model.canonical import Json
from workpacket.model.event_types import CHECKPOINT_LOG, PACKETS_PER_CHECKPOINT
from workpacket.model.events import ATTESTATIONS_FOLDER, LOG_FOLDER, Event, event_path
from workpacket.model.findings import Finding

APPEND_ONLY_FOLDERS: Final = (LOG_FOLDER, ATTESTATIONS_FOLDER)

# Says why the signature of a checkpoint event does not count; "" if it does. The approvals layer supplies it.
CheckpointVerifier: TypeAlias = Callable[[Event], str]


def verify_tree(files: Mapping[str, bytes], checkpoint_verifier: CheckpointVerifier) -> list[Finding]:
    """Everything that is wrong with the log files of a repository, given by path."""
    logs, stray = read_logs(files)
    findings = [*stray]
    for log in logs.values():
        findings += log.findings
        if log.packet != CHECKPOINT_LOG:
            findings += standing(log).findings
    findings += verify_checkpoints(logs, checkpoint_verifier)
    return sorted(findings, key=lambda finding: finding.order)


def read_logs(files: Mapping[str, bytes]) -> tuple[dict[str, Log], list[Finding]]:
    """The logs by packet, and findings about files that lie beside them."""
    folders: dict[str, dict[str, bytes]] = {}
    stray: list[Finding] = []
    for path, data in files.items():
        packet, slash, name = path.removeprefix(f"{LOG_FOLDER}/").partition("/")
        if slash and "/" not in name:
            folders.setdefault(packet, {})[name] = data
        else:
            stray.append(fault("log_foreign_file", path, "events lie in the folder of their packet and nowhere else"))
    return {packet: read_log(packet, folder) for packet, folder in sorted(folders.items())}, stray


def verify_append_only(base: Mapping[str, str], head: Mapping[str, str]) -> list[Finding]:
    """Nothing that the base holds is gone or different; both map paths to digests of the same kind."""
    findings: list[Finding] = []
    for path, digest in base.items():
        if not path.startswith(tuple(f"{folder}/" for folder in APPEND_ONLY_FOLDERS)):
            continue
        if path not in head:
            findings.append(fault("log_file_deleted", path, "the base holds it, and here it is gone"))
        elif head[path] != digest:
            findings.append(fault("log_file_modified", path, "it is not what the base holds"))
    return findings


def verify_checkpoints(logs: Mapping[str, Log], verifier: CheckpointVerifier) -> list[Finding]:
    """Every head that a signed checkpoint names is still in its log."""
    checkpoints = logs.get(CHECKPOINT_LOG)
    findings: list[Finding] = []
    for event in checkpoints.events if checkpoints is not None else ():
        objection = verifier(event)
        if objection:
            findings.append(fault("log_checkpoint_unsigned", event.path, objection))
            continue
        for packet, heads in checkpointed_heads(event):
            log = logs.get(packet)
            named = f"the checkpoint {event.id[:12]} of {event.at} names it"
            findings += [
                fault("log_truncated", event_path(packet, head), named)
                for head in heads
                if log is None or head not in log.by_id
            ]
    return findings


def checkpoints_due(logs: Mapping[str, Log], commit: str) -> list[Happening]:
    """What to write into the checkpoint log for `commit`: the packets whose heads no checkpoint names as they are now.

    Several events when there are many packets, because an event has a limit; none when nothing has changed.
    """
    checkpoints = logs.get(CHECKPOINT_LOG)
    named: dict[str, tuple[str, ...]] = {}
    for event in checkpoints.events if checkpoints is not None else ():
        named.update(checkpointed_heads(event))
    rows: list[Json] = [
        {"packet": packet, "heads": list(log.heads), "events": len(log.by_id)}
        for packet, log in sorted(logs.items())
        if packet != CHECKPOINT_LOG and log.heads and log.heads != named.get(packet)
    ]
    return [
        Happening("checkpoint", {"commit": commit, "logs": rows[start : start + PACKETS_PER_CHECKPOINT]})
        for start in range(0, len(rows), PACKETS_PER_CHECKPOINT)
    ]


def checkpointed_heads(checkpoint: Event) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The packets that a checkpoint event names, each with its heads."""
    rows = checkpoint.data["logs"]
    assert isinstance(rows, list)
    for row in rows:
        assert isinstance(row, dict)
        heads = row["heads"]
        assert isinstance(heads, list)
        yield str(row["packet"]), tuple(str(head) for head in heads)
