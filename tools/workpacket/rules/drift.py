"""Rules that compare packets, board and registry with the log. What the log says holds; the others are drawn from it.

They have nothing to say where there is no log. A packet that was moved on two branches, or whose log does not hold
together, stands nowhere, so nothing is compared with it; what is wrong is said of the log itself.
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
_SYNC = "`workpacket board sync` writes what the log says"


def _lane(repository: RepositorySummaries, name: str) -> Lane | None:
    return repository.known_lanes.lane(repository.lanes.get(name, ""))


def _says(lane: Lane, said: Container[str], repository: RepositorySummaries) -> bool:
    """Whether what is drawn is what the log says, or what that comes to on the target branch once it has landed."""
    lanes = repository.known_lanes
    pending = lane == lanes.lane("MERGE_PENDING") and lanes.onward(lane.token) == "VALIDATED"
    return lane.token in said or (pending and "VALIDATED" in said)


class StatusDrift(RepositoryRule):
    """Status of a packet that is not what the log says

    Somebody changed it by hand, or a merge took one of two versions; no gate was asked.

    Remedy: `workpacket board sync` writes what the log says.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            lane = _lane(repository, packet.id)
            said = packet.summary["lanes"]
            if lane is not None and said and not _says(lane, said, repository):
                message = f"the status is {packet.summary['status']!r}, the log says {lane.token}"
                yield self.finding(packet.path, packet.summary["status_place"], message, hint=_SYNC)


class BoardDrift(RepositoryRule):
    """Entry of the board that is not where the log has the packet

    Somebody moved it by hand, or a merge took one of two versions; no gate was asked.

    Remedy: `workpacket board sync` draws it anew; with `--adopt` a hand edit becomes a move, if its gate lets it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for name, listed in repository.work.entries.items():
            lane = _lane(repository, name)
            token = listed.entry["token"]
            if lane is None or listed.entry["id"] != name or not token or _says(lane, (token,), repository):
                continue
            message = f"{name} stands as {token}, the log says {lane.token}"
            hint = f"{_SYNC}; with --adopt it takes the hand edit over"
            yield self.finding(listed.path, listed.entry["token_place"], message, hint=hint)


class RegistryDrift(RepositoryRule):
    """Row of the registry that is not what the log says

    It sends the reader to a packet that is no longer in force, or to the wrong section of the board.

    Remedy: `workpacket registry sync` draws the row anew.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for path, row in repository.work.all_rows:
            lane = _lane(repository, row["active"])
            section = row["board_section"]
            if lane is None or row["board_id"] != row["active"] or not section:
                continue
            there = [each.token for each in repository.known_lanes.lanes if each.section == section]
            if not _says(lane, there, repository):
                message = (
                    f"the log has {row['active']} as {lane.token}: {repository.known_lanes.section_of(lane).heading}"
                )
                hint = "`workpacket registry sync` draws it anew"
                yield self.finding(path, row["board_place"], message, hint=hint)


class LaneNotInPolicy(RepositoryRule):
    """Packet in a lane that the policy does not have

    Nothing leads out of it, and no board can show it. The lane was taken out of the policy, or this branch is from
    before it was put in.

    Remedy: bring the policy of the base here; or put the lane back, and take it out when no packet is in it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for name, token in repository.lanes.items():
            if token not in {"", FORKED} and repository.known_lanes.lane(token) is None:
                message = f"the log has {name} as {token}, and {POLICY_PATH} has no lane of that name"
                hint = f"put [lifecycle.lanes.{token}] back, or bring the policy of the base here"
                yield self.finding(f"{LOG_FOLDER}/{name}", (0, 0), message, hint=hint)


class LaneRetired(RepositoryRule):
    """Lane in the log that the policy does not have any more

    It is history: packets passed through it. What it meant stands only in older versions of the policy.

    Remedy: nothing has to be done; `git log -- .GOV/policy/policy.toml` shows when it was taken out.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        standing = set(repository.lanes.values())
        for token, count in sorted(repository.passed.items()):
            if token not in {"", *standing} and repository.known_lanes.lane(token) is None:
                moves = f"{count} moves lead" if count > 1 else "a move leads"
                message = f"{moves} to {token}, and {POLICY_PATH} has no lane of that name"
                yield self.finding(LOG_FOLDER, (0, 0), message)


class WorkWithoutLog(RepositoryRule):
    """Packet or stub without a log in a repository that has one

    Nobody can say how it came to be here, so no gate will let it pass.

    Remedy: `workpacket adopt` begins its log; new work begins with `workpacket new`.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        if not repository.lanes:
            return
        for work in repository.work.files():
            if work.id not in repository.lanes:
                yield self.finding(work.path, work.summary["place"], f"{work.id} has no log")


class PacketNotActivated(RepositoryRule):
    """Packet that the log still has as a stub

    It was written by hand, past the gate that asks for a refinement and a signature.

    Remedy: take the file away; `just create-task-packet <WP_ID>` writes it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            if repository.lanes.get(packet.id) == "STUB":
                yield self.finding(packet.path, packet.summary["place"], f"the log has {packet.id} as a stub")


class LogWithoutFile(RepositoryRule):
    """Log of a packet whose file is gone

    What was done, and approved, can no longer be read.

    Remedy: restore the file from git.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for name, token in repository.lanes.items():
            may_be_stub = token in _MAY_BE_STUB
            if name in repository.work.packets or (may_be_stub and name in repository.work.stubs):
                continue
            what = "only a stub" if name in repository.work.stubs else "no file"
            where = f"is {token}" if token else "has a log"
            yield self.finding(f"{LOG_FOLDER}/{name}", (0, 0), f"{name} {where}, and there is {what} of it")
