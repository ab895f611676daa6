"""What a submission has to prove, and what a contract lacks before anyone can approve it."""

from __future__ import annotations

import pytest

from contract.test_what_counts import contract, fault, packet
from workpacket.documents.packet import Packet
from workpacket.lifecycle.contract import Contract, Provable, demands_unmet, provable
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.text.source import Source


def asked(items: str, *, heading: str = "### DONE_MEANS") -> Provable:
    return provable(packet(gate=f"{heading}\n{items}"), None)


def test_without_a_packet_nothing_is_proved() -> None:
    assert provable(None, None) == Provable()


def test_of_a_packet_without_a_contract_every_item_is_asked_for() -> None:
    twice = packet(gate="### DONE_MEANS\n- One\n  - EXEMPT: a\n  - EXEMPT: b\n- [ ] Two")
    assert provable(twice, None) == Provable(("One", "EXEMPT: a", "EXEMPT: b", "Two"))


def test_each_criterion_is_asked_for_and_what_is_demanded_below_it_is_not() -> None:
    found = asked("- [ ] One\n  - PROVED_BY: make\n- [x] Two\n  - EXEMPT: words only\n- Three")
    assert found == Provable(("One", "Two", "Three"), frozenset({"Two"}), frozenset({"One"}))


@pytest.mark.parametrize(
    ("item", "criterion"),
    [
        ("[ ] [ ] One", "[ ] One"),
        ("[x] [x] One", "[x] One"),
        ("One\n\n  and more", "One and more"),
        ("One\n\n> and more", "One > and more"),
        ("One\n  ```\n  and more\n  ```", "One ``` and more ```"),
    ],
)
def test_a_criterion_is_asked_for_however_it_is_written(item: str, criterion: str) -> None:
    """Once a box too many, or a second paragraph, made an approved criterion one that needed no proof."""
    document = packet(gate=f"### DONE_MEANS\n- {item}\n- Two")
    assert contract(document).criteria == (criterion, "Two")
    assert provable(document, None).criteria == (criterion, "Two")


def test_a_text_outside_of_the_list_is_a_criterion_too() -> None:
    assert asked("All of this:\n- One").criteria == ("All of this:", "One")
    assert asked("| a |\n|---|\n| b |").criteria == ("| a | |---| | b |",)


def test_a_field_on_one_line_is_worded_as_the_packet_has_it() -> None:
    found = asked("- DONE_MEANS: [ ] One, Two", heading="")
    assert found == Provable(("[ ] One, Two",), frozenset(), frozenset({"[ ] One, Two"}))
    assert asked("- DONE_MEANS: [x] One", heading="").unticked == frozenset()


@pytest.mark.parametrize(
    ("item", "unticked"),
    [
        ("- [ ] One", True),
        ("-  [ ]   One", True),
        ("* [ ] One", True),
        ("- [ ] One\n\n  and more", True),
        ("- [x] One", False),
        ("- One", False),
        ("- [x] One [ ] of", False),
        ("- [ ] [x] One", True),
        ("- [x] One\n\n  [ ] and more", False),
    ],
)
def test_the_box_before_an_item_says_whether_it_is_ticked(item: str, unticked: bool) -> None:
    found = asked(f"{item}\n- [x] One more")
    assert found.unticked == (frozenset(found.criteria[:1]) if unticked else frozenset())


# --- what prevents the approval ---


def codes(items: str, tests: str = "required") -> list[tuple[str, str]]:
    policy = EvidencePolicy(tests="required" if tests == "required" else "off")
    found = list(demands_unmet(contract(packet(gate=f"### DONE_MEANS\n{items}")), policy, "p.md"))
    assert all(one.path == "p.md" for one in found)
    return [(one.code, one.message.partition(",")[0]) for one in found]


def test_where_tests_are_required_each_criterion_names_its_proof() -> None:
    assert codes("- One\n- Two\n  - PROVED_BY: pytest\n- Three\n  - EXEMPT: words only") == [
        ("proof_undeclared", "criterion 1")
    ]
    assert codes("- One\n  - TESTS: a\n- Two") == [
        ("proof_undeclared", "criterion 1"),
        ("proof_undeclared", "criterion 2"),
    ]
    assert codes("- One\n- Two", tests="off") == []


def test_a_proof_that_proves_nothing_is_refused_everywhere() -> None:
    for tests in ("required", "off"):
        assert codes("- One\n  - PROVED_BY: pytest\n- Two\n  - PROVED_BY: true", tests) == [
            ("proof_trivial", "criterion 2")
        ]
    assert codes("- One\n  - TESTS: a", tests="off") == []


def test_a_command_that_cannot_be_split_is_reported_where_it_is_run() -> None:
    assert codes("- One\n  - PROVED_BY: echo 'open") == []


# --- the light form ---


def light(scope: str = "", rest: str = "") -> Contract:
    text = f"# Read all lines\n\n## SCOPE\n- FORM: light\n{scope}\n## DONE_MEANS\n- One\n{rest}"
    return contract(Packet(Source(".GOV/task_packets/WP-1-Parser-v1.md", text)))


def test_a_light_packet_says_what_it_is_about_in_its_title_or_in_a_field() -> None:
    assert light().what == "Read all lines"
    assert light("- What: Read the last line\n").what == "Read the last line"
    assert light("- What: Read the last line\n").title == "Read all lines"


def test_the_refinement_of_a_light_packet_has_one_digest_whatever_its_line_ends_are() -> None:
    assert light().refinement is None
    one = light(rest="\n## REFINEMENT\nIt is\nslow.\n").refinement
    assert one is not None
    windows = "# Read all lines\n\n## SCOPE\n- FORM: light\n\n## DONE_MEANS\n- One\n\n## REFINEMENT\nIt is\nslow.\n"
    source = Source(".GOV/task_packets/WP-1-Parser-v1.md", windows.replace("\n", "\r\n"))
    assert contract(Packet(source)).refinement == one
    assert light(rest="\n## REFINEMENT\nIt is slow.\n").refinement != one


def test_every_byte_of_the_refinement_of_a_light_packet_counts() -> None:
    text = b"# Read\n\n## SCOPE\n- FORM: light\n\n## DONE_MEANS\n- One\n\n## REFINEMENT\nIt is "
    path = ".GOV/task_packets/WP-1-Parser-v1.md"
    pinned = [contract(Packet(Source.from_bytes(path, text + byte))).refinement for byte in (b"\xff", b"\xfe")]
    assert None not in pinned
    assert pinned[0] != pinned[1]


def test_a_light_packet_has_one_refinement() -> None:
    twice = "# Read\n\n## SCOPE\n- FORM: light\n\n## REFINEMENT\nOne.\n\n## REFINEMENT\nTwo.\n"
    assert fault(Packet(Source("p.md", twice))) == "section REFINEMENT appears twice"


# --- scope ---


def test_a_quoted_name_of_the_stub_is_an_entry_and_its_path_is_not_said_twice() -> None:
    scope = "- IN_SCOPE_PATHS:\n  - justfile\n  - src/\n- SCOPE_OF_STUB:\n  - `justfile`\n  - the reader\n  - `src/`"
    assert contract(packet(scope)).scope == ("`justfile`", "src/", "the reader")
    loose = "- IN_SCOPE_PATHS:\n  - lib\n- SCOPE_OF_STUB:\n  - `lib` and more"
    assert contract(packet(loose)).scope == ("`lib` and more", "lib")
    other = "- IN_SCOPE_PATHS:\n  - src/a.py\n- SCOPE_OF_STUB:\n  - `src/a.py` (all)"
    assert contract(packet(other)).scope == ("`src/a.py` (all)", "src/a.py")
