"""Putting a plan together: edits of files that build on one another, and events that follow one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.transitions import Unmet
from workpacket.model.canonical import Json
from workpacket.model.events import ChangedFile, LogEvent
from workpacket.model.plan import FileChange, FileSeen, FolderSeen, Plan, digest, log_seen
from workpacket.problem import Edit
from workpacket.text.edits import apply_edits
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value


class Planned(Value):
    """A plan, what it comes to in words, and the command to type next. `shown` is to be read before all of that."""

    plan: Plan
    said: str
    then: str = ""
    data: Mapping[str, Json] = NOTHING
    notes: tuple[str, ...] = ()
    shown: str = ""


class Refused(Value):
    """Everything that stands against it."""

    packet: str
    unmet: tuple[Unmet, ...]


Answer: TypeAlias = "Planned | Refused"


class Draft:
    """What a command wants to change so far."""

    def __init__(self, command: str, facts: Facts, *, during_merge: bool = False) -> None:
        self.facts = facts
        self._command = command
        self._during_merge = during_merge
        self._before: dict[str, Source | None] = {}
        self._after: dict[str, Source] = {}
        self._happenings: list[tuple[PacketFacts, NewLogEvent]] = []
        self._seen: dict[str, FileSeen | FolderSeen] = {}
        self._about: dict[str, str] = {}

    def file(self, path: str, source: Source | None) -> Source | None:
        """The file as it stands in this draft; `source` is how it was found."""
        return self._after.get(path, source)

    def put(self, path: str, found: Source | None, text: str) -> None:
        """Write a whole file; `found` is how it was found, None for a new one."""
        self._before.setdefault(path, found)
        bom = found is not None and found.bom
        self._after[path] = Source(path, text, bom=bom)

    def edit(self, found: Source, edits: Iterable[Edit]) -> None:
        """Edit a file; offsets are those of the file as it stands in this draft."""
        edits = list(edits)
        if edits:
            self._before.setdefault(found.path, found)
            self._after[found.path] = apply_edits(self._after.get(found.path, found), edits)

    def rests_on(self, path: str, source: Source | None) -> None:
        """The plan holds only as long as this file stays as it was found."""
        self._seen[path] = FileSeen(path, source.digest if source is not None else None)

    def is_about(self, source: Source) -> None:
        """What happens leaves this file as it is, and says which text it was said of: the file may change later."""
        self.rests_on(source.path, source)
        self._about[source.path] = source.digest

    def happened(self, packet: PacketFacts, kind: str, data: Mapping[str, Json], attest: Sequence[str] = ()) -> None:
        self._happenings.append((packet, NewLogEvent(kind, data, attest=attest)))

    def plan(self) -> Plan:
        changes = tuple(self._changes())
        events = tuple(self._events(changes))
        written = {packet.id.text: packet for packet, _ in self._happenings}
        logs = tuple(log_seen(name, packet.log.events) for name, packet in written.items())
        changed = {change.path for change in changes}
        seen = tuple(seen for path, seen in self._seen.items() if path not in changed)
        moment = self.facts.moment
        return Plan(self._command, moment.tx, changes, events, (*logs, *seen), self._during_merge)

    def _changes(self) -> Iterable[FileChange]:
        for path, after in self._after.items():
            before = self._before[path]
            old = None if before is None else before.digest
            new = after.encode()
            if old != digest(new):
                yield FileChange(path, old, new)

    def _events(self, changes: Sequence[FileChange]) -> Iterable[LogEvent]:
        facts = self.facts
        writer = EventWriter(facts.actor, facts.moment.now, facts.moment.tx, facts.tool)
        last: dict[str, list[LogEvent]] = {}
        for packet, happening in self._happenings:
            name = packet.id.text
            after = last.get(name, [packet.log.by_id[head] for head in packet.log.heads])
            own = {packet.stub_path, packet.packet_path, packet.refinement_path}
            subjects = [
                ChangedFile(change.path, change.old, None if change.new is None else digest(change.new))
                for change in changes
                if change.path in own and name not in last
            ]
            subjects += [ChangedFile(path, text, text) for path, text in self._about.items() if path in own]
            placed = NewLogEvent(happening.type, happening.data, subjects, happening.attest)
            event = next_event(writer, name, placed, after=after)
            last[name] = [event]
            yield event
