"""Timers and signals: a wait survives the end of its process, and what ended it is the same in every attempt."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from runtime.worlds import World
from workpacket.runtime import Run, RunBlocked, RunCancelled, Runtime, RunWaiting, Settings
from workpacket.runtime.errors import RedactionFailed

SECOND = 1_000_000


@pytest.fixture
def world() -> World:
    return World()


def events(world: World, run: Run) -> list[str]:
    return [event.type for event in world.store.read(run.id)]


def patient(world: World, patience: float | None = None) -> Runtime:
    """A runtime whose programs wait that long before they stop. No thread renews its leases by this clock."""
    return Runtime(world.store, Settings(actor="tester", clock=world.clock, patience=patience, lease_seconds=59))


# ---- timers ------------------------------------------------------------------------------------------------------


def test_a_run_sleeps_as_long_as_it_was_told(world: World) -> None:
    began = world.clock.now()
    with patient(world).run("nightly") as run:
        run.sleep(45)
    assert 45 * SECOND <= world.clock.now() - began < 46 * SECOND


def test_a_killed_sleep_lasts_until_the_same_instant(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    began = world.clock.now()
    with monkeypatch.context() as dying, world.crashing(patient(world).run("nightly")) as run:
        dying.setattr(world.clock, "sleep", lambda _: world.crash())
        run.sleep(100)
    with patient(world).run("nightly") as run:
        run.sleep(100)
    assert 100 * SECOND <= world.clock.now() - began < 101 * SECOND


def test_a_sleep_that_is_over_does_not_last_again(world: World) -> None:
    with world.crashing(patient(world).run("nightly")) as run:
        run.sleep(45)
        run.step("die", world.crash)
    began = world.clock.now()
    with patient(world).run("nightly") as run:
        run.sleep(45)
        run.step("die", world.note, "went on")
    assert world.clock.now() - began < SECOND


def test_sleeping_until_an_instant_that_has_passed_takes_no_time(world: World) -> None:
    past = datetime.fromtimestamp(world.clock.now() / SECOND, UTC) - timedelta(days=1)
    began = world.clock.now()
    with patient(world).run("nightly") as run:
        run.sleep_until(past)
    assert world.clock.now() - began < SECOND


def test_an_instant_without_a_zone_is_refused(world: World) -> None:
    with world.crashing(patient(world).run("nightly")) as run, pytest.raises(ValueError, match="time zone"):
        run.sleep_until(datetime(2026, 10, 1))


def test_a_program_of_limited_patience_stops_and_says_until_when(world: World) -> None:
    with pytest.raises(RunWaiting) as stop, patient(world, 5).run("nightly") as run:
        run.sleep(3600)
    assert stop.value.code == "waiting"
    assert stop.value.until is not None
    assert stop.value.until - world.clock.now() == pytest.approx(3595 * SECOND, abs=SECOND)
    state = world.runtime.state(run.id)
    assert (state.status, state.stop_code) == ("stopped", "waiting")
    assert [wait.step for wait in state.open_waits] == ["sleep"]
    world.clock.sleep(3600)
    with patient(world, 5).run("nightly") as run:
        run.sleep(3600)
    assert world.runtime.state(run.id).status == "completed"


def test_a_cancelled_run_does_not_sleep_on(world: World) -> None:
    def sleep(run: Run) -> None:
        world.runtime.cancel(run.id, "no longer wanted")
        run.sleep(3600)

    with pytest.raises(RunCancelled), patient(world).run("nightly") as run:
        sleep(run)


# ---- signals -----------------------------------------------------------------------------------------------------


def test_a_run_waits_for_a_signal_and_receives_its_value(world: World) -> None:
    with patient(world, 1).run("order") as run:
        world.runtime.signal(run.id, "paid", {"amount": 100})
        assert run.wait_for("paid") == {"amount": 100}


def test_a_signal_sent_before_the_wait_is_kept_for_it(world: World) -> None:
    with world.crashing(patient(world).run("order")) as run:
        run.step("die", world.crash)
    world.runtime.signal(run.id, "paid", 1)
    with patient(world, 0).run("order") as run:
        run.step("die", world.note, "went on")
        assert run.wait_for("paid") == 1


def test_each_wait_takes_one_signal_in_the_order_in_which_they_were_sent(world: World) -> None:
    with patient(world, 0).run("order") as run:
        for value in (1, 2, 3):
            world.runtime.signal(run.id, "paid", value)
        world.runtime.signal(run.id, "other", "x")
        assert [run.wait_for("paid") for _ in range(3)] == [1, 2, 3]
        assert run.wait_for("other") == "x"


def test_a_later_attempt_receives_the_same_signals(world: World) -> None:
    with world.crashing(patient(world).run("order", key="7")) as run:
        world.runtime.signal(run.id, "paid", 1)
        world.runtime.signal(run.id, "paid", 2)
        assert run.wait_for("paid") == 1
        run.step("die", world.crash)
    with patient(world, 0).run("order", key="7") as run:
        assert run.wait_for("paid") == 1
        run.step("die", world.note, "went on")
        assert run.wait_for("paid") == 2
    with patient(world, 0).run("order", key="7") as again:
        assert again.wait_for("paid") == 1, "a finished run returns what it received"


def test_a_wait_that_timed_out_times_out_in_every_attempt(world: World) -> None:
    def wait(run: Run) -> str:
        try:
            return str(run.wait_for("paid", timeout=40))
        except TimeoutError as error:
            return str(error)

    with world.crashing(patient(world).run("order")) as run:
        first = wait(run)
        run.step("die", world.crash)
    world.runtime.signal(run.id, "paid", "too late")
    with patient(world, 0).run("order") as run:
        assert wait(run) == first == "signal 'paid' did not arrive within 40 s"
        run.step("die", world.note, "went on")
        assert wait(run) == "too late", "a signal that came too late is there for the next wait"


def test_a_timeout_counts_from_the_first_attempt(world: World) -> None:
    with pytest.raises(RunWaiting), patient(world, 1).run("order") as run:
        run.wait_for("paid", timeout=40)
    world.clock.sleep(60)
    with pytest.raises(TimeoutError), patient(world, 0).run("order") as run:
        run.wait_for("paid", timeout=40)


def test_a_signal_with_a_key_is_received_once(world: World) -> None:
    with patient(world, 0).run("order") as run:
        for _ in range(3):
            world.runtime.signal(run.id, "paid", 1, key="payment-7")
        assert run.wait_for("paid") == 1
        with pytest.raises(RunWaiting):
            run.wait_for("paid")
        world.runtime.signal(run.id, "paid", 2)
        assert run.wait_for("paid") == 2


def test_a_finished_run_takes_no_signal(world: World) -> None:
    with patient(world).run("order") as run:
        pass
    with pytest.raises(RunBlocked, match="finished"):
        world.runtime.signal(run.id, "paid")


def test_a_signal_with_a_secret_is_refused_instead_of_altered(world: World) -> None:
    with world.crashing(patient(world).run("order")) as run:
        with pytest.raises(RedactionFailed):
            world.runtime.signal(run.id, "token", "ghp_" + "A" * 36)
        assert "signal.received" not in events(world, run)


def test_a_signal_name_is_checked_where_it_is_sent_and_where_it_is_awaited(world: World) -> None:
    with world.crashing(patient(world).run("order")) as run:
        for name in ("", "a/b", "a#2", "a\nb", "x" * 201):
            with pytest.raises(ValueError, match="not a valid"):
                run.wait_for(name)
            with pytest.raises(ValueError, match="not a valid"):
                world.runtime.signal(run.id, name)


def test_parallel_waits_never_receive_the_same_signal(world: World) -> None:
    with patient(world, 0).run("order") as run:
        for value in range(20):
            world.runtime.signal(run.id, "paid", value)
        received: list[object] = []
        threads = [threading.Thread(target=lambda: received.append(run.wait_for("paid"))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(map(str, received)) == sorted(map(str, range(20)))


def test_a_fork_keeps_the_waits_that_were_over(world: World) -> None:
    with world.crashing(patient(world).run("order")) as run:
        world.runtime.signal(run.id, "paid", 1)
        world.runtime.signal(run.id, "paid", 2)
        run.wait_for("paid")
        run.sleep(5)
        run.checkpoint(name="paid")
        run.wait_for("paid")
        run.step("die", world.crash)
    forked = world.runtime.fork(run.id, "paid", key="again")
    began = world.clock.now()
    with patient(world, 0).run("order", key=forked.rpartition("@")[2]) as other:
        assert other.wait_for("paid") == 1
        other.sleep(5)
        assert other.wait_for("paid") == 2
    assert world.clock.now() - began < SECOND
