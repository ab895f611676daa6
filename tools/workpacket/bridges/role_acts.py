"""The milestones of a role: each is one record in the log and one line in the role's file. Every operation starts by
synchronizing file and log. Contradictions, and files held by another writer, stop the operation before anything is
written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.bridges.foreign import CheckpointDesk, Foreign, Placed, genesis_of, refusal_of_file, require_no_secret
from workpacket.bridges.role_facts import (
    ADVANCED,
    IMPORTED,
    RoleBridge,
    RoleFacts,
    RoleKey,
    RoleState,
    artifact_rows,
    digest_of,
    digests,
    facts_of,
    fields_of,
    foreign_of,
    named_in,
    read_folder,
)
from workpacket.documents.role_progress import KEYS, PHASES, RoleProgress, advanced, canonical, front_of, is_open
from workpacket.model.canonical import Json
from workpacket.model.plan import FileChange
from workpacket.problem import WorkpacketError
from workpacket.runtime.errors import LeaseHeld
from workpacket.runtime.holders import at_work
from workpacket.runtime.stores.contract import Lease
from workpacket.shell.actor import moment
from workpacket.shell.transactions.storage import Tree
from workpacket.text.source import MARKDOWN, Source
from workpacket.text.yaml_edit import CannotEdit

# How long the right to write lasts after each milestone, unless the process that took it is known to be dead.
LEASE_SECONDS = 3600.0
LONGEST = 1000


class Milestone(NamedTuple):
    """The resulting status ('' if unchanged), and the default note ('' if the caller must supply one)."""

    status: str
    note: str


MILESTONES: Mapping[str, Milestone] = {
    "claimed": Milestone("in_progress", "Claimed the task"),
    "drafted": Milestone("in_progress", "Drafted the plan"),
    "review-requested": Milestone("awaiting_review", "Requested a review"),
    "review-approved": Milestone("in_progress", "The review approved the work"),
    "blocked": Milestone("blocked", ""),
    "done": Milestone("complete", "Done"),
    "note": Milestone("", ""),
}
CLOSED = "closed"
RESUMED = "resumed"
_UNNAMED = {
    CLOSED: Milestone("complete", "Closed together with the feature"),
    RESUMED: Milestone("", "Resumed the work"),
}
ENDS = frozenset({"done", CLOSED})


@dataclass(slots=True)
class RoleDesk(CheckpointDesk[RoleFacts]):
    """One command operating on the checkpoint of one role. `caller` is the writer: agent#instance, or processes."""

    command = "progress"

    root: str
    key: RoleKey
    lanes: Mapping[str, str]
    vocabularies: Mapping[str, Sequence[str]]
    lease: Lease | None = field(default=None, init=False)

    def gather(self) -> RoleFacts:
        notes = notes_in(self.transaction.workspace.work_tree, self.key.feature)
        return facts_of(self.key, self.runtime, notes, self.lanes)

    def acquire(self) -> None:
        """Acquire the right to write the file: take it, renew it, or take it over from a dead process."""
        present = self.facts.lease
        free = present is not None and not at_work(present.holder, self.caller)
        over = present.token if present is not None and free else None
        try:
            self.lease = self.runtime.store.acquire(self.log.stream, self.caller.name, LEASE_SECONDS, over=over)
        except LeaseHeld as held:
            holder = str(held.details["holder"])
            message = f"{self.facts.path}: {at_work(holder, self.caller) or holder} is its writer"
            raise LeaseHeld(message, details=held.details) from None

    def take_over(self) -> None:
        document = self.facts.document
        if document is None:
            raise WorkpacketError("checkpoint_missing", f"{self.facts.path} does not exist, so it cannot be adopted")
        found = RoleBridge().read(self.facts.path, document.source.encode())
        if not isinstance(found[0], Foreign):
            raise refusal_of_file(document.source, found[0])
        checkpoint = foreign_of(document)
        require_no_secret(checkpoint, self.facts.path, self.runtime.settings.redactor)
        data = genesis_of(Placed(checkpoint, self.facts.path, 0))
        self.record(IMPORTED, data, lease=self.lease, payload=dict(checkpoint.values))

    def write(self, *, with_note: bool = True) -> None:
        """Update the file's fields and last note from the log, and reread the file. The note is the stored one, without
        secrets.
        """
        facts = self.facts
        state = facts.state
        new = (
            canonical(state.front, state.body)
            if facts.document is None
            else _brought_up(facts.document, state, state.note if with_note else "")
        )
        old = facts.document.source.digest if facts.document is not None else None
        self.replace_files(FileChange(facts.path, old, new))


def notes_in(tree: Tree, feature: str) -> dict[str, RoleProgress]:
    """Return the notes about a feature. Links are not followed."""

    def read(path: str) -> bytes | None:
        found = tree.read(path)
        return None if found is None else found.data[: MARKDOWN.size + 1]

    return read_folder(tree.names, read, about=feature)


def _brought_up(document: RoleProgress, state: RoleState, note: str) -> bytes:
    fields = {key: value for key, value in state.fields._asdict().items() if value or key in state.front}
    try:
        return advanced(document, fields, note)
    except CannotEdit as error:
        raise WorkpacketError("role_file_unwritable", str(error), path=document.path) from error


def reach(desk: RoleDesk, milestone: str, *, text: str = "", phase: str = "", artifacts: Sequence[str] = ()) -> None:
    """Record that the role reached a milestone. `artifacts` are files that the text does not mention."""
    known = MILESTONES.get(milestone) or _UNNAMED[milestone]
    words = " ".join(text.split()) or known.note
    facts = desk.facts
    feature, team, agent = facts.names
    note = _naming(desk, words, artifacts)
    if not words or len(note) > LONGEST or not note.isprintable():
        message = f"{milestone}: describe what happened in one line (at most {LONGEST} characters)"
        raise WorkpacketError("invalid_value", message)
    if facts.closed_by and milestone not in ENDS:
        raise WorkpacketError("role_feature_closed", f"{feature} is complete: {facts.closed_by}", path=facts.path)
    vocabulary = desk.vocabularies.get(team, PHASES)
    phase = phase or facts.fields.phase or vocabulary[0]
    if phase not in vocabulary and phase != facts.fields.phase:
        message = f"{phase!r} is not a phase of {team}; its phases are: {', '.join(vocabulary)}"
        raise WorkpacketError("role_phase_foreign", message)
    desk.refuse_contradictions()
    desk.acquire()
    desk.catch_up()
    now = moment().now
    fields = facts.fields
    data: dict[str, Json] = {
        "milestone": milestone, "feature": feature, "team": team, "agent": agent, "phase": phase,
        "status": known.status or fields.status or "in_progress",
        "last_action": fields.last_action if milestone == RESUMED else words,
        "updated": now, "note": f"[{now[11:16]}] {note}", "instance": desk.caller.name,
        "artifacts": artifact_rows(_artifacts(desk, note, artifacts)),
    }  # fmt: skip
    _require_writable(desk, data)
    desk.record(ADVANCED, data, lease=desk.lease)
    desk.write()
    if milestone in ENDS and desk.lease is not None:
        desk.runtime.store.release(desk.lease)


def _naming(desk: RoleDesk, words: str, artifacts: Sequence[str]) -> str:
    """Return the note: the text, and the files that it does not mention."""
    missing = [path for path in artifacts if digest_of(desk.root, path) is None]
    if missing:
        raise WorkpacketError("invalid_value", f"{missing[0]!r} is not a file in this repository", path=missing[0])
    further = [path for path in dict.fromkeys(artifacts) if path not in named_in([words])]
    return f"{words} ({', '.join(further)})" if further else words


def _artifacts(desk: RoleDesk, note: str, artifacts: Sequence[str]) -> dict[str, str]:
    """Return the files that the role has mentioned so far, with their current digests. A path that contains a secret
    could not be stored in full.
    """
    facts, clean = desk.facts, desk.runtime.settings.redactor.clean_text
    notes = [item.text for item in facts.document.notes()] if facts.document is not None else []
    named = (*facts.state.artifacts, *named_in([*notes, note]), *artifacts)
    return digests(desk.root, (path for path in named if clean(path) == path), facts.path)


def _require_writable(desk: RoleDesk, data: Mapping[str, Json]) -> None:
    """Try out the change before it is logged."""
    fields = {key: str(data[key]) for key in KEYS}
    document, note = desk.facts.document, str(data["note"])
    try:
        made = advanced(document, fields, note) if document is not None else canonical(fields, desk.facts.state.body)
    except CannotEdit as error:
        raise WorkpacketError("role_file_unwritable", str(error), path=desk.facts.path) from error
    written = RoleProgress(Source.from_bytes(desk.facts.path, made))
    if not written.is_checkpoint or written.faults:
        message = f"{desk.facts.path} would be read as a {written.note}, not as a role checkpoint"
        raise WorkpacketError("invalid_value", message)


def adopt(desk: RoleDesk) -> None:
    """Accept the file, regardless of the log."""
    desk.acquire()
    desk.take_over()
    desk.look()


def restore(desk: RoleDesk) -> None:
    """Restore the fields of the file from the log; its notes are left unchanged."""
    if not desk.facts.state.version:
        raise WorkpacketError("checkpoint_missing", f"{desk.facts.path} has no log to restore it from")
    desk.acquire()
    desk.write(with_note=False)


def open_roles(notes: Mapping[str, RoleProgress], feature: str) -> dict[str, tuple[str, str, str]]:
    """Return a feature's open roles according to their files: feature, agent and team."""
    found = {}
    for path, note in notes.items():
        fields = fields_of(front_of(note))
        if note.is_checkpoint and fields.feature.casefold() == feature.casefold() and is_open(fields.status):
            found[path] = (fields.feature, fields.agent, fields.team)
    return found
