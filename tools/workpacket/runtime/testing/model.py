"""Compare a store with the store in memory, using random sequences of calls; requires hypothesis.

class MyModel(StoreModel):
    def prepare(self): self.folder = tempfile.mkdtemp()
    def opened(self): return MyStore(self.folder, clock=self.clock)

TestMyModel = MyModel.TestCase
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workpacket.runtime.errors import PayloadErased, RuntimeFault
from workpacket.runtime.records.events import Event, NewEvent, event_hash, index_of
from workpacket.runtime.records.state import fold
from workpacket.runtime.stores.contract import Append, Lease, Store, contents_of
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.testing.cases import ManualClock

STREAMS = st.sampled_from(["run@1", "run@2"])
RECORDS: dict[str, str] = {
    "run.started": '{"name":"run"}',
    "step.completed": '{"step":"s"}',
    "checkpoint": '{"id":"c","name":"here"}',
    "effect.started": '{"effect":"e"}',
    "effect.succeeded": '{"effect":"e"}',
    "cancel.requested": '{"reason":"r"}',
    "run.completed": "{}",
}


INDEXES = ("runs", "checkpoints", "effects", "cancellations")


def payload_of(store: Store, event: Event) -> object:
    try:
        return store.payload(event)
    except PayloadErased:
        return "erased"


class StoreModel(RuleBasedStateMachine):
    """Every call goes to the store in memory and to the store under test, and the two answers must be equal. The store
    under test has two handles, which take turns and are closed and opened again at any time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.prepare()
        self.store = self.opened()
        self.other = self.opened()
        self.leases: list[tuple[Lease, Lease]] = []
        self.seq: dict[str, int] = {}
        self.last: Append | None = None

    def prepare(self) -> None:
        """Prepare a location for a new store."""
        raise NotImplementedError

    def opened(self) -> Store:
        """Return another handle for the store, which uses `self.clock`."""
        raise NotImplementedError

    def payload_for(self, stream: str, payload: bytes | None) -> bytes | None:  # noqa: ARG002  # for subclasses
        return payload

    def teardown(self) -> None:
        assert contents_of(self.store) == []
        self.store.close()
        self.other.close()

    def both(self, ask: Callable[[Store], object]) -> tuple[object, object]:
        answers: list[object] = []
        for store in (self.memory, self.store):
            try:
                answers.append(ask(store))
            except RuntimeFault as fault:
                answers.append((type(fault), fault.code))
        first, second = answers
        assert first == second, f"the stores disagree: {first} / {second}"
        return first, second

    @rule(
        stream=STREAMS,
        writer=st.sampled_from("ab"),
        kinds=st.lists(st.sampled_from(sorted(RECORDS)), min_size=1, max_size=3),
        payload=st.none() | st.sampled_from([b"1", b"2"]),
        key=st.none() | st.sampled_from(["k1", "k2"]),
        fenced=st.none() | st.integers(0, 3),
        expected=st.none() | st.integers(0, 4),
        skip=st.sampled_from([1, 1, 1, 0, 2]),
    )
    def append(
        self,
        stream: str,
        writer: str,
        kinds: list[str],
        payload: bytes | None,
        key: str | None,
        fenced: int | None,
        expected: int | None,
        skip: int,
    ) -> None:
        name = f"{writer} of {stream}"
        events = tuple(NewEvent(kind, RECORDS[kind], payload=self.payload_for(stream, payload)) for kind in kinds)
        seq = self.seq.get(name, 0) + skip
        fence = self.leases[fenced % len(self.leases)][0].token if fenced is not None and self.leases else None
        request = Append(stream, events, name, max(seq, 1), "tester", 1, 2, key, fence, expected)
        answer, _ = self.both(lambda store: store.append(request))
        stored = [event for event in self.memory.read(stream) if event.writer == name]
        self.seq[name] = stored[-1].writer_seq if stored else 0
        self.last = request if not isinstance(answer, tuple) or len(answer) != 2 else self.last

    @precondition(lambda self: self.last is not None)
    @rule()
    def repeat(self) -> None:
        request = self.last
        assert request is not None
        self.both(lambda store: store.append(request))

    @rule(stream=STREAMS, holder=st.sampled_from("xy"), over=st.none() | st.integers(1, 3))
    def acquire(self, stream: str, holder: str, over: int | None) -> None:
        first, second = self.both(lambda store: store.acquire(stream, holder, 30, over=over))
        if isinstance(first, Lease) and isinstance(second, Lease):
            self.leases.append((first, second))

    @precondition(lambda self: self.leases)
    @rule(index=st.integers(0, 9), release=st.booleans())
    def renew_or_release(self, index: int, release: bool) -> None:
        lease = self.leases[index % len(self.leases)][0]
        self.both(lambda store: store.release(lease) if release else store.renew(lease, 30))

    @rule(seconds=st.sampled_from([1, 10, 40]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(stream=STREAMS, index=st.integers(0, 5))
    def erase(self, stream: str, index: int) -> None:
        events = [event for event in self.memory.read(stream) if event.payload]
        if events:
            digest = events[index % len(events)].payload or ""
            self.both(lambda store: store.erase(digest))

    @rule(stream=STREAMS, real=st.booleans())
    def remove(self, stream: str, real: bool) -> None:
        head = self.memory.head(stream)
        if head is not None and head.version > 6:
            self.both(lambda store: store.remove(stream, head.hash if real else "0" * 64))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.opened()

    @rule()
    def change_handles(self) -> None:
        self.store, self.other = self.other, self.store

    @rule()
    def rebuild(self) -> None:
        self.both(lambda store: store.rebuild_index())

    @invariant()
    def they_agree(self) -> None:
        for stream in ("run@1", "run@2"):
            self.they_agree_on(stream)

    def they_agree_on(self, stream: str) -> None:
        self.both(lambda store: store.head(stream))
        self.both(lambda store: store.lease(stream))
        read, _ = self.both(lambda store: tuple(store.read(stream)))
        self.both(lambda store: [(store.latest(k, stream), store.entries(k, stream=stream)) for k in INDEXES])
        assert isinstance(read, tuple)
        for event in read:
            assert event_hash(event) == event.hash
        self.both(lambda store: [payload_of(store, event) for event in read])

    @invariant()
    def the_index_is_a_function_of_the_log(self) -> None:
        events = [event for head in self.store.heads() for event in self.store.read(head.stream)]
        entries = {entry for kind in self.store.index_kinds() for entry in self.store.entries(kind)}
        assert entries == set(index_of(events).values())

    @invariant()
    def the_fold_of_a_whole_is_the_fold_of_its_parts(self) -> None:
        for head in self.store.heads():
            events = list(self.store.read(head.stream))
            state = fold(events[: len(events) // 2])
            for event in events[len(events) // 2 :]:
                state.apply(event)
            assert state == fold(events)
