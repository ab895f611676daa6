"""Documents as people leave them: each is a canonical one with something changed, and all that must be said of it.

Both directions count. A defect that is not named hides; a finding about something harmless teaches people to look away.
"""

from __future__ import annotations

from functools import lru_cache

import pytest

from rules.canonical import CANONICAL
from workpacket.cli.fmt import repaired
from workpacket.problem import Problem
from workpacket.report.catalogue import catalogue
from workpacket.rules.settings import CheckSettings, Profile, grade
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.text.source import Source

REASONS = catalogue()


@lru_cache(maxsize=4)
def findings_in(kind: str, data: bytes, profile: Profile = "adopt") -> list[Problem]:
    path = CANONICAL[kind][0]
    found = load_findings(path, examine_bytes(path, kind, data).findings)
    return grade(found, REASONS, CheckSettings(profile=profile))[0]


def said_of(kind: str, data: bytes, profile: Profile = "adopt") -> list[str]:
    return [f"{found.line}:{found.column} {found.severity} {found.code}" for found in findings_in(kind, data, profile)]


def changed(kind: str, *changes: tuple[str, str]) -> bytes:
    text = CANONICAL[kind][1]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text.encode("utf-8", "surrogateescape")


# What was changed: kind, changes, and everything that `check` says under the profile `adopt`.
STUBS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "nothing": ([], []),
    "line ends of Windows": ([("\n", "\r\n")], ["1:35 warning line_ends"]),
    "line ends of an old Macintosh": ([("\n", "\r")], ["1:35 warning line_ends"]),
    "blank lines of Windows at the end": (
        [("\n", "\r\n"), ("Ready for Dev.\r\n", "Ready for Dev.\r\n\r\n")],
        ["1:35 warning line_ends", "40:1 warning blank_lines_at_end"],
    ),
    "id in backticks": ([("- WP_ID: WP-1-Parser-v1", "- WP_ID: `WP-1-Parser-v1`")], []),
    "id with a letter that only looks Latin": (
        [("- WP_ID: WP-1-Parser-v1", "- WP_ID: WP-1-P\u0430rser-v1")],
        ["4:10 error id_malformed", "4:10 info rule_not_run"],
    ),
    "id with an underscore": (
        [("- WP_ID: WP-1-Parser-v1", "- WP_ID: WP-1-Parser_Two-v1")],
        ["4:10 error id_malformed", "4:10 info rule_not_run"],
    ),
    "id with an invisible character": (
        [("- WP_ID: WP-1-Parser-v1", "- WP_ID: WP-1-Parser-v1\u200b")],
        ["4:10 error id_malformed", "4:10 info rule_not_run"],
    ),
    "two ids": (
        [("- WP_ID: WP-1-Parser-v1", "- WP_ID: WP-1-Parser-v1, WP-1-B")],
        ["4:10 error id_malformed", "4:10 info rule_not_run"],
    ),
    "id with a slug left to fill in": (
        [("- WP_ID: WP-1-Parser-v1", "- WP_ID: WP-1-<slug>-v1")],
        ["4:10 error id_malformed", "4:10 info rule_not_run"],
    ),
    "id that leads out of the folder": (
        [("- WP_ID: WP-1-Parser-v1", "- WP_ID: WP-1-../../etc/passwd")],
        ["4:10 error id_malformed", "4:10 info rule_not_run"],
    ),
    "id of another file with the word TODO in it": (
        [("- WP_ID: WP-1-Parser-v1", "- WP_ID: WP-1-TODO-Parser-v1"), ("- BASE_WP_ID: WP-1-Parser\n", "")],
        ["1:3 error title_mismatch", "3:4 warning stub_content_missing", "4:10 error id_file_mismatch"],
    ),
    "hint in a comment": (
        [("BASE_WP_ID: WP-1-Parser\n", "BASE_WP_ID: WP-1-Parser <!-- the stable one -->\n")],
        ["5:26 error hint_text_left"],
    ),
    "title still to be filled in": (
        [("# Work Packet Stub: WP-1-Parser-v1", "# Work Packet Stub: <WP_ID>")],
        ["1:21 warning placeholder_left"],
    ),
    "criterion still to be filled in": (
        [("- Every byte is given back.", "- <criterion>")],
        ["24:3 warning placeholder_left"],
    ),
    "generic type as an item": ([("- Every byte is given back.", "- Vec<T> is given back.")], []),
    "status without the first word": ([("STUB (NOT READY", "(NOT READY")], ["7:16 warning stub_status_not_canonical"]),
    "status that nobody knows": (
        [("STUB (NOT READY FOR DEV)", "Draft, waiting")],
        ["7:16 warning stub_status_not_canonical"],
    ),
    "status of a packet": ([("STUB (NOT READY FOR DEV)", "READY FOR DEV")], ["7:16 error stub_status_no_stub"]),
    "boxes without the blank inside": ([("- [ ] ", "- [] ")], ["33:3 warning checklist_numbered"]),
    "boxes drawn": ([("- [ ] ", "- \u2610 ")], ["33:3 warning checklist_numbered"]),
    "no coverage of the roadmap": ([("- SPEC_ANCHOR", "- ROADMAP_ADD_COVERAGE: N/A\n- SPEC_ANCHOR")], []),
    "coverage in backticks": (
        [("- SPEC_ANCHOR", "- ROADMAP_ADD_COVERAGE: `SPEC=v1.2; PHASE=7; LINES=5`\n- SPEC_ANCHOR")],
        [],
    ),
    "coverage that runs backwards": (
        [("- SPEC_ANCHOR", "- ROADMAP_ADD_COVERAGE: SPEC=v1.2; PHASE=7; LINES=9-5\n- SPEC_ANCHOR")],
        ["10:25 error roadmap_coverage_malformed"],
    ),
    "day of no calendar": ([("2026-03-01T00:00:00Z", "2026-02-30")], ["6:15 error date_malformed"]),
    "field left empty before a list": (
        [("- CREATED_AT: 2026-03-01T00:00:00Z", "- CREATED_AT:")],
        ["6:3 error field_empty"],
    ),
    "nested with tabs": ([("\n  - ", "\n\t- ")], []),
    "five items nested by four": (
        [("  - The reader.", "  - a\n    - b\n      - c\n        - d")],
        ["21:9 warning nested_too_deep"],
    ),
    "heading in words": ([("## INTENT (DRAFT)", "## Intent (draft)")], ["13:4 warning old_heading"]),
    "heading with a target": ([("## INTENT (DRAFT)", "## \U0001f3af INTENT (DRAFT)")], ["13:4 warning old_heading"]),
    "remark behind the target": (
        [("SPEC_CURRENT.md\n", "SPEC_CURRENT.md (currently Spec_v9.md)\n")],
        ["8:49 warning spec_target_trailing_text"],
    ),
    "headings too deep": (
        [("## ", "### ")],
        [f"{line}:5 warning heading_level" for line in (3, 13, 17, 23, 26, 29, 32)],
    ),
    "headings too high": (
        [("## ", "# ")],
        [f"{line}:3 warning heading_level" for line in (3, 13, 17, 23, 26, 29, 32)],
    ),
    "section inside of another": ([("## INTENT", "#### INTENT")], ["13:6 warning heading_level"]),
    "headings too deep, among others of that depth": (
        [("## ", "### "), ("### RISKS", "### Notes\n- One.\n\n### RISKS")],
        [f"{line}:5 warning heading_level" for line in (3, 13, 17, 23, 26, 32, 35)],
    ),
    "Hebrew with its marks": ([("Hand edits", "\u05e9\u05dc\u05d5\u05dd\u200f")], []),
    "text that is turned around": ([("Hand edits", "Hand \u202eedits")], ["15:13 error bidi_control"]),
    "paths of nobody and of somebody": (
        [("Hand edits", "/home/user/x /Users/Shared/y file:///home/ada/z")],
        ["15:44 warning home_path"],
    ),
    "time in backticks": ([("2026-03-01T00:00:00Z", "`2026-03-01T00:00:00Z`")], []),
    "base still to be filled in": (
        [("BASE_WP_ID: WP-1-Parser\n", "BASE_WP_ID: <BASE_WP_ID>\n")],
        ["5:15 warning placeholder_left"],
    ),
}
PACKETS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "nothing": ([], []),
    "status quoted in a report": (
        [("## EVIDENCE_MAPPING", "## VALIDATION_REPORTS\nStatus: FAIL\n- **Status:** Done\nVerdict: PASS \u2705\n")],
        ["54:1 warning verdict_contradicts", "54:1 info report_incomplete"],
    ),
    "status glued to its key": ([("**Status:** Ready", "**Status:**Ready")], []),
    "status with a mark": ([("Ready for Dev", "\u2705 Done")], ["12:15 warning packet_status_old_form"]),
    "status in no lane": ([("Ready for Dev", "Almost there")], ["12:15 error packet_status_unknown"]),
    "status to be filled in": ([("Ready for Dev", "<status>")], ["12:15 warning placeholder_left"]),
    "tier as a heading": ([("- RISK_TIER: LOW\n", ""), ("## AUTHORITY", "## RISK_TIER: HIGH\n\n## AUTHORITY")], []),
    "tier left to the author": (
        [("RISK_TIER: LOW", "RISK_TIER: LOW | MEDIUM | HIGH")],
        ["13:14 warning placeholder_left"],
    ),
    "mode left to the author": ([("AGENTIC_MODE: NO", "AGENTIC_MODE: YES | NO")], ["10:17 warning placeholder_left"]),
    "start of an orchestration that was none": (
        [("- AGENTIC_MODE: NO", "- AGENTIC_MODE: NO\n- ORCHESTRATION_STARTED_AT_UTC: N/A")],
        [],
    ),
    "signature of a day of no calendar": (
        [("ada010320261200", "ada300220261200")],
        ["14:19 error signature_malformed"],
    ),
    "signature with a remark in brackets": (
        [("ada010320261200", "ada300220261200 <recorded>")],
        ["14:19 error signature_malformed"],
    ),
    "evidence in words, deep in a list": (
        [("`src/parser.py:12`", "see tests")],
        ["53:5 warning evidence_place_missing"],
    ),
    "evidence in words, as a line of its own": (
        [('- REQUIREMENT: "Every', 'REQUIREMENT: "Every'), ("  - EVIDENCE: `src/parser.py:12`", "EVIDENCE: see tests")],
        ["53:1 warning evidence_place_missing"],
    ),
    "scope whose list stands beside it": (
        [("  - src/parser.py\n- OUT", "- src/parser.py\n- OUT")],
        ["22:3 error field_empty"],
    ),
    "value behind a blank line": ([("- What: Read", "- What:\n\n  Read")], []),
    "plan in prose": ([("```bash\ngit revert X\n```", "Revert the commit.")], []),
    "plan left out": ([("```bash\ngit revert X\n```\n", "")], ["36:5 error field_empty"]),
    "values in bold and in backticks": (
        [
            ("RISK_TIER: LOW", "RISK_TIER: **HIGH**"),
            (": 0123456789", ": `0123456789"),
            ("456789\n- REQ", "456789`\n- REQ"),
        ],
        [],
    ),
    "commit with the hint of the template": (
        [("456789\n- REQUESTOR", "456789 (git merge-base main HEAD)\n- REQUESTOR")],
        ["8:59 warning remark_after_commit"],
    ),
    "commit still to be filled in": (
        [("0123456789012345678901234567890123456789", "<pending>")],
        ["8:19 warning placeholder_left"],
    ),
    "commit cut short": ([("0123456789012345678901234567890123456789", "0123abc")], ["8:19 error field_value"]),
    "more blocks than are read": (
        [("## EVIDENCE_MAPPING", "## EVIDENCE_MAPPING\n" + "- one\n" * 20_000)],
        ["20003:1 error markdown_too_many_blocks"],
    ),
    "evidence with a path of Windows": ([("src/parser.py:12", "src\\parser.py:12")], []),
}
REFINEMENTS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "line number of thousands of digits": (
        [("CONTEXT_END_LINE: 6", "CONTEXT_END_LINE: " + "9" * 5000)],
        ["48:23 error anchor_lines"],
    ),
    "nothing": ([], []),
    "approved, and the signature still pending": (
        [("ada010320261200", "PENDING")],
        ["9:19 error approved_unsigned"],
    ),
    "verdict with marks and a remark": (
        [("CLEARLY_COVERS_VERDICT: PASS", "CLEARLY_COVERS_VERDICT: FAIL, see below")],
        ["36:22 error verdict_contradiction"],
    ),
    "verdict left to the author": (
        [("CLEARLY_COVERS_VERDICT: PASS", "CLEARLY_COVERS_VERDICT: PASS | FAIL")],
        ["30:27 warning placeholder_left"],
    ),
    "list left to fill in": (
        [("### GAPS_IDENTIFIED\n- None.", "### GAPS_IDENTIFIED\n- <fill or NONE>")],
        ["13:3 warning placeholder_left"],
    ),
    "anchor left to fill in": (
        [
            ("CONTEXT_TOKEN: keep every byte", "CONTEXT_TOKEN: <paste>"),
            ("CONTEXT_START_LINE: 4", "CONTEXT_START_LINE:"),
        ],
        ["46:6 error anchor_incomplete", "46:6 info rule_not_run"],
    ),
    "excerpt left to paste": (
        [("A parser   MUST keep every byte\n  ...\n  It MUST name the line of a fault.", "<paste verbatim>")],
        ["46:6 error anchor_incomplete", "46:6 info rule_not_run"],
    ),
    "token that is a comment of the specification": (
        [("CONTEXT_TOKEN: keep every byte", "CONTEXT_TOKEN: <!-- BEGIN -->")],
        ["50:18 info anchor_token_not_quoted"],
    ),
    "token that is a placeholder of the specification": (
        [("CONTEXT_TOKEN: keep every byte", "CONTEXT_TOKEN: <WP_ID>")],
        ["50:18 info anchor_token_not_quoted"],
    ),
    "answer in the form of a placeholder": (
        [("REASON_NO_ENRICHMENT: Chapter 4.2 states it.", "REASON_NO_ENRICHMENT: <not applicable>")],
        [],
    ),
    "no enrichment, and no reason": (
        [("REASON_NO_ENRICHMENT: Chapter 4.2 states it.", "REASON_NO_ENRICHMENT:")],
        ["36:22 error enrichment_reason_missing"],
    ),
}
DIRTY = [
    pytest.param(kind, changes, expected, id=f"{kind} - {name}")
    for kind, table in (("stub", STUBS), ("packet", PACKETS), ("refinement", REFINEMENTS))
    for name, (changes, expected) in table.items()
]


@pytest.mark.parametrize(("kind", "changes", "expected"), DIRTY)
def test_all_that_is_wrong_is_said_and_nothing_else(
    kind: str, changes: list[tuple[str, str]], expected: list[str]
) -> None:
    assert said_of(kind, changed(kind, *changes)) == expected


@pytest.mark.parametrize(("kind", "changes", "expected"), DIRTY)
def test_what_offers_a_repair_is_gone_after_it(kind: str, changes: list[tuple[str, str]], expected: list[str]) -> None:
    data = changed(kind, *changes)
    source = Source.from_bytes(CANONICAL[kind][0], data)
    before = findings_in(kind, data)
    for unsafe in (False, True):
        once = repaired(source, kind, before, frozenset(REASONS), unsafe=unsafe)[0].encode()
        after = before if once == data else findings_in(kind, once)
        assert [found for found in after if found.fix and (found.fix.safe or unsafe)] == [], unsafe
        # Nothing new is said: a repair must not trade one finding for another.
        assert {found.code for found in after} <= {found.code for found in before}, unsafe


def test_a_rule_that_was_not_run_is_named_even_where_its_obstacle_is_switched_off() -> None:
    kind = "refinement"
    data = changed(kind, ("CONTEXT_TOKEN: keep every byte\n", "CONTEXT_TOKEN:\n"), ("START_LINE: 4", "START_LINE: 99"))
    path = CANONICAL[kind][0]
    found = load_findings(path, examine_bytes(path, kind, data).findings)
    graded, _ = grade(found, REASONS, CheckSettings(severities={"anchor_incomplete": "off", "rule_not_run": "off"}))
    assert [(finding.code, finding.message) for finding in graded] == [
        ("rule_not_run", "not checked: anchor_token_not_quoted, anchor_lines, because of anchor_incomplete")
    ]


@pytest.mark.parametrize(
    ("unit", "code"),
    [
        (b"\xe9a", "not_utf8"),
        ("\u202ea\n".encode(), "bidi_control"),
        (b"/home/ada ", "home_path"),
        (b"<<<<<<<\n", "conflict_marker"),
    ],
)
def test_thousands_of_findings_of_a_kind_are_cut_and_that_is_said(unit: bytes, code: str) -> None:
    found = findings_in("packet", unit * 2_000)
    assert sum(finding.code == code for finding in found) == 1_000
    (cut,) = [finding for finding in found if finding.code == "findings_cut"]
    assert code in cut.message


@pytest.mark.parametrize(
    ("kind", "unit", "code"),
    [
        ("packet", b"\x01a", "control_character"),
        ("packet", "Ã©a".encode(), "mojibake"),
        ("refinement", "é\n".encode(), "refinement_not_ascii"),
    ],
)
def test_thousands_of_faults_with_one_cause_are_one_finding_that_counts_them(kind: str, unit: bytes, code: str) -> None:
    (found,) = [finding for finding in findings_in(kind, unit * 2_000) if finding.code == code]
    assert found.line == 1
    assert any(count in found.message for count in ("2000 times", "1999 more"))


def test_mojibake_of_thousands_of_words_is_repaired_whole_and_comes_to_rest() -> None:
    garbled = "Ã© word\n".encode() * 3_000
    path = CANONICAL["packet"][0]
    found = findings_in("packet", garbled)
    once = repaired(Source.from_bytes(path, garbled), "packet", found, frozenset(REASONS), unsafe=True)[0].encode()
    assert once == "é word\n".encode() * 3_000


def test_a_drawn_box_is_replaced_and_not_kept_beside_the_real_one() -> None:
    for drawn in ("[] ", "\u2610 ", "1. ", ""):
        data = changed("stub", ("- [ ] ", drawn if drawn == "1. " else f"- {drawn}"))
        source = Source.from_bytes(CANONICAL["stub"][0], data)
        repair, _ = repaired(source, "stub", findings_in("stub", data), frozenset(REASONS), unsafe=False)
        assert repair.text == CANONICAL["stub"][1]
