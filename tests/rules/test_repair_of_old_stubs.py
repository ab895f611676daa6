"""An older stub in the present form: nothing is lost, nothing is invented, and the result has no fault."""

from __future__ import annotations

import re

import pytest

from workpacket.documents.stub import Stub
from workpacket.rules.repair import RepairRefused, upgraded
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.text.source import Source

PATH = ".GOV/task_packets/stubs/WP-1-Writer-v2.md"
OLDER = """# Task Packet Stub: WP-1-Writer-v2

**Status:** STUB (Not Activated)

## Identity
- WP_ID: WP-1-Writer-v2
- BASE_WP_ID: WP-1-Writer
- Created: 2026-02-11
- SPEC_TARGET: .GOV/roles_shared/SPEC_CURRENT.md (currently Spec_v1.md)

## Why this stub exists
The first writer lost a byte.

It also forgot the mark.

## Roadmap pointer (non-authoritative)
Chapter seven, item four.

## SPEC_ANCHOR_CANDIDATES (Main Body, authoritative)
- Spec_v1.md 4.3 Writer

## Scope sketch (draft)
- IN_SCOPE:
  - Writing stubs.
- OUT_OF_SCOPE:
  - Reading them.

## Known gaps (Task Board summary)
- Marks are dropped silently.

## Something nobody foresaw
A paragraph with *emphasis* and a [link](x.md).

## Activation checklist (before any coding)
1. Technical refinement.
2. USER_SIGNATURE.
"""


def words(text: str) -> list[str]:
    return re.findall(r"[\w./*]+", text)


def test_no_word_of_the_content_is_lost() -> None:
    after = upgraded(Source(PATH, OLDER))
    assert after is not None
    content = OLDER.split("## Activation checklist", maxsplit=1)[0].split("## Identity")[1]
    headings = {"Identity", "Created", "Why", "this", "stub", "exists", "Roadmap", "pointer", "non", "authoritative"}
    lost = set(words(content)) - set(words(after.text)) - headings - {"sketch", "draft", "Scope", "2026", "02", "11"}
    assert lost == set()


def test_the_values_stand_in_their_new_places() -> None:
    after = upgraded(Source(PATH, OLDER))
    assert after is not None
    stub = Stub(after)
    assert not stub.is_older
    assert str(stub.wp_id) == "WP-1-Writer-v2"
    assert str(stub.created_at) == "2026-02-11"
    assert str(stub.spec_target) == ".GOV/roles_shared/SPEC_CURRENT.md (currently Spec_v1.md)"
    assert str(stub.status_text()) == "STUB (Not Activated)"
    assert str(stub.roadmap_pointer) == "Chapter seven, item four."
    assert [str(item) for item in stub.spec_anchor_candidates] == ["Spec_v1.md 4.3 Writer"]
    assert [str(item) for item in stub.in_scope] == ["Writing stubs."]
    assert len(stub.at("activation_checklist").items) == 7  # type: ignore[union-attr]


def test_the_result_lacks_only_what_nobody_said() -> None:
    after = upgraded(Source(PATH, OLDER))
    assert after is not None
    found = load_findings(PATH, examine_bytes(PATH, "stub", after.encode()).findings)
    as_written = {"field_syntax", "date_only", "spec_target_trailing_text", "stub_status_not_canonical"}
    assert {finding.code for finding in found} == as_written | {"placeholder_left", "section_unknown"}
    open_points = [after.line(finding.line) for finding in found if finding.code == "placeholder_left"]
    assert open_points == ["- What: <fill in>", "- <fill in>", "- <fill in>", "- <fill in>"]


def test_a_reason_of_several_paragraphs_stays_one_reason() -> None:
    after = upgraded(Source(PATH, OLDER))
    assert after is not None
    assert "- Why: The first writer lost a byte.\n\n  It also forgot the mark.\n" in after.text


def test_a_section_with_more_than_a_value_keeps_its_heading() -> None:
    after = upgraded(Source(PATH, OLDER.replace("It also forgot", "- It also forgot")))
    assert after is not None
    assert "- Why: <fill in>" in after.text
    assert "## Why this stub exists\nThe first writer lost a byte.\n\n- It also forgot the mark.\n" in after.text


def test_the_steps_of_the_older_checklist_are_carried_over() -> None:
    after = upgraded(Source(PATH, OLDER))
    assert after is not None
    assert "## OLDER_ACTIVATION_STEPS\n1. Technical refinement.\n2. USER_SIGNATURE.\n" in after.text


@pytest.mark.parametrize("endless", ["```\nnever closed", "<!-- never closed", "<script>\nnever closed"])
def test_a_stub_in_which_a_block_never_ends_is_refused(endless: str) -> None:
    with pytest.raises(RepairRefused, match=r"line 14 (is never closed|never ends)"):
        upgraded(Source(PATH, OLDER.replace("It also forgot the mark.", endless)))


def test_what_is_upgraded_is_not_upgraded_again() -> None:
    after = upgraded(Source(PATH, OLDER))
    assert after is not None
    assert upgraded(after) is None


@pytest.mark.parametrize("text", ["", "# Nothing\n", OLDER.replace("WP-1-Writer-v2", "no id")])
def test_what_cannot_be_upgraded_is_left_alone(text: str) -> None:
    assert upgraded(Source("x/README.md", text)) is None
