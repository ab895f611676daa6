"""All governance documents of a repository, as summaries: the input of the rules across files.

`WorkIndex` combines what files, board and registry say about each packet, by id; it is built once and used by every
rule. A file is identified by its name, as on the board and in the registry; a separate rule compares the name with the
id in the file. Everything here is one pass over the summaries with dictionary lookups, because there may be ten
thousand packets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Generic, NamedTuple, TypeVar, cast

from workpacket.documents.document import stem_of
from workpacket.documents.places import kind_of
from workpacket.documents.summary import (
    BatchSummary,
    BoardSummary,
    EntrySummary,
    GateSummary,
    PackageSummary,
    RefinementSummary,
    RegistrySummary,
    RoleSummary,
    RowSummary,
    SidecarSummary,
    SignatureSummary,
    WorkSummary,
)
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.ids import WorkPacketId, nearest
from workpacket.model.lanes import ACTIVE_TOKEN, ARCHIVED, BUILT_IN, LaneTable
from workpacket.value import NOTHING

# A repository that has lost its registers has thousands of unknown ids; hints for the first ones show how to fix the
# others.
_MOST_ANSWERS = 100
_MOST_CANDIDATES = 50


class IdSuggestions:
    """Finds ids that differ from a given one in a single word, or only in case or revision."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._asked = 0

    def hint(self, name: str) -> str:
        """Return `did you mean WP-1-Parser-v2?`, or ''."""
        self._asked += 1
        if self._asked > _MOST_ANSWERS:
            return ""
        # A word that few ids contain identifies more than a word that a thousand ids share.
        buckets = sorted((self._by_key.get(key, []) for key in _keys(name)), key=len)
        close = dict.fromkeys(other for bucket in buckets for other in bucket[:_MOST_CANDIDATES])
        candidates = (WorkPacketId.try_parse(other) for other in islice(close, _MOST_CANDIDATES))
        meant = nearest(name, [packet for packet in candidates if packet is not None and packet.text != name])
        return f"did you mean {meant}?" if meant is not None else ""

    @cached_property
    def _by_key(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in sorted(self._known):
            for key in _keys(name):
                found.setdefault(key, []).append(name)
        return found


def _keys(name: str) -> Iterator[str]:
    """Yield all words of an id, and all words except each one in turn, so that two ids that differ in one word share a
    key.
    """
    words = name.casefold().split("-")
    yield "-".join(words)
    # A mistake in the `WP` is obvious, and a mistake in the phase names another phase.
    for index in range(2, len(words)):
        word, words[index] = words[index], ""
        yield "-".join(words)
        words[index] = word
    # A revision that only one of the two has.
    yield "-".join((*words, ""))


class WorkFile(NamedTuple):
    """A stub or a packet: one file."""

    id: str
    base: str
    path: str
    summary: WorkSummary


class Listed(NamedTuple):
    """An entry and its board."""

    path: str
    entry: EntrySummary


class IndexedRow(NamedTuple):
    """A row and its registry."""

    path: str
    row: RowSummary


class Superseded(NamedTuple):
    """The row that says that a packet is superseded. `by` is '' if the row does not state the successor."""

    path: str
    line: int
    by: str


class WorkIndex:
    """All work, by id. `packets`, `stubs` and `entries` are keyed by id, and `rows` by base; of several with the same
    key, the first one counts.

    `repeated` are files that share their id with another file of the same kind, `from_stub` are the stubs that were
    activated according to the registry, and `under_active` are the packets that the board lists for other branches.
    """

    def __init__(
        self,
        stubs: Mapping[str, WorkSummary],
        packets: Mapping[str, WorkSummary],
        boards: Mapping[str, BoardSummary],
        registries: Mapping[str, RegistrySummary],
    ) -> None:
        self.has_board = bool(boards)
        self.has_registry = bool(registries)
        self.repeated: list[tuple[WorkFile, WorkFile]] = []
        self.packets = self._by_id(packets)
        self.stubs = self._by_id(stubs)
        self.listed = [Listed(path, entry) for path in sorted(boards) for entry in boards[path]["entries"]]
        self.all_rows = [IndexedRow(path, row) for path in sorted(registries) for row in registries[path]["rows"]]
        self.rows: dict[str, IndexedRow] = {}
        for row in self.all_rows:
            if row.row["base"]:
                self.rows.setdefault(row.row["base"], row)
        self.under_active = frozenset(
            listed.entry["id"] for listed in self.listed if listed.entry["token"] == ACTIVE_TOKEN
        )
        self.from_stub = frozenset(stub for row in self.all_rows for stub in row.row["from_stub"])

    def _by_id(self, summaries: Mapping[str, WorkSummary]) -> dict[str, WorkFile]:
        found: dict[str, WorkFile] = {}
        for path in sorted(summaries):
            summary = summaries[path]
            name = stem_of(path)
            work = WorkFile(name, summary["base"] if summary["id"] == name else base_of(name), path, summary)
            earlier = found.setdefault(name, work)
            if earlier is not work:
                self.repeated.append((work, earlier))
        return found

    def files(self) -> Iterator[WorkFile]:
        """Yield every packet and every stub, packets first."""
        yield from self.packets.values()
        yield from self.stubs.values()

    @cached_property
    def packets_of(self) -> Mapping[str, list[WorkFile]]:
        """Return the packet files of each base."""
        found: dict[str, list[WorkFile]] = {}
        for work in self.packets.values():
            found.setdefault(work.base, []).append(work)
        return found

    @cached_property
    def entries(self) -> Mapping[str, Listed]:
        """Return the entry of each packet. An entry that contains a base represents the packet of that base."""
        found: dict[str, Listed] = {}
        for listed in self.listed:
            if listed.entry["token"] != ACTIVE_TOKEN:
                found.setdefault(listed.entry["id"], listed)
        for name, listed in list(found.items()):
            if not self.has_file(name) and listed.entry["token"] not in ARCHIVED:
                meant = self.packet_of_base(name)
                if meant:
                    found.setdefault(meant, listed)
        return found

    @cached_property
    def superseded(self) -> Mapping[str, Superseded]:
        """Return the packets that are superseded according to the registry: by a note, or because a later packet of the
        base is current.
        """
        found: dict[str, Superseded] = {}
        for path, row in self.all_rows:
            for name in row["supersedes"]:
                if name != row["active"]:
                    found.setdefault(name, Superseded(path, row["place"][0], row["active"]))
        for work in self.packets.values():
            in_force = self.rows.get(work.base)
            if in_force is None or in_force.row["active"] in {"", work.id}:
                continue
            if kind_of(in_force.row["active_path"]) != "packet":
                continue  # a stub replaces nothing until it is activated
            if revision_of(work.id) < revision_of(in_force.row["active"]):
                place = in_force.row["place"]
                found.setdefault(work.id, Superseded(in_force.path, place[0], in_force.row["active"]))
        return found

    @cached_property
    def known(self) -> frozenset[str]:
        """Return every id in a file, the board or the registry, and the base of each."""
        works = [name for work in self.files() for name in (work.id, work.base)]
        entries = [name for listed in self.listed for name in (listed.entry["id"], listed.entry["base"])]
        rows = [name for _, row in self.all_rows for name in (row["base"], row["active"], *row["supersedes"])]
        return frozenset((*works, *entries, *rows)) - {""}

    @cached_property
    def suggestions(self) -> IdSuggestions:
        return IdSuggestions(self.known)

    def has_file(self, name: str) -> bool:
        return name in self.packets or name in self.stubs

    def packet_of_base(self, base: str) -> str:
        """Return the packet or stub that a base id refers to: the current one, or else the only one; '' if there is
        none.
        """
        row = self.rows.get(base)
        if row is not None and self.has_file(row.row["active"]):
            return row.row["active"]
        works = self.packets_of.get(base, [])
        return works[0].id if len(works) == 1 else ""

    def is_live_stub(self, stub: WorkFile) -> bool:
        """Whether the stub is still waiting to be activated."""
        listed = self.entries.get(stub.id)
        on_board = listed is None or listed.entry["token"] in {"STUB", ""}
        given_up = bool(ARCHIVED & set(stub.summary["lanes"]))
        activated = stub.id in self.packets or stub.id in self.from_stub
        return on_board and not given_up and not activated and stub.id not in self.superseded


def base_of(name: str) -> str:
    parsed = WorkPacketId.try_parse(name)
    return parsed.base if parsed is not None else name


def revision_of(name: str) -> int:
    """Return a packet's number among the packets of its base; the packet without a number is the first."""
    parsed = WorkPacketId.try_parse(name)
    return (parsed.revision or 1) if parsed is not None else 0


def is_open(tokens: Iterable[str], lanes: LaneTable) -> bool:
    """Whether a status says that work remains: every lane to which it may refer is open."""
    named = [lanes.lane(token) for token in tokens]
    return bool(named) and all(lane is not None and lane.unfinished for lane in named)


S = TypeVar("S")


class _OfKind(Generic[S]):
    """The summaries of one kind, by path."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __get__(self, repository: RepositorySummaries, owner: type[RepositorySummaries]) -> Mapping[str, S]:
        return cast("Mapping[str, S]", repository.of_kind(self.kind))


class RepositorySummaries:
    """Summaries by kind and path, and the lane of each packet that has a log.

    `known_lanes` are the lanes of the policy in the same tree; `passed` counts the moves into each lane. `board` is the
    policy's `[board] commit` setting. `attested` are the packets whose activation lists an envelope.
    """

    stubs = _OfKind[WorkSummary]("stub")
    packets = _OfKind[WorkSummary]("packet")
    work_packages = _OfKind[PackageSummary]("work_package")
    boards = _OfKind[BoardSummary]("task_board")
    registries = _OfKind[RegistrySummary]("registry")
    refinements = _OfKind[RefinementSummary]("refinement")
    signature_audits = _OfKind[SignatureSummary]("signature_audit")
    roles = _OfKind[RoleSummary]("role_progress")
    sidecars = _OfKind[SidecarSummary]("commit_sidecar")

    def __init__(
        self,
        summaries: Iterable[tuple[str, str, Mapping[str, object]]],
        lanes: Mapping[str, str] | None = None,
        known_lanes: LaneTable = BUILT_IN,
        passed: Mapping[str, int] = NOTHING,
        board: str = "",
        attested: Collection[str] = (),
    ) -> None:
        self.lanes: Mapping[str, str] = lanes or {}
        self.known_lanes = known_lanes
        self.passed = passed
        self.board = board
        self.attested = attested
        self._by_kind: dict[str, dict[str, Mapping[str, object]]] = {}
        for kind, path, summary in summaries:
            self._by_kind.setdefault(kind, {})[path] = summary

    def of_kind(self, kind: str) -> Mapping[str, Mapping[str, object]]:
        return self._by_kind.get(kind, {})

    def is_drawn(self, name: str) -> bool:
        """Whether board and registry must agree with the log about this packet."""
        packet = self.work.packets.get(name)
        return self.board == "branch" or packet is None or packet.summary["form"] != LIGHT_FORM

    @property
    def gate_logs(self) -> Mapping[str, GateSummary]:
        logs = {**self.of_kind("orchestrator_gates"), **self.of_kind("validator_gates")}
        return cast("Mapping[str, GateSummary]", logs)

    @cached_property
    def work(self) -> WorkIndex:
        """Return stubs, packets, board and registry, linked to one another.

        Board and registry are judged only if the policy says that they are written on every branch: otherwise they show
        the state of the target branch.
        """
        if self.board in {"base", "never"}:
            return WorkIndex(self.stubs, self.packets, {}, {})
        return WorkIndex(self.stubs, self.packets, self.boards, self.registries)

    def archived(self) -> frozenset[str]:
        """Return the files of superseded and abandoned work: packets, their stubs and their refinements."""
        ids = {name for name, listed in self.work.entries.items() if listed.entry["token"] in ARCHIVED}
        ids.update(self.work.superseded)
        ids.update(packet.id for packet in self.work.packets.values() if ARCHIVED & set(packet.summary["lanes"]))
        files = {file.path for file in self.work.files() if file.id in ids}
        return frozenset(files | {path for path in self.refinements if stem_of(path) in ids})

    def batch(self, kind: str) -> Mapping[str, BatchSummary]:
        return cast("Mapping[str, BatchSummary]", self.of_kind(kind))
