"""One transaction over everything that a plan can hold, run on a simulated disk until something happens to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from shell.simulated_disk import Fault, Killed, SimulatedDisk
from workpacket.git.index import Index
from workpacket.git.repository import Repository
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.model.events import Actor
from workpacket.model.plan import FileChange, Plan, digest
from workpacket.shell.held import Held
from workpacket.shell.transactions.journal import open_workspace
from workpacket.shell.transactions.recovery import finish_pending
from workpacket.shell.transactions.transaction import Transaction

REPOSITORY: Final = Repository(Path("work"), Path("git"), Path("git"))
# A simulated disk has no index.
NOTHING_HELD: Final = Held(REPOSITORY, Index(b"", plain=True), frozenset())
TX: Final = "0190a5de-ac96-774b-bcce-b302099a8057"

_BEFORE: Final = {
    "work/.GOV/roles_shared/TASK_BOARD.md": b"board before\n" * 5,
    "work/.GOV/task_packets/WP-1-Kettle-v1.md": b"packet before\n",
    "work/.GOV/task_packets/stubs/WP-1-Old-v1.md": b"a stub that goes\n",
    "work/README.md": b"not governed\n",
}
_WRITER: Final = EventWriter(Actor("ann", "human"), "2026-03-01T08:00:00Z", TX, "workpacket test")
_EVENT: Final = next_event(
    _WRITER,
    "WP-1-Kettle-v1",
    NewLogEvent("created", {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Kettle"}),
    after=[],
)

PLAN: Final = Plan(
    "activate",
    TX,
    changes=(
        FileChange(".GOV/roles_shared/TASK_BOARD.md", digest(b"board before\n" * 5), b"board after\n" * 6),
        FileChange(".GOV/task_packets/WP-1-Kettle-v1.md", digest(b"packet before\n"), b"packet after\n"),
        FileChange(".GOV/task_packets/stubs/WP-1-Old-v1.md", digest(b"a stub that goes\n"), None),
    ),
    events=(_EVENT,),
)


Work: TypeAlias = Callable[[SimulatedDisk], None]


def fresh_disk(*deaf_to: str) -> SimulatedDisk:
    return SimulatedDisk.holding(_BEFORE, "git", deaf_to=frozenset(deaf_to))


def carry_out(disk: SimulatedDisk) -> None:
    """What a command does: finish what is unfinished, then its own plan."""
    with open_workspace(REPOSITORY, disk) as workspace:
        finish_pending(workspace)
        Transaction(workspace, NOTHING_HELD).apply(PLAN)


def recover(disk: SimulatedDisk) -> None:
    with open_workspace(REPOSITORY, disk) as workspace:
        finish_pending(workspace)


def strike(disk: SimulatedDisk, number: int, fault: Fault) -> None:
    disk.faults = lambda call, _method: fault if call == number else None


def killed(disk: SimulatedDisk, number: int, fault: Fault, work: Work = carry_out) -> bool:
    """Run `work` and strike at the call `number`; False if it was over before."""
    strike(disk, number, fault)
    try:
        work(disk)
    except Killed:
        return True
    return False


def kills(work: Work = carry_out) -> Iterator[tuple[int, Fault]]:
    """Every call of an undisturbed run, with every way of dying at it."""
    disk = fresh_disk()
    work(disk)
    for number, method in enumerate(disk.calls, 1):
        yield number, "kill before"
        yield number, "kill after"
        if method == "write":
            yield number, "kill within"


def _state(disk: SimulatedDisk) -> dict[str, bytes | None]:
    return disk.files("work")


def _before_and_after() -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
    disk = fresh_disk()
    before = _state(disk)
    carry_out(disk)
    return before, _state(disk)


BEFORE, AFTER = _before_and_after()


def verdict(disk: SimulatedDisk) -> str:
    """'before', 'after' or 'mixed'; anything left lying about, or left in the journal, counts as mixed."""
    if any(content is not None for content in disk.files("git").values()):
        return "mixed"
    state = _state(disk)
    return "before" if state == BEFORE else "after" if state == AFTER else "mixed"
