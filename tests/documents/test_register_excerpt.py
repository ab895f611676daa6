"""The excerpt of a register gives the very edits that the whole register gives: of generated ones, and of real ones.

Generated registers are made of the lines that people and commands write, in any order, with what tears tables apart and
what hides lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.real.real_files import corpus
from workpacket.documents import register_table
from workpacket.documents.register_table import Excerpt, board_excerpt, registry_excerpt
from workpacket.documents.registry import TraceabilityRegistry
from workpacket.documents.task_board import TaskBoard
from workpacket.lifecycle.projections import InForce, Placement, board_edits, registry_edits
from workpacket.model.lanes import LANES
from workpacket.problem import Edit, WorkpacketError
from workpacket.text.source import Source, apply_edits

NAMES = ("WP-1-A-v1", "WP-1-A-v10", "WP-1-Ab-v1", "WP-2-Long-Name-v3", "WP-1-A")
BASES = ("WP-1-A", "WP-1-Ab", "WP-2-Long-Name", "WP-9-New")
TOKENS = ("STUB", "READY_FOR_DEV", "IN_PROGRESS", "VALIDATED", "ACTIVE", "NONSENSE")
HEADINGS = ("Ready for Dev", "In Progress", "Stub Backlog (Not Activated)", "Done", "Blocked", "Owner's notes")
OTHER_LINES = (
    "", "", "  ", "---", "words of the owner", "## Words", "### Ready for Dev", "##In Progress", "-->", "```",
    "<!-- note", "- a remark about WP-1-A-v1", "  - [WP-1-A-v1] - [STUB]", "* [WP-1-A-v1] - READY_FOR_DEV",
    "| WP-1-A | x |", "- **[WP-1-A-v1]** - [STUB](a link)", "- **[WP-1-A-]** - [STUB]", "- **[WP-]** - [STUB]",
    "> quoted", "\u2028",
)  # fmt: skip


def _runs(line: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """Many of one kind in a row are what is left out, so they come often."""
    return st.one_of(st.lists(line, min_size=4, max_size=12), st.lists(line, max_size=1))


_entry = st.builds(
    "- **[{}]** - [{}]{}".format, st.sampled_from(NAMES), st.sampled_from(TOKENS), st.sampled_from(["", " - why", "x"])
)
_heading = st.sampled_from(HEADINGS).map("## {}".format).map(lambda line: [line])
_other = st.sampled_from(OTHER_LINES).map(lambda line: [line])
_row = st.builds(
    "| {} | .GOV/task_packets/{}.md | {}: {} | {} |".format,
    st.sampled_from([*BASES, "`WP-1-A`", "note"]), st.sampled_from(NAMES), st.sampled_from(HEADINGS),
    st.sampled_from(NAMES), st.sampled_from(["active=WP-1-A-v1", "stub", "", "words; active=WP-2-Long-Name-v3"]),
)  # fmt: skip
_odd_row = st.sampled_from(
    ("|", "||", "| WP-1-A", "| a | Base WP ID | Active Packet |", "|---|---|", "| x \\| WP-1-A |")
)
_header = st.sampled_from((
    ["| Base WP ID | Active Packet | Task Board | Notes |", "|---|---|---|---|"],
    ["| Base WP ID | Active Packet | Task Board | Notes |", "|---|---|---|---|"],
    ["| Base WP ID | Active Packet | Task Board | Notes |"], ["| Other | Table |", "|---|---|"], ["|---|---|---|---|"],
))  # fmt: skip
_ends = st.sampled_from(["\n", "\n", "\n", "\n", "\r\n"])


def _texts(*kinds: st.SearchStrategy[list[str]]) -> st.SearchStrategy[str]:
    parts = st.lists(st.one_of(*kinds), max_size=14).map(lambda parts: [line for part in parts for line in part])
    return st.builds(lambda lines, end, last: end.join([*lines, ""])[: -len(end) if last else None], parts, _ends,
                     st.booleans())  # fmt: skip


BOARDS = _texts(_heading, _heading, _runs(_entry), _runs(_entry), _other)
REGISTRIES = _texts(_header, _header, _runs(_row), _runs(_row), _runs(_odd_row), _other)
PLACEMENTS = st.lists(
    st.builds(Placement, st.sampled_from(NAMES), st.sampled_from(LANES), st.sampled_from([None, "", "because"])),
    max_size=3,
    unique_by=lambda placement: placement.id,
)
IN_FORCE = st.lists(
    st.builds(InForce, st.sampled_from(BASES), st.sampled_from(NAMES), st.just("p.md"), st.sampled_from(LANES),
              st.sampled_from([(), ("supersedes: WP-1-A-v1",)])),
    max_size=3,
    unique_by=lambda row: row.base,
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _of_any_size() -> Iterable[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(register_table, "_MUCH", 0)
        yield


def _result(source: Source, edits: Callable[[], list[Edit]]) -> str:
    try:
        return apply_edits(source, edits()).text
    except WorkpacketError as error:
        return f"{error.code}: {error}"


def _board_alike(source: Source, placements: list[Placement]) -> Excerpt:
    excerpt = board_excerpt(source, [placement.id for placement in placements])
    whole = _result(source, lambda: board_edits(TaskBoard(source), placements))
    short = _result(source, lambda: excerpt.whole_edits(board_edits(TaskBoard(excerpt.source), placements)))
    assert short == whole
    return excerpt


def _registry_alike(source: Source, rows: list[InForce]) -> Excerpt:
    excerpt = registry_excerpt(source, [row.base for row in rows])
    whole = _result(source, lambda: registry_edits(TraceabilityRegistry(source), rows))
    short = _result(source, lambda: excerpt.whole_edits(registry_edits(TraceabilityRegistry(excerpt.source), rows)))
    assert short == whole
    return excerpt


@given(BOARDS, PLACEMENTS)
@settings(max_examples=200, deadline=None)
def test_an_excerpt_of_any_board_gives_the_edits_of_the_whole(text: str, placements: list[Placement]) -> None:
    _board_alike(Source("BOARD.md", text), placements)


@given(REGISTRIES, IN_FORCE)
@settings(max_examples=200, deadline=None)
def test_an_excerpt_of_any_registry_gives_the_edits_of_the_whole(text: str, rows: list[InForce]) -> None:
    _registry_alike(Source("REGISTRY.md", text), rows)


def _of_the_corpus(name: str) -> Source:
    return Source.from_bytes(name, (corpus() / "handshake" / name).read_bytes())


def test_an_excerpt_of_a_real_board_gives_the_edits_of_the_whole() -> None:
    source = _of_the_corpus("TASK_BOARD.md")
    names = sorted({entry.wp_id.value for entry in TaskBoard(source).entries})
    for number, name in enumerate(names[:: max(len(names) // 25, 1)]):
        _board_alike(source, [Placement(name, LANES[number % len(LANES)])])


def test_an_excerpt_of_a_real_registry_gives_the_edits_of_the_whole() -> None:
    source = _of_the_corpus("WP_TRACEABILITY_REGISTRY.md")
    bases = sorted({row.base_id.base for row in TraceabilityRegistry(source).rows if row.base_id is not None})
    for number, base in enumerate(bases[:: max(len(bases) // 25, 1)]):
        _registry_alike(source, [InForce(base, f"{base}-v9", "p.md", LANES[number % len(LANES)])])


def test_of_a_long_board_only_the_ends_of_each_run_and_what_was_named_is_read() -> None:
    entries = [f"- **[WP-1-P{number}-v1]** - [READY_FOR_DEV]" for number in range(500)]
    text = "\n".join(["# Board", "", "## Ready for Dev", *entries, "", "## In Progress", ""])
    progress = next(lane for lane in LANES if lane.token == "IN_PROGRESS")
    excerpt = _board_alike(Source("BOARD.md", text), [Placement("WP-1-P77-v1", progress)])
    kept = [line for line in excerpt.source.text.split("\n") if line.startswith("- ")]
    assert kept == [entries[0], entries[77], entries[499]]


def test_a_base_that_has_two_rows_is_found_twice_in_an_excerpt() -> None:
    rows = [f"| WP-1-P{number} | p{number}.md | Ready for Dev: WP-1-P{number}-v1 | |" for number in range(500)]
    rows.insert(300, "| WP-1-P7 | other.md | Done: WP-1-P7-v1 | kept |")
    text = "\n".join(["| Base WP ID | Active Packet | Task Board | Notes |", "|---|---|---|---|", *rows, ""])
    done = next(lane for lane in LANES if lane.token == "VALIDATED")
    source = Source("REGISTRY.md", text)
    excerpt = _registry_alike(source, [InForce("WP-1-P7", "WP-1-P7-v1", "p.md", done)])
    assert excerpt.source.text.count("| WP-1-P7 |") == 2
    assert excerpt.source.line_count < 20


@pytest.mark.parametrize("text", ["~~~\n", "<!-- \n", "```\n"])
def test_a_register_that_may_hide_lines_is_read_whole(text: str) -> None:
    entries = "".join(f"- **[WP-1-P{number}-v1]** - [STUB]\n" for number in range(50))
    source = Source("BOARD.md", f"## Stub Backlog\n{entries}{text}")
    assert board_excerpt(source, ["WP-1-P3-v1"]).source is source
