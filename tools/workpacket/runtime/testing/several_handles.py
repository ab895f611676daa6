"""The contract between several handles, threads and processes.

Threads pause at random lines of the store, and processes do so at first, so that a missing lock is detected. Processes
work side by side for a moment; each prints what was acknowledged.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from workpacket.runtime.errors import LeaseHeld, LeaseLost, PayloadErased, VersionConflict
from workpacket.runtime.records.events import Event
from workpacket.runtime.stores.contract import Appended, Lease
from workpacket.runtime.testing.cases import STREAM, ManualClock, StoreTestCase, Writer, patiently, pausing, refused
from workpacket.runtime.testing.one_handle import unusual_content

T = TypeVar("T")
TOGETHER = 4
PATIENCE = 10.0  # seconds


class Handles(StoreTestCase):
    def test_what_one_handle_wrote_another_reads(self) -> None:
        with self.store() as one, self.store() as two:
            writer = Writer("w")
            for kinds in (("run.started", "checkpoint"), ("checkpoint",), ("run.completed",)):
                events = one.append(writer.request(*kinds)).events
                assert tuple(two.read(STREAM, events[0].version - 1)) == events
                assert two.head(STREAM) == one.head(STREAM)
                assert two.payload(events[-1]) == one.payload(events[-1])
                assert two.latest("checkpoints", STREAM) == one.latest("checkpoints", STREAM)
                assert two.entries("runs") == one.entries("runs")
            two.append(Writer("other").request("a", expected=4))
            assert [event.type for event in one.read(STREAM, 4)] == ["a"]

    def test_content_comes_back_byte_for_byte_through_another_handle(self) -> None:
        request = unusual_content()
        with self.store() as store:
            events = store.append(request).events
        with self.store() as store:
            assert tuple(store.read(STREAM)) == events
            assert [store.payload(event) for event in events] == [new.payload for new in request.events]
            assert store.append(request).duplicate

    def test_a_lease_taken_through_one_handle_binds_the_others(self) -> None:
        clock = ManualClock()
        with self.store(clock) as one, self.store(clock) as two:
            lease = one.acquire(STREAM, "one", 30)
            with refused(LeaseHeld):
                two.acquire(STREAM, "two", 30)
            assert [held.holder for held in two.leases()] == ["one"]
            two.append(Writer("one").request("a", fence=lease.token))
            taken = two.acquire(STREAM, "two", 30, over=lease.token)
            assert taken.token > lease.token
            with refused(LeaseLost):
                one.append(Writer("zombie").request("b", fence=lease.token))
            with refused(LeaseLost):
                one.renew(lease, 30)
            one.release(lease)
            assert [held.holder for held in one.leases()] == ["two"]

    def test_a_lease_outlives_its_handle_and_tokens_grow(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 30)
        with self.store(clock) as store:
            with refused(LeaseHeld):
                store.acquire(STREAM, "two", 30)
            store.release(store.renew(lease, 60))
        with self.store(clock) as store:
            assert store.leases() == ()
            assert store.acquire(STREAM, "two", 30).token > lease.token

    def test_a_request_repeated_through_another_handle_is_recognized(self) -> None:
        requests = (Writer("w").request("a", "b"), Writer("v").request("c", key="k"))
        with self.store() as one, self.store() as two:
            for request in requests:
                first = one.append(request)
                for store in (two, one):
                    again = store.append(request)
                    assert (again.events, again.duplicate) == (first.events, True)
        with self.store() as store:
            assert [store.append(request).duplicate for request in requests] == [True, True]
            assert [event.type for event in store.read(STREAM)] == ["a", "b", "c"]

    def test_a_payload_that_one_handle_erased_is_gone_for_the_others(self) -> None:
        with self.store() as one, self.store() as two:
            (event,) = one.append(Writer("w").request("a")).events
            assert two.payload(event) == one.payload(event)
            assert one.erase(event.payload or "")
            for store in (one, two):
                with refused(PayloadErased):
                    store.payload(event)
            assert not two.erase(event.payload or "")

    def test_a_name_removed_through_one_handle_is_not_reused_by_another(self) -> None:
        with self.store() as one, self.store() as two:
            last = two.append(Writer("w").request("run.started")).events[-1]
            one.remove(STREAM, last.hash)
            assert two.head(STREAM) is None
            with refused(VersionConflict):
                two.append(Writer("later").request("a"))
        with self.store() as store:
            with refused(VersionConflict):
                store.append(Writer("later").request("a"))
            assert [head.stream for head in store.heads(removed=True)] == [STREAM]

    def test_an_unfinished_read_keeps_nobody_from_writing(self) -> None:
        with self.store() as one, self.store() as two:
            one.append(Writer("w").request("a", "b", "c"))
            reading = one.read(STREAM)
            next(reading)
            writing = threading.Thread(target=lambda: two.append(Writer("v").request("d")), daemon=True)
            writing.start()
            writing.join(PATIENCE)
            waits = writing.is_alive()
            rest = [event.type for event in reading]  # whatever the reading held is released now
            writing.join(PATIENCE)
            assert not waits, "an append waited until the read was finished"
            assert rest[:2] == ["b", "c"]


class Threads(StoreTestCase):
    def test_threads_lose_and_repeat_nothing(self) -> None:
        with self.store() as store:

            def write(number: int) -> list[Appended]:
                writer = Writer(f"thread {number}")
                requests = [writer.request("a", "b") for _ in range(5)]
                return [patiently(store.append, request) for request in requests]

            answers = [answer.events for told in together(write) for answer in told]
            whole_and_once(list(store.read(STREAM)), answers)

    def test_of_threads_that_expect_the_same_version_one_wins(self) -> None:
        with self.store() as store:
            for version in range(5):

                def write(number: int, version: int = version) -> bool:
                    try:
                        store.append(Writer(f"{version} of thread {number}").request("a", expected=version))
                    except VersionConflict:
                        return False
                    return True

                assert sum(together(write)) == 1
            assert len(list(store.read(STREAM))) == 5

    def test_of_threads_that_acquire_a_lease_one_gets_it(self) -> None:
        with self.store() as store:
            for turn in range(5):

                def acquire(number: int, stream: str = f"conformance/turn@{turn}") -> Lease | None:
                    try:
                        return store.acquire(stream, f"thread {number}", 3600)
                    except LeaseHeld:
                        return None

                leases = [lease for lease in together(acquire) if lease is not None]
                assert len(leases) == 1


class Processes(StoreTestCase):
    def test_processes_lose_and_repeat_nothing(self) -> None:
        answers = self.side_by_side("write_side_by_side(store)")
        with self.store() as store:
            events = list(store.read(STREAM))
        by_hash = {event.hash: event for event in events}
        assert {word for words in answers for word in words} <= by_hash.keys(), "acknowledged data is missing"
        whole_and_once(events, [tuple(by_hash[word] for word in words) for words in answers])

    def test_processes_hold_a_lease_one_at_a_time(self) -> None:
        answers = self.side_by_side("take_turns(store)")
        with self.store() as store:
            events = list(store.read(STREAM))
        assert len(events) == 2 * len(answers)
        for entered, left in zip(events[::2], events[1::2], strict=True):
            assert (entered.type, left.type) == ("entered", "left")
            assert (entered.writer, entered.fence) == (left.writer, left.fence)
        fences = [event.fence for event in events]
        assert fences == sorted(fences)

    def side_by_side(self, program: str) -> list[list[str]]:
        """Run the program in several processes at the same time, and return the words of every line that they wrote."""
        with self.store():
            pass  # so that none of them has to create it
        running = [self.process(program) for _ in range(TOGETHER)]
        try:
            for process in running:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n", "a process could not open the store"
            for process in running:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            said = [process.communicate()[0] for process in running]
        finally:
            for process in running:
                process.kill()
                process.communicate()
        assert [process.returncode for process in running] == [0] * TOGETHER, "a process was stopped by an error"
        return [line.split() for text in said for line in text.splitlines()]


def whole_and_once(events: list[Event], answers: list[tuple[Event, ...]]) -> None:
    """Require that the stream consists of the acknowledged appends, each of them complete and present exactly once."""
    assert [event.version for event in events] == list(range(1, len(events) + 1))
    assert sorted(answers) == sorted(tuple(events[i : i + 2]) for i in range(0, len(events), 2))


def together(act: Callable[[int], T]) -> list[T]:
    """Have several threads act at the same time, and switch between them at any line of the store."""
    answers: list[T] = []
    faults: list[BaseException] = []
    start = threading.Barrier(TOGETHER)

    def one(number: int) -> None:
        start.wait()
        try:
            answers.append(act(number))
        except BaseException as fault:
            faults.append(fault)

    with shaken():
        threads = [threading.Thread(target=one, args=(number,)) for number in range(TOGETHER)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if faults:
        raise AssertionError(f"a thread was stopped by {faults[0]!r}") from faults[0]
    return answers


@contextlib.contextmanager
def shaken() -> Iterator[None]:
    """Threads that are started here pause at random lines, except within the standard library."""
    before, interval = threading.gettrace(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threading.settrace(pausing(1))
    try:
        yield
    finally:
        threading.settrace(before)
        sys.setswitchinterval(interval)
