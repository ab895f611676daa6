"""Find what makes a refinement incomplete, apart from the user's answer to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import cast

from workpacket.documents.refinement import OPEN, Refinement
from workpacket.documents.register_table import visible_lines
from workpacket.documents.summary import RefinementSummary
from workpacket.problem import Location, Problem
from workpacket.rules.refinement import anchor_problem
from workpacket.rules.rule import rules_for
from workpacket.text.source import Source

_MARK = OPEN.rstrip(">")


def refinement_faults(
    refinement: Refinement, found: Iterable[Problem], specification: Source | None
) -> tuple[Problem, ...]:
    """Return the faults. `found` are the findings about the file; those that are errors in the strict profile count."""
    answered = set(_answer_lines(refinement))
    kept = [fault for fault in found if _is_error(fault.code) and fault.line not in answered]
    seen = {fault.line for fault in kept}
    kept += [fault for fault in _left_open(refinement) if fault.line not in seen]
    if specification is not None:
        kept += _anchor_faults(refinement, specification)
    return tuple(sorted(kept, key=lambda fault: fault.order))


@cache
def _mild_rules() -> frozenset[str]:
    return frozenset(rule.code() for rule in rules_for("refinement") if rule.strict_severity != "error")


def _is_error(code: str) -> bool:
    return code not in _mild_rules()


def _answer_lines(refinement: Refinement) -> Iterator[int]:
    placed = refinement.placed_section("metadata")
    for field in placed.fields if placed is not None else ():
        if field.name in refinement.answers:
            yield refinement.source.line_and_column(field.key_span[0])[0]


def _left_open(refinement: Refinement) -> Iterator[Problem]:
    for line in visible_lines(refinement.source):
        column = line.text.find(_MARK) + 1
        if column:
            message = "this item is not filled in"
            yield Problem("placeholder_left", message, Location(refinement.path, line.number, column))


def _anchor_faults(refinement: Refinement, specification: Source) -> Iterator[Problem]:
    summary = cast("RefinementSummary", refinement.summary())
    pinned = summary["spec_digest"]
    if pinned not in {specification.digest, specification.sha1} or summary["spec_sha1"] not in {
        specification.sha1,
        pinned,
    }:
        message = f"{specification.path} is not the version that the refinement pins"
        yield Problem("spec_moved", message, Location(refinement.path, *summary["place"]))
    for anchor in summary["anchors"]:
        problem = anchor_problem(anchor, specification)
        if problem:
            yield Problem("anchor_not_found", problem, Location(refinement.path, *anchor["place"]))
