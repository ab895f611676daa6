"""Rules about technical refinements, and about the specification that a refinement is based on.

An anchor quotes a passage of the specification. Excerpts are written with ASCII escapes (`§`) and indented like their
fence, and people wrap and trim them. Therefore white space is collapsed and escapes are decoded before the comparison;
every other character counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar, cast

from workpacket.documents.document import Text
from workpacket.documents.refinement import APPROVAL_WORDS, COVERAGE_POINTS, Refinement
from workpacket.documents.spec_pointer import candidates, later_version, names_passage
from workpacket.documents.summary import AnchorSummary, Place, RefinementSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import SPEC_POINTER
from workpacket.problem import Problem
from workpacket.rules.anchors import HEADING, chapters, folded, is_unknown_chapter
from workpacket.rules.rule import DocumentRule, Files, ReferenceRule, first_lines, repeated
from workpacket.rules.structured import PLACEHOLDER, says_something
from workpacket.text.blocks import normal_key
from workpacket.text.formats import date, date_time, legacy_signature
from workpacket.text.source import Source

# Python refuses to convert a number of thousands of digits, and no file has so many lines.
_LINE_NUMBER = lazy_pattern(r"[0-9]{1,9}\Z")

_ELLIPSIS = lazy_pattern(r"\s*(?:\[?\.\.\.\]?)\s*\Z")

_NO_LEVEL = 7
# The number of a chapter in an anchor, behind the name of the specification.
_NAMED_CHAPTER = lazy_pattern(
    r"[\w./-]+\.md`?[ :#-]*(?:\u00a7 ?|section |chapter )?(\d{1,4}(?:\.\d{1,4}){0,8})(?=[\s:,.]|\Z)"
)
_WORD = lazy_pattern(r"[A-Za-z]+")
# A specification may itself mention `<WP_ID>`; in an anchor, only an instruction to the author is a placeholder.
_FILL_IN = lazy_pattern(r"<(?i:fill|paste|pending|copy|insert|line|token|tbd|todo)\b[^<>\n]*>|PENDING|TBD|TODO")


RefinementRule = DocumentRule[Refinement]


class SpecificationRule(ReferenceRule):
    """A rule about a refinement's specification."""

    kinds: ClassVar[tuple[str, ...]] = ("refinement",)

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        yield from ((candidate, True) for candidate in candidates(_summary(summary)["spec"]))


class SpecificationMissing(SpecificationRule):
    """Specification not in the repository

    The anchors cannot be checked.

    Remedy: correct SPEC_TARGET_RESOLVED or SPEC_CURRENT.md, or add the version of the specification that was used.
    """

    kinds = ("refinement", "spec_pointer")
    severity = "warning"

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        yield SPEC_POINTER, True
        yield from ((candidate, True) for candidate in candidates(_named(summary)[0]))

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        name, place = _named(summary)
        found = [candidate for candidate in candidates(name) if files.exists(candidate)]
        if name and not found and (candidates(name) or "spec" in summary):
            if files.exists(SPEC_POINTER) and not _replaced_by(summary, files):
                yield self.finding(path, place, f"specification {name} not found")
        elif name and found and all(files[candidate].source is None for candidate in found):
            yield self.finding(path, place, f"the specification {name} is not a readable file; links are not followed")


def _replaced_by(summary: Mapping[str, object], files: Files) -> str:
    """Return the version that the pointer names instead of the one that an approved refinement pins."""
    pointer = files[SPEC_POINTER].source if summary.get("approved") else None
    return later_version(pointer, _named(summary)[0]) if pointer is not None else ""


class SpecificationElsewhere(SpecificationRule):
    """Specification not found in a repository that contains none, or only a later version

    It is kept elsewhere, or was replaced after the refinement was approved, so the anchors cannot be checked.

    Remedy: add SPEC_CURRENT.md and the version of the specification that the refinement names.
    """

    severity = "info"
    strict_severity = "warning"
    wants = SpecificationMissing.wants

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        name, place = _named(summary)
        later, there = _replaced_by(summary, files), any(map(files.exists, candidates(name)))
        why = f"; {SPEC_POINTER} names {later}" if later else f", and the repository has no {SPEC_POINTER}"
        if name and not there and (later or not files.exists(SPEC_POINTER)):
            yield self.finding(path, place, f"specification {name} not found{why}")


def _named(summary: Mapping[str, object]) -> tuple[str, Place]:
    """Return the specification that a refinement or the pointer refers to, and the location of the reference."""
    if "spec" in summary:
        return _summary(summary)["spec"], _summary(summary)["spec_place"]
    return cast("str", summary["target"]), cast("Place", summary["place"])


class SpecMoved(SpecificationRule):
    """Specification that changed after the refinement

    The anchors were correct for an earlier version and must be checked again.

    Remedy: `workpacket refine <WP_ID>` shows what changed in the windows and pins the current version.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        refinement = _summary(summary)
        source = specification(refinement, files)
        if source is not None and refinement["spec_digest"] and not _pinned(refinement, source):
            yield self.finding(
                path, refinement["spec_place"], f"{source.path} is not the version that the refinement pins"
            )


class AnchorNotFound(SpecificationRule):
    """Anchor text not found in its window

    The specification does not contain the approved requirement in these lines.

    Remedy: correct the anchor's lines, token and excerpt.
    """

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        refinement = _summary(summary)
        source = specification(refinement, files)
        if source is None or not _pinned(refinement, source):
            return
        for anchor in refinement["anchors"]:
            problem = anchor_problem(anchor, source)
            if problem:
                past = problem.startswith("the window ends")
                yield self.finding(path, anchor["end_place"] if past else anchor["place"], problem)


class AnchorChapterUnknown(SpecificationRule):
    """Anchor in a chapter that the specification does not have

    Even if the lines are right, readers who look for the chapter will not find it.

    Remedy: write the number of the chapter that contains the lines.
    """

    severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        refinement = _summary(summary)
        source = specification(refinement, files)
        if source is None or not _pinned(refinement, source):
            return
        numbers = chapters(source)
        for anchor in refinement["anchors"]:
            named = _NAMED_CHAPTER.match(folded(anchor["name"]))
            if named is not None and is_unknown_chapter(named[1], numbers):
                yield self.finding(path, anchor["name_place"], f"{source.path} has no chapter {named[1]}")


class AnchorInRoadmap(SpecificationRule):
    """Anchor in a roadmap section of the specification

    A roadmap lists plans; only the main body states what is required.

    Remedy: find the requirement in the main body, or propose an enrichment.
    """

    severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        refinement = _summary(summary)
        source = specification(refinement, files)
        if source is None or not _pinned(refinement, source):
            return
        for anchor in refinement["anchors"]:
            window = window_of(anchor["start"], anchor["end"])
            heading = _roadmap_above(source, window[0]) if window is not None else ""
            if heading and not anchor_problem(anchor, source):
                yield self.finding(
                    path, anchor["place"], f"line {anchor['start']} is in the roadmap section {heading!r}"
                )


def _roadmap_above(source: Source, line: int) -> str:
    """Return the heading of a roadmap that contains the line; '' if none does."""
    level = _NO_LEVEL
    for number in range(min(line, source.line_count), 0, -1):
        match = HEADING.match(source.line(number))
        if match is not None and len(match[1]) < level:
            level = len(match[1])
            if "roadmap" in match[2].casefold():
                return match[2].strip()
    return ""


def anchor_problem(anchor: AnchorSummary, specification: Source) -> str:
    """Return what is wrong with an anchor in this version of the specification; '' if nothing is."""
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
    """Return the two line numbers if they form a range."""
    if not (_LINE_NUMBER.match(first) and _LINE_NUMBER.match(last)):
        return None
    window = int(first), int(last)
    return window if 1 <= window[0] <= window[1] else None


def specification(refinement: RefinementSummary, files: Files) -> Source | None:
    """Return the text of the specification at the first path that exists."""
    found = (files[path].source for path in candidates(refinement["spec"]))
    return next((source for source in found if source is not None), None)


def _pinned(refinement: RefinementSummary, source: Source) -> bool:
    pinned = refinement["spec_digest"]
    # In a refinement with both digests, the SHA-256 decides; the other one must not contradict it.
    known = pinned in {source.digest, source.sha1} and refinement["spec_sha1"] in {source.sha1, pinned}
    return known if pinned else True


def _summary(summary: Mapping[str, object]) -> RefinementSummary:
    return cast("RefinementSummary", summary)


def contains_token(lines: Sequence[str], token: str) -> bool:
    """Whether one of the lines contains the token."""
    wanted = folded(token)
    return any(wanted in folded(line) for line in lines)


def contains_excerpt(lines: Sequence[str], excerpt: str) -> bool:
    """Whether the window contains every line of the excerpt, in order. A line of dots represents omitted lines."""
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


class ApprovedUnsigned(RefinementRule):
    """Refinement marked as approved, without a signature

    An agent can type the mark; only a signature proves that a person gave approval.

    Remedy: have it approved: `workpacket approve <WP_ID>`; until then write PENDING.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        status, signature = document.review_status, document.signature
        if status is None or status.value != "APPROVED":
            return
        if signature is None or not signature.value or PLACEHOLDER.match(signature.value):
            span = signature.span if signature is not None else status.span
            yield self.fault(span, "USER_REVIEW_STATUS is APPROVED, but USER_SIGNATURE contains no signature")


class ApprovalEvidenceMismatch(RefinementRule):
    """Approval evidence that does not name this packet

    The evidence must name this packet; otherwise one packet's approval could pass for another's.

    Remedy: write `APPROVE REFINEMENT <WP_ID>` with this packet's id.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        evidence = document.approval_evidence
        approved = document.review_status is not None and document.review_status.value == "APPROVED"
        wanted = f"{APPROVAL_WORDS} {document.own_id}"
        if evidence is not None and approved and evidence.value.strip("`") != wanted:
            yield self.fault(evidence.span, f"the evidence is {evidence.value!r} instead of {wanted!r}")


class ApprovalEvidenceMissing(RefinementRule):
    """Approved refinement without USER_APPROVAL_EVIDENCE

    Nothing shows that a person approved this packet.

    Remedy: have it approved: `workpacket approve <WP_ID>`; until then write PENDING.
    """

    severity = "warning"

    def check(self, document: Refinement) -> Iterator[Problem]:
        status, evidence = document.review_status, document.approval_evidence
        if status is not None and status.value == "APPROVED" and evidence is None:
            yield self.fault(status.span, "USER_REVIEW_STATUS is APPROVED, but USER_APPROVAL_EVIDENCE is missing")


class VerdictUnticked(RefinementRule):
    """PASS verdict although the checklist has open points

    According to the verdict, the specification covers the work, but the checklist contradicts that.

    Remedy: tick the points that are met, or set the verdict to FAIL.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Refinement) -> Iterator[Problem]:
        if _word(document.verdict) != "PASS":
            return
        points = document.open_points
        absent = [point for point in COVERAGE_POINTS if document.text_at("clearly_covers", normal_key(point)) is None]
        if absent and len(absent) < len(COVERAGE_POINTS) and document.verdict is not None:
            message = f"CLEARLY_COVERS_VERDICT is PASS, but the checklist has no point {absent[0]!r}"
            yield self.fault(document.verdict.span, message)
        if points:
            more = f", nor {'is' if len(points) == 2 else 'are'} {len(points) - 1} more" if len(points) > 1 else ""
            message = f"CLEARLY_COVERS_VERDICT is PASS, but {points[0][0]!r} is not met{more}"
            yield self.fault(points[0][1].span, message)


_DAY, _ZONES = timedelta(days=1), timedelta(hours=15)


class SignatureBeforeDocument(RefinementRule):
    """Signature older than the refinement

    Text that did not yet exist cannot have been approved.

    Remedy: correct CREATED_AT; if the refinement was rewritten, have it approved again: `workpacket approve <WP_ID>`.
    """

    severity = "warning"

    def check(self, document: Refinement) -> Iterator[Problem]:
        created, signature = document.created_at, document.signature
        if created is None or signature is None or legacy_signature(signature.value) or date(created.value[:10]):
            return
        exact = created.value.endswith("Z") and not date_time(created.value)
        written = datetime.fromisoformat(created.value[: len("2026-01-31T09:30" if exact else "2026-01-31")])
        at = signature.value[-len("DDMMYYYYHHMM") :]  # strptime would import locale and calendar
        signed = datetime.fromisoformat(f"{at[4:8]}-{at[2:4]}-{at[:2]}T{at[8:10]}:{at[10:]}")
        if signed + (_ZONES if exact else _DAY) < written:  # the token has the time of some zone
            message = f"CREATED_AT is {created.value[:10]}, but the signature is dated {signed:%Y-%m-%d}"
            yield self.fault(created.span, message)


# The section may say in a few words that there is nothing to propose.
_SHORT_ANSWER = 60


class VerdictContradiction(RefinementRule):
    """Verdict and enrichment contradict each other

    Either the specification covers the work (PASS, no enrichment) or it does not (FAIL, enrichment). Here the two
    fields contradict each other.

    Remedy: fix the file that is wrong.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        verdict, enrichment = _word(document.verdict), _word(document.enrichment_needed)
        placed = document.placed_section("proposed_spec_enrichment") if enrichment == "NO" else None
        proposed = document.proposed_enrichment if enrichment == "NO" else ""
        said = len(proposed) > _SHORT_ANSWER or proposed.startswith("#")
        if said and "SPEC_ANCHOR" not in proposed and document.enrichment_needed is not None:
            span = placed.section.title_span if placed is not None else document.enrichment_needed.span
            yield self.fault(span, "ENRICHMENT_NEEDED is NO, but PROPOSED_SPEC_ENRICHMENT contains text")
        if document.enrichment_needed is None or (verdict, enrichment) not in {("PASS", "YES"), ("FAIL", "NO")}:
            return
        message = f"CLEARLY_COVERS_VERDICT is {verdict}, but ENRICHMENT_NEEDED is {enrichment}"
        yield self.fault(document.enrichment_needed.span, message)


_AMBIGUITY = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t]*[-*+][ \t]+(?P<said>(?:potential |open )?ambiguity)[ \t]*:(?![ \t]*(?:none|n/?a)\b)"
)


_QUESTION = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t]*[-*+][ \t]+(?P<said>open[_ ]questions?)\b(?!s?[ \t]*:[ \t]*(?:none|n/?a|no)\b)"
)


class AmbiguityContradiction(RefinementRule):
    """PASS verdict despite an ambiguity

    The coder would have to resolve the ambiguity alone.

    Remedy: resolve the ambiguity in the specification, or set the verdict to FAIL and propose an enrichment.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        found = document.ambiguity_found
        if found is not None and _word(found) == "YES" and _word(document.verdict) == "PASS":
            yield self.fault(found.span, "AMBIGUITY_FOUND is YES, but CLEARLY_COVERS_VERDICT is PASS")


class AmbiguityUnstated(RefinementRule):
    """Ambiguity listed as a gap, although AMBIGUITY_FOUND says NO

    A reader of the verdict does not learn of the ambiguity, and the coder would have to resolve it alone.

    Remedy: set AMBIGUITY_FOUND to YES, or explain in GAPS_IDENTIFIED how the specification resolves it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Refinement) -> Iterator[Problem]:
        found = document.ambiguity_found
        gaps, covers = document.placed_section("gaps_identified"), document.placed_section("clearly_covers")
        if found is None and covers is not None and _word(document.review_status) == "APPROVED":
            yield self.fault(covers.section.title_span, "AMBIGUITY_FOUND is missing, but the refinement is approved")
        if found is None or _word(found) != "NO":
            return
        line = document.source.line_and_column(found.start)[0]
        named = gaps and _AMBIGUITY.search(document.source.text, gaps.section.start, gaps.section.end)
        if named:
            yield self.fault(named.span("said"), f"this is an ambiguity, but AMBIGUITY_FOUND is NO (line {line})")
        asked = _QUESTION.search(document.source.text) if document.source.mentions(b"open") else None
        if asked is not None:
            yield self.fault(asked.span("said"), f"this is an open question, but AMBIGUITY_FOUND is NO (line {line})")


class EnrichmentReasonMissing(RefinementRule):
    """Missing reason for not enriching the specification

    Without a reason, a considered answer cannot be distinguished from a skipped one.

    Remedy: in REASON_NO_ENRICHMENT, name the part of the specification that covers the work.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        needed, reason = document.enrichment_needed, document.reason_no_enrichment
        if needed is None or _word(needed) != "NO":
            return
        if reason is None or not reason.value:
            yield self.fault(needed.span, "ENRICHMENT_NEEDED is NO, but REASON_NO_ENRICHMENT is empty")
        elif not says_something(reason.value) and not reason.value.startswith("<"):
            yield self.fault(reason.span, f"ENRICHMENT_NEEDED is NO, but REASON_NO_ENRICHMENT is {reason.value!r}")


class EnrichmentTextMissing(RefinementRule):
    """Enrichment needed but not proposed

    The person who must approve the new specification text has nothing to read.

    Remedy: add the proposed text to the PROPOSED_SPEC_ENRICHMENT section.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        needed = document.enrichment_needed
        if needed is not None and _word(needed) == "YES" and not document.proposed_enrichment:
            yield self.fault(needed.span, "ENRICHMENT_NEEDED is YES, but PROPOSED_SPEC_ENRICHMENT is empty")


class AnchorsMissing(RefinementRule):
    """Refinement without an anchor in the specification

    Nothing links the work to a requirement.

    Remedy: add `#### ANCHOR 1` with the lines of the specification that contain the requirement.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        placed = document.placed_section("spec_anchors")
        if placed is not None and not document.anchors:
            yield self.fault(placed.section.title_span, "the SPEC_ANCHORS section has no anchor")


class AnchorRepeated(RefinementRule):
    """Anchor listed twice

    The second anchor was probably meant to refer to a different passage.

    Remedy: correct or delete one of them.
    """

    severity = "warning"

    def check(self, document: Refinement) -> Iterator[Problem]:
        if len(document.anchors) < 2:
            return
        keys = ("spec_anchor", "context_start_line", "context_end_line", "context_token")
        stated = [anchor for anchor in document.anchors if anchor.string_at("context_start_line")]
        for anchor, earlier in repeated(stated, lambda anchor: tuple(anchor.string_at(key) for key in keys)):
            line = document.source.line_and_column(earlier.start)[0]
            yield self.fault(anchor.span, f"this anchor is already on line {line}")


class AnchorIncomplete(RefinementRule):
    """Incomplete anchor

    It cannot be verified whether the requirement is where the anchor says. A SPEC_ANCHOR such as `None known.` does not
    name a passage and counts as empty.

    Remedy: add SPEC_ANCHOR, CONTEXT_START_LINE, CONTEXT_END_LINE, CONTEXT_TOKEN and an excerpt.
    """

    def check(self, document: Refinement) -> Iterator[Problem]:
        wanted = ("spec_anchor", "context_start_line", "context_end_line", "context_token", "excerpt_ascii_escaped")
        for anchor in document.anchors:
            given = {key: anchor.string_at(key).strip() for key in wanted}
            missing = [key.upper() for key, value in given.items() if not value or _FILL_IN.fullmatch(value)]
            name = anchor.string_at("spec_anchor")
            if missing:
                yield self.fault(anchor.span, f"the anchor lacks {', '.join(missing)}")
            elif not names_passage(name):
                yield self.fault(anchor.span, f"the anchor's SPEC_ANCHOR, {name[:60]!r}, does not name a passage")


class AnchorTokenNotQuoted(RefinementRule):
    """Anchor token that is not in the excerpt

    The token marks where the requirement is, but the excerpt quotes something else.

    Remedy: choose a token from the excerpt.
    """

    severity = "info"
    strict_severity = "warning"
    requires = (AnchorIncomplete,)

    def check(self, document: Refinement) -> Iterator[Problem]:
        for anchor in document.anchors:
            token, excerpt = anchor.get("context_token"), anchor.string_at("excerpt_ascii_escaped")
            said = anchor.string_at("context_token").strip("`\"' ")
            if token is not None and said and excerpt.strip() and folded(said) not in folded(excerpt):
                yield self.fault(token.span, f"the excerpt does not contain the token {said!r}")


class AnchorLines(RefinementRule):
    """Invalid anchor window

    The requirement cannot be found in the specification.

    Remedy: give the first and last lines of the window, counting from 1.
    """

    requires = (AnchorIncomplete,)

    def check(self, document: Refinement) -> Iterator[Problem]:
        for anchor in document.anchors:
            first, last = anchor.string_at("context_start_line"), anchor.string_at("context_end_line")
            node = anchor.get("context_start_line")
            if window_of(first, last) is None and node is not None and not first.startswith("<"):
                yield self.fault(node.span, f"lines {first!r} to {last!r} are not a valid range")


class RefinementNotAscii(RefinementRule):
    """Non-ASCII character in a refinement

    Approved text is compared byte for byte; look-alike characters would make different text look the same.

    Remedy: write it as \\uXXXX, as the excerpts do.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, document: Refinement) -> Iterator[Problem]:
        text = document.source.text
        odd = [at for at, character in enumerate(text) if not character.isascii()] if not text.isascii() else []
        if odd:
            lines = [*dict.fromkeys(document.source.line_and_column(at)[0] for at in odd)]
            more = f", and {len(odd) - 1} more such characters ({first_lines(lines)})" if len(odd) > 1 else ""
            yield self.fault((odd[0], odd[0] + 1), f"U+{ord(text[odd[0]]):04X} is not ASCII{more}")


def _word(text: Text | None) -> str:
    """Return the first word in capitals: `FAIL` for `**FAIL**, see below`."""
    word = _WORD.search(text.value) if text is not None else None
    return word.group().upper() if word is not None else ""
