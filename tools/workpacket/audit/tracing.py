"""Trace a packet from its requirement through its acceptance criteria to evidence and commit. A link is suspect if its
target has changed: the passage or the proof was edited, or the commit is not where it was recorded.

A refinement pins a version of the specification by its digest. In another version, the excerpt is searched for in its
window, then anywhere. If it is found elsewhere, the passage has only moved; if it is not found, it was changed.

This module also finds the packets that depend on a file or on a passage of the specification, and what the passage of
time, or a later change, has made doubtful in a log:

- a file whose digest is in the log, such as a verdict's report or an approved refinement, has changed;
- the evidence of a submission shows that nothing ran, or does not say how it ended;
- a run was never closed, although the work on its packet has ended;
- a waiver expired while the work was still in progress.

The requirements of a specification are the sections of its main body whose own lines contain an obligation in the words
of RFC 2119. If a specification uses none of these words, every section with its own text counts.

The shell gathers the facts for an audit before anything is judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, cast

from workpacket.documents.packet import Packet
from workpacket.documents.refinement import Refinement
from workpacket.documents.register_table import visible_lines
from workpacket.documents.spec_pointer import STILL_TO_WRITE, Passage, candidates, passages
from workpacket.documents.structured import mapped_evidence
from workpacket.documents.summary import AnchorSummary, RefinementSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.fold import SETS_CONTRACT, PacketState, fold
from workpacket.ledger.log import Log
from workpacket.lifecycle.contract import DEMAND, provable
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.proofs import Evidence, evidence_of, evidence_rows, latest_evidence, proofs_named, same
from workpacket.lifecycle.review import Report, is_vouched_for, report_of
from workpacket.lifecycle.scope import outside
from workpacket.model.events import LogEvent
from workpacket.model.lanes import lane_of_token
from workpacket.model.reason_tables.integrity import AUDIT_BY_CODE
from workpacket.problem import Location, Problem
from workpacket.rules.anchors import folded
from workpacket.rules.packet_evidence import EvidenceExitCodeMissing, EvidenceRanNothing, ran_nothing
from workpacket.rules.refinement import anchor_problem, contains_excerpt, contains_token, window_of
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value

# Returns the digest of a file as it is now, None if the file is missing.
DigestOf = Callable[[str], str | None]

_TELLING: Final = frozenset(
    {"activated", "evidence.recorded", "overridden", "run.linked", "submitted", "verdict.given", "waived"}
)


def named_files(log: Log) -> Iterator[tuple[LogEvent, str, str]]:
    """Yield the files that the log depends on now, with their recorded digests: event, path, SHA-256. Only the latest
    verdict and the latest activation or amendment count. A signed refinement is not listed: its signature is what
    counts.
    """
    latest: dict[str, LogEvent] = {}
    for event in log.events:
        if event.type == "verdict.given":
            latest["report"] = event
        elif event.type in SETS_CONTRACT:
            latest["refinement"] = event
    for key, event in latest.items():
        file = event.data.get(key)
        if isinstance(file, Mapping) and not (key == "refinement" and event.attest):
            yield event, str(file["path"]), str(file["sha256"])


def standing_faults(log: Log, digest_of: DigestOf, now: str, reports: Sequence[Report]) -> Iterator[Problem]:
    """Yield everything in one log that has become doubtful; `reports` are the verdict reports from all logs."""
    if not any(event.type in _TELLING for event in log.events):
        return
    yield from _changed_files(log, digest_of, reports)
    yield from _evidence_faults(log)
    state = fold(log)
    yield from _zombies(state)
    yield from _expired(state, now)


def next_expiry(log: Log, now: str) -> str:
    """Return the time at which the first waiver still in force expires, because the answer may change then; '' if there
    is none."""
    ends = (event.text("expires_at") or "" for event in log.events if event.type in {"overridden", "waived"})
    return min((end for end in ends if end > now), default="")


def unfinished(lane: str) -> bool:
    """Whether work in this lane is or may be in progress; true for an unknown lane."""
    known = lane_of_token(lane)
    return known is None or known.unfinished


def _changed_files(log: Log, digest_of: DigestOf, reports: Sequence[Report]) -> Iterator[Problem]:
    for event, path, expected in named_files(log):
        present = digest_of(path)
        report = report_of(event)
        if present == expected or (report is not None and is_vouched_for(report, present, reports)):
            continue
        what = "is gone" if present is None else "has changed since"
        code = "evidence_changed" if event.type == "verdict.given" else "approved_file_changed"
        yield audit_finding(
            code, path, 0, f"{event.type} of {log.packet} at {event.at} depends on this file, which {what}"
        )


def _evidence_faults(log: Log) -> Iterator[Problem]:
    for event in log.events:
        for row in evidence_rows(event):
            criterion = str(row["criterion"])[:100]
            if row["result"] != "met" or not row.get("command"):
                continue
            if "exit_code" not in row:
                message = f"{criterion!r} is marked as met by a command whose exit code is not recorded"
                yield _of_rule(EvidenceExitCodeMissing, event.path, message)
            if nothing := ran_nothing(str(row.get("log_tail", ""))):
                message = f"{criterion!r} is marked as met, but, according to the log, {nothing!r}"
                yield _of_rule(EvidenceRanNothing, event.path, message)


def _of_rule(rule: type[EvidenceExitCodeMissing] | type[EvidenceRanNothing], path: str, message: str) -> Problem:
    return Problem(rule.code(), message, Location(path, 1, 1), rule.reason().remedy, severity=rule.severity)


def _zombies(state: PacketState) -> Iterator[Problem]:
    if unfinished(state.lane):
        return
    for run in state.open_runs:
        message = f"run {run.run} was never closed, although {state.packet} is {state.lane}"
        yield audit_finding("run_zombie", run.linked.path, 1, message)


def _expired(state: PacketState, now: str) -> Iterator[Problem]:
    if not unfinished(state.lane):
        return
    for event in state.waivers:
        end = event.text("expires_at") or ""
        if end <= now:
            message = f"the waiver of {event.text('rule')} for {state.packet} expired on {end}"
            yield audit_finding("waiver_expired", event.path, 1, message)


def audit_finding(code: str, path: str, line: int, message: str) -> Problem:
    """Return a finding from the audit's reason table, with the remedy of its code."""
    reason = AUDIT_BY_CODE[code]
    return Problem(code, message, Location(path, line, 1 if line else 0), reason.remedy, severity=reason.severity)


AnchorState = Literal["holds", "moved", "changed", "unread"]


class KnownCommit(Value):
    """A commit that is in this clone. `on_target`: whether it is on the target branch."""

    id: str
    at: str
    author: str
    title: str
    on_target: bool


class SignedDecision(Value):
    """One signed decision at a gate, with the result of verification: it counts if there are no refusals. `used_by` is
    the event that uses it, or ''.
    """

    gate: str
    decision: str
    approver: str
    role: str
    key: str
    issued_at: str
    expires_at: str
    envelope: str
    used_by: str
    refusals: tuple[tuple[str, str], ...]
    covers: str = "contract"

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(code for code, _ in self.refusals)


class LastChange(Value):
    """The last commit that touched a file."""

    at: str
    author: str


class AuditFacts(Value):
    """The input of an audit. `now` is the time at which leases, approvals and waivers are judged: the time of the head
    commit, which never changes.

    `findings` come from `check` and the approvals. `digests` are the digests of files that the logs refer to, or None
    for a missing file; `committed` has the same, keyed by `<commit>:<path>`. `specifications` are keyed by path, as in
    the work tree. `uncommitted` are the governed files, and files that the logs refer to, that differ from the head
    commit. `lanes` are those of all packets, if `packets` are only some of them, and `again` reads one of them again.
    `proven` are the events whose signature proves the actor's identity; in all other events, the actor is only
    claimed. `rewritten` has the parts of a contract that differ from the approved one, each with its text before and
    after. `forge` is the web address of the repository, or '' if the remote is not on a forge whose addresses are
    known.
    """

    name: str
    now: str
    packets: Mapping[str, PacketFacts]
    policy: LifecyclePolicy
    findings: Sequence[Problem] = ()
    decisions: Mapping[str, Sequence[SignedDecision]] = NOTHING
    specification: Source | None = None
    specifications: Mapping[str, Source] = NOTHING
    digests: Mapping[str, str | None] = NOTHING
    committed: Mapping[str, str | None] = NOTHING
    commits: Mapping[str, KnownCommit] = NOTHING
    changes: Mapping[str, LastChange] = NOTHING
    target: str = ""
    head: KnownCommit | None = None
    uncommitted: frozenset[str] = frozenset()
    files_checked: int = 0
    proven: frozenset[str] = frozenset()
    rewritten: Mapping[str, Sequence[tuple[str, str, str]]] = NOTHING
    forge: str = ""
    lanes: Mapping[str, str] = NOTHING
    again: Callable[[str], PacketFacts] | None = None

    def lane_of(self, name: str) -> str:
        packet = self.packets.get(name)
        return packet.lane if packet is not None else self.lanes.get(name, "")

    def read(self, name: str) -> PacketFacts:
        """Return a packet with its log."""
        return self.packets[name] if self.again is None else self.again(name)


@lru_cache(maxsize=8)
def _passages_by_heading(source: Source) -> Mapping[str, Sequence[Passage]]:
    """Return the sections of a specification by their headings, found once for all packets."""
    by_heading: dict[str, list[Passage]] = {}
    for one in passages(source):
        by_heading.setdefault(one.heading, []).append(one)
    return by_heading


class Anchor(Value):
    """A passage: its name, where it is now (0 if nowhere), and its state. `line` is where the refinement refers to
    it."""

    name: str
    path: str
    first: int
    last: int
    state: AnchorState
    line: int
    why: str = ""


def anchors_of(refinement: Refinement, specifications: Mapping[str, Source]) -> list[Anchor]:
    """Return all passages that a refinement refers to."""
    summary = cast("RefinementSummary", refinement.summary())
    source = next((specifications[path] for path in candidates(summary["spec"]) if path in specifications), None)
    names = [node.text if (node := anchor.get("spec_anchor")) is not None else "" for anchor in refinement.anchors]
    return [
        _anchor(name or "", anchor, summary, source) for name, anchor in zip(names, summary["anchors"], strict=True)
    ]


def pinned_anchor(document: Packet, facts: AuditFacts) -> list[Anchor]:
    """Return the section on which a light packet is based, if it names one."""
    pinned = document.anchor
    if pinned is None:
        return []
    line = document.source.line_and_column(max(document.source.text.find("SPEC_ANCHOR"), 0))[0]
    source = facts.specifications.get(pinned.path)
    if source is None:
        return [Anchor(pinned.heading, pinned.path, 0, 0, "unread", line, f"specification {pinned.path} not found")]
    named = _passages_by_heading(source).get(pinned.heading, ())
    if not named:
        why = f"{pinned.path} has no section {pinned.heading!r}"
        return [Anchor(pinned.heading, pinned.path, 0, 0, "changed", line, why)]
    same_text = next((one for one in named if one.digest == pinned.sha256), None)
    found = same_text or named[0]
    why = "" if same_text else "its text differs from the pinned text"
    return [Anchor(found.heading, source.path, found.first, found.last, "changed" if why else "holds", line, why)]


def _anchor(name: str, anchor: AnchorSummary, summary: RefinementSummary, source: Source | None) -> Anchor:
    line = anchor["place"][0]
    window = window_of(anchor["start"], anchor["end"]) or (0, 0)
    if source is None:
        return Anchor(name, summary["spec"], *window, "unread", line, f"specification {summary['spec']} not found")
    problem = anchor_problem(anchor, source)
    if not problem:
        return Anchor(name, source.path, *window, "holds", line)
    found = _found_elsewhere(anchor, source)
    if found is not None:
        return Anchor(name, source.path, *found, "moved", line, f"it is now on lines {found[0]} to {found[1]}")
    return Anchor(name, source.path, *window, "changed", line, problem)


def _found_elsewhere(anchor: AnchorSummary, source: Source) -> tuple[int, int] | None:
    """Return the lines that now contain the whole excerpt or, if there is no excerpt, the token."""
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


_HEADING = lazy_pattern(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")
# A window with more lines than this does not identify a passage.
_LONGEST_WINDOW = 10_000
_OBLIGES = lazy_pattern(r"\b(?:MUST|SHALL|REQUIRED)\b")


class Requirement(Value):
    """A section: its title, the line of its heading, and the last line before the next heading."""

    title: str
    first: int
    last: int


class _Section:
    """A section of the specification, while it is read."""

    __slots__ = ("first", "has_text", "last", "level", "obliges", "planned", "title")

    def __init__(self, level: int, title: str, first: int, last: int, *, planned: bool) -> None:
        self.level = level
        self.title = title
        self.first = first
        self.last = last
        self.planned = planned
        self.has_text = False
        self.obliges = False


def requirements(specification: Source, roadmap_headings: Sequence[str]) -> list[Requirement]:
    """Return the sections of the main body, in text order."""
    sections = [section for section in _sections(specification, roadmap_headings) if not section.planned]
    demanding = [section for section in sections if section.obliges] or [one for one in sections if one.has_text]
    return [Requirement(section.title, section.first, section.last) for section in demanding]


def _sections(specification: Source, roadmap_headings: Sequence[str]) -> list[_Section]:
    found: list[_Section] = []
    above: list[_Section] = []
    for line in visible_lines(specification):
        match = _HEADING.match(line.text) if line.text.lstrip(" ").startswith("#") else None
        if match is not None:
            level, title = len(match[1]), match[2]
            while above and above[-1].level >= level:
                above.pop()
            planned = any(word in title.casefold() for word in roadmap_headings) or any(one.planned for one in above)
            found.append(_Section(level, title, line.number, line.number, planned=planned))
            above.append(found[-1])
        elif found and line.text.strip() and not line.text.startswith(STILL_TO_WRITE):
            section = found[-1]
            section.last = line.number
            section.has_text = True
            section.obliges = section.obliges or bool(_OBLIGES.search(line.text))
    return found


def uncovered(found: Sequence[Requirement], windows: Iterable[tuple[int, int]]) -> list[Requirement]:
    """Return the requirements outside all windows, in one pass, because there may be thousands of both."""
    touched: set[int] = set()
    for first, last in windows:
        touched.update(range(first, min(last, first + _LONGEST_WINDOW) + 1))
    return [one for one in found if touched.isdisjoint(range(one.first, one.last + 1))]


# A requirement may be quoted from a document instead of from DONE_MEANS: `Spec_v1.md 4.2 Parser`.
_PASSAGE = lazy_pattern(r"[`\"']*\S+\.md\b")
_FILE_AND_LINE = lazy_pattern(r"`?(?P<path>[^\s:`]+):(?P<line>[1-9][0-9]*)")


class Criterion(Value):
    """A line of DONE_MEANS, and its proofs."""

    number: int
    text: str
    line: int
    evidence: tuple[Evidence, ...]

    @property
    def proved(self) -> bool:
        return any(each.result != "not_met" for each in self.evidence)

    @property
    def suspect(self) -> bool:
        return any(each.suspect for each in self.evidence)


class TracedCommit(Value):
    """A commit recorded in the log, and its role. `seen` is None if the commit is not in this clone."""

    id: str
    role: Literal["submitted", "merged", "target"]
    event: LogEvent
    seen: KnownCommit | None


class Trace(Value):
    """`strays` is evidence for criteria that the packet does not have."""

    anchors: tuple[Anchor, ...]
    criteria: tuple[Criterion, ...]
    strays: tuple[Evidence, ...]
    commits: tuple[TracedCommit, ...]


def trace(facts: AuditFacts, packet: PacketFacts) -> Trace:
    document = packet.packet
    anchors = anchors_of(packet.refinement, facts.specifications) if packet.refinement is not None else []
    if document is not None and document.light:
        anchors = pinned_anchor(document, facts)
    texts = document.done_means if document is not None else ()
    if any(DEMAND.match(text.value) for text in texts):  # most packets have none
        wanted = provable(document, packet.refinement).criteria
        texts = tuple(text for text in texts if any(f"{each} ".startswith(f"{text.value} ") for each in wanted))
    evidence = [*_recorded(facts, packet), *_stated(packet)]
    by_text: dict[str, list[Evidence]] = {}
    for each in evidence:
        by_text.setdefault(same(each.criterion), []).append(each)
    known = {same(text.value): text.value for text in texts}
    # An item goes on after its first paragraph, and so does the criterion that the evidence names.
    for said in sorted(by_text.keys() - known.keys()):
        begun = [text for text in known if said.startswith(f"{text} ")]
        if len(begun) == 1:
            by_text.setdefault(begun[0], []).extend(by_text.pop(said))
    criteria = [
        Criterion(number, text.value, document.place(text)[0], tuple(by_text.get(same(text.value), ())))
        for number, text in enumerate(texts, 1)
        if document is not None
    ]
    loose = by_text.keys() - known.keys()
    strays = [each for each in evidence if same(each.criterion) in loose and not _of_a_passage(each)]
    return Trace(tuple(anchors), tuple(criteria), tuple(strays), tuple(_commits(facts, packet)))


def _of_a_passage(evidence: Evidence) -> bool:
    return evidence.result == "stated" and _PASSAGE.match(evidence.criterion) is not None


def _recorded(facts: AuditFacts, packet: PacketFacts) -> Iterator[Evidence]:
    for event, row, commit in latest_evidence(packet):
        proofs = proofs_named(row)
        yield evidence_of(event, row, commit, "; ".join(_changed_proofs(facts, proofs, commit)))


def _changed_proofs(facts: AuditFacts, proofs: Sequence[str], commit: str) -> Iterator[str]:
    for proof in proofs:
        path = proved_path(proof)
        then = facts.committed.get(f"{commit}:{path}") if path and commit else None
        if then is None:
            continue
        now = facts.digests.get(path)
        if now is None:
            yield f"{path} is gone"
        elif now != then:
            yield f"{path} has changed since {commit[:12]}"


def proved_path(proof: str) -> str:
    """Return the path in a `path:line`; '' for anything else."""
    match = _FILE_AND_LINE.match(proof)
    return match["path"] if match is not None else ""


def _stated(packet: PacketFacts) -> Iterator[Evidence]:
    """Yield the evidence that the packet itself states in EVIDENCE_MAPPING, unless the log has evidence."""
    document = packet.packet
    if document is None or packet.state.evidence:
        return
    for requirement, place in mapped_evidence(document.evidence_mapping):
        line = document.place(requirement)[0]
        yield Evidence(
            requirement.value, "stated", place, None, "", "", "", packet.packet_path, line, (place,) if place else ()
        )


def _commits(facts: AuditFacts, packet: PacketFacts) -> Iterator[TracedCommit]:
    for event in packet.state.history:
        if event.type == "submitted":
            yield _traced(facts, event, event.text("commit") or "", "submitted")
        elif event.type == "merged":
            yield _traced(facts, event, event.text("commit") or "", "merged")
            yield _traced(facts, event, event.text("target_commit") or "", "target")


def _traced(
    facts: AuditFacts, event: LogEvent, identity: str, role: Literal["submitted", "merged", "target"]
) -> TracedCommit:
    return TracedCommit(identity, role, event, facts.commits.get(identity))


_PLACE = lazy_pattern(r"(?P<path>[^\s:]+):(?P<line>[1-9][0-9]{0,8})\Z")


class Rests(Value):
    """A packet, its lane, and how it depends on the subject of the query."""

    packet: str
    lane: str
    how: str


def impact(packet: PacketFacts, traced: Trace, asked: str) -> list[Rests]:
    """Return how the packet is affected. `asked` is a path, `path:line`, or the name of an anchor as written in
    refinements.
    """
    path, line = place_in(asked)
    ways = dict.fromkeys(_ways(packet, traced, asked, path, line))
    return [Rests(packet.id.text, packet.lane, how) for how in ways]


def place_in(asked: str) -> tuple[str, int]:
    """Return the path, relative to the top of the repository, and the line; 0 for the whole file."""
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
            yield f"{event.type} depends on it"
    for event in packet.state.history:
        if event.type == "submitted" and path in event.texts("changed"):
            yield f"the submission at {event.at} changed it"


def _is_proof(proof: str, path: str, line: int) -> bool:
    return proved_path(proof) == path and (not line or proof.strip("`").endswith(f":{line}"))


def _section_of(name: str) -> str:
    """Return the section number in the name of an anchor: `Spec_v1.md 4.2 Parser` gives 4.2."""
    return next((word for word in name.split() if re.fullmatch(r"[0-9]+(?:\.[0-9]+)*", word)), "").casefold()
