"""Conformance: payloads, the index, and streams that move or go."""

from __future__ import annotations

from workpacket.runtime.errors import LogDamaged, PayloadErased, VersionConflict
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.records.index import index_of
from workpacket.runtime.stores.contract import Append, Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.testing.stores import STREAM, OpensStores, Writer, refused


class Payloads(OpensStores):
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


class Indexes(OpensStores):
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

    def test_the_index_made_anew_is_the_index_as_it_grew(self) -> None:
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


class WholeStreams(OpensStores):
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

    def test_whoever_wrote_to_a_removed_stream_is_told_that_its_name_was_used(self) -> None:
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
