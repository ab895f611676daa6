"""Which lines are entries of a board, and what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.task_board import read_any_form, read_entry
from workpacket.model.ids import WorkPacketId

# The line, the id, the token, what stands behind it.
ENTRIES = [
    ("- **[WP-1-A-v1]** - [STUB]", "WP-1-A-v1", "STUB", ""),
    ("- **[WP-1-A-v1]** - [BLOCKED] - waits for WP-1-B", "WP-1-A-v1", "BLOCKED", "waits for WP-1-B"),
    ("* [WP-1-A-v1] \u2014 READY_FOR_DEV", "WP-1-A-v1", "READY_FOR_DEV", ""),
    ("+ [WP-1-A-v1]: Done (see report)", "WP-1-A-v1", "Done", "(see report)"),
    ("\u2022 WP-1-A-v1 \u2192 In-Progress", "WP-1-A-v1", "In-Progress", ""),
    ("12. `WP-1-A-v1` (ready for dev)", "WP-1-A-v1", "ready for dev", ""),
    ("- [ ] **WP-1-A-v1**: [Ready for Dev]", "WP-1-A-v1", "Ready for Dev", ""),
    ("- [x] WP-1-A-v1 [VALIDATED]", "WP-1-A-v1", "VALIDATED", ""),
    ("- **[WP-1-A-v1](a.md)** - [STUB]", "WP-1-A-v1", "STUB", ""),
    ("- **WP-1-A-v1** - [STUB](a.md)", "WP-1-A-v1", "STUB", ""),
    ("- **[WP-1-A-v1] - [STUB]**", "WP-1-A-v1", "STUB", ""),
    ("- **WP-1-A-v1:** STUB", "WP-1-A-v1", "STUB", ""),
    ("- ~~**[WP-1-A-v1]**~~ - **[SUPERSEDED]** by v2", "WP-1-A-v1", "SUPERSEDED", "by v2"),
    ("- \\[WP-1-A-v1\\] - \\[STUB\\]", "WP-1-A-v1", "STUB", ""),
    ("-**[ WP-1-A-v1 ]** [ STUB ]  ", "WP-1-A-v1", "STUB", ""),
    ("  - **[WP-1-A-v1]** - [STUB]", "WP-1-A-v1", "STUB", ""),
    ("- **[WP-1-A-v1]** - []", "WP-1-A-v1", "", ""),
    ("- **[WP-1-A-v1]**", "WP-1-A-v1", None, ""),
    ("- WP-1-A-v1: see the report", "WP-1-A-v1", None, "see the report"),
    ("- wp-1-a: stub", "wp-1-a", "stub", ""),
    ("- **[TASK-12]** - [STUB]", "TASK-12", "STUB", ""),
]
NO_ENTRIES = [
    "",
    "WP-1-A-v1 - [STUB]",
    "- WP-1-A-v1 waits for the grammar",
    "- WPs are tracked here: all of them",
    "- WP-level rules: none",
    "- `- **[WP_ID]** - [STUB]`",
    "- `WP-1-A-v1 - [STUB]` is how it is written",
    "- **[WP_ID]** - [TOKEN]",
    "- **[WP-{phase}-{name}]** - [STUB]",
    "- **[WP-...]** - [STUB]",
    "- <WP_ID> - STUB",
    "- [rules](docs/rules.md) - [STUB]",
    "- **[WP-1-A-v1]** [STUB]s are many",
    "- **Note** - [see below]",
    "- [ ] write the report",
    "  - WP-1-B-v1: a note on the entry above",
    "    - WP-1-B-v1 - STUB",
    "| **[WP-1-A-v1]** | [STUB] |",
    "> - **[WP-1-A-v1]** - [STUB]",
]


@pytest.mark.parametrize(("line", "name", "token", "rest"), ENTRIES)
def test_an_entry_is_read_in_every_form(line: str, name: str, token: str | None, rest: str) -> None:
    entry = read_entry(line)
    assert entry is not None
    assert line[slice(*entry.id)] == name
    assert (line[slice(*entry.token)] if entry.token is not None else None) == token
    assert line[slice(*entry.rest)] == rest
    assert entry.canonical == line.startswith(("- **[WP-1-A-v1]** - [STUB]", "- **[WP-1-A-v1]** - [BLOCKED]"))


@pytest.mark.parametrize("line", NO_ENTRIES)
def test_prose_and_examples_are_no_entries(line: str) -> None:
    assert read_entry(line) is None


IDS = st.from_regex(r"WP-[0-9]{1,2}-[A-Za-z0-9]{1,8}(?:[.-][A-Za-z0-9]{1,5}){0,3}", fullmatch=True).filter(
    lambda name: WorkPacketId.try_parse(name) is not None
)
TOKENS = st.from_regex(r"[A-Z]{2,9}(?:_[A-Z]{2,9}){0,2}", fullmatch=True)


@given(IDS, TOKENS, st.sampled_from(["", " - because", " (why)", "  ", " [more]", " - "]))
def test_the_short_way_and_the_long_way_read_the_same(name: str, token: str, rest: str) -> None:
    line = f"- **[{name}]** - [{token}]{rest}"
    short, long = read_entry(line), read_any_form(line)
    assert short is not None
    assert long is not None
    assert short.canonical
    assert (short.head, short.id, short.token, short.rest) == (long.head, long.id, long.token, long.rest)


@given(st.text(alphabet="- *[]()`~WP1av_:|\\ \t.\u2014\u2022<>", max_size=60))
def test_spans_lie_in_the_line_and_in_order(line: str) -> None:
    entry = read_entry(line)
    if entry is not None:
        token = entry.token or (entry.id[1], entry.id[1])
        offsets = [*entry.id, *token, entry.head[1], *entry.rest, len(line)]
        assert offsets == sorted(offsets)
