"""Checkpoint signatures: read them, judge them by the base's policy, and make them.

A checkpoint on the base is judged by the policy before the commit that added its signature, at the time of that commit;
any other checkpoint by the base's current policy, at the current time. Revocations are always those on the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.approvals.event_signatures import judge_signature
from workpacket.approvals.fields import read_instant
from workpacket.approvals.policy import Trusted, read_policy_files
from workpacket.approvals.sshsig import CHECKPOINT_NAMESPACE, armor
from workpacket.git.objects import status
from workpacket.git.repository import Repository, head_commit
from workpacket.ledger.log import EventWriter, Log, next_event
from workpacket.ledger.verify import (
    Checkpoint,
    Vouching,
    checkpoints_due,
    judge_checkpoints,
    named_heads,
    signature_path,
)
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import Actor, LogEvent
from workpacket.model.layout import APPEND_ONLY_FOLDERS, CHECKPOINTS_FOLDER, LOG_FOLDER
from workpacket.model.plan import FileChange, FolderSeen, Moment, Plan
from workpacket.problem import Problem, WorkpacketError
from workpacket.shell.base import Base, Place, find_base, judge_pin, unanchored
from workpacket.shell.keys import OwnKey, sign
from workpacket.shell.transactions.transaction import refuse_during_merge, writing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.judging.log_verification import Verified


class Judge:
    """Judges a repository's checkpoints according to its base. `files` are their events and signatures, by path."""

    def __init__(self, repository: Repository, revision: str, files: Mapping[str, bytes], now: str) -> None:
        self._base: Base = find_base(repository, revision or None)
        self._files = files
        read = read_instant(now)
        assert read is not None, now
        self._now = read

    def __call__(self, event: LogEvent) -> Vouching:
        armored = self._files.get(signature_path(event.id))
        if armored is None:
            return Vouching(fault="log_checkpoint_unsigned", message="it is not signed")
        return self.signed(event, armored)

    def signed(self, event: LogEvent, armored: bytes) -> Vouching:
        place = self._base.place_of(signature_path(event.id), CHECKPOINTS_FOLDER)
        # The signature is over the bytes of the file. A checkpoint that is being made has no file yet.
        message = self._files.get(event.path) or event.encode()
        # A checkpoint that has landed stays valid when its key expires; a new one must be valid now.
        judged_at = place.on_base_since or self._now
        return judge_signature(message, armored, self._trusted(place), read_instant(event.at), judged_at)

    def _trusted(self, place: Place) -> Trusted | tuple[Problem, ...]:
        pin = judge_pin(self._base)
        if isinstance(pin, Problem):
            return (pin,)
        if self._base.policy.policy is None:
            return (unanchored(self._base),)
        return read_policy_files(place.policy, self._base.policy.revoked_keys)


def make_checkpoint(
    repository: Repository, verified: Verified, judge: Judge, key: OwnKey, actor: Actor, tool: str, now: Moment
) -> list[LogEvent]:
    """Sign and write the checkpoint due at HEAD; return the events, or none if everything is already covered.

    A checkpoint is not written if its signature would not count.
    """
    refuse_during_merge(repository)
    commit = head_commit(repository)
    uncommitted = status(repository, *(f"{folder}/" for folder in APPEND_ONLY_FOLDERS))
    if commit is None or uncommitted:
        what = "nothing is committed yet" if commit is None else f"{uncommitted[0].path} is not committed"
        hint = "a checkpoint covers only committed events: git commit, then: workpacket log checkpoint"
        raise WorkpacketError("work_uncommitted", what, hint=hint)
    named = named_heads(verified.checkpoints)
    writer = EventWriter(actor, now.now, now.tx, tool)
    log = verified.log
    after = [log.by_id[head] for head in log.heads] if log is not None else []
    events: list[LogEvent] = []
    # Each one follows the one before, so that what one call writes is a chain and not a fork.
    for happening in checkpoints_due(verified.packets, named, commit):
        events.append(next_event(writer, CHECKPOINT_LOG, happening, after=after))
        after = events[-1:]
    signatures = [_signature(judge, event, key) for event in events]
    if events:
        _write(repository, log, events, signatures, now)
    return events


def _signature(judge: Judge, event: LogEvent, key: OwnKey) -> FileChange:
    armored = armor(sign(event.encode(), key.path, CHECKPOINT_NAMESPACE)).encode()
    vouching = judge.signed(event, armored)
    if not vouching.by:
        hint = (
            "in the policy on the base, add the key to allowed_signers for workpacket-checkpoint@v1, and give "
            "its owner the ci role"
        )
        raise WorkpacketError(vouching.fault, vouching.message, hint=hint)
    return FileChange(signature_path(event.id), None, armored)


def _write(
    repository: Repository, log: Log | None, events: Sequence[LogEvent], signatures: Sequence[FileChange], now: Moment
) -> None:
    folder = f"{LOG_FOLDER}/{CHECKPOINT_LOG}"
    seen = FolderSeen(folder, frozenset(f"{identity}.json" for identity in (log.by_id if log is not None else ())))
    plan = Plan("log checkpoint", now.tx, tuple(signatures), tuple(events), (seen,))
    with writing(repository, "log checkpoint") as transaction:
        transaction.apply(plan)


def judged_here(
    repository: Repository, revision: str, logs: Mapping[str, Log], files: Mapping[str, bytes], now: str
) -> tuple[Checkpoint, ...]:
    """Return the judged checkpoints of these logs. If there are none, the base is not looked up."""
    if CHECKPOINT_LOG not in logs:
        return ()
    return judge_checkpoints(logs, Judge(repository, revision, files, now))
