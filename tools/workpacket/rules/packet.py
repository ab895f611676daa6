"""Rules about task packets and the evidence in them: a command, its exit code, and an unchanged log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from workpacket.documents.packet import Packet, scope_pieces
from workpacket.documents.structured import body_of, items_of_section, walk_items
from workpacket.documents.summary import EvidenceSummary, WorkSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId, find_ids
from workpacket.problem import Problem
from workpacket.rules.identity import is_hollow
from workpacket.rules.keys_and_dates import is_near
from workpacket.rules.rule import DocumentRule, Files, ReferenceRule
from workpacket.rules.structured import PLACEHOLDER, elsewhere, says_something
from workpacket.text.blocks import Field, Item, Section, read_fields, walk
from workpacket.text.formats import legacy_signature
from workpacket.text.source import PATH_LENGTH

_EVIDENCE_PLACE = lazy_pattern(r"`?(?P<path>[^\s`:]+):(?P<line>0*[1-9]\d*)(?:-\d+)?`?")
# How templates say what to write.
_EVIDENCE_FORM = "path/to/file:line"
_TODO = lazy_pattern(r"\bTODO\b")
# Several quoted paths in one entry, and nothing else: words between them may reverse what they mean.
_ONLY_PATHS = lazy_pattern(r"`[^`\s]+`(?:(?:\s*[,;]\s*|\s+)`[^`\s]+`)+")
_SIGNATURES = frozenset({"signature", "user_signature_locked"})
_ONE_VALUE = frozenset({"risk_tier", "user_signature", "merge_base_sha"})
_SOME_FAILED = lazy_pattern(r"(?i)(?<![0-9.])[1-9][0-9]* (?:tests? )?(?:failed|failing|failures)\b")
_FAILED = lazy_pattern(r"-?0*[1-9][0-9]*")

PacketRule = DocumentRule[Packet]


class PacketIdMissing(PacketRule):
    """Packet that does not state its id

    The packet is identified only by its file name, so renaming the file turns it into a different packet.

    Remedy: add `- WP_ID: <WP_ID>` to METADATA; a later revision also needs BASE_WP_ID.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        if placed is not None and document.wp_id is None:
            alone = " (only TASK_ID)" if document.task_id is not None else ""
            yield self.fault(placed.section.title_span, f"METADATA has no WP_ID{alone}")
        own = WorkPacketId.try_parse(document.own_id)
        later = own is not None and (own.revision or 1) > 1 and not document.light
        if own is not None and later and placed is not None and document.base_wp_id is None:
            message = f"METADATA has no BASE_WP_ID, but this is revision {own.revision} of {own.base}"
            yield self.fault(placed.section.title_span, message)


class PacketStatusUnknown(PacketRule):
    """Status that is not a lane

    The board cannot show the packet, and gates cannot judge it.

    Remedy: `workpacket board sync` writes the lane recorded in the log.
    """

    def check(self, document: Packet) -> Iterator[Problem]:
        status = document.status
        if (
            status is not None
            and status.value
            and not status.value.startswith("<")
            and not document.lanes.named(status.value)
        ):
            hint = f"write one of {', '.join(lane.title for lane in document.lanes.lanes if not lane.derived)}"
            yield self.fault(status.span, f"the status {status.value!r} is not a lane", hint=hint)


class CriterionTicked(PacketRule):
    """Ticked criteria in a packet that no one has claimed

    The work has not begun, so its criteria cannot be met; a reader may assume that the work is done.

    Remedy: clear the boxes; the verdict records which criteria are met.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        if "[x]" not in document.source.text and "[X]" not in document.source.text:
            return
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if not lanes or not all(lane.in_work and lane.waits for lane in lanes):
            return
        boxes = [item for item in criteria_of(document) if item.ticked is not None]
        # Single ticks may record what was there before the work.
        if boxes and all(item.ticked for item in boxes):
            what = "all criteria are" if len(boxes) > 1 else "the criterion is"
            yield self.fault(boxes[0].span, f"{what} ticked, but the packet is {lanes[0].token}")


def criteria_of(document: Packet) -> Iterator[Item]:
    for placed in document.placed:
        for field in placed.fields:
            if field.name == "done_means":
                yield from walk_items(field.children)
        if placed.spec.key == "done_means":
            yield from walk_items(items_of_section(document.source, placed.section))


class StatusElsewhere(PacketRule):
    """Status line outside the metadata

    The line is part of an old report, but tools that use the first status line will read this one.

    Remedy: quote it as text, or delete it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for field in document.preamble_fields:
            if field.name == "status":
                message = "this status is above METADATA, where only some tools look"
                yield self.fault(field.key_span, message)


# The content that a packet needs before anyone works on it: its name, its section, its fields, and the section in older
# packets that contains nothing else.
_CONTENT: Final = (
    ("What", "scope", ("what",), ""),
    ("Why", "scope", ("why",), ""),
    ("IN_SCOPE_PATHS", "scope", ("in_scope_paths", "in_scope"), ""),
    ("OUT_OF_SCOPE", "scope", ("out_of_scope", "out_of_scope_paths"), ""),
    ("DONE_MEANS", "quality_gate", ("done_means",), "done_means"),
    ("TEST_PLAN", "quality_gate", ("test_plan",), "test_plan"),
    ("SPEC_ANCHOR", "authority", ("spec_anchor", "spec_anchors"), ""),
    ("RISK_TIER", "metadata", ("risk_tier",), "risk_tier"),
    ("DATE", "metadata", ("date", "created_at", "created"), ""),
    ("REFINEMENT_FILE", "technical_refinement", ("refinement_file",), ""),
)
# Limits the text of a field that is repeated without end.
_ENOUGH: Final = 20
_ALWAYS_THERE: Final = frozenset({"metadata", "scope", "quality_gate", "authority"})


# Patterns and words for everything. A pattern with a folder or an ending limits the scope.
_EVERYTHING = lazy_pattern(
    r"(?i)(?:\./)?(?:\*{1,2}(?:/\*{1,2}|\.\*)?)?/?|\.?"
    r"|(?:the )?(?:whole|entire|full) (?:repo(?:sitory)?|code ?base|project|tree)"
    r"|(?:all|any|every)(?: of)?(?: the)?(?: files?| paths?)?(?: as needed)?|everything|anything"
    r"|(?:various(?: files)?|as needed|where needed)"
)


def is_too_wide(entry: str) -> bool:
    """Whether a scope entry allows every file."""
    path = entry.strip().strip("`\"'").rstrip(".,; ") or "."
    return bool(entry.strip()) and _EVERYTHING.fullmatch(path) is not None


class PacketContentMissing(PacketRule):
    """Packet that lacks part of the contract, such as the scope or the criteria

    Without the missing part, any change could pass for the work.

    Remedy: add the missing part from the stub or the refinement.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if not lanes or any(lane.may_be_stub or lane.archived for lane in lanes):
            return
        fields = list(_all_fields(document))
        absent: dict[tuple[int, int], list[str]] = {}
        for name, home, keys, older in _CONTENT:
            given = [field for field in fields if field.name in keys][:_ENOUGH]
            # That nothing is out of scope is an answer, too.
            # `ScopeTooWide` reports a scope such as `**`.
            wide = "in_scope_paths" in keys and any(is_too_wide(text.value) for text in document.in_scope_paths)
            said = wide or any(
                (home == "scope" and "out_of_scope" in keys) or not is_hollow(document, field) for field in given
            )
            if said or _is_told(document, older) or (name in {"What", "Why"} and _describes(document, name)):
                continue
            placed = document.placed_section(home)
            if given:
                yield self.fault(given[0].key_span, f"{given[0].key} is empty, but the packet is {lanes[0].token}")
            elif placed is not None or home not in _ALWAYS_THERE:  # another rule reports a missing required section
                place = placed or document.placed_section("metadata")
                span = place.section.title_span if place is not None else (0, 0)
                near = _nearly(document, keys)
                if near is not None:
                    message = f"the heading {near.title!r} is not {keys[0].upper()}, so {name} is missing"
                    yield self.fault(near.title_span, message)
                    continue
                absent.setdefault(span, []).append(f"{name} is missing{elsewhere(document, *keys)}")
        for span, missing in absent.items():
            yield self.fault(span, f"{'; '.join(missing)}, but the packet is {lanes[0].token}")


def _nearly(document: Packet, keys: tuple[str, ...]) -> Section | None:
    """Return the section whose heading differs from a field's heading in one or two letters."""
    sections = (section for section in document.outline.walk() if section.heading is not None)
    names = [key for key in keys if "_" in key]
    return next((section for section in sections if any(is_near(section.name, name) for name in names)), None)


def _all_fields(document: Packet) -> Iterator[Field]:
    for placed in document.placed:
        yield from placed.fields
    for section in document.unknown:
        yield from read_fields(document.source, section.blocks)


def _is_told(document: Packet, section: str) -> bool:
    placed = document.placed_section(section) if section else None
    if placed is None:
        return False
    return any(map(says_something, (placed.section.title.partition(":")[2], body_of(document.source, placed.section))))


_GOAL = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t>+-]*[*_]*(?:goal|purpose|rationale|motivation|reason)[*_]*[ \t]*:[*_]*[ \t]*\w"
)


def _describes(document: Packet, name: str) -> bool:
    """Whether the scope begins with free text, or names the goal in it, as in older packets."""
    placed = document.placed_section("scope")
    if placed is None:
        return False
    if name == "Why":
        return _GOAL.search(document.source.text, placed.section.start, placed.section.end) is not None
    parts = [placed.section, *placed.section.subsections[:1]]
    return any(block.kind == "paragraph" for part in parts for block in part.blocks)


class FieldContradicts(PacketRule):
    """Field with two different values in one packet

    A reader who sees only one of the values may act on the wrong one.

    Remedy: fix the file that is wrong.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        words = document.source.lowered
        if words.count(b"signature") < 2 and words.count(b"tier") < 2 and words.count(b"sha") < 2:
            return  # what is named once has one value
        said: dict[str, Field] = {}
        reported: set[str] = set()
        home = document.placed_section("metadata")
        sections = [section for section in document.outline.walk() if _may_have_one_value(document, section)]
        for field in (field for section in sections for field in read_fields(document.source, section.blocks)):
            value = field.bare.strip("`* ")
            # A field `Signature` may be that of a validator, and that of an envelope.
            signed = field.name in _SIGNATURES and not legacy_signature(value)
            name = "user_signature" if signed else field.name
            if name not in _ONE_VALUE or not value or PLACEHOLDER.match(value):
                continue
            # Outside of METADATA, two signatures may be those of two acts.
            inside = home is not None and home.section.start <= field.key_span[0] < home.section.end
            if name == "user_signature" and name not in said and not inside:
                continue
            earlier = said.setdefault(name, field)
            other = earlier.bare.strip("`* ").casefold().split()[:1] != value.casefold().split()[:1]
            if other and value not in reported:
                reported.add(value)
                line = document.source.line_and_column(earlier.key_span[0])[0]
                yield self.fault(field.key_span, f"{field.key} is {value!r} here, but {earlier.bare!r} on line {line}")


def _may_have_one_value(document: Packet, section: Section) -> bool:
    """Whether the section contains every word in the name of a single-value field. Reading its fields would take much
    longer."""
    text = document.source.text[section.start : section.end].casefold()
    signed = "signature" in text and ("locked" in text or "signature**:" in text or "- signature:" in text)
    return signed or any(all(word in text for word in name.split("_")) for name in _ONE_VALUE)


class ScopeContradicts(PacketRule):
    """Path that is both in scope and out of scope

    It is unclear whether the work may change the path.

    Remedy: delete it from one of the two lists.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        inside = {path for text in document.in_scope_paths for path in _paths_in(text.value)}
        for text in document.out_of_scope:
            for path in _paths_in(text.value):
                if path in inside:
                    yield self.fault(text.span, f"{path} is in IN_SCOPE_PATHS, too")


def _paths_in(entry: str) -> Iterator[str]:
    """Yield the paths in an entry that consists only of paths, in the same form with and without a final slash."""
    quoted = _ONLY_PATHS.fullmatch(entry.strip())
    for piece in scope_pieces(entry) if quoted else [entry]:
        path = piece.strip("`* ").removeprefix("./")
        if path and not any(map(str.isspace, path)) and ("/" in path or "." in path):
            yield path.rstrip("/")


class RefinementOfAnother(PacketRule):
    """Packet that names a different packet's refinement

    That refinement was approved for different work.

    Remedy: name this packet's refinement in REFINEMENT_FILE.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        named = document.refinement_file
        for name, start, end in find_ids(named.value) if named is not None else ():
            if name.text != document.own_id:
                span = (named.start + start, named.start + end) if named is not None else (0, 0)
                yield self.fault(span, f"the refinement is for {name}, but this is {document.own_id}")


class EvidencePlaceMissing(PacketRule):
    """Evidence without a place

    Neither a reviewer nor a tool can verify the evidence.

    Remedy: write `EVIDENCE: path/to/file:line`.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        fields = list(_evidence_fields(document))
        for field in fields:
            shown = field.value.strip("`") == _EVIDENCE_FORM
            if field.name == "evidence" and not field.owned and not shown and not _EVIDENCE_PLACE.search(field.value):
                yield self.fault(field.key_span, "the evidence does not give a `path:line`")
        stated = [field for field in fields if field.name in {"requirement", "evidence"}]
        stated = sorted({field.key_span: field for field in stated}.values(), key=lambda field: field.key_span)
        names = [field.name for field in stated]
        for field, following in zip(stated, [*names[1:], "requirement"], strict=False):
            if field.name == following == "requirement" and "evidence" in names and not PLACEHOLDER.match(field.value):
                yield self.fault(field.key_span, f"no evidence is given for {field.value.strip('`')[:60]!r}")


class CriterionUnmapped(PacketRule):
    """Finished work with a criterion that the evidence does not mention

    The evidence quotes the other criteria, but apparently no one has looked at this one.

    Remedy: add its REQUIREMENT and EVIDENCE to EVIDENCE_MAPPING, or correct the quotation.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        done = bool(lanes) and all(lane.satisfies for lane in lanes)
        if not done or "REQUIREMENT" not in document.source.text:
            return
        criteria = {_quoted(item.text): item for item in criteria_of(document)}
        mapped = {_quoted(field.value): field for field in _evidence_fields(document) if field.name == "requirement"}
        if criteria.keys().isdisjoint(mapped):
            return  # the requirements are told in other words
        for said, item in criteria.items():
            if said not in mapped and says_something(item.text):
                yield self.fault(item.span, "EVIDENCE_MAPPING quotes other criteria, but not this one")
        for said, field in mapped.items():
            if said and said not in criteria and says_something(field.value):
                yield self.fault(field.key_span, "EVIDENCE_MAPPING quotes a requirement that is not a criterion")


def _quoted(text: str) -> str:
    return " ".join(text.strip("`\"'* .").casefold().split())


def _evidence_fields(document: Packet) -> Iterator[Field]:
    """Yield the fields of EVIDENCE_MAPPING: those in lists at any depth, and those on separate lines."""
    placed = document.placed_section("evidence_mapping")
    for section in placed.section.walk() if placed is not None else ():
        lists = [block for block in walk(section.blocks) if block.kind.endswith("_list")]
        paragraphs = [block for block in section.blocks if block.kind == "paragraph"]
        yield from read_fields(document.source, [*paragraphs, *lists])


class TodoField(PacketRule):
    """Unfilled field that is not in the template

    Someone meant to fill in the field later. Placeholders in template fields have their own code, `placeholder_left`.

    Remedy: fill it in.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for placed in document.placed:
            for field in placed.fields:
                match = _TODO.match(field.value)
                if match and placed.spec.field(field.name) is None:
                    span = (field.value_span[0], field.value_span[0] + match.end())
                    yield self.fault(span, f"{field.key} is not filled in")


_NOTHING = lazy_pattern(
    r"\bcollected 0 items\b|\bno tests ran\b|\bno tests (?:were )?(?:found|to run|executed)\b|\bno test files\b"
    r"|\bran 0 tests\b|\brunning 0 tests\b|(?<![0-9.])0 (?:tests )?(?:passed|passing|selected)\b|\btests:? +0 total\b"
    r"|(?<![0-9.])0 tests? (?:ran|run|executed|found|collected)\b|\bno tests collected\b",
    re.IGNORECASE,
)
_SOMETHING = lazy_pattern(
    r"(?<![0-9.])[1-9][0-9]* (?:tests? )?(?:passed|passing|failed|failing)\b|\bran [1-9][0-9]* tests?\b"
    r"|\brunning [1-9][0-9]* tests?\b|^ok\b[ \t]+(?!.*\[no test)|^--- (?:PASS|FAIL)",
    re.IGNORECASE | re.MULTILINE,
)


def ran_nothing(log: str) -> str:
    """Return the words in a log that say that no test was run; '' if there are none, or if some tests were run."""
    match = _NOTHING.search(log)
    return match[0] if match is not None and not _SOMETHING.search(log) else ""


class EvidenceExitCodeMissing(DocumentRule[Packet]):
    """Evidence without the exit code of its command

    A command proves something only if its exit code is 0.

    Remedy: write the command's exit code after EXIT_CODE.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for block in document.evidence_blocks:
            if block.value("COMMAND") and not re.fullmatch(r"-?[0-9]+", block.value("EXIT_CODE")):
                place = block.fields.get("EXIT_CODE") or block.fields["COMMAND"]
                yield self.fault(place.span, "EXIT_CODE contains no exit code")


class EvidenceFailed(DocumentRule[Packet]):
    """Failed command as evidence of validated work

    The work was accepted although its own evidence shows a failure.

    Remedy: run the command again and record the result, or explain in the report why the failure is expected.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if not lanes or not all(lane.satisfies for lane in lanes):
            return
        last = {block.value("COMMAND"): block for block in document.evidence_blocks}
        for block in last.values():
            code = block.fields.get("EXIT_CODE")
            if code is not None and _FAILED.fullmatch(code.value):
                message = f"the packet is {lanes[0].token}, but the command ended with exit code {code.value}"
                yield self.fault(code.span, message)
                continue
            proof, failed = block.fields.get("PROOF_LINES"), _SOME_FAILED.search(block.proof)
            if proof is not None and failed is not None:
                yield self.fault(proof.span, f"the packet is {lanes[0].token}, but the log shows {failed[0]!r}")


class EvidenceRule(ReferenceRule):
    """A rule about the logs listed as evidence."""

    kinds = ("packet",)

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        for evidence in logs_of(summary):
            yield evidence["log"][0], True


class EvidenceLogMissing(EvidenceRule):
    """Missing evidence log

    The command's output can no longer be read.

    Remedy: commit the log, or correct LOG_PATH.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in cast("WorkSummary", summary)["evidence"]:
            log, *place = evidence["log"]
            if log and not is_inside(log):
                yield self.finding(path, place, f"log {log[:PATH_LENGTH]!r} is not a file in the repository")
            elif log and files[log].source is None:
                yield self.finding(path, place, f"log {log} not found")


class EvidenceLogDiffers(EvidenceRule):
    """Changed evidence log

    LOG_SHA256 does not match: the log was edited, or the command was run again without updating the record.

    Remedy: restore the log from git, or run the command again and record the result.
    """

    family = "integrity"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in logs_of(summary):
            source = files[evidence["log"][0]].source
            said = evidence["sha256"][0].lower()
            if source is not None and said and said != source.digest:
                message = f"{evidence['log'][0]} has the digest {source.digest[:12]}..., not {said[:12]}..."
                yield self.finding(path, evidence["sha256"][1:], message)


_COUNTED = lazy_pattern(r"(?i)(?<![0-9.])[0-9]+ (?:tests? )?(?:passed|passing|failed|failing|skipped)\b")


class EvidenceProofAbsent(EvidenceRule):
    """Quoted result that is not in its log

    The log is the recorded one, so the quotation was changed, or comes from a different run.

    Remedy: quote the log, or run the command again and record the result.
    """

    severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in logs_of(summary):
            source = files[evidence["log"][0]].source
            if source is None or (evidence["sha256"][0].lower() or source.digest) != source.digest:
                continue
            log = " ".join(source.text.split()).casefold()
            absent = [said for said in _COUNTED.findall(evidence["proof"]) if said.casefold() not in log]
            if absent and _COUNTED.search(source.text):
                yield self.finding(path, evidence["proof_place"], f"{evidence['log'][0]} does not say {absent[0]!r}")


class EvidenceRanNothing(EvidenceRule):
    """Evidence from a test run without tests

    Many test runners exit with 0 if a filter matches nothing, so the run proves nothing.

    Remedy: fix the filter, and run the tests again.
    """

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in cast("WorkSummary", summary)["evidence"]:
            source = files[evidence["log"][0]].source if is_inside(evidence["log"][0]) else None
            place = evidence["proof_place"] if ran_nothing(evidence["proof"]) else evidence["place"]
            for text in (evidence["proof"], source.text if source is not None else ""):
                if nothing := ran_nothing(text):
                    yield self.finding(path, place, f"the log says {nothing!r}")
                    break
            else:
                if evidence["command"] and _is_trivial(evidence["command"]):
                    yield self.finding(path, evidence["place"], f"{evidence['command']!r} proves nothing")


def _is_trivial(command: str) -> bool:
    """Whether a command exits with 0 regardless of the work."""
    words = command.split()
    return bool(words) and (words[0] in {"true", ":"} or words[:2] == ["exit", "0"])


def is_inside(path: str) -> bool:
    """Whether this could be the path of a file in this repository."""
    outside = not path or path.startswith("/") or ".." in path.split("/")
    return not outside and len(path) <= PATH_LENGTH and path.isprintable()


def logs_of(summary: Mapping[str, object]) -> list[EvidenceSummary]:
    """Return the evidence whose log can be looked up."""
    return [evidence for evidence in cast("WorkSummary", summary)["evidence"] if is_inside(evidence["log"][0])]
