"""What lists say about each packet, cached until something in the folder of its log changes.

Reading the logs of ten thousand packets takes seconds. What is cached is a function of the log (`lifecycle.glance`), so
it is the same whether it was cached or not; the state of the folder says whether the cached value still applies
(`shell.cache.LogState`). Where that state is unknown, as in a new work tree, the files are read, and the digest of the
log says so. If many values are missing, they are computed in two processes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.fold import fold
from workpacket.ledger.log import Log, read_log
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.glance import Glance, glance_at, load_glance
from workpacket.model.events import event_id
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import WAITING
from workpacket.shell.cache import MANY, TREES, Cache
from workpacket.shell.governed_files import GovernedFiles
from workpacket.text.source import Source
from workpacket.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.summary import WorkSummary

# A process reads this many packets at a time. Fewer than so many are read faster by one process than by two.
_BATCH = 200
_WORTH_A_PROCESS = 500
_PROCESSES = 2


class ListedPacket(PacketFacts):
    """A packet in a list: its glance is known, and its files are read only when needed."""

    def __init__(self, wp_id: WorkPacketId, glance: Glance, files: GovernedFiles, *, verified: bool = False) -> None:
        self.__dict__.update(id=wp_id, glance=glance, files=files, stub_says=None, packet_says=None, landed=False)
        self.__dict__["verified"] = verified

    def __repr__(self) -> str:
        return f"ListedPacket({self.id.text})"

    @property
    def _of(self) -> GovernedFiles:
        files: GovernedFiles = self.__dict__["files"]
        return files

    @property
    def outline(self) -> Glance:
        return self.glance

    def as_landed(self) -> PacketFacts:
        copy = ListedPacket(self.id, self.glance, self._of)
        copy.__dict__.update(self.__dict__, landed=True)
        return copy

    if not TYPE_CHECKING:  # to the type checker, these are the fields of the base

        @cached_property
        def log(self) -> Log:
            return self._of.log(self.id.text)

        @cached_property
        def stub_source(self) -> Source | None:
            return self._of.document(self._of.stubs, self.id.text)

        @cached_property
        def packet_source(self) -> Source | None:
            return self._of.document(self._of.packets, self.id.text)

        @cached_property
        def refinement_source(self) -> Source | None:
            return self._of.document(self._of.refinements, self.id.text)

    def dependencies(self) -> Sequence[str]:
        """Return the dependencies in the current contract or, if the log records no contract, those in the
        documents."""
        named = self.glance.dependencies
        if named is not None:
            return [name for name in named if name.startswith("WP-")]
        return super().dependencies() if self._mentioning else []

    @property
    def risk(self) -> str:
        return super().risk if self.glance.risk is None else self.glance.risk

    @cached_property
    def _mentioning(self) -> Sequence[str]:
        """The packet's documents (packet and stub) that contain another id: most state no dependencies, and parsing
        takes fifty times as long as searching.
        """
        sources = filter(None, (self.packet_source, self.stub_source))
        return [source.path for source in sources if any(one != self.id.text for one in _ids_in(source.text))]

    def unsaid(self) -> Iterator[str]:
        """Yield the documents to read for information that the log lacks, while the packet is waiting for others."""
        if self.glance.lane in WAITING and self.glance.dependencies is None:
            yield from self._mentioning
        if self.glance.lane in WAITING and self.glance.risk is None and self.id.text in self._of.packets:
            yield self._of.packets[self.id.text]

    def learn(self, says: Mapping[str, WorkSummary]) -> None:
        """Take the summaries of the packet's documents from these summaries, which are keyed by path."""
        name = self.id.text
        self.__dict__["stub_says"] = says.get(self._of.stubs.get(name, ""))
        self.__dict__["packet_says"] = says.get(self._of.packets.get(name, ""))


_ID = lazy_pattern(r"WP-[0-9A-Za-z][0-9A-Za-z.-]*")
_OWN_BASE = lazy_pattern(r"BASE_WP_ID\W*[0-9A-Za-z.-]+")


def _ids_in(text: str) -> Iterator[str]:
    return (found.rstrip(".").removesuffix(".md") for found in _ID.findall(_OWN_BASE.sub("", text)))


def listed(
    governed: GovernedFiles,
    cache: Cache,
    policy_of_base: Callable[[], str],
    read: Callable[[Sequence[str]], Mapping[str, WorkSummary]] | None = None,
) -> dict[str, PacketFacts]:
    """Return all packets. `policy_of_base` returns the digest of the policy that judges signatures; `read` returns the
    summaries of documents, by path; it is called for many at once.
    """
    said = glances(governed, cache)
    proven = _proven(cache, said, policy_of_base)
    none = read_log("", {})
    without = glance_at(none, fold(none))
    packets = {
        name: ListedPacket(WorkPacketId.parse(name), said.get(name, without), governed, verified=name in proven)
        for name in sorted(governed.known)
    }
    if read is not None:
        unsaid = [path for packet in packets.values() for path in packet.unsaid()]
        if len(unsaid) >= MANY:
            says = read(unsaid)
            for packet in packets.values():
                packet.learn(says)
    return {**packets}


def keep_proven(cache: Cache, policy: str, heads: Mapping[str, Sequence[str]]) -> None:
    """Record that each event of these packets is proven by its signature under the policy with this digest."""
    if not policy:
        return
    rows = {name: f"{policy} {' '.join(its)}" for name, its in heads.items()}
    known = cache.recall("proven", rows)
    if known != rows:
        cache.keep("proven", rows.items())
        cache.make_room("output", 0)  # what was printed says "signed"


def _proven(cache: Cache, said: Mapping[str, Glance], policy_of_base: Callable[[], str]) -> frozenset[str]:
    """Return the packets in which every event was proven, if neither the log nor the policy has changed since."""
    kept = cache.recall("proven", said) if any(each.signed for each in said.values()) else {}
    if not kept:
        return frozenset()
    policy = policy_of_base()
    return frozenset(name for name, row in kept.items() if row == f"{policy} {' '.join(said[name].heads)}")


def glances(governed: GovernedFiles, cache: Cache) -> dict[str, Glance]:
    """Return the glance of each packet that has a log."""
    names = sorted(governed.logs)
    if not cache.is_open:
        return _loaded((name, text) for name, _, text in _computed(governed.root, names))
    state = cache.logs(governed.root)
    known: dict[str, str] = {}
    for name, value in cache.recall("glance", names).items():
        stamp, _, text = value.partition("\n")
        if name in state.folders and stamp and stamp.partition(" ")[0] == state.folders[name]:
            known[name] = text
    missing = [name for name in names if name not in known]
    learned: list[tuple[str, str]] = []
    for name, digest, text in _computed(governed.root, missing, _elsewhere(cache, missing)):
        known[name] = text
        # A folder that has just changed may change again within the same tick of the clock, with the same stamp.
        if state.is_at_rest(name):
            learned.append((name, f"{state.folders[name]} {digest}\n{text}"))
    cache.keep("glance", learned)
    cache.make_room("glance", TREES * len(names) + 10_000)
    return _loaded(known.items())


def _elsewhere(cache: Cache, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the glances of these packets in all work trees, by packet and by the digest of its log."""
    found: dict[str, dict[str, str]] = {}
    if len(names) > MANY:  # fewer logs are read sooner
        for name, value in cache.of_all_trees("glance"):
            state, _, text = value.partition("\n")
            found.setdefault(name, {})[state.partition(" ")[2]] = text
    return found


def _loaded(texts: Iterable[tuple[str, str]]) -> dict[str, Glance]:
    rows = dict(texts)
    # One text for all is read three times as fast as ten thousand small ones.
    return dict(zip(rows, map(load_glance, json.loads(f"[{','.join(rows.values())}]")), strict=True)) if rows else {}


def _computed(
    root: str, names: Sequence[str], elsewhere: Mapping[str, Mapping[str, str]] = NOTHING
) -> Iterator[tuple[str, str, str]]:
    """Yield the glance of each packet, with the digest of its log."""
    asked = [(name, elsewhere.get(name, NOTHING)) for name in names]
    batches = [asked[start : start + _BATCH] for start in range(0, len(names), _BATCH)]
    ask = partial(_batch, root)
    if len(names) < _WORTH_A_PROCESS or (os.cpu_count() or 1) < _PROCESSES:
        for batch in batches:
            yield from ask(batch)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(_PROCESSES) as pool:
        for rows in pool.map(ask, batches):
            yield from rows


def _batch(root: str, asked: Iterable[tuple[str, Mapping[str, str]]]) -> list[tuple[str, str, str]]:
    governed = GovernedFiles(root)
    found: list[tuple[str, str, str]] = []
    for name, elsewhere in asked:
        files = dict(governed.events(name))
        digest = _digest_of(name, files)
        text = elsewhere.get(digest) if digest else None
        if text is None:
            log = read_log(name, files)
            text = glance_at(log, fold(log)).dump()
        found.append((name, digest, text))
    return found


def _digest_of(name: str, files: Mapping[str, bytes]) -> str:
    """Return a digest of the log; '' if a file's name is not the digest of its bytes, as the name of an event is."""
    if any(event_id(data) != file.removesuffix(".json") for file, data in files.items()):
        return ""
    return event_id("\n".join((name, *sorted(files))).encode("utf-8", "surrogateescape"))
