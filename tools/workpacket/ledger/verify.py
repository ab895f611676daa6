"""Verify the logs beyond what one log shows by itself. A log by itself reveals every change inside it (`read_log`): an
edited byte, other line endings, swapped names, a missing or forged event, an event from elsewhere, a wrong clock, a
second first event. It does not reveal that its end was cut off or replaced with a consistent one. That needs something
outside the log:

- a base revision: nothing under log, approvals and checkpoints may be changed or deleted since then;
- a signed checkpoint (`checkpoints`): the heads that CI saw on the protected branch must still exist.

Neither
  reveals events that were never written, or ends that were cut off before any base or checkpoint recorded them.

A
  checkpoint records the heads that the protected branch had. Every checkpoint includes the digests of the earlier ones,
  so a signature covers its own checkpoint and all before it: a checkpoint signed by a revoked key becomes valid again
  when CI signs the next one. Higher layers judge who signed and whether that counts; here their verdict is an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from workpacket.ledger.fold import standing
from workpacket.ledger.log import Log, NewLogEvent, fault
from workpacket.model.canonical import Json
from workpacket.model.event_types import CHECKPOINT_LOG, PACKETS_PER_CHECKPOINT
from workpacket.model.events import LogEvent, event_path
from workpacket.model.layout import APPEND_ONLY_FOLDERS, CHECKPOINTS_FOLDER
from workpacket.problem import Problem
from workpacket.value import Value

SIGNATURE_ENDING: Final = ".sshsig"


class Vouching(Value):
    """The verdict on the signature of a checkpoint. `by` is the valid signer or ''; `fault` is a code. A `broken`
    signature was tampered with; other faults may merely be due to the passage of time.
    """

    by: str = ""
    key: str = ""
    fault: str = ""
    message: str = ""
    broken: bool = False


class Checkpoint(Value):
    """A judged checkpoint. `by` is the signer of this checkpoint or of a later one."""

    event: LogEvent
    own: Vouching
    by: str


class NamedHeads(Value):
    """The heads of one packet in a checkpoint, and who vouches for the checkpoint."""

    checkpoint: str
    at: str
    by: str
    heads: tuple[str, ...]


class Reach(Value):
    """How much of a packet's log is covered: the number of events up to the heads listed in `checkpoint`."""

    packet: str
    heads: tuple[str, ...]
    events: int
    vouched: int
    checkpoint: str
    by: str


Verifier: TypeAlias = Callable[[LogEvent], Vouching]


def signature_path(event_id: str) -> str:
    return f"{CHECKPOINTS_FOLDER}/{event_id}{SIGNATURE_ENDING}"


def judge_checkpoints(logs: Mapping[str, Log], verifier: Verifier) -> tuple[Checkpoint, ...]:
    """Return all checkpoints in log order, each with its signer."""
    log = logs.get(CHECKPOINT_LOG)
    events = log.events if log is not None else ()
    later: dict[str, str] = {}
    judged = []
    # Backwards: later checkpoints cover earlier ones.
    for event in reversed(events):
        own = verifier(event)
        by = own.by or later.get(event.id, "")
        if by:
            for parent in event.parents:
                later.setdefault(parent, by)
        judged.append(Checkpoint(event, own, by))
    return tuple(reversed(judged))


def checkpoint_faults(checkpoints: Iterable[Checkpoint]) -> list[Problem]:
    """Return problems with the signatures of checkpoints."""
    findings: list[Problem] = []
    for each in checkpoints:
        event, own = each.event, each.own
        if own.broken or not each.by:
            path = event.path if own.fault == "log_checkpoint_unsigned" else signature_path(event.id)
            findings.append(fault(own.fault, path, own.message))
    return findings


def named_heads(checkpoints: Iterable[Checkpoint]) -> dict[str, tuple[NamedHeads, ...]]:
    """Return the heads listed in valid checkpoints, by packet, in log order."""
    named: dict[str, tuple[NamedHeads, ...]] = {}
    for each in checkpoints:
        if each.by:
            for packet, heads in checkpointed_heads(each.event):
                here = NamedHeads(each.event.id, each.event.at, each.by, heads)
                named[packet] = (*named.get(packet, ()), here)
    return named


def lost_heads(packet: str, log: Log | None, named: Iterable[NamedHeads]) -> list[Problem]:
    """Return every head that is listed in a checkpoint but missing from the packet's log."""
    # Only the heads are compared: an event contains the hashes of its parents, so a head that is present vouches for
    # everything before it.
    return [
        fault(
            "log_truncated",
            event_path(packet, head),
            f"checkpoint {each.checkpoint[:12]} of {each.at}, signed by {each.by}, lists it",
        )
        for each in named
        for head in each.heads
        if log is None or not (head in log.by_id or head in log.renamed)
    ]


def signatures_without_event(logs: Mapping[str, Log], paths: Iterable[str]) -> list[Problem]:
    """Report signatures whose checkpoint is not in the log: it was removed, or a file has the wrong name."""
    log = logs.get(CHECKPOINT_LOG)
    known = {signature_path(identity) for identity in log.by_id} if log is not None else set()
    message = "the log has no checkpoint with this name"
    return [fault("log_checkpoint_missing", path, message) for path in paths if path not in known]


def reach(log: Log, named: Sequence[NamedHeads]) -> Reach:
    """Return how much of a packet's log is covered, by which checkpoint, and who signed it."""
    covered = log.ancestry(head for each in named for head in each.heads)
    last = named[-1] if named else NamedHeads("", "", "", ())
    return Reach(log.packet, log.heads, len(log.by_id), len(covered), last.checkpoint, last.by)


def checkpoints_due(
    packets: Iterable[Reach], named: Mapping[str, Sequence[NamedHeads]], commit: str
) -> list[NewLogEvent]:
    """Return what to write to the checkpoint log for `commit`: the packets whose current heads are not covered. Several
    events if there are many packets, because events are limited in size; none if nothing has changed.
    """
    rows: list[Json] = [
        {"packet": each.packet, "heads": list(each.heads), "events": each.events}
        for each in sorted(packets, key=lambda each: each.packet)
        if each.heads and each.heads != (named[each.packet][-1].heads if each.packet in named else ())
    ]
    return [
        NewLogEvent("checkpoint", {"commit": commit, "logs": rows[start : start + PACKETS_PER_CHECKPOINT]})
        for start in range(0, len(rows), PACKETS_PER_CHECKPOINT)
    ]


def checkpointed_heads(checkpoint: LogEvent) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield the packets in a checkpoint event, each with its heads."""
    rows = checkpoint.data["logs"]
    assert isinstance(rows, list)
    for row in rows:
        assert isinstance(row, dict)
        heads = row["heads"]
        assert isinstance(heads, list)
        yield str(row["packet"]), tuple(str(head) for head in heads)


def log_faults(log: Log) -> list[Problem]:
    """Return all faults that a packet's log reveals by itself."""
    return [*log.findings, *standing(log).findings]


def verify_append_only(base: Mapping[str, str], head: Mapping[str, str]) -> list[Problem]:
    """Report base files that are missing or changed; both arguments map paths to digests of the same kind."""
    findings: list[Problem] = []
    for path, digest in base.items():
        if not path.startswith(tuple(f"{folder}/" for folder in APPEND_ONLY_FOLDERS)):
            continue
        if path not in head:
            findings.append(fault("log_file_deleted", path, "it is on the base but missing here"))
        elif head[path] != digest:
            findings.append(fault("log_file_modified", path, "it differs from the base"))
    return findings
