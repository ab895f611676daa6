"""Which packets rest on a file, or on a passage of the specification."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from workpacket.audit.facts import AuditFacts
from workpacket.audit.standing import named_files
from workpacket.audit.tracing import Trace, proved_path, same
from workpacket.lifecycle.scope import outside
from workpacket.plans.facts import PacketFacts
from workpacket.value import Value

_PLACE = re.compile(r"(?P<path>[^\s:]+):(?P<line>[1-9][0-9]{0,8})\Z")


class Rests(Value):
    """A packet, its lane, and how it rests on what was asked for."""

    packet: str
    lane: str
    how: str


def impact(facts: AuditFacts, traces: Mapping[str, Trace], asked: str) -> list[Rests]:
    """`asked` is a path, `path:line`, or the name of an anchor as refinements write it."""
    path, line = place_in(asked)
    return [
        Rests(name, packet.lane, how)
        for name, packet in sorted(facts.packets.items())
        for how in dict.fromkeys(_ways(packet, traces[name], asked, path, line))
    ]


def place_in(asked: str) -> tuple[str, int]:
    """The path in it, as it stands from the top of the repository, and the line; 0 for the whole file."""
    match = _PLACE.match(asked)
    path, line = (match["path"], int(match["line"])) if match is not None else (asked, 0)
    return path.removeprefix("./"), line


def _ways(packet: PacketFacts, traced: Trace, asked: str, path: str, line: int) -> Iterator[str]:
    for anchor in traced.anchors:
        named = same(anchor.name) == same(asked) or _section_of(anchor.name) == same(asked)
        inside = anchor.path == path and (not line or anchor.first <= line <= anchor.last)
        if named or inside:
            yield f"it was refined against {anchor.name or anchor.path} ({anchor.state})"
    document = packet.packet
    if document is not None:
        scope = [item.value for item in document.in_scope_paths]
        if scope and not outside([path], scope):
            yield "the path is in its scope"
    for criterion in traced.criteria:
        if any(_is_proof(proof, path, line) for each in criterion.evidence for proof in each.proofs):
            yield f"it proves DONE_MEANS {criterion.number}"
    for event, named_path, _ in named_files(packet.log):
        if named_path == path:
            yield f"{event.type} rests on it"
    for event in packet.state.history:
        if event.type == "submitted" and path in event.texts("changed"):
            yield f"the work of {event.at} changed it"


def _is_proof(proof: str, path: str, line: int) -> bool:
    return proved_path(proof) == path and (not line or proof.strip("`").endswith(f":{line}"))


def _section_of(name: str) -> str:
    """The number of a section in the name of an anchor: `Spec_v1.md 4.2 Parser` is 4.2."""
    return next((word for word in name.split() if re.fullmatch(r"[0-9]+(?:\.[0-9]+)*", word)), "").casefold()
