"""The backlog: write a new stub and its technical refinement, and show that refinement to the user.

`adopt` adds logs to a repository that was governed without them: its documents determine the first event of each log.
Nothing is rewritten. If board and packet contradict each other, the packet is skipped and the contradiction is listed
until someone says which one is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from workpacket.documents.refinement import Refinement, RefinementText, anchoring, render_refinement
from workpacket.documents.spec_pointer import Passage, SpecPointer, names_passage, passages, passages_named
from workpacket.documents.stub import StubText, render_stub
from workpacket.documents.task_board import BoardEntry, TaskBoard
from workpacket.ledger.log import join_events
from workpacket.lifecycle.activation import block_digest, presented_block, ticking, unmet_of_main_body
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE
from workpacket.lifecycle.moves import Answer, Draft, Planned, move
from workpacket.lifecycle.projections import project
from workpacket.lifecycle.transitions import move_unmet, transition
from workpacket.model.canonical import Json
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import ACTIVE_TOKEN, MAY_BE_STUB, LaneTable
from workpacket.model.layout import BOARD_PATH, SPEC_POINTER, STUBS
from workpacket.model.wording import counted
from workpacket.problem import Edit, Location, Problem
from workpacket.text.source import Source
from workpacket.value import Value, replace

_OPEN = "TODO"

Preference = Literal["", "board", "packet"]


class NewStub(Value):
    """The content of the new stub. `source` is the kind and the name of what the stub was made from."""

    id: WorkPacketId
    what: str = ""
    why: str = ""
    roadmap_pointer: str = ""
    acceptance: Sequence[str] = ()
    in_scope: Sequence[str] = ()
    out_of_scope: Sequence[str] = ()
    dependencies: Sequence[str] = ()
    risks: Sequence[str] = ()
    anchors: Sequence[str] = ()
    source: tuple[str, str] = ("template", "stub")
    risk_tier: str = ""


class Recurring(Value):
    """A kind of small recurring change, which a standing packet covers."""

    what: str
    why: str
    criterion: str
    paths: tuple[str, ...]


# The paths include neither code nor anything that CI runs; a person who wants those adds them to the scope and signs
# it.
RECURRING: Final = {
    "deps": Recurring(
        "Keep the dependencies up to date",
        "Small, frequent updates are not planned individually",
        "Only manifests and lock files change.",
        (
            "**/package-lock.json", "**/npm-shrinkwrap.json", "**/yarn.lock", "**/pnpm-lock.yaml", "**/uv.lock",
            "**/poetry.lock", "**/Pipfile.lock", "**/requirements*.txt", "**/Cargo.lock", "**/go.sum", "**/go.mod",
            "**/Gemfile.lock", "**/composer.lock",
        ),
    ),
    "docs": Recurring(
        "Keep the documentation accurate",
        "Typos and outdated sentences are corrected as they are found",
        "Only documentation pages change.",
        ("README.md", "CHANGELOG.md", "docs/**/*.md", "docs/**/*.rst", "docs/**/*.txt"),
    ),
}  # fmt: skip


def standing_stub(wp_id: WorkPacketId, kind: str, until: str) -> NewStub:
    """Return the stub of a standing packet. Its last day is part of the scope, and therefore of what a person signs."""
    said = RECURRING[kind]
    scope = [*(f"`{path}`" for path in said.paths), f"Standing until {until}: {kind}"]
    return NewStub(wp_id, said.what, said.why, "", [said.criterion], scope, source=("template", f"standing {kind}"))


def new(facts: Facts, intent: NewStub) -> Answer:
    """Write a stub, its board entry, its registry row and the first event of its log."""
    name = intent.id.text
    taken = {known.casefold(): known for known in facts.known}
    if intent.id.key in taken:
        command = f"workpacket why {taken[intent.id.key]}"
        return (Problem("packet_exists", f"{taken[intent.id.key]} already exists", hint=command),)
    text = render_stub(
        StubText(
            wp_id=intent.id,
            created_at=facts.moment.now,
            roadmap_pointer=intent.roadmap_pointer or _OPEN,
            what=intent.what or _OPEN,
            why=intent.why or _OPEN,
            anchors=intent.anchors,
            in_scope=intent.in_scope or (_OPEN,),
            out_of_scope=intent.out_of_scope,
            acceptance_criteria=intent.acceptance or (_OPEN,),
            dependencies=intent.dependencies,
            risks=intent.risks,
            risk_tier=intent.risk_tier,
        )
    )
    packet = PacketFacts(intent.id, join_events(name, ()))
    facts = _with(facts, packet)
    draft = Draft("new", facts)
    path = f"{STUBS}/{name}.md"
    draft.put(path, None, text)
    kind, source = intent.source
    data: dict[str, Json] = {"base": intent.id.base, "source": {"kind": kind, "name": source}}
    data |= {"title": " ".join(intent.what.split())[:2000]} if intent.what.strip() else {}
    move(draft, packet, "created", "STUB", data)
    project(draft, {name: "STUB"}, notes=() if len(list(facts.revisions(intent.id))) > 1 else ("stub",))
    said = f"{name} is a stub in the backlog: {path}"
    return Planned(draft.plan(), said, f"edit {path}, then: workpacket refine {name}", {"id": name, "path": path})


def _with(facts: Facts, packet: PacketFacts) -> Facts:
    return replace(facts, packets={**facts.packets, packet.id.text: packet})


def refine(facts: Facts, packet: PacketFacts, anchor: str = "") -> Answer:
    """Write the scaffold of the refinement, anchored at the given section of the specification; if a refinement already
    exists, pin the current specification in it, and fill in the first open anchor.
    """
    name = packet.id.text
    unmet = move_unmet(packet.state, transition("activate"), facts.policy.lanes)
    if unmet:
        return unmet
    spec = facts.specification
    if facts.spec_pointer is None or spec is None:
        return (specification_missing(facts),)
    draft = Draft("refine", facts)
    pinned: Json = {"path": spec.path, "sha256": spec.digest}
    found = packet.refinement
    passage = named_passage(spec, anchor) if anchor else None
    if isinstance(passage, Problem):
        return (passage,)
    anchored = anchoring(found.source, passage) if found is not None and passage is not None else None
    if found is not None and passage is not None and anchored is None:
        message = f"every anchor in {found.path} is already filled in"
        return (Problem("anchor_not_found", message, Location(found.path), f"edit {found.path}"),)
    if found is None:
        stub = packet.stub
        candidates = [anchor.value for anchor in stub.spec_anchor_candidates] if stub is not None else []
        # An anchor that says that there is none names no passage, so no one should sign it as an anchor.
        anchors = [anchor for anchor in candidates if names_passage(anchor)]
        pointer = facts.spec_pointer.path
        known = RefinementText(packet.id, facts.moment.now, pointer, spec.path, spec.digest, anchors, spec.sha1)
        text = render_refinement(replace(known, passage=passage))
        draft.put(packet.refinement_path, None, text)
        said = f"{packet.refinement_path} pins {spec.path}; now fill in the refinement"
    else:
        edits = [*_pinning(found, facts), *([anchored] if anchored is not None else [])]
        draft.edit(found.source, edits)
        said = f"{found.path} " + ("pins the current version of" if edits else "pins already") + f" {spec.path}"
    after = draft.file(packet.refinement_path, packet.refinement_source)
    assert after is not None
    recorded = packet.state.refinement
    now: Json = {"path": packet.refinement_path, "sha256": after.digest}
    if recorded is None or recorded.data.get("refinement") != now:
        draft.happened(packet, "refinement.recorded", {"refinement": now, "spec": pinned})
    then = f"edit {packet.refinement_path}, then: workpacket refine {name} --present"
    return Planned(draft.plan(), said, then, {"id": name, "path": packet.refinement_path, "specification": spec.path})


def _pinning(found: Refinement, facts: Facts) -> Sequence[Edit]:
    spec, pointer = facts.specification, facts.spec_pointer
    target, sha1, sha256 = found.spec_target, found.spec_sha1, found.spec_sha256
    if spec is None or pointer is None or target is None or sha1 is None:
        return []
    if (sha256 or sha1).value.lower() in {spec.digest, spec.sha1} and found.spec_path == spec.path:
        return []
    both = spec.sha1 if sha256 is not None else f"{spec.sha1}{found.source.eol}- SPEC_TARGET_SHA256: {spec.digest}"
    wanted = [(target, f"{pointer.path} -> {spec.path}"), (sha1, both)]
    wanted += [(sha256, spec.digest)] if sha256 is not None else []
    runs = [(found.first_line(text), words) for text, words in wanted]
    return [run.replaced_by(words).edit for run, words in runs if run is not None]


def named_passage(specification: Source, name: str) -> Passage | Problem:
    """Return the section of the specification that a person specified."""
    named = passages_named(specification, name)
    if len(named) == 1:
        return named[0]
    several = f"{len(named)} sections" if named else "no section"
    titles = "; ".join(one.title for one in (named or list(passages(specification)))[:8])
    message = f"{specification.path} has {several} {name!r}; it has: {titles}"
    return Problem("anchor_not_found", message, Location(specification.path), "give the full heading of one of them")


def specification_missing(facts: Facts) -> Problem:
    if facts.spec_pointer is None:
        message = f"{SPEC_POINTER} is missing: it must contain the path of the current specification"
        return Problem("spec_pointer_missing", message, hint=f"write the path of the specification into {SPEC_POINTER}")
    target = SpecPointer(facts.spec_pointer).target
    named = target.value if target is not None else "no file"
    message = f"{SPEC_POINTER} refers to {named}, which cannot be read"
    return Problem("specification_unreadable", message, Location(SPEC_POINTER), f"correct {SPEC_POINTER}")


def present(facts: Facts, packet: PacketFacts) -> Answer:
    """Record that the technical refinement block, which the command prints, was shown; it is identified by its
    digest."""
    name = packet.id.text
    unmet = list(move_unmet(packet.state, transition("activate"), facts.policy.lanes))
    refinement = packet.refinement
    if refinement is None:
        unmet.append(Problem("refinement_missing", f"{name} has no refinement", hint=f"workpacket refine {name}"))
    if unmet or refinement is None:
        return tuple(unmet)
    faults = facts.refinement_faults.get(name, ())
    for fault in faults:
        message = f"{fault.message} ({fault.code})"
        by_hand = f"edit {fault.path}:{fault.line}"
        remedy = f"workpacket refine {name} --anchor HEADING" if fault.code == "anchor_incomplete" else by_hand
        unmet.append(Problem("refinement_incomplete", message, Location(fault.path, fault.line), remedy))
    if unmet:
        return tuple(unmet)
    draft = Draft("refine", facts)
    draft.rests_on(refinement.path, refinement.source)
    pinned: Json = {"path": refinement.path, "sha256": refinement.source.digest}
    shown: dict[str, Json] = {"refinement": pinned, "block_sha256": block_digest(refinement)}
    draft.happened(packet, "refinement.presented", shown)
    if packet.stub is not None:
        in_main_body = not unmet_of_main_body(facts, packet)
        draft.edit(packet.stub.source, ticking(packet.stub, (1, 2) if in_main_body else (2,)))
    then = (
        f"ask the user to read it and, in a terminal, to run: workpacket approve {name} --gate "
        f"{ACTIVATION_GATE}, then: workpacket packet activate {name}"
    )
    block = presented_block(refinement)
    said = f"the refinement of {name} was shown"
    return Planned(draft.plan(), said, then, {"id": name, "block": block}, shown=block)


class LaneStatement(Value):
    """The lanes to which one document's statement may refer."""

    kind: str
    path: str
    line: int
    says: str
    lanes: tuple[str, ...]

    def json(self) -> Json:
        return {"kind": self.kind, "path": self.path, "line": self.line, "says": self.says[:500] or "(nothing)"}


class Adoption(Value):
    """One packet without a log: what its documents say, and the resulting lane ('' if they contradict each other)."""

    packet: PacketFacts
    found: tuple[LaneStatement, ...]
    lane: str
    holder: str = ""
    branch: str = ""

    @property
    def contradiction(self) -> str:
        said = "; ".join(
            f"{one.path}:{one.line} says {one.says!r}" if one.says else f"{one.path}:{one.line} names no lane"
            for one in self.found
        )
        return f"{self.packet.id}: {said}"


def adopt(facts: Facts, prefer: Preference = "", only: Sequence[str] = ()) -> Planned:
    """Plan a log for every packet that has none."""
    lanes = facts.policy.lanes
    board = TaskBoard(facts.board, lanes) if facts.board is not None else None
    entries = _entries(board)
    waiting = [packet for name, packet in sorted(facts.packets.items()) if not packet.log.by_id]
    chosen = [packet for packet in waiting if not only or packet.id.text in only]
    adoptions = [
        _adoption(packet, entries.get(packet.id.text, ()), prefer, lanes) for packet in chosen if _has_file(packet)
    ]
    draft = Draft("adopt", facts)
    if facts.board is not None:
        draft.rests_on(BOARD_PATH, facts.board)
    taken = [adoption for adoption in adoptions if adoption.lane]
    for adoption in taken:
        _record(draft, adoption)
    open_ones = [adoption.contradiction for adoption in adoptions if not adoption.lane]
    said = f"{counted(len(taken), 'packet')} adopted" + (
        f", {len(open_ones)} contradict themselves" if open_ones else ""
    )
    # The preferred document does not help for the remaining packets.
    left = " or ".join(f"workpacket adopt --prefer {one}" for one in ("board", "packet") if one != prefer)
    then = left if open_ones else "workpacket board sync"
    contradictions: list[Json] = list(open_ones)
    names: list[Json] = [adoption.packet.id.text for adoption in taken]
    data: Mapping[str, Json] = {"adopted": names, "contradictions": contradictions}
    return Planned(draft.plan(), said, then, data, tuple(open_ones))


def _has_file(packet: PacketFacts) -> bool:
    return packet.stub_source is not None or packet.packet_source is not None


def _entries(board: TaskBoard | None) -> dict[str, list[BoardEntry]]:
    found: dict[str, list[BoardEntry]] = {}
    for entry in board.entries if board is not None else ():
        found.setdefault(entry.wp_id.value, []).append(entry)
    return found


def _adoption(packet: PacketFacts, entries: Sequence[BoardEntry], prefer: Preference, lanes: LaneTable) -> Adoption:
    found = tuple(_statements(packet, entries, lanes))
    active = next((entry.details() for entry in entries if entry.lane_token == ACTIVE_TOKEN), {})
    details = {key: text.value[:200] for key, text in active.items() if text.value}
    lane = _lane(found, prefer)
    if packet.packet is None and lane not in {"STUB", *MAY_BE_STUB}:
        lane = ""  # the log of such a packet would be an error that only a person can settle
    return Adoption(packet, found, lane, details.get("coder", ""), details.get("branch", ""))


def _statements(packet: PacketFacts, entries: Sequence[BoardEntry], lanes: LaneTable) -> Iterator[LaneStatement]:
    if packet.packet is not None:
        status = packet.packet.status
        value = status.value if status is not None else ""
        line = packet.packet.place(status)[0]
        named = tuple(lane.token for lane in lanes.named(value))
        yield LaneStatement("packet", packet.packet_path, line, value, named)
    elif packet.stub is not None:
        status = packet.stub.status_text()
        yield LaneStatement("stub", packet.stub_path, packet.stub.place(status)[0], "STUB", ("STUB",))
    for entry in entries:
        if entry.lane_token != ACTIVE_TOKEN:
            lane = lanes.lane(entry.lane_token)
            said = entry.token.value if entry.token is not None else ""
            yield LaneStatement("board", BOARD_PATH, entry.line, said, (lane.token,) if lane is not None else ())


def _lane(found: Sequence[LaneStatement], prefer: Preference) -> str:
    """Return the one lane that all statements allow; otherwise the lane in the preferred document."""
    allowed = set(found[0].lanes).intersection(*(one.lanes for one in found[1:]))
    # The lanes that a stub can reach on the board without a packet: superseded, abandoned.
    if found[0].kind == "stub" and len(found) > 1 and found[1].lanes[:1] in {("SUPERSEDED",), ("ABANDONED",)}:
        return found[1].lanes[0]
    if len(allowed) == 1:
        return allowed.pop()
    if prefer:
        words = [one.lanes for one in found if (one.kind == "board") == (prefer == "board")]
        return words[0][0] if words and len(words[0]) == 1 else ""
    return ""


def _record(draft: Draft, adoption: Adoption) -> None:
    packet = adoption.packet
    for path, source in (
        (packet.packet_path, packet.packet_source),
        (packet.stub_path, packet.stub_source),
    ):
        if source is not None:
            draft.rests_on(path, source)
    found: list[Json] = [one.json() for one in adoption.found]
    data: dict[str, Json] = {"base": packet.id.base, "found": found}
    if adoption.lane == "BLOCKED":
        data["came_from"] = "READY_FOR_DEV"
    if adoption.lane == "IN_PROGRESS":
        data |= {"holder": adoption.holder} if adoption.holder else {}
        data |= {"branch": adoption.branch} if adoption.branch else {}
    said = {one.lanes for one in adoption.found}
    if len(said) > 1 and not any(adoption.lane in one.lanes and len(one.lanes) > 1 for one in adoption.found):
        data["contradictions"] = [adoption.contradiction[:500]]
    lanes: dict[str, Json] = {"lane_from": None, "lane_to": adoption.lane}
    draft.happened(packet, "adopted", {**lanes, **data})
