"""Rules that compare the task board with the files of packets and stubs."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.model.lanes import ACTIVE_TOKEN, MAY_BE_STUB
from workpacket.problem import Problem
from workpacket.rules.repository import Listed, RepositorySummaries, WorkFile, WorkIndex, is_open
from workpacket.rules.rule import RepositoryRule

_STUB = "STUB"
_SUPERSEDED = "SUPERSEDED"
# What a stub may become without ever having been a packet.
_STUB_TOKENS = MAY_BE_STUB | {""}


class BoardEntryWithoutFile(RepositoryRule):
    """Entry of the board without a file

    The board lists work that cannot be read, signed or checked.

    Remedy: restore the file, correct the id, or delete the entry.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        stands_for = {id(listed) for name, listed in work.entries.items() if work.has_file(name)}
        for listed in work.listed:
            entry = listed.entry
            name = entry["id"]
            if name in work.packets or (id(listed) in stands_for and name not in work.stubs):
                continue
            if entry["token"] == ACTIVE_TOKEN and name in work.entries:
                continue
            if name not in work.stubs:
                hint = work.suggestions.hint(name)
                yield self.finding(listed.path, entry["place"], f"{name} has no file", hint=hint)
            elif entry["token"] not in _STUB_TOKENS:
                message = f"{name} is listed as {entry['token']}, but has only a stub, no packet"
                hint = f"`just create-task-packet {name}` makes the packet"
                yield self.finding(listed.path, entry["place"], message, hint=hint)


class WorkOnNoBoard(RepositoryRule):
    """Packet or stub that is not on the board

    Anyone who plans by the board will miss it.

    Remedy: `workpacket board sync` adds the entry.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for file in work.files() if work.has_board else ():
            if file.id in work.entries or (_is_stub(work, file) and not work.is_live_stub(file)):
                continue
            kind = "stub" if _is_stub(work, file) else "packet"
            where = "only under Active, which is not a lane" if file.id in work.under_active else "not on the board"
            message = f"the {kind} {file.id} is {where}"
            yield self.finding(file.path, file.summary["place"], message, hint="`workpacket board sync` adds it")


def _is_stub(work: WorkIndex, file: WorkFile) -> bool:
    return work.stubs.get(file.id) is file


class StatusContradictsBoard(RepositoryRule):
    """Status of a packet that contradicts the board

    One of them is outdated, so work may be started or skipped by mistake.

    Remedy: `workpacket board sync` restores what the log says; `--adopt` records the hand edit as a move.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for packet in work.packets.values():
            listed = work.entries.get(packet.id)
            token = listed.entry["token"] if listed is not None else ""
            lanes = packet.summary["lanes"]
            # Of superseded packets and of entries left in the backlog, other rules speak.
            if listed is None or token in {"", _STUB, _SUPERSEDED} or not lanes or token in lanes:
                continue
            message = f"the status is {packet.summary['status']!r}, the board has {token} ({_line(listed)})"
            yield self.finding(packet.path, packet.summary["status_place"], message)


class ActivatedStillStub(RepositoryRule):
    """Packet that the board still lists as a stub

    The stub was activated but its entry was not moved, so the packet looks as if it may not be started.

    Remedy: move the entry; `workpacket board sync` does.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for name, listed in work.entries.items():
            packet = work.packets.get(name)
            if listed.entry["token"] == _STUB and packet is not None:
                message = f"{name} is listed as STUB, but there is a packet: {packet.path}"
                yield self.finding(listed.path, listed.entry["token_place"], message)


class SupersededStillLive(RepositoryRule):
    """Superseded packet with a status of open work

    Someone might work on it instead of its successor.

    Remedy: `workpacket board sync` writes the status; `just next` names the packet in force.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for packet in work.packets.values():
            if not is_open(packet.summary["lanes"], repository.known_lanes):
                continue
            said = self._said_by(work, packet)
            if said:
                message = f"the status is {packet.summary['status']!r}, but {said}"
                yield self.finding(packet.path, packet.summary["status_place"], message, hint="write Superseded")

    @staticmethod
    def _said_by(work: WorkIndex, packet: WorkFile) -> str:
        listed = work.entries.get(packet.id)
        if listed is not None and listed.entry["token"] == _SUPERSEDED:
            return f"it is superseded according to the board ({_line(listed)})"
        known = work.superseded.get(packet.id)
        # Where board and status differ already, another rule says so.
        agreed = {"", _STUB, *packet.summary["lanes"]}
        if known is None or (listed is not None and listed.entry["token"] not in agreed):
            return ""
        by = f" by {known.by}" if known.by else ""
        return f"it is superseded{by} according to the registry ({known.path}:{known.line})"


class BoardEntrySuperseded(RepositoryRule):
    """Open board entry for a packet that is superseded according to the registry

    Anyone who picks work from the board may pick work that a later packet has replaced.

    Remedy: move the entry to Superseded, or correct the registry.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for name, known in work.superseded.items():
            listed = work.entries.get(name)
            if listed is None or not is_open([listed.entry["token"]], repository.known_lanes):
                continue
            by = f" by {known.by}" if known.by else ""
            where = f"superseded{by} in the registry ({known.path}:{known.line})"
            message = f"{name} is listed as {listed.entry['token']}, but is {where}"
            yield self.finding(listed.path, listed.entry["token_place"], message)


def _line(listed: Listed) -> str:
    return f"{listed.path}:{listed.entry['place'][0]}"
