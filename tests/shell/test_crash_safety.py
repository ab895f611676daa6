"""Whatever happens to the process, the disk or the power: all of a plan, or nothing of it.

The same is done with real processes, system calls and file systems by tests/proof/transaction.
"""

from __future__ import annotations

import errno

import pytest
from shell.crashes import AFTER, BEFORE, carry_out, fresh_disk, killed, kills, recover, strike, verdict
from shell.simulated_disk import SimulatedDisk

from workpacket.errors import WorkpacketError


def test_an_undisturbed_transaction_changes_everything_and_leaves_nothing_behind() -> None:
    disk = fresh_disk()
    assert verdict(disk) == "before"
    carry_out(disk)
    assert verdict(disk) == "after"
    assert BEFORE != AFTER


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
    tried = 0
    for number, fault in kills():
        again = 0
        while True:
            again += 1
            disk = fresh_disk()
            killed(disk, number, fault)
            second = disk.after_kill()
            if not killed(second, again, "kill after", recover):
                break
            third = second.after_kill()
            recover(third)
            assert verdict(third) in ("before", "after"), (number, fault, again)
            tried += 1
    assert tried > 1000


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_an_error_at_any_call_changes_nothing_or_says_what_is_left(code: int) -> None:
    number = 0
    while True:
        number += 1
        disk = fresh_disk()
        strike(disk, number, code)
        try:
            carry_out(disk)
        except WorkpacketError as error:
            disk.faults = lambda _number, _method: None
            if error.code == "transaction_unfinished":
                recover(disk)
                assert verdict(disk) == "after", number
            else:
                assert error.code in ("disk_full", "storage_failed", "permission_denied")
                assert verdict(disk) == "before", (number, disk.calls[number - 1])
        else:
            assert verdict(disk) == "after"
        if number > len(disk.calls):
            break


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_disk_that_stays_broken_is_survived_too(code: int) -> None:
    number = 0
    while True:
        number += 1
        disk = fresh_disk()
        writing = ("create", "write", "sync", "replace", "remove", "make_folder", "sync_folder", "set_mode")
        disk.faults = lambda call, method, first=number: code if call >= first and method in writing else None
        broken = True
        try:
            carry_out(disk)
            broken = False
        except WorkpacketError as error:
            assert error.code in ("disk_full", "storage_failed", "permission_denied", "transaction_unfinished")
        disk.faults = lambda _number, _method: None
        recover(disk)
        assert verdict(disk) == "after" if not broken else verdict(disk) in ("before", "after"), number
        if not broken:
            break


def lost_power(*deaf_to: str, every: int = 1) -> dict[str, int]:
    """How many states after a loss of power, at any call, end how. 'forgotten': acknowledged, and gone."""
    counted = {"before": 0, "after": 0, "mixed": 0, "forgotten": 0}
    for number, fault in (*kills(), (10**6, "kill before")):
        if number % every and number < 10**6:
            continue
        disk = fresh_disk(*deaf_to)
        acknowledged = not killed(disk, number, fault)  # type: ignore[arg-type]
        for survivor in disk.after_power_loss(seed=number):
            ending = _recovered(survivor)
            counted["forgotten" if acknowledged and ending != "after" else ending] += 1
    return counted


def _recovered(disk: SimulatedDisk) -> str:
    try:
        recover(disk)
    except WorkpacketError:
        return "mixed"
    return verdict(disk)


def test_a_loss_of_power_at_any_call_leaves_all_or_nothing() -> None:
    counted = lost_power()
    assert counted["before"] > 100
    assert counted["after"] > 100
    assert (counted["mixed"], counted["forgotten"]) == (0, 0)


@pytest.mark.parametrize("deaf_to", [("sync",), ("sync_folder",)])
def test_without_syncing_the_same_proof_fails(deaf_to: tuple[str, ...]) -> None:
    counted = lost_power(*deaf_to)
    assert counted["mixed"] + counted["forgotten"] > 0
