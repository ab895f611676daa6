"""Whatever stands in a register: reading ends with a document, its rules with faults, its fixes with rest."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from workpacket.documents.document import read_document
from workpacket.problem import Problem
from workpacket.report.catalogue import catalogue
from workpacket.rules.repair import RepairRefused, repair
from workpacket.rules.rule import DocumentRule, all_rules, examine
from workpacket.shell.package_files import schemas
from workpacket.text.source import Source

KINDS = ("task_board", "registry", "signature_audit", "orchestrator_gates", "validator_gates")
OWN_RULES = tuple(
    rule for rule in all_rules() if issubclass(rule, DocumentRule) and set(rule.kinds) and set(rule.kinds) <= set(KINDS)
)
CODES = frozenset(catalogue())
MARKDOWN = (
    "# Board", "## Active", "## Ready for Dev", "## DONE", "### Blocked", "##Done", "## Notes", "## Supersedd",
    "- **[WP-1-A-v1]** - [STUB]", "* [WP-1-A-v1] - ready for dev", "- **[WP-1-B-v1]**", "- [x] WP-1-C: Done",
    "- **[WP-1-D-v1]** - [ACTIVE] - branch: x - last_sync: y", "- **[TASK]** - [LATER]", "  - **[WP07]** - [FAIL]",
    "| Base WP ID | Active Packet | Task Board | Notes |", "|---|---|---|---|", "| Active Packet | Base WP ID |",
    "| WP-1-A | .GOV/task_packets/WP-1-A-v1.md | Done: WP-1-A-v1 | active=WP-1-A-v2; supersedes: WP-1-A-v1, x |",
    "| WP-1-A | x |", "| WP-1-B-v1 | [a](b.md) | Done | supersedes: | more |", "WP-1-C | y | z |",
    "| Signature | Used By | Date/Time | Purpose | Master Spec Version | Notes |", "|---|---|---|---|---|---|",
    "| mara310120260930 | Orchestrator | x | WP-1-A-v1 | v1 | |", "| mara320120260930 | | | | | |",
    "```", "~~~", "<!--", "-->", "---", "words", "", "  ", "\t", "\x00", "\u2028", "\udc80", "|", "a | b",
)  # fmt: skip
MARKDOWN_TEXTS = st.tuples(
    st.lists(st.one_of(st.sampled_from(MARKDOWN), st.text(max_size=12)), max_size=30),
    st.sampled_from(["\n", "\r\n", "\r"]),
).map(lambda drawn: drawn[1].join(drawn[0]))
JSON_KEYS = st.sampled_from(
    ["gate_logs", "validation_sessions", "sessions", "archived_sessions", "gates", "gate", "type", "wpId", "timestamp"]
)
JSON_TEXTS = st.recursive(
    st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(["WP-1-A-v1", "2026-01-31T09:30:00Z", "COMMITTED", ""])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(JSON_KEYS, inner, max_size=4)),
    max_leaves=12,
).map(json.dumps)


def all_faults(kind: str, source: Source) -> list[Problem]:
    document = read_document(kind, source)
    for node in document.root.walk() if document.root is not None else ():
        assert 0 <= node.start <= node.end <= len(source.text)
    json.dumps(document.summary())
    return examine(document, OWN_RULES, schemas())


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KINDS), st.one_of(MARKDOWN_TEXTS, JSON_TEXTS, st.text(max_size=60)))
def test_any_text_is_a_document_with_faults(kind: str, text: str) -> None:
    source = Source(f"x/WP-1-A-v1.{kind}", text)
    for fault in all_faults(kind, source):
        # What is missing from the file is missing behind its end.
        assert 0 <= fault.start <= fault.end <= len(text) + 1
        assert fault.message
        assert fault.code in CODES


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KINDS[:3]), MARKDOWN_TEXTS, st.booleans())
def test_fixes_come_to_rest_and_keep_every_word_that_they_are_not_about(kind: str, text: str, unsafe: bool) -> None:
    source = Source("x/register.md", text)
    for _ in range(6):
        findings = [source.placed(fault) for fault in all_faults(kind, source)]
        try:
            repaired = repair(source, kind, findings, unsafe=unsafe).source
        except RepairRefused:
            return  # such a file is named and left as it is
        if repaired is source:
            return
        source = repaired
    raise AssertionError("after six rounds there is still something to fix")
