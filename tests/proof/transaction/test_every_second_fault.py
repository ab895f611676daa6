"""What tests/shell/test_crash_safety.py samples, in full."""

from __future__ import annotations

from shell.test_crash_safety import power_lost_in_the_next_process, second_kills


def test_every_kill_of_every_recovery_leaves_all_or_nothing() -> None:
    tried = second_kills(every=1)
    assert tried > 5000
    print(tried)


def test_every_loss_of_power_in_the_next_process_leaves_all_or_nothing() -> None:
    counted = power_lost_in_the_next_process(every=1)
    assert counted["before"] + counted["after"] > 20_000
    assert counted["mixed"] == 0
    print(counted)
