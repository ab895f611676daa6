"""Whatever happens to the process, the disk or the power: all of a plan, or nothing of it.

The same is done with real processes, system calls and file systems by tests/proof/transaction.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator

import pytest

from shell.crashes import AFTER, BEFORE, carry_out, fresh_disk, killed, kills, recover, strike, verdict
from shell.simulated_disk import Fault, Faults, SimulatedDisk
from workpacket.problem import WorkpacketError

NOTHING_CHANGED = ("no_space_left", "disk_failed", "permission_denied")
WRITING = ("create", "write", "sync", "replace", "remove", "make_folder", "sync_folder", "set_mode")
NEVER = 10**6


def test_an_undisturbed_transaction_changes_everything_and_leaves_nothing_behind() -> None:
    disk = fresh_disk()
    assert verdict(disk) == "before"
    carry_out(disk)
    assert verdict(disk) == "after"
    assert BEFORE != AFTER


def test_a_disk_that_takes_a_few_bytes_at_a_time_is_given_all_of_them() -> None:
    disk = fresh_disk()
    disk.largest_write = 7
    carry_out(disk)
    assert verdict(disk) == "after"


def test_a_kill_at_any_call_leaves_all_or_nothing() -> None:
    verdicts = []
    for number, fault in kills():
        disk = fresh_disk()
        assert killed(disk, number, fault)
        survivor = disk.after_kill()
        recover(survivor)
        verdicts.append(verdict(survivor))
    assert set(verdicts) == {"before", "after"}
    # Once it happens it happens: there is one point in time, not several.
    assert verdicts == sorted(verdicts, reverse=True)


def test_a_second_kill_during_recovery_leaves_all_or_nothing() -> None:
    assert second_kills(every=5) > 500


def second_kills(every: int) -> int:
    """How often a transaction was killed, its recovery was killed, and a second recovery put everything right."""
    tried = 0
    for number, fault in itertools.islice(kills(), None, None, every):
        for again in itertools.count(1):
            disk = fresh_disk()
            killed(disk, number, fault)
            second = disk.after_kill()
            if not killed(second, again, "kill after", recover):
                break
            third = second.after_kill()
            recover(third)
            assert verdict(third) in ("before", "after"), (number, fault, again)
            tried += 1
    return tried


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_an_error_at_any_call_changes_nothing_or_says_what_is_left(code: int) -> None:
    calls = len(undisturbed().calls)
    for number in range(1, calls + 1):
        disk = fresh_disk()
        strike(disk, number, code)
        refusal = refused(disk)
        if refusal in NOTHING_CHANGED:
            assert verdict(disk) == "before", (number, disk.calls[number - 1])
        else:
            assert refusal in ("", "transaction_unfinished")
            recover(disk.after_kill())
            assert verdict(disk) == "after", (number, disk.calls[number - 1])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_disk_that_stays_broken_is_survived_too(code: int) -> None:
    calls = undisturbed().calls
    last = max(number for number, method in enumerate(calls, 1) if method in WRITING)
    for first in range(1, last + 1):
        disk = fresh_disk()
        disk.faults = broken_from(first, code)
        assert refused(disk) in (*NOTHING_CHANGED, "transaction_unfinished")
        recover(disk.after_kill())
        assert verdict(disk) in ("before", "after"), first


def undisturbed() -> SimulatedDisk:
    disk = fresh_disk()
    carry_out(disk)
    return disk


def refused(disk: SimulatedDisk) -> str:
    """The code with which the transaction refused, '' if it did not."""
    try:
        carry_out(disk)
    except WorkpacketError as error:
        return error.code
    return ""


def broken_from(first: int, code: int) -> Faults:
    return lambda call, method: code if call >= first and method in WRITING else None


def lost_power(*deaf_to: str) -> dict[str, int]:
    """How many states after a loss of power, at any call, end how. 'forgotten': acknowledged, and gone."""
    counted = {"before": 0, "after": 0, "mixed": 0, "forgotten": 0}
    moments: Iterator[tuple[int, Fault]] = itertools.chain(kills(), [(NEVER, "kill before")])
    for number, fault in moments:
        disk = fresh_disk(*deaf_to)
        acknowledged = not killed(disk, number, fault)
        for survivor in disk.after_power_loss(seed=number):
            # A journal that came back would one day meet files that were edited since.
            complete = verdict(survivor) == "after"
            ending = _recovered(survivor)
            counted["forgotten" if acknowledged and not complete else ending] += 1
    return counted


def _recovered(disk: SimulatedDisk) -> str:
    try:
        recover(disk)
    except WorkpacketError:
        return "mixed"
    return verdict(disk)


def power_lost_in_the_next_process(every: int) -> dict[str, int]:
    """The same when a process was killed first, and power fails while the next one recovers and then works."""
    counted = {"before": 0, "after": 0, "mixed": 0}
    for number, fault in itertools.islice(kills(), None, None, every):
        for again in itertools.count(1):
            disk = fresh_disk()
            killed(disk, number, fault)
            second = disk.after_kill()
            struck = killed(second, again, "kill after")
            for survivor in second.after_power_loss(seed=again, samples=2):
                counted[_recovered(survivor)] += 1
            if not struck:
                break
    return counted


def test_a_loss_of_power_in_the_next_process_leaves_all_or_nothing() -> None:
    counted = power_lost_in_the_next_process(every=29)
    assert counted["after"] > 100
    assert counted["mixed"] == 0


def test_a_loss_of_power_at_any_call_leaves_all_or_nothing() -> None:
    counted = lost_power()
    assert counted["before"] > 100
    assert counted["after"] > 100
    assert (counted["mixed"], counted["forgotten"]) == (0, 0)


@pytest.mark.parametrize("deaf_to", [("sync",), ("sync_folder",)])
def test_without_syncing_the_same_proof_fails(deaf_to: tuple[str, ...]) -> None:
    counted = lost_power(*deaf_to)
    assert counted["mixed"] + counted["forgotten"] > 0
