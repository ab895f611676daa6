"""Rules across files, on repositories made in memory: in agreement none complains, at any size; alone each does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workpacket.documents.document import read_document
from workpacket.documents.places import kind_of
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import LANES, SECTIONS
from workpacket.problem import Problem
from workpacket.rules.repository import IdSuggestions, RepositorySummaries
from workpacket.rules.rule import across
from workpacket.text.source import Source

BOARD = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"


def repository_of(files: Mapping[str, str]) -> RepositorySummaries:
    summaries = []
    for path, text in files.items():
        kind = kind_of(path) or ""
        # As the cache gives them back.
        summary = json.loads(json.dumps(read_document(kind, Source(path, text)).summary()))
        summaries.append((kind, path, summary))
    return RepositorySummaries(summaries)


def findings_of(files: Mapping[str, str]) -> list[Problem]:
    return list(across(repository_of(files)))


def agreed(lanes: Sequence[str]) -> dict[str, str]:
    """A repository in which files, board and registry say the same: one packet for each of these lanes."""
    files: dict[str, str] = {}
    entries: dict[str, list[str]] = {}
    rows = ["| Base WP ID | Active Packet | Task Board | Notes |", "|---|---|---|---|"]
    before = ""
    for number, token in enumerate(lanes):
        base = f"WP-1-Work-{number}"
        lane = next(lane for lane in LANES if lane.token == token)
        folder = ".GOV/task_packets/stubs" if token == "STUB" else ".GOV/task_packets"
        path = f"{folder}/{base}-v1.md"
        status = f"- STUB_STATUS: {lane.title}" if token == "STUB" else f"- **Status:** {lane.title}"
        section = "STUB_METADATA" if token == "STUB" else "METADATA"
        depends = f"## DEPENDENCIES / BLOCKERS\n- {before}\n" if before and token == "STUB" else ""
        report = "## VALIDATION_REPORTS\nVerdict: PASS, by the tests\n" if token == "VALIDATED" else ""
        files[path] = f"## {section}\n- WP_ID: {base}-v1\n{status}\n\n{depends}{report}"
        entries.setdefault(lane.section, []).append(f"- **[{base}-v1]** - [{token}]")
        heading = next(section.heading for section in SECTIONS if section.key == lane.section)
        if token != "SUPERSEDED":
            rows.append(f"| {base} | {path} | {heading}: {base}-v1 | active={base}-v1 |")
        before = base
    board = [line for section in SECTIONS for line in (f"## {section.heading}", *entries.get(section.key, []), "")]
    return files | {BOARD: "\n".join(board), REGISTRY: "\n".join(rows)}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([lane.token for lane in LANES]), max_size=25))
def test_where_everything_agrees_no_rule_complains(lanes: list[str]) -> None:
    assert findings_of(agreed(lanes)) == []


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([lane.token for lane in LANES if lane.token != "SUPERSEDED"]), min_size=1, max_size=12),
    st.data(),
)
def test_a_lost_file_is_said_once_for_each_line_that_names_it(lanes: list[str], data: st.DataObject) -> None:
    files = agreed(lanes)
    lost = data.draw(st.sampled_from([path for path in files if "task_packets" in path]))
    del files[lost]
    found = sorted((finding.code, finding.path) for finding in findings_of(files))
    lane = next(one for one in LANES if one.token == lanes[int(lost.rpartition("-Work-")[2].partition("-")[0])])
    without = "board_archived_without_file" if lane.archived else "board_entry_without_file"
    assert found == [(without, BOARD), ("registry_active_missing", REGISTRY)]


def test_packets_are_compared_without_parsing_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    repository = repository_of(agreed([lane.token for lane in LANES] * 20))
    parsed: list[str] = []
    monkeypatch.setattr(WorkPacketId, "try_parse", parsed.append)
    assert list(across(repository)) == []
    assert parsed == []


def circle_of(length: int) -> list[Problem]:
    files = {}
    for number in range(length):
        name, after = f"WP-1-C{number:03}-v1", f"WP-1-C{(number + 1) % length:03}-v1"
        path = f".GOV/task_packets/stubs/{name}.md"
        files[path] = f"## STUB_METADATA\n- WP_ID: {name}\n\n## DEPENDENCIES / BLOCKERS\n- {after}\n"
    return [finding for finding in findings_of(files) if finding.code == "dependency_cycle"]


def test_a_circle_is_named_whole_and_a_long_one_in_short() -> None:
    (short,) = circle_of(3)
    assert short.message.endswith("WP-1-C000-v1 -> WP-1-C001-v1 -> WP-1-C002-v1 -> WP-1-C000-v1")
    (long,) = circle_of(300)
    assert "WP-1-C005-v1 -> (293 more) -> WP-1-C299-v1 -> WP-1-C000-v1" in long.message


def test_every_circle_is_found_once() -> None:
    names = {letter: f"WP-1-{letter}-v1" for letter in "ABCD"}
    depends = {"A": "B C", "B": "A", "C": "D", "D": "A C"}
    files = {
        f".GOV/task_packets/stubs/{names[letter]}.md": (
            f"## STUB_METADATA\n- WP_ID: {names[letter]}\n\n## DEPENDENCIES / BLOCKERS\n"
            + "".join(f"- {names[other]}\n" for other in others.split())
        )
        for letter, others in depends.items()
    }
    circles = [finding.message for finding in findings_of(files) if finding.code == "dependency_cycle"]
    assert circles == [
        "circular dependency: WP-1-A-v1 -> WP-1-B-v1 -> WP-1-A-v1",
        "circular dependency: WP-1-A-v1 -> WP-1-C-v1 -> WP-1-D-v1 -> WP-1-A-v1",
        "circular dependency: WP-1-C-v1 -> WP-1-D-v1 -> WP-1-C-v1",
    ]


KNOWN = ["WP-1-Parser-v1", "WP-1-Parser-v2", "WP-1-Lexer", "WP-2-Log-Format-v1", "WP-KERNEL-Clock"]
MEANT = [
    ("WP-1-Prser-v2", "WP-1-Parser-v2"),
    ("wp-1-parser-v1", "WP-1-Parser-v1"),
    ("WP-1-Parser-v3", "WP-1-Parser-v2"),
    ("WP-1-Lexer-v1", "WP-1-Lexer"),
    ("WP-2-Log-Fromat-v1", "WP-2-Log-Format-v1"),
    ("WP-9-Nothing-Like-It", ""),
    ("", ""),
]


@pytest.mark.parametrize(("written", "meant"), MEANT)
def test_an_unknown_id_is_answered_with_the_one_that_was_meant(written: str, meant: str) -> None:
    assert IdSuggestions(KNOWN).hint(written) == (f"did you mean {meant}?" if meant else "")


def test_after_a_hundred_answers_there_are_no_more() -> None:
    suggestions = IdSuggestions(KNOWN)
    hints = [suggestions.hint("WP-1-Prser-v2") for _ in range(101)]
    assert hints == ["did you mean WP-1-Parser-v2?"] * 100 + [""]
