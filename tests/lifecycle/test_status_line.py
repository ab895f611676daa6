"""A command that moves a packet writes its status, and leaves what stands below it to its author."""

from __future__ import annotations

import pytest

from rules.canonical import PACKET
from rules.planted_repairs import lines_of
from workpacket.documents.packet import Packet
from workpacket.lifecycle.projections import lane_named, status_edits
from workpacket.model.lanes import BUILT_IN
from workpacket.text.source import Source, apply_edits

LINE = "- **Status:** Ready for Dev"
BELOW = (
    "  - waits for the owner",
    "  (agreed on Monday)",
    "  ```\n  code\n  ```",
    "  <!-- kept -->",
    "  1. first\n  2. second",
    "\n  A paragraph.",
)


@pytest.mark.parametrize("below", BELOW)
def test_what_stands_below_a_status_outlives_a_move(below: str) -> None:
    source = Source(".GOV/task_packets/WP-1-Parser-v1.md", PACKET.replace(LINE, f"{LINE}\n{below}"))
    packet = Packet(source)
    after = apply_edits(source, status_edits(packet, lane_named("IN_PROGRESS", BUILT_IN)))
    before, now = lines_of(source.text), lines_of(after.text)
    assert [*(before - now)] == [LINE]
    assert [*(now - before)] == ["- **Status:** In Progress"]


def test_a_status_that_stands_below_its_name_is_not_guessed_at() -> None:
    source = Source(".GOV/task_packets/WP-1-Parser-v1.md", PACKET.replace(LINE, "- **Status:**\n  - Ready for Dev"))
    assert status_edits(Packet(source), lane_named("IN_PROGRESS", BUILT_IN)) == []
