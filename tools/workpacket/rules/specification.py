"""Rules about the specification that a refinement rests on: is it there, and does it say what was refined?

Whether a quotation stands in a window of another text.

Excerpts are written ASCII-escaped (`\u00a7`), indented as their fence is, and people wrap and trim them. So white
space is folded and escapes are read; every other character counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from workpacket.documents.spec_pointer import candidates
from workpacket.documents.summary import AnchorSummary, RefinementSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import Files, ReferenceRule
from workpacket.text.source import Source

# Python refuses to convert a number of thousands of digits, and no file has so many lines.
_LINE_NUMBER = lazy_pattern(r"[0-9]{1,9}\Z")

_ESCAPE = lazy_pattern(r"\\u([0-9a-fA-F]{4})")
_ELLIPSIS = lazy_pattern(r"\s*(?:\[?\.\.\.\]?)\s*\Z")


class SpecificationRule(ReferenceRule):
    """A rule about the specification that a refinement rests on."""

    kinds = ("refinement",)

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        for candidate in candidates(_summary(summary)["spec"]):
            yield candidate, True


class SpecificationMissing(SpecificationRule):
    """Specification that is not in the repository

    The anchors cannot be checked.

    Remedy: correct SPEC_TARGET_RESOLVED, or add the version of the specification that was used.
    """

    severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        refinement = _summary(summary)
        if refinement["spec"] and not any(files.exists(candidate) for candidate in candidates(refinement["spec"])):
            yield self.finding(path, refinement["spec_place"], f"there is no specification {refinement['spec']}")
        elif refinement["spec"] and specification(refinement, files) is None:
            message = f"the specification {refinement['spec']} is not a readable file; links are not followed"
            yield self.finding(path, refinement["spec_place"], message)


class SpecMoved(SpecificationRule):
    """Specification changed since the refinement

    The anchors were correct for an earlier version; check that they still are.

    Remedy: `workpacket refine <WP_ID>` shows what changed in the windows and pins the current version.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        refinement = _summary(summary)
        source = specification(refinement, files)
        if source is not None and refinement["spec_digest"] and not _pinned(refinement, source):
            yield self.finding(
                path, refinement["spec_place"], f"{source.path} is not the version used for the refinement"
            )


class AnchorNotFound(SpecificationRule):
    """Anchor text not found in its window

    The specification does not state the approved requirement there.

    Remedy: correct the lines, the token and the excerpt of the anchor.
    """

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        refinement = _summary(summary)
        source = specification(refinement, files)
        if source is None or not _pinned(refinement, source):
            return
        for anchor in refinement["anchors"]:
            problem = anchor_problem(anchor, source)
            if problem:
                yield self.finding(path, anchor["place"], problem)


def anchor_problem(anchor: AnchorSummary, specification: Source) -> str:
    """What is wrong with an anchor in this very version of the specification, '' if nothing."""
    window = window_of(anchor["start"], anchor["end"])
    if window is None:
        return ""
    first, last = window
    if last > specification.line_count:
        return f"the window ends at line {last}, but {specification.path} has {specification.line_count} lines"
    lines = [specification.line(line) for line in range(first, last + 1)]
    if anchor["token"] and not contains_token(lines, anchor["token"]):
        return f"the token {anchor['token']!r} is not on lines {first} to {last} of {specification.path}"
    if anchor["excerpt"] and not contains_excerpt(lines, anchor["excerpt"]):
        return f"the excerpt is not on lines {first} to {last} of {specification.path}"
    return ""


def window_of(first: str, last: str) -> tuple[int, int] | None:
    """The two line numbers, if they make a range."""
    if not (_LINE_NUMBER.match(first) and _LINE_NUMBER.match(last)):
        return None
    window = int(first), int(last)
    return window if 1 <= window[0] <= window[1] else None


def specification(refinement: RefinementSummary, files: Files) -> Source | None:
    """The text of the specification, wherever it lies."""
    found = (files[path].source for path in candidates(refinement["spec"]))
    return next((source for source in found if source is not None), None)


def _pinned(refinement: RefinementSummary, source: Source) -> bool:
    pinned = refinement["spec_digest"]
    return pinned in {source.digest, source.sha1} if pinned else True


def _summary(summary: Mapping[str, object]) -> RefinementSummary:
    return cast("RefinementSummary", summary)


def contains_token(lines: Sequence[str], token: str) -> bool:
    """Whether one of the lines holds the token."""
    wanted = folded(token)
    return any(wanted in folded(line) for line in lines)


def contains_excerpt(lines: Sequence[str], excerpt: str) -> bool:
    """Whether every line of the excerpt stands in the window, in order. A line of dots stands for left-out lines."""
    window = [folded(line) for line in lines]
    position = 0
    for line in excerpt.split("\n"):
        wanted = folded(_ELLIPSIS.sub("", line))
        if not wanted:
            continue
        found = next((index for index in range(position, len(window)) if wanted in window[index]), None)
        if found is None:
            return False
        position = found
    return True


def folded(text: str) -> str:
    """The text with escapes read and white space folded."""
    return " ".join(_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text).split())
