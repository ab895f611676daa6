"""Each writing command, killed at every call of its storage: all of it or nothing, and nothing left lying about.

The plan of each command is taken from a real run and carried out again on a simulated disk, which can be killed. What
the transaction itself survives (errors, full disks, loss of power) is shown in tests/shell.
"""

from __future__ import annotations

import errno
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from lifecycle.governed import Governed, Quiet, govern
from shell.crashes import NOTHING_HELD
from shell.simulated_disk import Fault, Faults, Killed, SimulatedDisk
from workpacket.git.repository import Repository
from workpacket.model.plan import Plan
from workpacket.problem import WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.shell.transactions.journal import open_workspace, write_file
from workpacket.shell.transactions.recovery import finish_pending
from workpacket.shell.transactions.storage import split_path
from workpacket.shell.transactions.transaction import Transaction

NAME, NEXT = "WP-1-Greeting-v1", "WP-1-Greeting-v2"
REPOSITORY = Repository(Path("work"), Path("git"), Path("git"))
# No recovery of these plans makes more calls.
_LONGEST_RECOVERY = 400


@dataclass(frozen=True)
class Recorded:
    """What a command was about to do, and the files that it found."""

    plan: Plan
    found: dict[str, bytes]


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    """The plans of a whole life, by command."""
    root = tmp_path_factory.mktemp("life")
    with pytest.MonkeyPatch.context() as patch:
        return recorded(Quiet(root, None, govern(root, patch, None).clock), patch)


def recorded(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> dict[str, Recorded]:
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
    governed.begin_by_commands()  # a copy would leave out the plan of `init`
    governed.write(".GOV/task_packets/stubs/WP-1-Found-v1.md", "# Work Packet Stub: WP-1-Found-v1\n")
    governed.done("adopt")
    governed.activate(NAME)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.done("block", NAME, "--reason", "x", "--until", "y")
    governed.done("packet", "unblock", NAME)
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
    governed.done("packet", "release", NEXT, "--reason", "x")
    governed.stub("WP-1-Greeting-v3")
    governed.done("packet", "supersede", NEXT, "--by", "WP-1-Greeting-v3")
    governed.done("packet", "abandon", "WP-1-Greeting-v3", "--reason", "x")


WRITING = (
    "abandon", "activate", "adopt", "block", "board sync", "claim", "init", "merged", "new", "prepare", "refine",
    "release", "submit", "supersede", "unblock", "verdict",
)  # fmt: skip


def test_every_writing_command_is_killed_everywhere(plans: dict[str, Recorded]) -> None:
    assert plans.keys() == set(WRITING)
    for command, plan in plans.items():
        before, after = expected(plan)
        ends = {end(plan, number, fault, before, after) for number, fault in kills(plan)}
        assert ends == {"before", "after"}, command


NINE = ("new", "activate", "claim", "submit", "verdict", "merged", "supersede", "adopt", "board sync")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
REFUSALS = {"no_space_left", "disk_failed", "permission_denied", "transaction_unfinished", "file_unreadable"}


@pytest.mark.parametrize("each", [1, pytest.param(len(ERRORS), marks=pytest.mark.long)])
def test_every_error_of_the_disk_is_said_and_leaves_all_or_nothing(plans: dict[str, Recorded], each: int) -> None:
    """Full, broken, forbidden: at every call of each command, one after the other or all of them."""
    for command in NINE:
        plan = plans[command]
        before, after = expected(plan)
        ends = {
            refused(plan, number, error, before, after)
            for number in range(1, len(undisturbed(plan).calls) + 1)
            for error in (ERRORS * 2)[number % len(ERRORS) :][:each]
        }
        assert ends <= {"before", "after", "done"}, (command, ends)
        assert "before" in ends, command


def test_a_second_kill_during_the_recovery_leaves_all_or_nothing(plans: dict[str, Recorded]) -> None:
    for command in NINE:
        ends = Counter(second_ends(plans[command], every=23))
        assert ends.keys() <= {"before", "after"}, (command, ends)
        assert ends["after"] > 0, command


def test_without_a_journal_the_same_proof_fails(plans: dict[str, Recorded]) -> None:
    """The control: files written one after the other, as a command would that knows no transaction."""
    for command in NINE:
        plan = plans[command]
        before, after = expected(plan)
        if len(list(plan.plan.all_changes())) > 1:
            ends = [end(plan, number, fault, before, after, naive(plan.plan)) for number, fault in kills(plan, naive)]
            assert any(found not in {"before", "after"} for found in ends), command


def second_ends(plan: Recorded, every: int) -> Iterator[str]:
    """What is found after two kills, the second one at some call of the recovery of the first."""
    before, after = expected(plan)
    count = 0
    for number, fault in kills(plan):
        for again in itertools.count(1):
            count += 1
            if count % every:
                if again > _LONGEST_RECOVERY:
                    break
                continue
            disk = struck(plan, number, fault)
            disk.faults = killing(again)
            try:
                recover(disk)
            except Killed:
                disk = disk.after_kill()
                recover(disk)
            else:
                break
            yield what(disk, before, after, f"{number} ({fault}), {again}")


def killing(number: int) -> Faults:
    return lambda call, _method: "kill before" if call == number else None


def struck(plan: Recorded, number: int, fault: Fault) -> SimulatedDisk:
    disk = disk_of(plan)
    disk.faults = lambda call, _method: fault if call == number else None
    with suppress(Killed):
        carry_out(plan.plan)(disk)
    return disk.after_kill()


def refused(plan: Recorded, number: int, error: int, before: dict[str, bytes], after: dict[str, bytes]) -> str:
    """'done' if the command did not need what was refused; else what is found when the disk is well again."""
    disk = disk_of(plan)
    disk.faults = lambda call, _method: error if call == number else None
    refusal: WorkpacketError | None = None
    try:
        carry_out(plan.plan)(disk)
    except WorkpacketError as raised:
        refusal = raised
    disk.faults = lambda _call, _method: None
    if refusal is None:
        found = what(disk, before, after, str(number))
        return "done" if found == "after" else f"said done, and is {found}"
    assert refusal.code in REFUSALS, (number, refusal)
    assert refusal.hint or catalogue()[refusal.code].remedy
    recover(disk)
    return what(disk, before, after, str(number))


def undisturbed(plan: Recorded, work: Callable[[Plan], Callable[[SimulatedDisk], None]] | None = None) -> SimulatedDisk:
    disk = disk_of(plan)
    (work or carry_out)(plan.plan)(disk)
    return disk


def naive(plan: Plan) -> Callable[[SimulatedDisk], None]:
    def work(disk: SimulatedDisk) -> None:
        with open_workspace(REPOSITORY, disk) as workspace:
            tree = workspace.work_tree
            for change in plan.all_changes():
                *folder, name = split_path(change.path)
                for missing in tree.missing_folders(tuple(folder)):
                    tree.make_folder(missing)
                if tree.read(change.path) is not None:
                    tree.storage.remove(tree.folder(tuple(folder)), name)
                write_file(tree, tuple(folder), name, change.new or b"")

    return work


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
            Transaction(workspace, NOTHING_HELD).apply(plan)

    return work


def recover(disk: SimulatedDisk) -> None:
    with open_workspace(REPOSITORY, disk) as workspace:
        finish_pending(workspace)


def kills(
    plan: Recorded, work: Callable[[Plan], Callable[[SimulatedDisk], None]] | None = None
) -> Iterator[tuple[int, Fault]]:
    for number, _ in enumerate(undisturbed(plan, work).calls, 1):
        yield number, "kill before"
        yield number, "kill after"


def end(
    plan: Recorded,
    number: int,
    fault: Fault,
    before: dict[str, bytes],
    after: dict[str, bytes],
    work: Callable[[SimulatedDisk], None] | None = None,
) -> str:
    """What is found after a kill and the recovery of the next command."""
    disk = disk_of(plan)
    disk.faults = lambda call, _method: fault if call == number else None
    try:
        (work or carry_out(plan.plan))(disk)
    except Killed:
        disk = disk.after_kill()
        recover(disk)
    return what(disk, before, after, f"{number} ({fault})")


def what(disk: SimulatedDisk, before: dict[str, bytes], after: dict[str, bytes], place: str) -> str:
    found = {path: data for path, data in disk.files("work").items() if data is not None}
    left = [path for path, data in disk.files("git").items() if data is not None]
    if left:
        return f"left: {left}"
    return "before" if found == before else "after" if found == after else f"mixed at {place}"
