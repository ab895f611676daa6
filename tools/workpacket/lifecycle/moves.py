"""The result of a command, and how its plan is built: edits to files, and new events, each based on the previous ones.
A command returns a plan, or every unmet condition. The new lane of a packet is recorded here, with the envelopes of the
gates that the policy adds to the move. Then `lifecycle.projections`, which a refused command never loads, updates
status, board and registry.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import added_gates, approval_unmet, ends_unjudged, satisfying
from workpacket.lifecycle.transitions import TRANSITIONS, Transition, choice_of
from workpacket.model.canonical import Json
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.events import ChangedFile, LogEvent
from workpacket.model.lanes import lane_words
from workpacket.model.plan import FileChange, FileSeen, FolderSeen, Plan, digest, log_seen
from workpacket.model.wording import typed_as
from workpacket.problem import Edit, Location, Problem
from workpacket.text.source import Source, apply_edits
from workpacket.value import NOTHING, Value


class Planned(Value):
    """A plan, its summary, and the next command. `shown` is printed first."""

    plan: Plan
    said: str
    then: str = ""
    data: Mapping[str, Json] = NOTHING
    notes: tuple[str, ...] = ()
    shown: str = ""


# A plan, or every unmet condition (at least one).
Answer: TypeAlias = "Planned | tuple[Problem, ...]"


def restore_command(path: str) -> str:
    """Return the command that restores a file that a commit deleted. A file that is missing only from the work tree or
    the index has stopped the command before.
    """
    quoted = shlex.quote(path)
    return f'git restore --source="$(git log -1 --format=%H^ --diff-filter=D -- {quoted})" -- {quoted}'


def packet_missing(packet: PacketFacts) -> Problem:
    path = packet.packet_path
    return Problem("packet_missing", f"{path} is missing", Location(path), restore_command(path))


class Draft:
    """The changes planned so far."""

    def __init__(self, command: str, facts: Facts, *, during_merge: bool = False) -> None:
        self.facts = facts
        self._command = command
        self._during_merge = during_merge
        self._before: dict[str, Source | None] = {}
        self._after: dict[str, Source] = {}
        self._removed: dict[str, Source] = {}
        self._happenings: list[tuple[PacketFacts, NewLogEvent]] = []
        self._seen: dict[str, FileSeen | FolderSeen] = {}
        self._about: dict[str, str] = {}

    def file(self, path: str, source: Source | None) -> Source | None:
        """Return the file as it is in this draft; `source` is the original."""
        return self._after.get(path, source)

    def put(self, path: str, found: Source | None, text: str) -> None:
        """Write a whole file. `found` is the original; None for a new file."""
        self._before.setdefault(path, found)
        bom = found is not None and found.bom
        self._after[path] = Source(path, text, bom=bom)

    def edit(self, found: Source, edits: Iterable[Edit]) -> None:
        """Edit a file; offsets refer to the file as it is in this draft."""
        edits = list(edits)
        if edits:
            self._before.setdefault(found.path, found)
            self._after[found.path] = apply_edits(self._after.get(found.path, found), edits)

    def remove(self, found: Source) -> None:
        self._removed[found.path] = found

    def rests_on(self, path: str, source: Source | None) -> None:
        """Make the plan valid only while this file is unchanged."""
        self._seen[path] = FileSeen(path, source.digest if source is not None else None)

    def is_about(self, source: Source) -> None:
        """Record the current digest of a file that the event is about, because the file may change later."""
        self.rests_on(source.path, source)
        self._about[source.path] = source.digest

    def happened(self, packet: PacketFacts, kind: str, data: Mapping[str, Json], attest: Sequence[str] = ()) -> None:
        self._happenings.append((packet, NewLogEvent(kind, data, attest=attest)))

    def plan(self) -> Plan:
        changes = tuple(self._changes())
        events = tuple(self._events(changes))
        written = {packet.id.text: packet for packet, _ in self._happenings}
        logs = tuple(log_seen(name, packet.log.stored) for name, packet in written.items())
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
        for path, found in self._removed.items():
            yield FileChange(path, found.digest, None)

    def _events(self, changes: Sequence[FileChange]) -> Iterable[LogEvent]:
        facts = self.facts
        writer = EventWriter(facts.actor, facts.moment.now, facts.moment.tx, facts.tool)
        last: dict[str, list[LogEvent]] = {}
        for packet, happening in self._happenings:
            name = packet.id.text
            after = last.get(name, [packet.log.by_id[head] for head in packet.log.heads])
            # The document of a light packet may change until it is activated.
            is_draft = happening.type == "created" and happening.data.get("form") == LIGHT_FORM
            own = {packet.stub_path, packet.packet_path, packet.refinement_path}
            subjects = [
                ChangedFile(change.path, change.old, None if change.new is None else digest(change.new))
                for change in changes
                if change.path in own and name not in last and not is_draft
            ]
            subjects += [ChangedFile(path, text, text) for path, text in self._about.items() if path in own]
            placed = NewLogEvent(happening.type, happening.data, subjects, happening.attest)
            event = next_event(writer, name, placed, after=after)
            last[name] = [event]
            yield event


def added_unmet(facts: Facts, packet: PacketFacts, row: Transition) -> Iterator[Problem]:
    """Report what is missing at the added gates of this move. A gate about which nothing is known counts as closed."""
    name = packet.id.text
    for gate in added_gates(facts.policy, row.event, row.choice):
        verdict = facts.approvals.get(gate)
        if verdict is None:
            message = f"{row.typed} requires an approval at gate {gate}, which editing the board does not provide"
            yield Problem("hand_edit_not_adoptable", message, hint=f"workpacket {typed_as(row.command)} {name}")
        else:
            yield from approval_unmet(verdict, name)


def added_envelopes(facts: Facts, event: str, choice: str) -> Iterator[str]:
    for gate in added_gates(facts.policy, event, choice):
        yield from satisfying(facts.approvals[gate])


# The commands that are refused on the branch of another packet.
ASKED: Final = frozenset(row.command for row in TRANSITIONS if not row.anywhere)


def whose_branch(facts: Facts, branch: str) -> str:
    """Return the packet for which the branch was created, or the one that the policy's branch pattern implies; '' if
    there is none.
    """
    live = (packet.state for packet in facts.packets.values() if not packet.state.superseded_by)
    prepared = (state.packet for state in live if branch and state.assignment.branch == branch)
    named = facts.policy.named_by(branch)
    return next(prepared, None) or (named if named in facts.known else "")


def standing_unmet(facts: Facts, packet: PacketFacts, command: str, branch: str) -> tuple[Problem, ...]:
    """Refuse a command about `packet` on the branch of another packet.

    The target branch would show the claim or the verdict only once that other packet is merged, which may be never. The
    backlog may be changed from anywhere: `new`, `refine` and `activate` are not restricted.
    """
    name, own = packet.id.text, packet.state.assignment.branch
    if command not in ASKED or branch in {"", own, facts.target_branch}:
        return ()
    whose = whose_branch(facts, branch)
    if whose in {"", name}:
        return ()
    message = f"you are on the branch of {whose} ({branch}); this would be recorded there instead of on the main branch"
    place = own if own and command != "merged" else facts.target_branch
    return (
        Problem("other_work_branch", message, hint=f"git switch {place}, then: workpacket {typed_as(command)} {name}"),
    )


def finished_unmet(facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    """Refuse to start work that is already on the target branch, or only needs to be merged. According to the log
    alone, such a packet is in review.
    """
    if not packet.landed and not ends_unjudged(packet.state, facts.policy):
        return ()
    if not packet.landed:
        message = f"{packet.id} is {packet.lane}, and the policy does not require a judge, so it can be merged now"
        then = f"git merge --no-ff --no-edit {packet.state.assignment.branch}, on {facts.target_here}"
        return (Problem("wrong_lane", message, hint=then),)
    message = f"{packet.id} is {lane_words(packet.lane)}: its work is on the target branch"
    return (Problem("wrong_lane", message, hint=f"workpacket log show {packet.id}"),)


def move(
    draft: Draft, packet: PacketFacts, event: str, to: str, data: Mapping[str, Json], attest: Sequence[str] = ()
) -> None:
    """Record the move. `project` updates the projections, once all moves of the command are recorded."""
    lanes: dict[str, Json] = {"lane_from": packet.state.lane or None, "lane_to": to}
    choice = choice_of(event, packet.state.lane, str(data.get("verdict", "")))
    added = added_envelopes(draft.facts, event, choice)
    draft.happened(packet, event, {**lanes, **data}, sorted({*attest, *added}))
