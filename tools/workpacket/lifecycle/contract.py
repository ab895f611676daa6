"""The contract of a packet: everything that a person approves, in one canonical form with one digest. A stub, the
packet made from it and the light form state the same contract in different Markdown. Therefore the contract is read
from fields, not from files: `docs/approvals/contract.md` lists the fields, defines when two texts count as the same,
and says what may vary. A field includes every byte up to the next field, however Markdown reads it, so nothing in a
field can escape the digest: no nested list, no second paragraph, no comment.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from workpacket.digests import sha256
from workpacket.documents.document import SectionSpec
from workpacket.documents.structured import PlacedSection, StructuredDocument
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.scope import is_pathlike, names_one, pattern_of
from workpacket.model.canonical import Json, NotCanonical, canonical_bytes
from workpacket.model.event_types import FULL_FORM, LIGHT_FORM
from workpacket.model.ids import find_ids
from workpacket.problem import Location, Problem
from workpacket.text.blocks import LISTS, Block, Field, asides
from workpacket.text.source import Source
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.packet import Packet
    from workpacket.documents.refinement import Refinement
    from workpacket.documents.stub import Stub
    from workpacket.lifecycle.policy import EvidencePolicy

CONTRACT_VERSION: Final = 1

# What the writers of stubs and packets insert for missing input.
_NOTHING_SAID = frozenset({"", "TODO", "None known."})
_OPEN_BOX = lazy_pattern(r"\[ \]\s*\Z")
_BOX = lazy_pattern(r"\A\[[ xX]\](?=\s|\Z)")
DEMAND = lazy_pattern(r"(PROVED_BY|TESTS|PATHS|EXEMPT):\s*(.*)\Z")


class ContractUnreadable(ValueError):
    """A document that states part of the contract twice or ambiguously."""


class Pinned(Value):
    """A file pinned by the contract."""

    path: str
    sha256: str


class Demand(Value):
    """The required proof of a criterion; `exempt` says why it needs none."""

    criterion: str
    command: str
    tests: tuple[str, ...]
    paths: tuple[str, ...]
    exempt: str | None


class Contract(Value):
    packet: str
    title: str
    what: str
    why: str
    criteria: tuple[str, ...]
    scope: tuple[str, ...]
    out_of_scope: tuple[str, ...]
    risk: str
    dependencies: tuple[str, ...]
    refinement: Pinned | None
    spec: Pinned | None
    evidence: tuple[Demand, ...]
    form: str = FULL_FORM

    def json(self) -> dict[str, Json]:
        return {
            "v": CONTRACT_VERSION,
            "packet": self.packet,
            "title": self.title,
            "what": self.what,
            "why": self.why,
            "criteria": list(self.criteria),
            "scope": list(self.scope),
            "out_of_scope": list(self.out_of_scope),
            "risk": self.risk,
            "dependencies": list(self.dependencies),
            "refinement": _pinned_json(self.refinement),
            "spec": _pinned_json(self.spec),
            "evidence": [_demand_json(demand) for demand in self.evidence],
            # The canonical form of a full packet is older than this key.
            **({"form": self.form} if self.form != FULL_FORM else {}),
        }

    def encode(self) -> bytes:
        """Return the bytes that the digest covers; `contract WP --canonical` prints exactly these."""
        return canonical_bytes(self.json())

    @property
    def digest(self) -> str:
        return sha256(self.encode()).hexdigest()


def _pinned_json(pinned: Pinned | None) -> Json:
    return None if pinned is None else {"path": pinned.path, "sha256": pinned.sha256}


def _demand_json(demand: Demand) -> Json:
    return {
        "criterion": demand.criterion,
        "command": demand.command,
        "tests": list(demand.tests),
        "paths": list(demand.paths),
        "exempt": demand.exempt,
    }


def contract_of(document: Stub | Packet, refinement: Refinement | None) -> Contract:
    """Return the contract stated by a stub, or by a packet together with its refinement."""
    if document.faults or (refinement is not None and refinement.faults):
        raise ContractUnreadable("the Markdown cannot be read")
    named = document.refinement_file
    if refinement is not None and named is not None and normal_text(named.value) != refinement.path:
        raise ContractUnreadable(f"it refers to the refinement {named.value!r} instead of {refinement.path}")
    parts = _Parts(document)
    packet = document.kind == "packet"
    if document.form == LIGHT_FORM:
        return _light(cast("Packet", document), parts)
    what = parts.prose("scope" if packet else "intent", "what")
    criteria, evidence = _criteria(parts.criteria())
    return Contract(
        packet=document.own_id,
        title=what,
        what=what,
        why=parts.prose("scope" if packet else "intent", "why"),
        criteria=criteria,
        scope=_scope(parts, packet=packet),
        out_of_scope=_set(parts.entries("scope", "out_of_scope")),
        risk=_risk(parts),
        dependencies=_dependencies(document),
        refinement=_refinement(refinement),
        spec=_specification(refinement),
        evidence=evidence,
    )


def _light(packet: Packet, parts: _Parts) -> Contract:
    """Return the contract of a light packet, whose only document is also its refinement."""
    scope = packet.placed_section("scope")
    unknown = [field.key for field in scope.fields if scope.spec.field(field.name) is None] if scope is not None else []
    if unknown:
        raise ContractUnreadable(f"SCOPE has an unknown field {unknown[0]}")
    criteria, evidence = _criteria(parts.criteria())
    anchor, refined = packet.anchor, parts.bytes_of("refinement")
    title = normal_text(packet.title)
    return Contract(
        packet=packet.own_id,
        title=title,
        what=parts.prose("scope", "what") or title,
        why=parts.prose("scope", "why"),
        criteria=criteria,
        scope=_set(_listed_paths(parts, "in_scope_paths")),
        out_of_scope=_set(_listed_paths(parts, "out_of_scope")),
        risk=parts.prose("scope", "risk_tier"),
        dependencies=_dependencies(packet),
        refinement=Pinned(packet.path, sha256(refined).hexdigest()) if refined else None,
        spec=Pinned(anchor.path, anchor.sha256) if anchor is not None else None,
        evidence=evidence,
        form=LIGHT_FORM,
    )


def stated(document: Stub | Packet, refinement: Refinement | None) -> Contract | str:
    """Return the contract, or why the document does not state one."""
    try:
        contract = contract_of(document, refinement)
        contract.encode()
    except ContractUnreadable as fault:
        return f"{document.path}: {fault}"
    except NotCanonical:
        return f"{document.path}: it contains bytes that are not UTF-8"
    return contract


class Provable(Value):
    """The criteria to prove, in the packet's words, with those that need no proof and those whose box is not ticked."""

    criteria: tuple[str, ...] = ()
    exempt: frozenset[str] = frozenset()
    unticked: frozenset[str] = frozenset()


def provable(packet: Packet | None, refinement: Refinement | None) -> Provable:
    """Return what a submission of the packet must prove: each criterion in the contract, whether or not the packet has
    an item with exactly that text. The required proofs below a criterion are not criteria themselves.
    """
    if packet is None:
        return Provable()
    listed = tuple(criterion.value for criterion in packet.done_means)
    contract = stated(packet, refinement)
    if isinstance(contract, str):
        return Provable(listed)
    demanded = {demand.criterion for demand in contract.evidence if demand.exempt is not None}
    # A box at the beginning is free; a second one is part of the criterion.
    worded = {normal_text(each): text for text in listed for each in (_BOX.sub("", text.strip()), text)}
    criteria = {worded.get(said, said): said for said in contract.criteria}
    unticked = {text.value for text in packet.done_means if _has_open_box(packet.source, text.start)}
    # An item goes on after its first paragraph, and so does the criterion.
    begun = tuple(f"{text} " for text in unticked)
    unticked |= {text for text in criteria if text not in listed and text.startswith(begun)}
    exempt = frozenset(text for text, said in criteria.items() if said in demanded)
    return Provable(tuple(criteria), exempt, frozenset(unticked & criteria.keys()))


def _has_open_box(source: Source, start: int) -> bool:
    """Whether there is an unticked box at this position or directly before it."""
    number, column = source.line_and_column(start)
    line = source.line(number)
    return _OPEN_BOX.search(line[: column - 1]) is not None or line[column - 1 :].startswith("[ ] ")


def normal_text(source: str) -> str:
    """Return a string in normalized form: NFC, with each run of white space replaced by one space."""
    return " ".join(unicodedata.normalize("NFC", source).split())


class _Entry(Value):
    """One item, or the text before the first item.

    `nested` means that the item is below another item in the same field.
    """

    text: str
    nested: bool = False


class _Parts:
    """The parts of a document by section and field; a field includes everything below it."""

    def __init__(self, document: StructuredDocument) -> None:
        self._source = document.source
        self._sections: dict[str, PlacedSection] = {}
        self._starts = sorted(placed.section.start for placed in document.placed)
        for placed in document.placed:
            if placed.spec.key in self._sections and placed.spec.key in _COVERED:
                raise ContractUnreadable(f"section {placed.spec.heading} appears twice")
            self._sections.setdefault(placed.spec.key, placed)

    def prose(self, section: str, field: str) -> str:
        entries = self.entries(section, field)
        text = " ".join(entry.text for entry in entries)
        return "" if text in _NOTHING_SAID else text

    def criteria(self) -> list[_Entry]:
        """Return the entries from the location that current packets, older packets or stubs use; it is an error if two
        locations are used at the same time.
        """
        apart = [placed for key, placed in self._sections.items() if key in {"done_means", "acceptance_criteria"}]
        found = [self.entries("quality_gate", "done_means"), *map(self._section, apart)]
        said = [entries for entries in found if entries]
        if len(said) > 1:
            raise ContractUnreadable("the criteria are given twice")
        return said[0] if said else []

    def bytes_of(self, section: str) -> bytes:
        """Return everything below a section's heading, with LF line endings; '' if the section is missing."""
        placed = self._sections.get(section)
        if placed is None:
            return b""
        text = self._source.text[placed.section.title_span[1] : self._end(placed)].strip()
        return text.replace("\r\n", "\n").encode("utf-8", "surrogateescape")

    def _section(self, placed: PlacedSection) -> list[_Entry]:
        """Return everything below a heading."""
        _, start = placed.section.title_span
        return [*self._heading_aside(placed), *self._entries(placed, range(start, self._end(placed)))]

    def entries(self, section: str, key: str) -> list[_Entry]:
        """Return everything in a field."""
        placed = self._sections.get(section)
        if placed is None:
            return []
        fields = [field for field in placed.fields if _key_of(field, placed.spec) == key]
        if len(fields) > 1:
            raise ContractUnreadable(f"field {fields[0].key} of {placed.spec.heading} appears twice")
        if not fields:
            return []
        start, end = self._value_start(fields[0]), self._field_end(placed, fields[0])
        label = self._source.text[min(fields[0].key_span) : start]
        aside = [_Entry(normal_text(each)) for each in asides(label)]
        return [*self._heading_aside(placed), *aside, *self._entries(placed, range(start, end))]

    def _heading_aside(self, placed: PlacedSection) -> list[_Entry]:
        """Return the text after the name of a section that its layout does not include: `SCOPE (an example only)`."""
        usual = asides(placed.spec.heading)
        return [_Entry(normal_text(aside)) for aside in asides(placed.section.title) if aside not in usual]

    def _end(self, placed: PlacedSection) -> int:
        later = (start for start in self._starts if start > placed.section.start)
        return min(placed.section.end, next(later, placed.section.end))

    def _field_end(self, placed: PlacedSection, field: Field) -> int:
        later = [other.key_span for other in placed.fields if other.key_span > field.key_span]
        if not later:
            return self._end(placed)
        start, _ = min(later)
        line, _ = self._source.line_and_column(start)
        return self._source.line_starts[line - 1]

    def _value_start(self, field: Field) -> int:
        """Return the end of the label: the start of a value after it or, if there is none, the end of its line."""
        (_, key_end), (start, _) = field.key_span, field.value_span
        line, _ = self._source.line_and_column(key_end)
        _, line_end = self._source.line_span(line)
        return min(start, line_end) if field.value else line_end

    def _entries(self, placed: PlacedSection, span: range) -> list[_Entry]:
        blocks = [block for section in placed.section.walk() for block in section.blocks]
        items = list(_items(blocks, span))
        stops = [*(item.start for _, item in items), span.stop]
        found = [_Entry(self._text(span.start, stops[0]))]
        for number, (nested, item) in enumerate(items, 1):
            found.append(_Entry(self._text(item.content_start, stops[number]), nested))
        kept = [entry for entry in found if entry.text]
        return [] if all(entry.text in _NOTHING_SAID for entry in kept) else kept

    def _text(self, start: int, end: int) -> str:
        return normal_text(_BOX.sub("", self._source.text[start:end].strip()))


_COVERED: Final = frozenset(
    {"intent", "scope", "quality_gate", "done_means", "acceptance_criteria", "metadata", "dependencies", "risk_tier"}
    | {"refinement"}
)


def _key_of(field: Field, spec: SectionSpec) -> str:
    known = spec.field(field.name)
    return known.key if known is not None else field.name


def _items(blocks: Iterable[Block], span: range, *, nested: bool = False) -> Iterator[tuple[bool, Block]]:
    """Yield the items of lists, and of nested lists, that begin in the span; and whether the parent item begins in it
    too.
    """
    for item in (item for block in blocks if block.kind in LISTS for item in block.children):
        begins = item.start in span
        if begins:
            yield nested, item
        yield from _items(item.children, span, nested=begins)


def _criteria(entries: Sequence[_Entry]) -> tuple[tuple[str, ...], tuple[Demand, ...]]:
    """Return the criteria, and the proofs required below them."""
    criteria: list[str] = []
    demands: dict[int, dict[str, str]] = {}
    for entry in entries:
        match = DEMAND.match(entry.text) if entry.nested else None
        if match is None or not criteria:
            criteria.append(entry.text)
            continue
        said = demands.setdefault(len(criteria) - 1, {})
        if match[1] in said:
            raise ContractUnreadable(f"{match[1]} appears twice below {criteria[-1]!r}")
        said[match[1]] = match[2]
    return tuple(criteria), tuple(_demand(criteria[index], said) for index, said in demands.items())


def _demand(criterion: str, said: Mapping[str, str]) -> Demand:
    return Demand(
        criterion=criterion,
        command=_unquoted(said.get("PROVED_BY", "")),
        tests=_listed(said.get("TESTS", "")),
        paths=_listed(said.get("PATHS", "")),
        exempt=said.get("EXEMPT"),
    )


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    return inner if inner and text == f"`{inner}`" and "`" not in inner else text


def _listed(text: str) -> tuple[str, ...]:
    return tuple(sorted({_unquoted(part.strip()) for part in text.split(",")} - {""}))


def _scope(parts: _Parts, *, packet: bool) -> tuple[str, ...]:
    """Return paths and words. A packet lists its stub's paths separately, besides the entries from which they were
    taken.
    """
    if not packet:
        return _set(_with_paths(parts.entries("scope", "in_scope")))
    entries = list(parts.entries("scope", "scope_of_stub"))
    # A quoted name is an entry of the contract as it is written, although the packet has it among its paths too.
    names = {pattern_of(entry.text) for entry in entries if names_one(entry.text)}
    paths = (pattern_of(entry.text) or entry.text for entry in parts.entries("scope", "in_scope_paths"))
    return _set([*(_Entry(path) for path in paths if path not in names), *_with_paths(entries)])


def _listed_paths(parts: _Parts, field: str) -> Iterator[_Entry]:
    """Yield the entries of a light packet; several may be on one line."""
    from workpacket.documents.packet import scope_pieces  # only the packet's own reader knows how they are written

    for entry in parts.entries("scope", field):
        yield from (_Entry(pattern_of(piece) or piece) for piece in scope_pieces(entry.text))


def _with_paths(entries: Iterable[_Entry]) -> Iterator[_Entry]:
    for entry in entries:
        pattern = pattern_of(entry.text) if is_pathlike(entry.text) else ""
        if pattern:
            yield _Entry(pattern)
        if entry.text not in {pattern, f"`{pattern}`", f"./{pattern}", f"`./{pattern}`"}:
            yield entry


def _set(entries: Iterable[_Entry]) -> tuple[str, ...]:
    return tuple(sorted({entry.text for entry in entries}))


def _risk(parts: _Parts) -> str:
    places = (("metadata", "risk_tier"), ("quality_gate", "risk_tier"), ("risk_tier", "level"))
    said = {text for place in places if (text := parts.prose(*place))}
    if len(said) > 1:
        raise ContractUnreadable("the risk is given twice, with different values")
    return next(iter(said), "")


def _dependencies(document: Stub | Packet) -> tuple[str, ...]:
    named = {str(name) for text in document.dependency_texts() for name, _, _ in find_ids(text.value)}
    return tuple(sorted(named - {document.own_id}))


def _refinement(refinement: Refinement | None) -> Pinned | None:
    if refinement is None:
        return None
    unsigned = refinement.unsigned()
    if unsigned is None:
        raise ContractUnreadable("a USER field of the refinement appears twice")
    return Pinned(refinement.path, sha256(unsigned).hexdigest())


def _specification(refinement: Refinement | None) -> Pinned | None:
    if refinement is None or not refinement.spec_path:
        return None
    digest = refinement.spec_digest
    return Pinned(refinement.spec_path, digest.value.lower() if digest is not None else "")


def is_complete(demand: Demand | None) -> bool:
    """Whether the required proof says what to run, or why nothing is run."""
    return demand is not None and bool(demand.command or demand.exempt)


def demands_unmet(contract: Contract, policy: EvidencePolicy, path: str) -> Iterator[Problem]:
    """Report what prevents the approval of a contract: criteria without a proof, or proofs that prove nothing."""
    demands = {demand.criterion: demand for demand in contract.evidence}
    for number, criterion in enumerate(contract.criteria, 1):
        demand = demands.get(criterion)
        if policy.tests == "required" and not is_complete(demand):
            hint = f"workpacket evidence demand {contract.packet} {number} --command COMMAND"
            message = f"criterion {number}, {criterion[:100]!r}: the contract specifies no proof"
            yield Problem("proof_undeclared", message, Location(path), hint)
        elif demand is not None and demand.command and _is_trivial(demand.command):
            message = f"criterion {number}, {criterion[:100]!r}: {demand.command} proves nothing"
            yield Problem("proof_trivial", message, Location(path), f"edit {path}")


def _is_trivial(command: str) -> bool:
    from workpacket.evidence.runners import is_trivial  # most refused activations have no such command

    try:
        return is_trivial(shlex.split(command))
    except ValueError:  # an open quote, which is reported where it is run
        return False
