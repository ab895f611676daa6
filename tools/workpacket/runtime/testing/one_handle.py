"""The tests that require only one handle and one thread."""

from __future__ import annotations

from workpacket.runtime.errors import (
    KeyConflict,
    LeaseHeld,
    LeaseLost,
    LogDamaged,
    PayloadErased,
    VersionConflict,
    WriterConflict,
)
from workpacket.runtime.records.events import GENESIS, NewEvent, event_hash, index_of
from workpacket.runtime.stores.contract import Append, Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.testing.cases import STREAM, ManualClock, StoreTestCase, Writer, refused


def unusual_content() -> Append:
    """Return an append whose strings and payloads a careless store would change."""
    payloads = (b"", b"\0", b"\xff\xfe", b"a\r\nb\n", "e\u0301 \u00e9".encode(), bytes(range(256)) * 300)
    data = ('{"name":"\u00e9 e\u0301 \U0001f40c"}', '{"name":"line\\nline"}', '{"a":"' + "x" * 70_000 + '"}')
    events = [NewEvent("a", "{}", payload=payload) for payload in payloads]
    events += [NewEvent("b", text) for text in data]
    return Append(STREAM, tuple(events), "w", 1, "t\u00e9ster", 0, 2**52, "\u00e9")


class Appends(StoreTestCase):
    def test_an_append_is_answered_with_the_chained_events(self) -> None:
        with self.store() as store:
            first, second = store.append(Writer("w").request("a", "b")).events
            assert (first.version, second.version) == (1, 2)
            assert (first.previous, second.previous) == (GENESIS, first.hash)
            assert all(event_hash(event) == event.hash for event in (first, second))
            assert tuple(store.read(STREAM)) == (first, second)

    def test_what_is_read_is_what_was_asked_for(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            events = [store.append(writer.request(kind)).events[0] for kind in "abcdef"]
            assert list(store.read(STREAM, 2)) == events[2:]
            assert list(store.read(STREAM, 2, 4)) == events[2:4]
            assert list(store.read(STREAM, 6)) == []
            assert list(store.read("conformance/unknown@00000001")) == []

    def test_the_head_is_the_last_event(self) -> None:
        with self.store() as store:
            assert store.head(STREAM) is None
            last = store.append(Writer("w").request("a", "b")).events[-1]
            head = store.head(STREAM)
            assert head is not None
            assert (head.version, head.hash) == (2, last.hash)

    def test_a_repeated_request_is_answered_with_what_is_stored(self) -> None:
        with self.store() as store:
            request = Writer("w").request("a", "b")
            first = store.append(request)
            again = store.append(request)
            assert again.events == first.events
            assert (first.duplicate, again.duplicate) == (False, True)
            assert len(list(store.read(STREAM))) == 2

    def test_a_repeated_request_is_answered_even_if_the_expected_version_is_past(self) -> None:
        with self.store() as store:
            request = Writer("w").request("a", key="k", expected=0)
            first = store.append(request)
            assert store.append(request).events == first.events

    def test_a_key_used_by_another_writer_is_answered_before_the_head_is_looked_at(self) -> None:
        with self.store() as store:
            first = store.append(Writer("one").request("a", key="k"))
            other = store.append(Writer("two").request("a", key="k", expected=0))
            assert other.duplicate
            assert other.events == first.events

    def test_a_key_stands_for_one_thing(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a", key="k"))
            with refused(KeyConflict):
                store.append(Writer("two").request("b", key="k"))
            assert len(list(store.read(STREAM))) == 1

    def test_a_repeated_request_is_answered_even_if_its_lease_has_ended(self) -> None:
        with self.store() as store:
            lease = store.acquire(STREAM, "one", 30)
            request = Writer("one").request("a", fence=lease.token)
            first = store.append(request)
            store.acquire(STREAM, "two", 30, over=lease.token)
            assert store.append(request).events == first.events

    def test_a_key_with_another_payload_is_a_conflict(self) -> None:
        with self.store() as store:
            request = Writer("one").request("a", key="k")
            store.append(request)
            other = request.events[0]._replace(payload=b'"another"')
            with refused(KeyConflict):
                store.append(request._replace(events=(other,), writer="two"))
            with refused(WriterConflict):
                store.append(request._replace(events=(other,), key=None))

    def test_content_comes_back_byte_for_byte(self) -> None:
        with self.store() as store:
            request = unusual_content()
            events = store.append(request).events
            assert tuple(store.read(STREAM)) == events
            assert [(event.data, store.payload(event)) for event in events] == [
                (new.data, new.payload) for new in request.events
            ]

    def test_similar_names_are_different_streams(self) -> None:
        names = [
            "a/b@1",
            "a/B@1",
            "a_b@1",
            "a%2Fb@1",
            "a/b@1/",
            "a/b@1 ",
            "a/\u00e9@1",
            "a/e\u0301@1",
            "../a",
            "a" * 200,
        ]
        with self.store() as store:
            for number, name in enumerate(names):
                store.append(Writer(f"w{number}", name).request(f"of.{number}", expected=0))
            assert [head.stream for head in store.heads()] == sorted(names)
            for number, name in enumerate(names):
                assert [event.type for event in store.read(name)] == [f"of.{number}"]

    def test_a_prefix_is_not_a_pattern(self) -> None:
        names = ["a%b", "a*b", "a_b", "axb"]
        with self.store() as store:
            for name in names:
                store.append(Writer(name, name).request("run.started"))
            for prefix in ("a%", "a*", "a_"):
                assert [head.stream for head in store.heads(prefix)] == [f"{prefix}b"]
                assert [stream for stream, _ in store.newest("runs", prefix)] == [f"{prefix}b"]

    def test_a_key_belongs_to_its_stream(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a", key="k"))
            assert not store.append(Writer("two", "conformance/other@00000001").request("b", key="k")).duplicate

    def test_a_sequence_number_stands_for_one_request(self) -> None:
        with self.store() as store:
            store.append(Writer("w").request("a"))
            with refused(WriterConflict):
                store.append(Writer("w").request("b"))

    def test_a_gap_in_the_sequence_is_refused(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            writer.request("lost")
            with refused(WriterConflict):
                store.append(writer.request("a"))

    def test_only_one_of_two_that_expect_the_same_version_wins(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a", expected=0))
            with refused(VersionConflict):
                store.append(Writer("two").request("b", expected=0))
            assert [event.type for event in store.read(STREAM)] == ["a"]

    def test_streams_do_not_disturb_each_other(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a"))
            store.append(Writer("two", "conformance/other@00000001").request("b", expected=0))
            assert [head.stream for head in store.heads("conformance/")] == ["conformance/other@00000001", STREAM]
            newest = store.heads("conformance/r", newest_first=True, limit=1)
            assert [head.stream for head in newest] == [STREAM]
            assert store.heads("conformance/x") == ()


class Fences(StoreTestCase):
    def test_a_lease_is_held_by_one(self) -> None:
        with self.store() as store:
            store.acquire(STREAM, "one", 30)
            with refused(LeaseHeld):
                store.acquire(STREAM, "two", 30)

    def test_a_lease_ends_by_itself(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            first = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            assert store.lease(STREAM) is None
            assert store.acquire(STREAM, "two", 30).token > first.token

    def test_a_renewed_lease_goes_on(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 30)
            clock.advance(20)
            store.renew(lease, 30)
            clock.advance(20)
            present = store.lease(STREAM)
            assert present is not None
            assert present.token == lease.token

    def test_a_lease_that_ended_cannot_be_renewed(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            with refused(LeaseLost):
                store.renew(lease, 30)

    def test_a_released_lease_is_free_and_its_fence_is_void(self) -> None:
        with self.store() as store:
            lease = store.acquire(STREAM, "one", 30)
            store.release(lease)
            with refused(LeaseLost):
                store.append(Writer("one").request("a", fence=lease.token))
            assert store.acquire(STREAM, "two", 30).token > lease.token

    def test_releasing_a_lost_lease_changes_nothing(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lost = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            present = store.acquire(STREAM, "two", 30)
            store.release(lost)
            held = store.lease(STREAM)
            assert held is not None
            assert held.token == present.token

    def test_the_lease_of_a_dead_holder_can_be_taken_over_by_naming_its_token(self) -> None:
        with self.store() as store:
            dead = store.acquire(STREAM, "one", 30)
            taken = store.acquire(STREAM, "two", 30, over=dead.token)
            assert taken.token > dead.token
            with refused(LeaseHeld):
                store.acquire(STREAM, "three", 30, over=dead.token)

    def test_a_writer_whose_lease_was_taken_over_is_refused(self) -> None:
        with self.store() as store:
            zombie = store.acquire(STREAM, "one", 30)
            present = store.acquire(STREAM, "two", 30, over=zombie.token)
            store.append(Writer("two").request("b", fence=present.token))
            with refused(LeaseLost):
                store.append(Writer("one").request("a", fence=zombie.token))
            assert [event.type for event in store.read(STREAM)] == ["b"]

    def test_a_writer_whose_lease_ended_is_refused_even_if_nobody_took_over(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            with refused(LeaseLost):
                store.append(Writer("one").request("a", fence=lease.token))
            assert store.head(STREAM) is None

    def test_a_fence_that_was_never_issued_is_refused(self) -> None:
        with self.store() as store:
            lease = store.acquire(STREAM, "one", 30)
            with refused(LeaseLost):
                store.append(Writer("one").request("a", fence=lease.token + 1))
            with refused(LeaseLost):
                store.append(Writer("two", "conformance/other@00000001").request("a", fence=1))

    def test_a_lease_that_was_taken_over_cannot_be_renewed(self) -> None:
        with self.store() as store:
            zombie = store.acquire(STREAM, "one", 30)
            present = store.acquire(STREAM, "two", 30, over=zombie.token)
            with refused(LeaseLost):
                store.renew(zombie, 30)
            held = store.lease(STREAM)
            assert held is not None
            assert (held.token, held.holder) == (present.token, "two")

    def test_a_jump_of_the_wall_clock_changes_no_lease(self) -> None:
        for jump in (10**12, -(10**12)):
            clock = ManualClock()
            stream = f"conformance/jump{jump}@00000001"
            with self.store(clock) as store:
                lease = store.acquire(stream, "one", 30)
                clock.wall += jump
                store.append(Writer(stream, stream).request("a", fence=lease.token))
                with refused(LeaseHeld):
                    store.acquire(stream, "two", 30)
                clock.advance(31)
                assert store.lease(stream) is None

    def test_the_leases_in_force_are_listed(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            store.acquire("conformance/b@00000001", "one", 30)
            store.acquire("conformance/a@00000001", "two", 90)
            names = [(lease.stream, lease.holder) for lease in store.leases()]
            assert names == [("conformance/a@00000001", "two"), ("conformance/b@00000001", "one")]
            clock.advance(31)
            assert [lease.holder for lease in store.leases()] == ["two"]

    def test_a_message_from_outside_needs_no_lease(self) -> None:
        with self.store() as store:
            lease = store.acquire(STREAM, "one", 30)
            writer = Writer("one")
            store.append(writer.request("a", fence=lease.token))
            store.append(Writer("outside").request("cancel.requested"))
            store.append(writer.request("b", fence=lease.token))
            assert [event.fence for event in store.read(STREAM)] == [lease.token, 0, lease.token]


class Payloads(StoreTestCase):
    def test_a_payload_is_found_by_its_event(self) -> None:
        with self.store() as store:
            (event,) = store.append(Writer("w").request("a")).events
            assert store.payload(event) == b'"a"'
            bare = Append(STREAM, (NewEvent("b", "{}"),), "v", 1, "tester", 1, 2)
            assert store.payload(store.append(bare).events[0]) is None

    def test_an_erased_payload_is_gone_and_the_chain_verifies(self) -> None:
        with self.store() as store:
            (event,) = store.append(Writer("w").request("a")).events
            assert store.erase(event.payload or "")
            assert not store.erase(event.payload or "")
            with refused(PayloadErased):
                store.payload(event)
            assert list(store.read(STREAM)) == [event]

    def test_an_erased_payload_that_is_stored_again_is_there_again(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            (event,) = store.append(writer.request("a")).events
            store.erase(event.payload or "")
            (again,) = store.append(writer.request("a")).events
            assert store.payload(again) == b'"a"'

    def test_a_payload_of_two_streams_is_erased_in_both(self) -> None:
        with self.store() as store:
            (one,) = store.append(Writer("one").request("a")).events
            (two,) = store.append(Writer("two", "conformance/other@00000001").request("a")).events
            assert store.erase(one.payload or "")
            for event in (one, two):
                with refused(PayloadErased):
                    store.payload(event)


class Indexes(StoreTestCase):
    def test_the_index_points_at_the_last_event_about_each_thing(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            for kind in ("run.started", "checkpoint", "step.completed", "checkpoint"):
                store.append(writer.request(kind))
            latest = store.latest("checkpoints", STREAM)
            assert latest is not None
            assert latest.version == 4
            assert [entry.version for entry in store.entries("runs", status="open")] == [1]
            assert store.entries("runs", status="completed") == ()
            assert store.latest("effects", STREAM) is None

    def test_the_rebuilt_index_is_the_index_as_it_grew(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            kinds = ("run.started", "checkpoint", "effect.started", "effect.succeeded", "checkpoint", "run.completed")
            for kind in kinds:
                store.append(writer.request(kind))
            grown = self._whole_index(store)
            store.rebuild_index()
            assert self._whole_index(store) == grown
            assert set(grown) == set(index_of(store.read(STREAM)).values())

    @staticmethod
    def _whole_index(store: Store) -> list[object]:
        return [entry for kind in ("runs", "checkpoints", "effects") for entry in store.entries(kind)]

    def test_the_newest_event_of_each_stream_is_found_at_once(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("run.started", "checkpoint"))
            ended = store.append(Writer("one").request("run.started", "checkpoint")).events
            other = store.append(Writer("two", "conformance/zzz@00000001").request("run.started", "run.completed"))
            assert store.newest("runs") == ((STREAM, ended[0]), ("conformance/zzz@00000001", other.events[1]))
            assert store.newest("runs", "conformance/z") == (("conformance/zzz@00000001", other.events[1]),)
            assert store.newest("blocks") == ()


class WholeStreams(StoreTestCase):
    def test_a_store_is_known_again_by_its_identity(self) -> None:
        with self.store() as one:
            identity = one.identity
        assert identity.isprintable()
        with self.store() as two:
            assert two.identity == identity

    def test_a_stream_moves_to_this_store_and_on_with_its_hashes(self) -> None:
        source, target = MemoryStore(), MemoryStore()
        events = source.append(Writer("w").request("a", "checkpoint")).events
        with self.store() as store:
            store.restore(events, [source.payload(event) or b"" for event in events])
            assert tuple(store.read(STREAM)) == events
            assert store.latest("checkpoints", STREAM) == events[1]
            target.restore(store.read(STREAM), [store.payload(event) or b"" for event in events])
            with refused(VersionConflict):
                store.restore(events, [])
        assert tuple(target.read(STREAM)) == events

    def test_a_payload_that_is_missing_when_a_stream_moves_counts_as_erased(self) -> None:
        events = MemoryStore().append(Writer("w").request("a")).events
        with self.store() as store:
            store.restore(events, [])
            with refused(PayloadErased):
                store.payload(events[0])

    def test_a_damaged_stream_is_not_taken_over(self) -> None:
        with self.store() as store:
            (event,) = store.append(Writer("w").request("a")).events
            forged = event._replace(stream="conformance/forged@00000001")
            with refused(LogDamaged):
                store.restore([forged], [])
            assert store.head("conformance/forged@00000001") is None

    def test_a_stream_damaged_at_its_end_is_not_taken_over(self) -> None:
        events = MemoryStore().append(Writer("w").request("a", "b", "c")).events
        forged = [*events[:2], events[2]._replace(data='{"name":"forged"}')]
        with self.store() as store:
            with refused(LogDamaged):
                store.restore(forged, [])
            assert store.head(STREAM) is None
            assert list(store.read(STREAM)) == []

    def test_a_removed_stream_is_gone_and_its_name_is_not_used_again(self) -> None:
        with self.store() as store:
            events = store.append(Writer("w").request("run.started", "checkpoint")).events
            with refused(VersionConflict):
                store.remove(STREAM, events[0].hash)
            store.remove(STREAM, events[-1].hash)
            assert store.head(STREAM) is None
            assert list(store.read(STREAM)) == []
            assert store.heads() == ()
            (gone,) = store.heads(removed=True)
            assert (gone.stream, gone.version, gone.hash) == (STREAM, 2, events[-1].hash)
            assert store.entries("runs") == ()
            with refused(VersionConflict):
                store.append(Writer("later").request("run.started"))

    def test_a_writer_to_a_removed_stream_is_told_that_its_name_was_used(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            written = [writer.request("run.started", "checkpoint"), writer.request("a")]
            last = [store.append(request) for request in written][-1]
            store.remove(STREAM, last.events[-1].hash)
            for request in (*written, writer.request("a"), Writer("w").request("a", "b")):
                with refused(VersionConflict):
                    store.append(request)

    def test_removing_a_stream_keeps_the_payloads_that_others_use(self) -> None:
        with self.store() as store:
            gone = store.append(Writer("one").request("a")).events
            (kept,) = store.append(Writer("two", "conformance/other@00000001").request("a")).events
            store.remove(STREAM, gone[-1].hash)
            assert store.payload(kept) == b'"a"'
