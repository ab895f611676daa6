"""The requirements of each form of packet, and how a packet in the light form meets them.

The seven items of the original checklist are the same in both forms. A full packet meets them with its stub, its
refinement, its packet and the board; a light packet meets them with its only document, and with a board entry generated
from the log.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from workpacket.documents.packet import LightText, Packet, SpecAnchor, light_refinement, render_light
from workpacket.documents.spec_pointer import STILL_TO_WRITE, Passage, passages, passages_named, with_requirement
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.log import join_events
from workpacket.lifecycle.activation import light_terms
from workpacket.lifecycle.backlog import named_passage, specification_missing
from workpacket.lifecycle.claims import claim_refusal, claim_unmet_of_draft, record_claim
from workpacket.lifecycle.contract import Contract, demands_unmet, stated
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE, approval_asked, approval_unmet, satisfying, still_unmet
from workpacket.lifecycle.moves import Answer, Draft, Planned, move, packet_missing
from workpacket.lifecycle.projections import project
from workpacket.lifecycle.scope import pattern_of
from workpacket.lifecycle.transitions import move_unmet, transition
from workpacket.model.canonical import Json
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.model.layout import packet_paths
from workpacket.problem import Edit, Location, Problem
from workpacket.text.source import Source
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.authorship import Declared

_LONGEST_SLUG: Final = 40
# Letters that are not a Latin letter with an accent, so that normalization leaves nothing of them.
_SPELLED: Final = str.maketrans(
    {
        "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
        "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ħ": "h", "Ħ": "H", "ŧ": "t", "Ŧ": "T",
    }
)  # fmt: skip
_WORD: Final = lazy_pattern(r"[A-Za-z0-9]+")
# A word in any script; Chinese, Japanese and Korean write no blanks between words.
_SPOKEN: Final = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_SAYS_NOTHING: Final = lazy_pattern(
    r"(?i:[\W_]*(?:todo|tbd|none|nothing|n/?a|pending|unknown|as above|see above)?[\W_]*)"
)
# Fewer words are a title, not a finding.
_FEWEST_WORDS: Final = 3


def slug_of(title: str) -> str:
    """Return the slug of an id for a title; if none of its words can be written in ASCII, a slug made from its
    digest."""
    spelled = unicodedata.normalize("NFKD", title.translate(_SPELLED))
    plain = spelled.encode("ascii", "ignore").decode()
    slug = ""
    for word in _WORD.findall(plain):
        longer = f"{slug}-{word[:1].upper()}{word[1:]}" if slug else f"{word[:1].upper()}{word[1:]}"[:_LONGEST_SLUG]
        if len(longer) > _LONGEST_SLUG:
            break
        slug = longer
    if WorkPacketId.try_parse(f"WP-1-{slug}-v1") is None:
        return f"Item-{hashlib.sha256(title.encode('utf-8', 'surrogateescape')).hexdigest()[:4]}"
    return slug


def id_for(title: str, phase: str, taken: Collection[str]) -> WorkPacketId:
    """Return an id for the title whose base is not among the `taken` ids, ignoring case."""
    slug, folded = slug_of(title), {name.casefold() for name in taken}
    number = 1
    while True:
        wanted = WorkPacketId.parse(f"WP-{phase}-{slug}{f'-{number}' if number > 1 else ''}-v1")
        if wanted.key not in folded and wanted.base.casefold() not in folded:
            return wanted
        number += 1


class NewPacket(Value):
    """What the command line says about a new light packet. `requirement` is appended to the specification, `anchor` is
    the name of one of its sections, and `link` is the issue that the packet was made from, if any."""

    id: WorkPacketId
    text: LightText
    anchor: str = ""
    requirement: str = ""
    link: str = ""


def new_light(facts: Facts, wanted: NewPacket) -> Answer:
    """Write the document of a light packet, and the first event of its log."""
    name, path = wanted.id.text, packet_paths(wanted.id.text)[0]
    facts = replace(facts, packets={**facts.packets, name: PacketFacts(wanted.id, join_events(name, ()))})
    draft = Draft("new", facts)
    text = wanted.text
    if wanted.anchor or wanted.requirement:
        anchor = _anchored(facts, draft, wanted.anchor, wanted.requirement, text.title)
        if isinstance(anchor, Problem):
            return (anchor,)
        # The new section lands with the work, so it is part of the scope.
        scope = (*text.scope, f"`{anchor.path}`") if wanted.requirement else text.scope
        text = replace(text, anchor=anchor, scope=scope)
    draft.put(path, None, render_light(text))
    packet = facts.packets[name]
    data: dict[str, Json] = {"base": wanted.id.base, "form": LIGHT_FORM, "title": " ".join(text.title.split())[:2000]}
    data |= {"source": {"kind": "issue", "name": wanted.link}} if wanted.link else {}
    move(draft, packet, "created", "STUB", data)
    if facts.policy.packets.board:
        project(draft, {name: "STUB"})
    written = replace(packet, packet_source=Source(path, render_light(text)))
    missing = light_unmet(replace(facts, specification=_specification(facts, draft)), written)
    notes = tuple(f"{one.message}: {one.hint}" for one in missing)
    begin = f"workpacket {'packet activate' if written.standing else 'start'} {name}"
    then = f"workpacket approve {name}, then: {begin}" if _is_asked(facts, written) else begin
    then = missing[0].hint if missing else then
    return Planned(draft.plan(), f"{name} is a draft: {path}", then, {"id": name, "path": path}, notes)


def _specification(facts: Facts, draft: Draft) -> Source | None:
    return draft.file(facts.specification.path, facts.specification) if facts.specification is not None else None


def _anchored(facts: Facts, draft: Draft, anchor: str, requirement: str, title: str) -> SpecAnchor | Problem:
    """Return the anchor for a section of the specification; if there is a requirement, append it first."""
    found = facts.specification
    if facts.spec_pointer is None or found is None:
        return specification_missing(facts)
    if requirement:
        heading = title.replace("`", "'")
        if passages_named(found, heading):
            message = f"{found.path} already has a section {heading!r}"
            return Problem("anchor_not_found", message, Location(found.path), f"name it: --anchor {heading!r}")
        draft.put(found.path, found, with_requirement(found, heading, requirement, facts.policy.roadmap_headings))
        found, anchor = draft.file(found.path, found) or found, heading
    named = named_passage(found, anchor)
    if isinstance(named, Problem):
        return named
    return SpecAnchor(named.heading, found.path, named.digest)


def refine_light(facts: Facts, packet: PacketFacts, *, text: str, anchor: str, requirement: str = "") -> Answer:
    """Write the refinement of a light packet, and pin the section of the specification that it is based on; the section
    is new if there is a `requirement`.
    """
    name, document = packet.id.text, packet.packet
    unmet = move_unmet(packet.state, transition("activate"), facts.policy.lanes)
    if unmet or document is None:
        return unmet
    draft = Draft("refine", facts)
    kept = document.anchor
    wanted = anchor or (kept.heading if kept is not None else "")
    if wanted or requirement:
        found = _anchored(facts, draft, wanted, requirement, document.title)
        if isinstance(found, Problem):
            return (found,)
        kept = found
    section = light_refinement(text or document.refinement_text, kept)
    edits = [_section_edit(document, section)]
    if requirement and kept is not None:
        edits += _scope_edits(document, kept.path)
    draft.edit(document.source, edits)
    after = draft.file(document.path, document.source)
    left = light_unmet(replace(facts, specification=_specification(facts, draft)), replace(packet, packet_source=after))
    notes = tuple(f"{one.message}: {one.hint}" for one in left)
    then = left[0].hint if left else f"workpacket start {name}"
    said = f"{document.path} has the refinement"
    return Planned(draft.plan(), said, then, {"id": name, "path": document.path}, notes)


_IN_SCOPE: Final = lazy_pattern(r"(?m)^- IN_SCOPE_PATHS:[^\r\n]*")


def _scope_edits(document: Packet, path: str) -> list[Edit]:
    """Add the path to the scope, unless it is already there."""
    field, form = _IN_SCOPE.search(document.source.text), _FORM.search(document.source.text)
    if any(path == pattern_of(entry.value) for entry in document.in_scope_paths) or form is None:
        return []
    if field is None:
        return [Edit(form.end(), form.end(), f"{document.source.eol}- IN_SCOPE_PATHS: `{path}`")]
    inline = field[0].partition(":")[2].strip()
    return [Edit(field.end(), field.end(), f", `{path}`" if inline else f"{document.source.eol}  - `{path}`")]


_FORM: Final = lazy_pattern(r"(?m)^- FORM:[^\r\n]*")


def _section_edit(document: Packet, section: str) -> Edit:
    placed, text = document.placed_section("refinement"), document.source.text
    section = section.replace("\n", document.source.eol)
    if placed is None:
        end = document.source.eol
        joint = end if text.endswith(("\n", "\r")) else end * 2
        return Edit(len(text), len(text), f"{joint}{section}{end}")
    start = document.source.line_starts[placed.section.line - 1]
    body = text[start : placed.section.end]
    return Edit(start, start + len(body.rstrip()), section)


def light_unmet(facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    """Return the checklist items that the document of a light packet does not meet, apart from approvals."""
    document = packet.packet
    if document is None:
        return (packet_missing(packet),)
    contract = stated(document, None) if document.light else f"{document.path} no longer says `FORM: light`"
    if isinstance(contract, str):
        return (Problem("contract_unreadable", contract, Location(document.path), f"edit {document.path}"),)
    return (
        *_requirement_unmet(facts, packet, document),
        *_refinement_unmet(packet, document),
        *_terms_unmet(packet, contract),
        *demands_unmet(contract, facts.policy.evidence, document.path),
    )


def document_unmet(packet: PacketFacts, specification: Source | None, roadmap: Sequence[str]) -> Iterator[Problem]:
    """Report what would have prevented the activation of a document. A later change to a section is not reported."""
    document = packet.packet
    if document is None or not document.light:
        yield Problem("contract_unreadable", f"{packet.packet_path} is not in the light form")
        return
    contract = stated(document, None)
    if isinstance(contract, str):
        yield Problem("contract_unreadable", contract)
        return
    anchor = document.anchor
    if anchor is None:
        yield Problem("refinement_incomplete", "no SPEC_ANCHOR identifies the section that requires the work")
    elif specification is not None and specification.path == anchor.path:
        named = [one for one in passages(specification) if one.heading == anchor.heading]
        if named and all(one.in_roadmap(roadmap) for one in named):
            yield Problem("requirement_only_in_roadmap", f"{anchor.heading!r} is in the roadmap, not in the main body")
    yield from _refinement_unmet(packet, document)
    yield from _terms_unmet(packet, contract)


def _requirement_unmet(facts: Facts, packet: PacketFacts, document: Packet) -> Iterator[Problem]:
    """Report item 1: the requirement must be in the main body of the specification, and unchanged since it
    was pinned.
    """
    anchor, found = document.anchor, facts.specification
    if found is None:
        yield specification_missing(facts)
        return
    place, way = Location(document.path), "--anchor HEADING"
    if all(_requires_nothing(one) for one in passages(found)):
        way = "--requirement TEXT"
    again = f"workpacket refine {packet.id} {way}"
    if anchor is None:
        yield Problem(
            "refinement_incomplete", "no SPEC_ANCHOR identifies the section that requires the work", place, again
        )
        return
    named = [one for one in passages(found) if one.heading == anchor.heading]
    if anchor.path != found.path or len(named) != 1:
        message = f"{found.path} has {len(named) or 'no'} section{'s' if len(named) > 1 else ''} {anchor.heading!r}"
        yield Problem("anchor_not_found", message, place, again)
        return
    yield from _passage_unmet(facts, anchor, named[0], document, again)


def _passage_unmet(
    facts: Facts, anchor: SpecAnchor, passage: Passage, document: Packet, again: str
) -> Iterator[Problem]:
    place = Location(document.path)
    roadmap = passage.in_roadmap(facts.policy.roadmap_headings)
    if roadmap:
        message = f"the requirement appears only in {roadmap!r}, not in the main body"
        yield Problem("requirement_only_in_roadmap", message, place, again)
    if _requires_nothing(passage):
        message = f"section {anchor.heading!r} contains no text written by you, so it requires nothing"
        yield Problem("refinement_incomplete", message, Location(anchor.path, passage.first), f"edit {anchor.path}")
    if passage.digest != anchor.sha256:
        message = f"section {anchor.heading!r} has changed since it was pinned"
        command = f"workpacket refine {document.own_id} --anchor {anchor.heading!r}"
        yield Problem("requirement_changed", message, Location(anchor.path, passage.first), command)


def _requires_nothing(passage: Passage) -> bool:
    return _says_nothing(passage.says) or passage.says.strip().startswith(STILL_TO_WRITE)


def _refinement_unmet(packet: PacketFacts, document: Packet) -> Iterator[Problem]:
    """Report item 2: the refinement must contain text."""
    text = document.refinement_text
    if _says_nothing(text) or len(_SPOKEN.findall(text)) < _FEWEST_WORDS:
        nothing = "the REFINEMENT section does not say how the work will be done"
        few = f"the REFINEMENT section must describe, in at least {_FEWEST_WORDS} words, how the work will be done"
        message = f"no technical refinement: {nothing if _says_nothing(text) else few}"
        yield Problem(
            "refinement_missing", message, Location(document.path), f"workpacket refine {packet.id} --refinement TEXT"
        )


def _terms_unmet(packet: PacketFacts, contract: Contract) -> Iterator[Problem]:
    """Report item 6: the contract must contain criteria and paths."""
    place, edit = Location(packet.packet_path), f"edit {packet.packet_path}"
    if not contract.criteria:
        yield Problem("done_means_missing", "DONE_MEANS has no criterion", place, edit)
    if not any(pattern_of(entry) for entry in contract.scope):
        yield Problem("scope_undecided", "IN_SCOPE_PATHS names no path", place, edit)


def _says_nothing(text: str) -> bool:
    return all(_SAYS_NOTHING.fullmatch(line) for line in text.splitlines())


def light_activation_unmet(facts: Facts, packet: PacketFacts) -> tuple[tuple[Problem, ...], tuple[LogEvent, ...]]:
    """Return what keeps a light packet from being activated, apart from its approval, and the waivers used."""
    unmet = move_unmet(packet.state, transition("activate"), facts.policy.lanes)
    if unmet:
        return unmet, ()
    return still_unmet(light_unmet(facts, packet), packet.state, facts.moment.now, facts.approved)


def signature_unmet(facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    """Report items 3 and 4: the approval of this contract, unless the policy requires none."""
    if not _is_asked(facts, packet):
        return ()
    return tuple(approval_unmet(facts.approvals[ACTIVATION_GATE], packet.id.text))


def record_activation(draft: Draft, packet: PacketFacts) -> tuple[Problem, ...]:
    """Record the activation of a light packet, or return what prevents it."""
    facts, document = draft.facts, packet.packet
    left, waived = light_activation_unmet(facts, packet)
    unmet = (*left, *(signature_unmet(facts, packet) if not left or left[0].code != "wrong_lane" else ()))
    contract = stated(document, None) if document is not None else ""
    if unmet or document is None or isinstance(contract, str):
        return unmet
    draft.rests_on(document.path, document.source)
    pinned: Json = {"path": document.path, "sha256": document.source.digest}
    asked = _is_asked(facts, packet)
    data: dict[str, Json] = {"form": LIGHT_FORM, "refinement": pinned, "checklist": _judged(waived, asked=asked)}
    attest = satisfying(facts.approvals[ACTIVATION_GATE]) if asked else ()
    move(draft, packet, "activated", "READY_FOR_DEV", {**data, **light_terms(contract, packet)}, attest)
    return ()


def _is_asked(facts: Facts, packet: PacketFacts) -> bool:
    return approval_asked(facts.policy, light=True, standing=packet.standing)


def _judged(waived: Sequence[LogEvent], *, asked: bool) -> list[Json]:
    """Return the checklist items that are waived or not applicable."""
    if not asked:
        rows: list[Json] = [{"item": "user_signature", "result": "not_applicable", "reason": UNASKED}]
    else:
        rows = []
    rows += [
        {"item": event.text("rule") or "", "result": "waived", "reason": event.text("reason") or ""} for event in waived
    ]
    return rows


UNASKED: Final = "not required by policy"


def unasked(facts: Facts, packet: PacketFacts) -> str:
    """Return what to print about a light packet whose activation needs, or needed, no approval."""
    begun = [event for event in packet.state.history if event.type == "activated"]
    asked = bool(begun[-1].attest) if begun else _is_asked(facts, packet)
    return "" if asked else UNASKED


def activate_light(facts: Facts, packet: PacketFacts) -> Answer:
    draft = Draft("activate", facts)
    unmet = record_activation(draft, packet)
    if unmet:
        return unmet
    name = packet.id.text
    project(draft, {name: "READY_FOR_DEV"})
    notes = () if _is_asked(facts, packet) else (f"the approval was {UNASKED}",)
    said = f"{name} is ready for dev: {packet.packet_path}"
    data: dict[str, Json] = {"id": name, "path": packet.packet_path, "supersedes": []}
    return Planned(draft.plan(), said, f"workpacket start {name}", data, notes)


def start_unmet(facts: Facts, packet: PacketFacts, branch: str) -> tuple[Problem, ...]:
    """Return what prevents a light packet from being started, that is, activated (if it is a draft) and claimed."""
    if packet.state.lane != "STUB":
        return claim_refusal(facts, packet, branch)
    left = light_activation_unmet(facts, packet)[0]
    signed = signature_unmet(facts, packet)
    dependencies = claim_unmet_of_draft(facts, packet, branch)
    return (*left, *signed, *dependencies)


def start_light(facts: Facts, packet: PacketFacts, branch: str, declared: Declared | None = None) -> Answer:
    """Activate a light packet (if it is a draft) and claim it, in one transaction."""
    name = packet.id.text
    draft = Draft("start", facts)
    begun = packet.state.lane == "STUB"
    unmet = start_unmet(facts, packet, branch) or (record_activation(draft, packet) if begun else ())
    if unmet:
        return unmet
    claimed = record_claim(draft, packet, branch=branch, begun=begun, declared=declared)
    project(draft, {name: "IN_PROGRESS"})
    notes = (f"the approval was {UNASKED}",) if begun and not _is_asked(facts, packet) else ()
    said = f"{facts.actor.id} holds {name} until {claimed['expires_at']}, on {branch}"
    then = f"do the work, commit it with git, then: workpacket done {name}"
    return Planned(draft.plan(), said, then, {"id": name, "branch": branch, **claimed}, notes)
