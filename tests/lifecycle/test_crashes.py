"""Each writing command, killed at every call of its storage: all of it or nothing, and nothing left lying about.

The plan of each command is taken from a real run and carried out again on a simulated disk, which can be killed. What
the transaction itself survives (errors, full disks, loss of power) is shown in tests/shell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lifecycle.governed import Governed
from shell.simulated_disk import Fault, Killed, SimulatedDisk
from workpacket.git.repository import Repository
from workpacket.model.plan import Plan
from workpacket.shell.recovery import finish_pending
from workpacket.shell.transaction import Transaction
from workpacket.shell.workspace import open_workspace

NAME, NEXT = "WP-1-Greeting-v1", "WP-1-Greeting-v2"
REPOSITORY = Repository(Path("work"), Path("git"), Path("git"))


@dataclass(frozen=True)
class Recorded:
    """What a command was about to do, and the files that it found."""

    plan: Plan
    found: dict[str, bytes]


def recorded(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> dict[str, Recorded]:
    """The plans of a whole life, by command."""
    plans: dict[str, Recorded] = {}
    apply = Transaction.apply

    def record(transaction: Transaction, plan: Plan) -> tuple[str, ...]:
        # Of a command that runs several times, the plan that changes most.
        if plan.command not in plans or len(list(plan.all_changes())) > len(
            list(plans[plan.command].plan.all_changes())
        ):
            plans[plan.command] = Recorded(plan, governed.files())
        return apply(transaction, plan)

    monkeypatch.setattr(Transaction, "apply", record)
    live(governed)
    return plans


def live(governed: Governed) -> None:
    governed.begin()
    governed.write(".GOV/task_packets/stubs/WP-1-Found-v1.md", "# Work Packet Stub: WP-1-Found-v1\n")
    governed.done("adopt")
    governed.activate(NAME)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.done("block", NAME, "--reason", "x", "--until", "y")
    governed.done("unblock", NAME)
    governed.write("report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", f"wp/{NAME}")
    governed.done("merged", NAME)
    board = governed.read(".GOV/roles_shared/TASK_BOARD.md")
    governed.write(".GOV/roles_shared/TASK_BOARD.md", board.replace("[VALIDATED]", "[FAIL]"))
    governed.done("board", "sync")
    governed.activate(NEXT)
    governed.done("claim", NEXT, "--branch", "b")
    governed.done("release", NEXT, "--reason", "x")
    governed.stub("WP-1-Greeting-v3")
    governed.done("supersede", NEXT, "--by", "WP-1-Greeting-v3")
    governed.done("abandon", "WP-1-Greeting-v3", "--reason", "x")


WRITING = (
    "abandon", "activate", "adopt", "block", "board sync", "claim", "init", "merged", "new", "prepare", "refine",
    "release", "submit", "supersede", "unblock", "verdict",
)  # fmt: skip


def test_every_writing_command_is_killed_everywhere(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = recorded(governed, monkeypatch)
    assert plans.keys() == set(WRITING)
    for command, plan in plans.items():
        before, after = expected(plan)
        ends = {end(plan, number, fault, before, after) for number, fault in kills(plan)}
        assert ends == {"before", "after"}, command


def expected(plan: Recorded) -> tuple[dict[str, bytes], dict[str, bytes]]:
    before = dict(plan.found)
    after = dict(before)
    for change in plan.plan.all_changes():
        assert change.new is not None
        after[change.path] = change.new
    assert before != after, plan.plan.command
    return before, after


def disk_of(plan: Recorded) -> SimulatedDisk:
    return SimulatedDisk.holding({f"work/{path}": data for path, data in plan.found.items()}, "git")


def carry_out(plan: Plan) -> Callable[[SimulatedDisk], None]:
    def work(disk: SimulatedDisk) -> None:
        with open_workspace(REPOSITORY, disk) as workspace:
            finish_pending(workspace)
            Transaction(workspace).apply(plan)

    return work


def recover(disk: SimulatedDisk) -> None:
    with open_workspace(REPOSITORY, disk) as workspace:
        finish_pending(workspace)


def kills(plan: Recorded) -> Iterator[tuple[int, Fault]]:
    disk = disk_of(plan)
    carry_out(plan.plan)(disk)
    for number, _ in enumerate(disk.calls, 1):
        yield number, "kill before"
        yield number, "kill after"


def end(plan: Recorded, number: int, fault: Fault, before: dict[str, bytes], after: dict[str, bytes]) -> str:
    """What is found after a kill and the recovery of the next command."""
    disk = disk_of(plan)
    disk.faults = lambda call, _method: fault if call == number else None
    try:
        carry_out(plan.plan)(disk)
    except Killed:
        disk = disk.after_kill()
        recover(disk)
    found = {path: data for path, data in disk.files("work").items() if data is not None}
    left = [path for path, data in disk.files("git").items() if data is not None]
    if left:
        return f"left: {left}"
    return "before" if found == before else "after" if found == after else f"mixed at {number} ({fault})"
