"""One command at work on one scope: what it sees, and its two ways of writing, the log first and then the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from workpacket.bridges import batch_records as records
from workpacket.bridges.batch_facts import BatchFacts, folder_named, gather
from workpacket.bridges.stream_log import StreamLog
from workpacket.documents.batch import BatchCheckpoint
from workpacket.documents.batch_writing import with_statuses, written
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.model.canonical import Json
from workpacket.model.plan import FileChange, Plan
from workpacket.runtime.at_work import NOBODY, Caller
from workpacket.runtime.records.values import stored_text
from workpacket.runtime.runtime import Runtime
from workpacket.shell.moment import moment
from workpacket.shell.transactions.transaction import Transaction
from workpacket.text.yaml_edit import CannotEdit


@dataclass(slots=True)
class BatchDesk:
    """`caller` is who the work is begun for. `said` is what there is to tell the person."""

    repository: Repository
    runtime: Runtime
    transaction: Transaction
    folder: str
    caller: Caller = NOBODY
    said: list[str] = field(default_factory=list)
    facts: BatchFacts = field(init=False)
    log: StreamLog = field(init=False)

    def __post_init__(self) -> None:
        self.folder = folder_named(self.folder, self._read)
        self.look()

    def look(self) -> None:
        self.facts, self.log = gather(self.repository, self.runtime, self._read, self.folder)

    def _read(self, path: str) -> bytes | None:
        found = self.transaction.workspace.work_tree.read(path)
        return None if found is None else found.data

    def record(self, type_: str, data: Mapping[str, Json], payload: Json = None) -> None:
        """Append to the log; when this returns, the record is durable and the state is the one after it."""
        version = self.facts.state.version
        self.facts.state.apply(self.log.append(type_, data, expected_version=version, payload=payload))

    def write(self, done: frozenset[str] = frozenset()) -> None:
        """Bring the files to what the log says, both or none, and look again. Tasks in `done` get that status."""
        facts = self.facts
        try:
            data = written(facts.checkpoint, facts.folder, facts.state.view, facts.words)
            tasks = with_statuses(facts.tasks, done)
        except CannotEdit as error:
            raise WorkpacketError("batch_file_unwritable", str(error)) from error
        old = facts.checkpoint.source.digest if facts.checkpoint is not None else None
        changes = (
            FileChange(f"{facts.folder}/checkpoint.yaml", old, data),
            FileChange(facts.tasks.path, facts.tasks.source.digest, tasks),
        )
        self.transaction.apply(Plan("batch", moment().tx, changes))
        self.look()

    def take_over(self, *, adopted: bool) -> None:
        """Make what the file says the log's view."""
        if self.facts.checkpoint is None:
            raise WorkpacketError("batch_scope_missing", f"there is no {self.folder}/checkpoint.yaml to adopt")
        reviewers: list[Json] = list(self.facts.reviewers)
        data: dict[str, Json] = {"digest": self.facts.checkpoint.source.digest, "adopted": adopted}
        view, held = self.facts.stated.as_json(), self.facts.preconditions().as_json()
        self.record(
            records.IMPORTED,
            {**data, "view": view, "reviewers": reviewers, "preconditions": held},
            payload=self._without_secrets(self.facts.checkpoint),
        )

    def _without_secrets(self, checkpoint: BatchCheckpoint) -> Json:
        """What the file says, as it may be stored."""
        values = cast("Json", checkpoint.root.plain()) if checkpoint.root is not None else None
        return self.runtime.settings.redactor.clean_value(values, stored_text(values))[0]

    def restore(self) -> None:
        """Write the file anew from the log."""
        if not self.facts.has_log:
            raise WorkpacketError("batch_not_begun", f"{self.folder} has no log to restore a checkpoint from")
        self.write()
