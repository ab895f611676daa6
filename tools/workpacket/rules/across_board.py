"""Rules that compare the task board with the files of packets and stubs, the traceability registry with the board and
the files, and all of them with the log, which is authoritative.

Rules about the log find nothing without one. A packet that was moved on two branches, or whose log is inconsistent, has
no lane, so nothing is compared with it; the fault is reported on the log itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from workpacket.documents.places import kind_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.event_types import FORKED, LIGHT_FORM
from workpacket.model.lanes import ACTIVE_TOKEN, ARCHIVED, MAY_BE_STUB, Lane, LaneTable
from workpacket.model.layout import LOG_FOLDER, POLICY_PATH
from workpacket.problem import Problem
from workpacket.rules.repository import Listed, RepositorySummaries, WorkFile, WorkIndex, base_of, is_open, revision_of
from workpacket.rules.rule import LogRule, RepositoryRule

_STUB = "STUB"
_SUPERSEDED = "SUPERSEDED"
_READY = "READY_FOR_DEV"
# The lanes that a stub can reach without ever having become a packet.
_STUB_TOKENS = MAY_BE_STUB | {""}

_REVISION = lazy_pattern(r"-v[1-9][0-9]*\Z")


class BoardEntryWithoutFile(RepositoryRule):
    """Board entry without a file

    The board lists a packet that cannot be read, signed or checked.

    Remedy: restore the file, correct the id, or delete the board entry.
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
            if name not in work.stubs and entry["token"] not in ARCHIVED:
                hint = work.suggestions.hint(name)
                hint = hint if work.has_file(hint.removeprefix("did you mean ").removesuffix("?")) else ""
                yield self.finding(listed.path, entry["place"], f"{name} has no file", hint=hint)
            elif name in work.stubs and entry["token"] not in _STUB_TOKENS:
                message = f"{name} is listed as {entry['token']}, but has only a stub, no packet"
                hint = "restore the packet from git, or correct the entry"
                if entry["token"] == _READY:
                    hint = f"`just create-task-packet {name}` creates the packet"
                yield self.finding(listed.path, entry["place"], message, hint=hint)


class BoardArchivedWithoutFile(RepositoryRule):
    """Board entry of archived work whose file was deleted

    Only git still shows what was superseded or abandoned, and why.

    Remedy: restore the file from git, or delete the board entry.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for listed in work.listed:
            entry = listed.entry
            if entry["token"] in ARCHIVED and not work.has_file(entry["id"]):
                yield self.finding(listed.path, entry["place"], f"{entry['id']} has no file")


class WorkOnNoBoard(RepositoryRule):
    """Packet or stub missing from the board

    Anyone who uses the board for planning will miss the packet.

    Remedy: `workpacket board sync` adds the entry for a packet with a log; `workpacket adopt` creates missing logs.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for file in work.files() if work.has_board else ():
            if file.id in work.entries or (_is_stub(work, file) and not work.is_live_stub(file)):
                continue
            if not repository.is_drawn(file.id):
                continue
            kind = "stub" if _is_stub(work, file) else "packet"
            where = "only under Active, which is not a lane" if file.id in work.under_active else "not on the board"
            message = f"the {kind} {file.id} is {where}"
            token = next(iter(file.summary["lanes"]), _STUB)
            hint = (
                "`workpacket board sync` adds it"
                if file.id in repository.lanes
                else f"`workpacket adopt` creates its log and the entry; by hand, add `- **[{file.id}]** - [{token}]`"
            )
            yield self.finding(file.path, file.summary["place"], message, hint=hint)


def _is_stub(work: WorkIndex, file: WorkFile) -> bool:
    return work.stubs.get(file.id) is file


class StatusContradictsBoard(RepositoryRule):
    """Packet status that contradicts the board

    The status or the board is outdated, so work may be started or skipped by mistake.

    Remedy: `workpacket board sync` restores the status from the log; `--adopt` records the hand edit as a move.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for packet in work.packets.values():
            listed = work.entries.get(packet.id)
            token = listed.entry["token"] if listed is not None else ""
            lanes = packet.summary["lanes"]
            # Other rules report superseded packets and entries left in the backlog.
            if listed is None or token in {"", _STUB, _SUPERSEDED} or not lanes or token in lanes:
                continue
            message = f"the status is {packet.summary['status']!r}, but the board has {token} ({_line(listed)})"
            yield self.finding(packet.path, packet.summary["status_place"], message)


class ActivatedStillStub(RepositoryRule):
    """Packet that the board still lists as a stub

    The stub was activated but its entry was not moved, so the board still shows the packet as not ready for work.

    Remedy: move the entry: `workpacket board sync`.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for name, listed in work.entries.items():
            packet = work.packets.get(name)
            if listed.entry["token"] == _STUB and packet is not None and packet.summary["form"] != LIGHT_FORM:
                message = f"{name} is listed as STUB, but its packet exists: {packet.path}"
                yield self.finding(listed.path, listed.entry["token_place"], message)


class SupersededStillLive(RepositoryRule):
    """Superseded packet with the status of open work

    Someone might work on this packet instead of its successor.

    Remedy: `workpacket board sync` writes the status; `just next` names the current packet. Where replaced packets are
    never edited, ignore this code.
    """

    severity = "warning"
    strict_severity = "warning"  # many teams never edit a packet that was replaced

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for packet in work.packets.values():
            if not is_open(packet.summary["lanes"], repository.known_lanes):
                continue
            said = self._said_by(work, packet)
            if said:
                message = f"the status is {packet.summary['status']!r}, but {said}"
                hint = "`workpacket board sync` writes it" if packet.id in repository.lanes else ""
                yield self.finding(packet.path, packet.summary["status_place"], message, hint=hint)

    @staticmethod
    def _said_by(work: WorkIndex, packet: WorkFile) -> str:
        listed = work.entries.get(packet.id)
        if listed is not None and listed.entry["token"] == _SUPERSEDED:
            return f"it is superseded according to the board ({_line(listed)})"
        known = work.superseded.get(packet.id)
        # If board and status already differ, another rule reports it.
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


def _headings(lanes: LaneTable) -> dict[str, str]:
    return {section.key: section.heading for section in lanes.sections}


class RegistryBoardStale(RepositoryRule):
    """Outdated Task Board cell

    The section in the registry differs from the section in which the board lists the packet.

    Remedy: `workpacket board registry sync` updates the cell.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        headings = _headings(repository.known_lanes)
        for path, row in work.all_rows:
            name = row["active"]
            # Other rules report faults of the cell itself, and an active packet that is superseded.
            if not work.has_board or not name or row["board_id"] != name or not row["board_section"]:
                continue
            said = headings[row["board_section"]]
            listed = work.entries.get(name)
            if listed is None or _is_superseded(listed):
                continue
            if listed.entry["section"] not in {"", row["board_section"]}:
                now = headings[listed.entry["section"]]
                where = f"{listed.path}:{listed.entry['place'][0]}"
                message = f"the cell contains {said}, but the board has {name} under {now} ({where})"
                yield self.finding(path, row["board_place"], message, hint=f"write `{now}: {name}`")


class RegistryPacketOnNoBoard(RepositoryRule):
    """Task Board cell for a packet that is not on the board

    The registry refers to an entry that does not exist.

    Remedy: `workpacket board sync` adds the entry if the packet still exists; otherwise, correct the row.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for path, row in work.all_rows if work.has_board else ():
            name = row["board_id"]
            # For a packet that has a file, the finding is reported there.
            if name and name == row["active"] and name not in work.entries and not work.has_file(name):
                yield self.finding(path, row["board_place"], f"{name} is not on the board")


def _is_superseded(listed: Listed) -> bool:
    return listed.entry["token"] == _SUPERSEDED


class RegistryActiveMissing(RepositoryRule):
    """Active Packet that does not exist

    The current packet for this base cannot be read.

    Remedy: restore the file, or enter the path of the current packet.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for path, row in work.all_rows:
            file = row["active_path"]
            if not row["active"] or file in repository.packets or file in repository.stubs:
                continue
            # Another rule reports paths that cannot be the path of a packet.
            if kind_of(file) not in {"packet", "stub"}:
                continue
            # The stub is not in force instead of the packet that was made from it.
            other = work.packets.get(row["active"])
            other = other or (work.stubs.get(row["active"]) if kind_of(file) == "stub" else None)
            hint = f"write {other.path}" if other is not None else ""
            yield self.finding(path, row["active_place"], f"file {file} not found", hint=hint)


class RegistryActiveStub(RepositoryRule):
    """Active Packet that is still the stub

    The stub was activated, but the registry refers to a file from which work cannot start.

    Remedy: enter the path of the packet.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for path, row in work.all_rows:
            packet = work.packets.get(row["active"])
            if packet is None or row["active_path"] not in repository.stubs:
                continue
            message = f"the row names the stub of {packet.id}, which has been activated"
            yield self.finding(path, row["active_place"], message, hint=f"write {packet.path}")


class RegistryActiveSuperseded(RepositoryRule):
    """Active Packet that is superseded

    The registry refers to a packet that has been replaced. If the base no longer has a current revision, the row should
    name the last one.

    Remedy: enter the path of the packet that replaced it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        said = [(path, row, _superseded_by(repository.work, row["active"])) for path, row in repository.work.all_rows]
        superseded = [(path, row, why) for path, row, why in said if why]
        over = _bases_that_are_over(repository) if superseded else set()
        for path, row, why in superseded:
            if _REVISION.sub("", row["active"]) not in over:
                yield self.finding(path, row["active_place"], f"{row['active']} is superseded: {why}")


def _bases_that_are_over(repository: RepositorySummaries) -> set[str]:
    """Return the bases whose revisions are all archived according to the log."""
    lanes_of: dict[str, set[str]] = {}
    for name, lane in repository.lanes.items():
        lanes_of.setdefault(_REVISION.sub("", name), set()).add(lane)
    return {base for base, lanes in lanes_of.items() if lanes <= ARCHIVED}


def _superseded_by(work: WorkIndex, name: str) -> str:
    """Return the location that says that the packet is superseded; '' if there is none, or if the row contains no
    packet."""
    if not name:
        return ""
    listed = work.entries.get(name)
    if listed is not None and _is_superseded(listed):
        return f"it is superseded according to the board ({listed.path}:{listed.entry['place'][0]})"
    known = work.superseded.get(name)
    return f"it is superseded according to another row ({known.path}:{known.line})" if known is not None else ""


class RegistrySupersedesUnknown(RepositoryRule):
    """Note about an unknown superseded packet

    No file, entry or row has this id, so the lineage of the work is broken.

    Remedy: correct the id in the notes, or restore the packet.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        bases = {file.base for file in work.files()} | {row.row["base"] for row in work.all_rows}
        for path, row in work.all_rows:
            for name in row["supersedes"]:
                known = work.has_file(name) or name in work.entries or base_of(name) in bases
                if not known:
                    hint = work.suggestions.hint(name)
                    yield self.finding(path, row["notes_place"], f"packet {name} not found", hint=hint)


class StubWithoutRow(RepositoryRule):
    """Live stub without a row in the registry

    After the stub is activated, it would be unclear which packet of its base is current.

    Remedy: add a row: `workpacket board registry sync`.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        if not work.has_registry:
            return
        headings = _headings(repository.known_lanes)
        for stub in work.stubs.values():
            if stub.base not in work.rows and work.is_live_stub(stub):
                message = f"the registry has no row for {stub.base}"
                hint = f"add | {stub.base} | {stub.path} | {headings['stub backlog']}: {stub.id} | stub |"
                yield self.finding(stub.path, stub.summary["place"], message, hint=hint)
        for name, listed in work.entries.items():
            # A stub whose file is lost is only on the board.
            base = listed.entry["base"]
            if listed.entry["token"] == _STUB and base not in work.rows and not work.has_file(name):
                yield self.finding(listed.path, listed.entry["place"], f"the registry has no row for {base}")


class BaseWithoutRow(RepositoryRule):
    """Base with several packets but no row in the registry

    It is unclear which of the packets is current.

    Remedy: add a row that names the current packet: `workpacket board registry sync`.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        if not work.has_registry:
            return
        live = {stub.base for stub in work.stubs.values() if stub.base not in work.rows and work.is_live_stub(stub)}
        for base, names in _packets_by_base(work).items():
            if len(names) < 2 or base in work.rows or base in live or not any(map(repository.is_drawn, names)):
                continue
            latest = max(names, key=lambda name: (name in work.packets, revision_of(name), name))
            packet = work.packets.get(latest)
            place = packet.summary["place"] if packet is not None else work.entries[latest].entry["place"]
            path = packet.path if packet is not None else work.entries[latest].path
            message = f"the registry has no row for {base}, which has {len(names)} packets: {', '.join(sorted(names))}"
            yield self.finding(path, place, message)


def _packets_by_base(work: WorkIndex) -> dict[str, set[str]]:
    """Return, for each base, the packets that have a file or a board entry."""
    found: dict[str, set[str]] = {}
    for packet in work.packets.values():
        found.setdefault(packet.base, set()).add(packet.id)
    for listed in work.listed:
        entry = listed.entry
        if entry["token"] not in {_STUB, ACTIVE_TOKEN, ""}:
            found.setdefault(entry["base"], set()).add(entry["id"])
    return found


_MAY_BE_STUB = MAY_BE_STUB | {FORKED, ""}
_SYNC = "`workpacket board sync` restores the state recorded in the log"


def _lane(repository: RepositorySummaries, name: str) -> Lane | None:
    return repository.known_lanes.lane(repository.lanes.get(name, ""))


def _says(lane: Lane, said: Container[str], repository: RepositorySummaries) -> bool:
    """Whether the given lane is the one in the log, or the one that results from it once the work has been merged into
    the target branch.
    """
    lanes = repository.known_lanes
    pending = lane == lanes.lane("MERGE_PENDING") and lanes.onward(lane.token) == "VALIDATED"
    return lane.token in said or (pending and "VALIDATED" in said)


class StatusDrift(LogRule):
    """Status that differs from the log

    The status was changed without passing a gate: by hand, or by a merge that picked one of two versions.

    Remedy: `workpacket board sync` restores the status from the log.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            lane = _lane(repository, packet.id)
            said = packet.summary["lanes"]
            if lane is not None and said and not _says(lane, said, repository):
                message = f"the status is {packet.summary['status']!r}, but the log shows {lane.token}"
                yield self.finding(packet.path, packet.summary["status_place"], message, hint=_SYNC)


class BoardDrift(LogRule):
    """Board entry that differs from the log

    The entry was moved without passing a gate: by hand, or by a merge that picked one of two versions.

    Remedy: `workpacket board sync` restores the entry; `--adopt` records a hand edit as a move if the gate allows the
    move.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for name, listed in repository.work.entries.items():
            lane = _lane(repository, name)
            token = listed.entry["token"]
            if lane is None or listed.entry["id"] != name or not token or _says(lane, (token,), repository):
                continue
            if not repository.is_drawn(name):
                continue
            message = f"{name} is listed as {token}, but the log shows {lane.token}"
            hint = f"{_SYNC}; --adopt records the hand edit as a move"
            yield self.finding(listed.path, listed.entry["token_place"], message, hint=hint)


class RegistryDrift(LogRule):
    """Registry row that differs from the log

    The row refers to a packet that is no longer current, or to the wrong section of the board.

    Remedy: `workpacket board registry sync` regenerates the row.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for path, row in repository.work.all_rows:
            lane = _lane(repository, row["active"])
            section = row["board_section"]
            if lane is None or row["board_id"] != row["active"] or not section:
                continue
            if not repository.is_drawn(row["active"]):
                continue
            there = [each.token for each in repository.known_lanes.lanes if each.section == section]
            if not _says(lane, there, repository):
                message = (
                    f"according to the log, {row['active']} is {lane.token}: "
                    f"{repository.known_lanes.section_of(lane).heading}"
                )
                hint = "`workpacket board registry sync` regenerates it"
                yield self.finding(path, row["board_place"], message, hint=hint)


class LaneNotInPolicy(LogRule):
    """Packet in a lane that the policy does not define

    The packet cannot leave the lane, and the board cannot show the packet. The lane was removed from the policy, or
    this branch is older than the lane.

    Remedy: merge the policy on the base, or restore the lane until no packet is in it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for name, token in repository.lanes.items():
            if token not in {"", FORKED} and repository.known_lanes.lane(token) is None:
                message = f"according to the log, {name} is in {token}, a lane that {POLICY_PATH} does not define"
                hint = f"restore [lifecycle.lanes.{token}], or merge the policy on the base"
                yield self.finding(f"{LOG_FOLDER}/{name}", (0, 0), message, hint=hint)


class LaneRetired(LogRule):
    """Lane in the log that the policy no longer defines

    Packets passed through the lane in the past. Only older versions of the policy define it.

    Remedy: none needed; `git log -- .GOV/policy/policy.toml` shows when the lane was removed.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        standing = set(repository.lanes.values())
        for token, count in sorted(repository.passed.items()):
            if token not in {"", *standing} and repository.known_lanes.lane(token) is None:
                moves = f"{count} moves lead" if count > 1 else "a move leads"
                message = f"{moves} to {token}, a lane that {POLICY_PATH} does not define"
                yield self.finding(LOG_FOLDER, (0, 0), message)


class WorkWithoutLog(LogRule):
    """Packet or stub without a log

    The packet's history is unknown, so the packet cannot pass a gate.

    Remedy: `workpacket adopt` creates its log; `workpacket new` starts new work.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        if not repository.lanes:
            return
        for work in repository.work.files():
            if work.id not in repository.lanes:
                yield self.finding(work.path, work.summary["place"], f"{work.id} has no log")


class PacketNotActivated(LogRule):
    """Packet that is still a stub according to the log

    The packet was written by hand, bypassing the gate that requires a refinement and a signature.

    Remedy: delete the file; `just create-task-packet <WP_ID>` writes it again if the gate allows that.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            if repository.lanes.get(packet.id) == "STUB" and packet.summary["form"] != "light":
                yield self.finding(packet.path, packet.summary["place"], f"according to the log, {packet.id} is a stub")


class LogWithoutFile(LogRule):
    """Log of a packet with a missing file

    The approved text and the record of the work can no longer be read.

    Remedy: restore the file from git.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for name, token in repository.lanes.items():
            may_be_stub = token in _MAY_BE_STUB
            if name in repository.work.packets or (may_be_stub and name in repository.work.stubs):
                continue
            where = f"is {token}" if token else "has a log"
            what = "has only a stub" if name in repository.work.stubs else "its document is missing"
            yield self.finding(f"{LOG_FOLDER}/{name}", (0, 0), f"{name} {where}, but {what}")
