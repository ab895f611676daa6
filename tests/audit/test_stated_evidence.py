"""Evidence that a packet states itself, in EVIDENCE_MAPPING: whose it is, and what is none."""

from __future__ import annotations

import pytest

from audit.pages import NOW
from workpacket.audit.tracing import AuditFacts, Trace, trace
from workpacket.ledger.log import read_log
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.ids import WorkPacketId
from workpacket.text.source import Source

NAME = "WP-1-Parser-v1"
PACKET = f"""# Task Packet: {NAME}

## METADATA
- WP_ID: {NAME}

## QUALITY_GATE
### DONE_MEANS
- The field `Source.rows[]` is *never* lost, says "strict".

## EVIDENCE_MAPPING
"""


def traced(mapping: str) -> Trace:
    packet = PacketFacts(
        WorkPacketId(NAME),
        read_log(NAME, {}),
        packet_source=Source(f".GOV/task_packets/{NAME}.md", PACKET + mapping),
    )
    return trace(AuditFacts("", NOW, {NAME: packet}, LifecyclePolicy()), packet)


@pytest.mark.parametrize(
    "quoted",
    [
        'The field `Source.rows[]` is *never* lost, says "strict".',
        '"The field Source.rows[] is never lost, says \\"strict\\"."',
        "the field `Source.rows[]`  is never lost, says strict.",
    ],
)
def test_a_criterion_quoted_without_its_marks_is_still_that_criterion(quoted: str) -> None:
    told = traced(f"- REQUIREMENT: {quoted}\n  - EVIDENCE: `src/parser.py:12`\n")
    assert [criterion.proved for criterion in told.criteria] == [True]
    assert told.strays == ()


def test_another_sentence_is_a_stray() -> None:
    told = traced('- REQUIREMENT: "Rows are never lost."\n  - EVIDENCE: `src/parser.py:12`\n')
    assert [criterion.proved for criterion in told.criteria] == [False]
    assert [stray.criterion for stray in told.strays] == ["Rows are never lost."]


def test_the_form_that_a_template_shows_is_no_evidence() -> None:
    form = '- Format:\n  - REQUIREMENT: "<quote a line of DONE_MEANS>"\n  - EVIDENCE: `path/to/file:line`\n'
    filled = '- REQUIREMENT: "<quote a line of DONE_MEANS>"\n  - EVIDENCE: `src/parser.py:12`\n'
    unproved = "- REQUIREMENT: Rows are never lost.\n  - EVIDENCE: path/to/file:line\n"
    for shown in (form, filled, unproved):
        assert traced(shown).strays == (), shown


def test_evidence_for_a_passage_of_a_document_is_no_stray() -> None:
    assert traced('- REQUIREMENT: "Spec_v1.md 4.2 The parser"\n  - EVIDENCE: `src/parser.py:12`\n').strays == ()
