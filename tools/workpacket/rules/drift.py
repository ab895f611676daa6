"""Rules that compare packets, board and registry with the log, which is authoritative; the others are generated.

They find nothing without a log. A packet that was moved on two branches, or whose log is inconsistent, has no lane, so
nothing is compared with it; the fault is reported on the log itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from workpacket.model.event_types import FORKED
from workpacket.model.lanes import MAY_BE_STUB, Lane
from workpacket.model.layout import LOG_FOLDER, POLICY_PATH
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import RepositoryRule

_MAY_BE_STUB = MAY_BE_STUB | {FORKED, ""}
_SYNC = "`workpacket board sync` restores the state recorded in the log"


def _lane(repository: RepositorySummaries, name: str) -> Lane | None:
    return repository.known_lanes.lane(repository.lanes.get(name, ""))


def _says(lane: Lane, said: Container[str], repository: RepositorySummaries) -> bool:
    """Whether the given lane is the one in the log, or the one that it becomes once the work has landed on the target
    branch.
    """
    lanes = repository.known_lanes
    pending = lane == lanes.lane("MERGE_PENDING") and lanes.onward(lane.token) == "VALIDATED"
    return lane.token in said or (pending and "VALIDATED" in said)


class StatusDrift(RepositoryRule):
    """Status that differs from the log

    The status was changed by hand, or a merge picked one of two versions, without passing a gate.

    Remedy: `workpacket board sync` restores the status from the log.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            lane = _lane(repository, packet.id)
            said = packet.summary["lanes"]
            if lane is not None and said and not _says(lane, said, repository):
                message = f"the status is {packet.summary['status']!r}, but the log shows {lane.token}"
                yield self.finding(packet.path, packet.summary["status_place"], message, hint=_SYNC)


class BoardDrift(RepositoryRule):
    """Board entry that differs from the log

    The entry was moved by hand, or a merge picked one of two versions, without passing a gate.

    Remedy: `workpacket board sync` restores the entry; `--adopt` records a hand edit as a move if its gate allows it.
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


class RegistryDrift(RepositoryRule):
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


class LaneNotInPolicy(RepositoryRule):
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


class LaneRetired(RepositoryRule):
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


class WorkWithoutLog(RepositoryRule):
    """Packet or stub without a log

    The packet's history is unknown, so it cannot pass a gate.

    Remedy: `workpacket adopt` creates its log; `workpacket new` starts new work.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        if not repository.lanes:
            return
        for work in repository.work.files():
            if work.id not in repository.lanes:
                yield self.finding(work.path, work.summary["place"], f"{work.id} has no log")


class PacketNotActivated(RepositoryRule):
    """Packet that is still a stub according to the log

    The packet was written by hand, bypassing the gate that requires a refinement and a signature.

    Remedy: delete the file; `just create-task-packet <WP_ID>` writes it if the gate allows it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            if repository.lanes.get(packet.id) == "STUB" and packet.summary["form"] != "light":
                yield self.finding(packet.path, packet.summary["place"], f"according to the log, {packet.id} is a stub")


class LogWithoutFile(RepositoryRule):
    """Log of a packet whose file is missing

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
