"""Fixes are made whole or not at all, and only if nothing else changes."""

from __future__ import annotations

from cli.commands import STUB, STUB_PATH
from workpacket.cli.fmt import repaired
from workpacket.problem import Edit, Fix, Location, Problem
from workpacket.report.catalogue import catalogue
from workpacket.rules.repair import only_touched_changed, repair
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.text.source import Source

REASONS = catalogue()
SOURCE = Source(STUB_PATH, STUB)


def finding(*edits: Edit, safe: bool = True) -> Problem:
    lines = sorted(SOURCE.line_and_column(edit.start)[0] for edit in edits)
    return Problem("some_code", "a message", Location(STUB_PATH, lines[0], 1, end_line=lines[-1]), fix=Fix(edits, safe))


def edit(old: str, new: str) -> Edit:
    start = STUB.index(old)
    return Edit(start, start + len(old), new)


def test_safe_fixes_are_made_and_unsafe_ones_are_not() -> None:
    findings = [finding(edit("2026-03-01", "2026-03-02")), finding(edit("item 3", "item 4"), safe=False)]
    after = repair(SOURCE, "stub", findings, unsafe=False).source
    assert "2026-03-02" in after.text
    assert "item 3" in after.text
    assert "item 4" in repair(SOURCE, "stub", findings, unsafe=True).source.text


def test_a_fix_that_changes_more_than_it_touches_is_left_out_and_the_others_are_made() -> None:
    # Without the blank this is no heading any more, and the fields below it belong to nobody.
    harmful = finding(edit("## INTENT (DRAFT)", "##INTENT (DRAFT)"))
    good = finding(edit("The reader.", "The whole reader."))
    after = repair(SOURCE, "stub", [harmful, good], unsafe=False).source
    assert after.text == STUB.replace("The reader.", "The whole reader.")


def test_of_two_fixes_that_overlap_the_first_is_made() -> None:
    first = finding(edit("Read packets", "Take packets"))
    second = finding(edit("packets without", "papers without"))
    assert repair(SOURCE, "stub", [first, second], unsafe=False).source.text == STUB.replace(
        "Read packets", "Take packets"
    )


def test_nothing_to_fix_gives_back_the_same_source() -> None:
    assert repair(SOURCE, "stub", [Problem("x", "m", Location(STUB_PATH, 1, 1))], unsafe=True).source is SOURCE


def test_a_document_that_can_no_longer_be_read_was_changed_too_much() -> None:
    broken = Source("policy.toml", "[check")
    whole = Source("policy.toml", "[check]\n")
    assert not only_touched_changed(whole, broken, "policy", [Edit(6, 7, "")])


def test_a_byte_order_mark_behind_another_is_removed_in_a_round_of_its_own() -> None:
    text = STUB.replace("## INTENT (DRAFT)", "## Intent")
    data = b"\xef\xbb\xbf" * 3 + text.encode()
    found = load_findings(STUB_PATH, examine_bytes(STUB_PATH, "stub", data).findings)
    after, made = repaired(Source.from_bytes(STUB_PATH, data), "stub", found, frozenset(REASONS), unsafe=False)
    assert after.encode() == STUB.replace("INTENT (DRAFT)", "INTENT").encode()
    assert made == {"byte_order_mark": 3, "old_heading": 1}
