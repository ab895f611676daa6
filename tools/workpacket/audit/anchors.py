"""Whether the passages of the specification, on which a refinement rests, still say what they said.

A refinement pins a version of the specification by its digest. In another version the excerpt is looked for: in its
window, then anywhere. Found elsewhere, the passage has only moved; found nowhere, it was changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from workpacket.documents.refinement import Refinement
from workpacket.documents.spec_pointer import candidates
from workpacket.documents.summary import AnchorSummary, RefinementSummary
from workpacket.rules.specification import anchor_problem, window_of
from workpacket.text.quotation import contains_excerpt, contains_token, folded
from workpacket.text.source import Source
from workpacket.value import Value

AnchorState = Literal["holds", "moved", "changed", "unread"]


class Anchor(Value):
    """A passage: its name, where it stands now (0 if nowhere), and how it stands. `line` is where it is named."""

    name: str
    path: str
    first: int
    last: int
    state: AnchorState
    line: int
    why: str = ""


def anchors_of(refinement: Refinement, specifications: Mapping[str, Source]) -> list[Anchor]:
    """All passages that a refinement names."""
    summary = cast("RefinementSummary", refinement.summary())
    source = next((specifications[path] for path in candidates(summary["spec"]) if path in specifications), None)
    names = [node.text if (node := anchor.get("spec_anchor")) is not None else "" for anchor in refinement.anchors]
    return [
        _anchor(name or "", anchor, summary, source) for name, anchor in zip(names, summary["anchors"], strict=True)
    ]


def _anchor(name: str, anchor: AnchorSummary, summary: RefinementSummary, source: Source | None) -> Anchor:
    line = anchor["place"][0]
    window = window_of(anchor["start"], anchor["end"]) or (0, 0)
    if source is None:
        return Anchor(
            name, summary["spec"], *window, "unread", line, f"the specification {summary['spec']} is not here"
        )
    problem = anchor_problem(anchor, source)
    if not problem:
        return Anchor(name, source.path, *window, "holds", line)
    found = _found_elsewhere(anchor, source)
    if found is not None:
        return Anchor(name, source.path, *found, "moved", line, f"it stands in lines {found[0]} to {found[1]} now")
    return Anchor(name, source.path, *window, "changed", line, problem)


def _found_elsewhere(anchor: AnchorSummary, source: Source) -> tuple[int, int] | None:
    """The lines where the whole excerpt, or without one the token, stands now."""
    wanted = [text for line in anchor["excerpt"].split("\n") if (text := folded(line)) and text.strip(".[]")]
    first_words = wanted[0] if wanted else folded(anchor["token"])
    window = window_of(anchor["start"], anchor["end"])
    if not first_words or window is None:
        return None
    length = window[1] - window[0]
    for number in range(1, source.line_count + 1):
        if first_words in folded(source.line(number)):
            last = min(number + length, source.line_count)
            lines = [source.line(each) for each in range(number, last + 1)]
            token = anchor["token"]
            if contains_excerpt(lines, anchor["excerpt"]) and (not token or contains_token(lines, token)):
                return number, last
    return None
