"""How a pull request affects the packets, as Markdown for its page.

Everything that a change can write (titles, criteria, names, commands) is shown as code, because a comment is written
with the rights of the repository: no text becomes a link, an image, a heading or a mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from workpacket.model.canonical import Json
from workpacket.model.lanes import UNJUDGED, lane_words
from workpacket.model.reasons import SEVERITIES
from workpacket.model.wording import counted
from workpacket.problem import Problem
from workpacket.report.approval_text import word_by_word
from workpacket.report.outcome import CheckOutcome, by_gravity
from workpacket.report.packet import CriterionView
from workpacket.report.terminal import escape, escape_lines
from workpacket.value import Value

# The mark by which the comment of an earlier run is found and replaced.
MARK: Final = "<!-- workpacket: report pr -->"
_FINDINGS: Final = 20
_SHORT: Final = 12
_FENCE = re.compile(r"`{3,}")
_RUNS = re.compile(r"`+")


class Signed(Value):
    """An approval or rejection at a gate. `against` are the codes of the reasons why it does not count."""

    gate: str
    decision: str
    approver: str
    key: str
    issued_at: str
    against: tuple[str, ...]

    def json(self) -> dict[str, Json]:
        return {
            "gate": self.gate,
            "decision": self.decision,
            "approver": self.approver,
            "key": self.key,
            "issued_at": self.issued_at,
            "against": list(self.against),
        }


class PacketChange(Value):
    """One packet in the change. `contract` describes what was approved; `changed` are the contract's differences from
    the base, each with its name, before and after; `events` are the new events. `waits_for_merge`: the policy requires
    no verdict.
    """

    id: str
    title: str
    before: str
    lane: str
    contract: str
    changed: tuple[tuple[str, str, str], ...]
    criteria: tuple[CriterionView, ...]
    approvals: tuple[Signed, ...]
    events: tuple[str, ...]
    unmet: tuple[Problem, ...]
    waits_for_merge: bool = False

    def json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "title": self.title,
            "lane": self.lane,
            "lane_on_base": self.before,
            "contract": self.contract,
            "contract_changed": [{"part": part, "before": old, "after": new} for part, old, new in self.changed],
            "criteria": [one.json() for one in self.criteria],
            "approvals": [one.json() for one in self.approvals],
            "events": list(self.events),
            "waits_for": [{"code": one.code, "message": one.message} for one in self.unmet],
        }


def verdict(outcome: CheckOutcome) -> str:
    """Return whether the check passes and, if not, why, on one line."""
    failing = [finding for finding in outcome.findings if outcome.fails(finding)]
    if not failing:
        return "passes"
    codes = list(dict.fromkeys(finding.code for finding in by_gravity(tuple(failing))))
    more = f" and {len(codes) - 3} more" if len(codes) > 3 else ""
    return f"{counted(len(failing), 'finding')}: {', '.join(codes[:3])}{more}"


def render_pull_request(outcome: CheckOutcome, packets: Sequence[PacketChange], base: str) -> str:
    """Return the whole page."""
    lines = [MARK, f"### workpacket: {verdict(outcome)}", ""]
    for packet in packets:
        lines += [*_packet(packet), ""]
    if not packets:
        lines += ["No packet changes.", ""]
    lines += _findings(outcome)
    lines.append(f"Checked against {code(base)}: {code(f'workpacket check --base {base}')}")
    return "\n".join(lines) + "\n"


def _packet(packet: PacketChange) -> Iterator[str]:
    was = f" (was {code(packet.before)})" if packet.before and packet.before != packet.lane else ""
    yield f"#### {code(packet.id)} {code(packet.lane)}{was}"
    yield ""
    if packet.title:
        yield f"{code(packet.title)}"
        yield ""
    if packet.contract:
        yield f"- contract: {code(packet.contract)}"
    for one in packet.criteria:
        yield f"- {one.number}. {one.state}: {code(one.text)}{_proof(one)}"
    for signed in packet.approvals:
        counts = f", does not count: {', '.join(signed.against)}" if signed.against else ""
        by = f"{code(signed.approver)} with {code(signed.key)}"
        yield f"- {signed.decision} at gate {code(signed.gate)}: {by}, {signed.issued_at}{counts}"
    for event in packet.events:
        yield f"- new: {code(event)}"
    if packet.waits_for_merge:
        yield f"- requires no verdict; once merged, it is {code(lane_words(UNJUDGED))}"
    for problem in packet.unmet:
        yield f"- waits for: {code(problem.message)} ({problem.code})"
    if packet.changed:
        yield ""
        yield "The contract changes:"
        said = "\n".join(f"{part}: {word_by_word(old, new)}" for part, old, new in packet.changed)
        yield from block(said, "")


def _proof(one: CriterionView) -> str:
    if not one.proof:
        return ""
    exit_code = f", exit status {one.exit_code}" if one.exit_code is not None else ""
    commit = f" at {code(one.commit[:_SHORT])}" if one.commit else ""
    return f" by {code(one.proof)}{exit_code}{commit}"


def _findings(outcome: CheckOutcome) -> Iterator[str]:
    if not outcome.findings:
        return
    counts = ((severity, outcome.total(severity)) for severity in SEVERITIES)
    yield f"#### {', '.join(counted(count, severity) for severity, count in counts if count)}"
    yield ""
    for finding in by_gravity(outcome.findings)[:_FINDINGS]:
        place = f"{finding.path}:{finding.line}" if finding.line else finding.path
        hint = f" Help: {code(finding.hint)}" if finding.hint else ""
        yield f"- **{finding.severity}** {finding.code} {code(place) if place else ''} {code(finding.message)}{hint}"
    more = len(outcome.findings) - _FINDINGS
    if more > 0:
        yield f"- {more} more"
    yield ""


def code(text: str) -> str:
    """Return text in a fence that Markdown does not interpret, regardless of what the text contains."""
    line = escape(text)
    fence = "`" * (max((len(run) for run in _RUNS.findall(line)), default=0) + 1)
    return f"{fence} {line} {fence}" if len(fence) > 1 else f"`{line}`"


def block(text: str, indent: str) -> Iterator[str]:
    """Yield several lines in a separate fence."""
    lines = escape_lines(text.rstrip("\n")).split("\n")
    fence = "`" * (max((len(run) for line in lines for run in _FENCE.findall(line)), default=2) + 1)
    yield ""
    yield f"{indent}{fence}text"
    yield from (f"{indent}{line}" for line in lines)
    yield f"{indent}{fence}"
