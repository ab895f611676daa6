"""Which words of a document are in its contract: single places, each of which somebody could hide a word in."""

from __future__ import annotations

from typing import Any

import pytest

from workpacket.documents.packet import Packet
from workpacket.documents.refinement import Refinement
from workpacket.documents.stub import Stub
from workpacket.lifecycle.contract import Contract, stated
from workpacket.text.source import Source

WP = "WP-1-Parser-v1"
PACKET_PATH = f".GOV/task_packets/{WP}.md"
REFINEMENT_PATH = f".GOV/refinements/{WP}.md"


def packet(scope: str = "", gate: str = "", more: str = "", metadata: str = "") -> Packet:
    head = f"# Task Packet: {WP}\n\n## METADATA\n- WP_ID: {WP}\n{metadata}"
    return Packet(Source(PACKET_PATH, f"{head}\n## SCOPE\n{scope}\n\n## QUALITY_GATE\n{gate}\n\n{more}"))


def contract(document: Stub | Packet, refinement: Refinement | None = None) -> Contract:
    said = stated(document, refinement)
    assert isinstance(said, Contract), said
    return said


def fault(document: Stub | Packet, refinement: Refinement | None = None) -> str:
    said = stated(document, refinement)
    assert isinstance(said, str)
    return said.removeprefix(f"{document.path}: ")


def refinement(text: str, *, pinned: str = "- SPEC_TARGET_RESOLVED: now -> spec.md\n") -> Refinement:
    return Refinement(Source(REFINEMENT_PATH, f"### METADATA\n- WP_ID: {WP}\n{pinned}{text}"))


# --- labels ---


@pytest.mark.parametrize(
    "label",
    ["- Why (unless late):", "- **Why** (unless late):", "- **Why (unless late):**", "- __Why__ (unless late):"],
)
def test_an_aside_counts_whatever_marks_the_key_has(label: str) -> None:
    assert contract(packet(f"{label} it is slow")).why == "(unless late) it is slow"


def test_the_marks_of_a_key_do_not_count_and_those_of_its_value_do() -> None:
    for line in (
        "- WHAT: **now**",
        "- WHAT:**now**",
        "- **WHAT:** **now**",
        "- **WHAT:****now**",
        "- [ ] WHAT: **now**",
    ):
        assert contract(packet(line)).what == "**now**"
    assert contract(packet("- **What:**\n  - Read")).what == "Read"
    assert contract(packet("- **What: **\n  - Read")).what == "Read"


def test_what_lies_between_a_key_and_a_value_below_it_counts() -> None:
    below = contract(packet("- Why:\n\n  <!-- unless late -->\n\n  It is slow."))
    assert below.why == "<!-- unless late --> It is slow."


@pytest.mark.parametrize("line", ["(only if time):", "**", ":", "*: x*"])
def test_a_line_below_a_heading_is_no_part_of_its_label(line: str) -> None:
    assert contract(packet(gate=f"### DONE_MEANS\n{line}\n- One")).criteria == (line, "One")


def test_an_aside_in_a_heading_counts_unless_the_layout_has_it() -> None:
    stub = f"# Stub\n\n## STUB_METADATA\n- WP_ID: {WP}\n\n"
    for heading, criteria in (("(DRAFT)", ("One",)), ("(A WISH)", ("(A WISH)", "One"))):
        text = f"{stub}## ACCEPTANCE_CRITERIA {heading}\n- One\n"
        assert contract(Stub(Source("stub.md", text))).criteria == criteria


# --- ends ---


def test_a_field_ends_where_the_line_of_the_next_one_begins() -> None:
    two = contract(packet("- **What:** Read\n  all\n- **Why:** It is slow\n- NOTES: free"))
    assert (two.what, two.why) == ("Read all", "It is slow")


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    stub = f"# Stub\n\n## STUB_METADATA\n- WP_ID: {WP}\n\n## ACCEPTANCE_CRITERIA\n- One\n\n"
    for more in (
        "",
        "## My notes\n- free\n",
        "## My notes\n- free\n\n## RISKS / UNKNOWNs\n- free\n",
        "## RISKS / UNKNOWNs\n- free\n",
    ):
        assert contract(Stub(Source("stub.md", stub + more))).criteria == ("One",)
    below = f"{stub}### My notes\n- Two\n\n## My notes\n- free\n"
    assert contract(Stub(Source("stub.md", below))).criteria == ("One ### My notes", "Two")


# --- texts ---


def test_what_is_quoted_belongs_to_the_item_above_it() -> None:
    said = contract(packet(gate="### DONE_MEANS\n- One\n\n> - Two\n>   - Three\n\n```\n- Four\n```\n- Five"))
    assert said.criteria == ("One > - Two > - Three ``` - Four ```", "Five")


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("[x] reads", "reads"),
        ("[ ] reads [x] all", "reads [x] all"),
        ("[ ] [x] reads", "[x] reads"),
        ("[x](link) is read", "[x](link) is read"),
        ("[all] [x] lines", "[all] [x] lines"),
        ("reads [ ] boxes", "reads [ ] boxes"),
    ],
)
def test_of_boxes_the_one_at_the_beginning_is_free(item: str, text: str) -> None:
    assert contract(packet(gate=f"### DONE_MEANS\n- {item}")).criteria == (text,)


def test_a_list_is_empty_if_all_of_it_says_so() -> None:
    assert contract(packet("- OUT_OF_SCOPE:\n  - TODO\n  - None known.")).out_of_scope == ()
    assert contract(packet("- OUT_OF_SCOPE:\n  - TODO\n  - The writer")).out_of_scope == ("TODO", "The writer")
    assert contract(packet("- What: TODO\n- Why: None known.")).what == ""


# --- evidence ---


def demands(below: str, *, heading: str = "### DONE_MEANS") -> list[dict[str, Any]]:
    said: Any = contract(packet(gate=f"{heading}\n{below}")).json()["evidence"]
    return list(said)


def test_evidence_is_demanded_below_a_criterion_and_nowhere_else() -> None:
    demand = {"criterion": "One", "command": "", "tests": [], "paths": [], "exempt": "none"}
    assert demands("- One\n  - EXEMPT: none") == [demand]
    assert demands("- One\n- EXEMPT: none") == []
    assert demands("- EXEMPT: none\n  - One") == []
    assert demands("- DONE_MEANS (soon):\n  - EXEMPT: none", heading="") == []
    assert demands("- DONE_MEANS:\n  - One\n    - EXEMPT: none", heading="") == [demand]
    assert demands("- One\n  - and two\n    - EXEMPT: none") == [{**demand, "criterion": "and two"}]


def test_a_text_before_the_first_item_demands_nothing_of_an_aside() -> None:
    said = contract(packet(gate="### DONE_MEANS (soon)\nEXEMPT: none"))
    assert (said.criteria, said.evidence) == (("(soon)", "EXEMPT: none"), ())


def test_a_demand_below_an_item_without_words_is_a_criterion() -> None:
    said = contract(packet(gate="### DONE_MEANS\n-\n  - EXEMPT: none"))
    assert (said.criteria, said.evidence) == (("EXEMPT: none",), ())


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("`make all`", "make all"),
        ("`m`", "m"),
        ("make all", "make all"),
        ("`make` or `ninja`", "`make` or `ninja`"),
        ("make `all`", "make `all`"),
        ("``", "``"),
        ("`", "`"),
    ],
)
def test_a_command_is_taken_out_of_one_pair_of_backticks(written: str, command: str) -> None:
    (said,) = demands(f"- One\n  - PROVED_BY: {written}")
    assert said["command"] == command


# --- scope ---


def test_an_entry_of_the_paths_that_names_none_is_kept_as_it_is() -> None:
    paths = contract(packet("- IN_SCOPE_PATHS:\n  - `src/` (all)\n  - the reader and its tests")).scope
    assert paths == ("src/", "the reader and its tests")


# --- places that may be there once ---


@pytest.mark.parametrize(
    ("first", "second", "heading"),
    [
        ("## SCOPE\n- What: a", "## SCOPE\n- What: b", "SCOPE"),
        ("## QUALITY_GATE\n- x: a", "## QUALITY_GATE\n- DONE_MEANS: b", "QUALITY_GATE"),
        ("## DONE_MEANS\n- a", "## DONE_MEANS\n- b", "DONE_MEANS"),
        ("## METADATA\n- RISK_TIER: LOW", "## METADATA\n- RISK_TIER: HIGH", "METADATA"),
        ("## RISK_TIER\n- LEVEL: LOW", "## RISK_TIER\n- LEVEL: HIGH", "RISK_TIER"),
    ],
)
def test_a_packet_has_each_section_of_its_contract_once(first: str, second: str, heading: str) -> None:
    assert contract(Packet(Source(PACKET_PATH, f"{first}\n"))).packet == WP
    assert fault(Packet(Source(PACKET_PATH, f"{first}\n\n{second}\n"))) == f"section {heading} appears twice"


@pytest.mark.parametrize(
    ("section", "heading"),
    [
        ("## INTENT\n- What: a", "INTENT (DRAFT)"),
        ("## SCOPE_SKETCH\n- IN_SCOPE: a", "SCOPE_SKETCH (DRAFT)"),
        ("## ACCEPTANCE_CRITERIA\n- a", "ACCEPTANCE_CRITERIA (DRAFT)"),
        ("## DEPENDENCIES / BLOCKERS\n- a", "DEPENDENCIES / BLOCKERS (DRAFT)"),
    ],
)
def test_a_stub_has_each_section_of_its_contract_once(section: str, heading: str) -> None:
    assert fault(Stub(Source("stub.md", f"{section}\n\n{section}\n"))) == f"section {heading} appears twice"


def test_a_section_that_says_nothing_of_the_contract_may_be_there_twice() -> None:
    assert contract(packet("- What: Read", more="## EVIDENCE\nx\n\n## EVIDENCE\ny\n")).what == "Read"


def test_the_risk_of_an_older_packet_is_a_level() -> None:
    assert contract(packet(more="## RISK_TIER\n- LEVEL: HIGH\n")).risk == "HIGH"
    two = packet(more="## RISK_TIER\n- LEVEL: HIGH\n", metadata="- RISK_TIER: LOW\n")
    assert fault(two) == "the risk is given twice, with different values"


# --- what cannot be read ---


def test_bytes_that_are_not_text_leave_no_contract() -> None:
    document = Packet(Source.from_bytes(PACKET_PATH, b"## SCOPE\n- What: Read \xff\n"))
    assert fault(document) == "it contains bytes that are not UTF-8"


def test_a_document_that_cannot_be_read_leaves_no_contract() -> None:
    assert fault(Packet(Source(PACKET_PATH, "> " * 5000 + "- What: Read\n"))) == "the Markdown cannot be read"


def test_a_refinement_that_cannot_be_read_leaves_no_contract() -> None:
    unreadable = Refinement(Source(REFINEMENT_PATH, "> " * 5000 + "- a\n"))
    assert fault(packet("- What: Read"), unreadable) == "the Markdown cannot be read"


# --- what is pinned ---


def test_a_packet_may_name_a_refinement_that_is_not_asked_for() -> None:
    named = packet("- What: Read", more="## TECHNICAL_REFINEMENT\n- REFINEMENT_FILE: other.md\n")
    assert contract(named).refinement is None


def test_a_refinement_counts_with_bytes_that_are_not_text() -> None:
    digests = set()
    for byte in (b"\xff", b"\xfe"):
        pinned = contract(packet(), Refinement(Source.from_bytes(REFINEMENT_PATH, b"### METADATA\n- x: " + byte)))
        assert pinned.refinement is not None
        digests.add(pinned.refinement.sha256)
    assert len(digests) == 2


def test_only_blanks_before_a_user_value_are_left_out_with_it() -> None:
    def digest(text: str) -> str:
        pinned = contract(packet(), refinement(text)).refinement
        assert pinned is not None
        return pinned.sha256

    assert digest("- USER_SIGNATURE: <pending>\n") == digest("- USER_SIGNATURE:\t ann123\n")
    assert digest("- USER_SIGNATURE:\n  <pending>\n") != digest("- USER_SIGNATURE: <pending>\n")


def test_a_refinement_without_a_specification_pins_none() -> None:
    assert contract(packet(), refinement("", pinned="")).spec is None
    assert contract(packet(), refinement("- SPEC_TARGET_SHA1: AB\n", pinned="")).spec is None


def test_the_longer_digest_of_a_specification_decides() -> None:
    both = contract(packet(), refinement("- SPEC_TARGET_SHA1: AB\n- SPEC_TARGET_SHA256: CD\n")).spec
    one = contract(packet(), refinement("- SPEC_TARGET_SHA1: AB\n")).spec
    none = contract(packet(), refinement("")).spec
    assert [spec and (spec.path, spec.sha256) for spec in (both, one, none)] == [
        ("spec.md", "cd"), ("spec.md", "ab"), ("spec.md", ""),
    ]  # fmt: skip
