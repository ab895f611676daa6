"""What a packet rests on and what it led to: requirement, acceptance criterion, evidence, commit.

A link is suspect when what it leads to is not what it was: the passage was changed, the proof was changed, the commit
is not where it was recorded to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from workpacket.audit.anchors import Anchor, anchors_of
from workpacket.audit.facts import AuditFacts, Commit
from workpacket.audit.standing import evidence_rows
from workpacket.documents.evidence import mapped_evidence
from workpacket.model.events import Event
from workpacket.plans.facts import PacketFacts
from workpacket.value import Value

Result = Literal["met", "not_met", "not_applicable", "stated"]

_MARKS = str.maketrans("", "", "`*\"'\\")
# A requirement may be quoted from a document instead of from DONE_MEANS: `Spec_v1.md 4.2 Parser`.
_PASSAGE = re.compile(r"[`\"']*\S+\.md\b")
_PLACE = re.compile(r"`?(?P<path>[^\s:`]+):(?P<line>[1-9][0-9]*)")


class Evidence(Value):
    """One proof. `suspect` says why it can no longer be taken at its word, '' if it can.

    `source` is the path of the event or of the packet that states it. `log_sha256` names the output of a command, whose
    end may be kept in the clone where it was run; only older events hold it themselves, as `log_tail`.
    """

    criterion: str
    result: Result
    what: str
    exit_code: int | None
    at: str
    by: str
    commit: str
    source: str
    line: int
    proofs: tuple[str, ...]
    suspect: str = ""
    log_sha256: str = ""
    log_tail: str = ""
    limit: str = ""


class Criterion(Value):
    """A line of DONE_MEANS and what proves it."""

    number: int
    text: str
    line: int
    evidence: tuple[Evidence, ...]

    @property
    def proved(self) -> bool:
        return any(each.result != "not_met" for each in self.evidence)


class TracedCommit(Value):
    """A commit that the log names, and as what. `seen` is None if it is not in this clone."""

    id: str
    role: Literal["submitted", "merged", "target"]
    event: Event
    seen: Commit | None


class Trace(Value):
    """`strays` is evidence for criteria that the packet does not have."""

    anchors: tuple[Anchor, ...]
    criteria: tuple[Criterion, ...]
    strays: tuple[Evidence, ...]
    commits: tuple[TracedCommit, ...]


def trace(facts: AuditFacts, packet: PacketFacts) -> Trace:
    anchors = anchors_of(packet.refinement, facts.specifications) if packet.refinement is not None else []
    document = packet.packet
    texts = document.done_means if document is not None else ()
    evidence = [*_recorded(facts, packet), *_stated(packet)]
    by_text: dict[str, list[Evidence]] = {}
    for each in evidence:
        by_text.setdefault(same(each.criterion), []).append(each)
    criteria = [
        Criterion(number, text.value, document.place(text)[0], tuple(by_text.get(same(text.value), ())))
        for number, text in enumerate(texts, 1)
        if document is not None
    ]
    known = {same(text.value) for text in texts}
    strays = [each for each in evidence if same(each.criterion) not in known and not _of_a_passage(each)]
    return Trace(tuple(anchors), tuple(criteria), tuple(strays), tuple(_commits(facts, packet)))


def _of_a_passage(evidence: Evidence) -> bool:
    return evidence.result == "stated" and _PASSAGE.match(evidence.criterion) is not None


def same(text: str) -> str:
    """Two wordings of a criterion are one if they differ in nothing but space and marks, as of code."""
    return " ".join(text.translate(_MARKS).split()).casefold()


def _recorded(facts: AuditFacts, packet: PacketFacts) -> Iterator[Evidence]:
    for event, row, commit in latest_evidence(packet):
        proofs = _proofs(row)
        yield evidence_of(event, row, commit, "; ".join(_changed_proofs(facts, proofs, commit)))


def latest_evidence(packet: PacketFacts) -> Iterator[tuple[Event, Mapping[str, object], str]]:
    """The evidence of the log, with its event and commit: that of the latest submission, and what was added since."""
    events = packet.state.evidence
    latest = max((n for n, event in enumerate(events) if event.type == "submitted"), default=0)
    commit = ""
    for event in events[latest:]:
        commit = event.text("commit") or commit
        for row in evidence_rows(event):
            yield event, row, str(row.get("commit") or commit)


def _proofs(row: Mapping[str, object]) -> tuple[str, ...]:
    listed = row.get("proof")
    return tuple(str(each) for each in listed) if isinstance(listed, Sequence) and not isinstance(listed, str) else ()


def evidence_of(event: Event, row: Mapping[str, object], commit: str, suspect: str = "") -> Evidence:
    proofs = _proofs(row)
    code = row.get("exit_code")
    what = str(row.get("command") or row.get("reason") or ", ".join(proofs) or "")
    result: Result = "met" if row["result"] == "met" else "not_met" if row["result"] == "not_met" else "not_applicable"
    return Evidence(
        criterion=str(row["criterion"]),
        result=result,
        what=what,
        exit_code=code if isinstance(code, int) else None,
        at=event.at,
        by=event.actor.id,
        commit=commit,
        source=event.path,
        line=1,
        proofs=proofs,
        suspect=suspect,
        log_sha256=str(row.get("log_sha256", "")),
        log_tail=str(row.get("log_tail", "")),
        limit=str(row.get("limit", "")),
    )


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
    """The path of a `path:line`, '' if it is none."""
    match = _PLACE.match(proof)
    return match["path"] if match is not None else ""


def _stated(packet: PacketFacts) -> Iterator[Evidence]:
    """What the packet itself says in EVIDENCE_MAPPING, unless the log has evidence."""
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
    facts: AuditFacts, event: Event, identity: str, role: Literal["submitted", "merged", "target"]
) -> TracedCommit:
    return TracedCommit(identity, role, event, facts.commits.get(identity))
