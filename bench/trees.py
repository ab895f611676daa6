"""Makes `.GOV` trees of any size. The same seed gives the same bytes.

Sizes follow real repositories: a median of 3.5 KB per file, and 8 KB at the ninetieth percentile. All documents are
valid, like most documents in a repository.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from workpacket.documents.stub import StubText, render_stub
from workpacket.model.ids import WorkPacketId

WORDS = [
    "parser",
    "ledger",
    "board",
    "packet",
    "stub",
    "gate",
    "lane",
    "event",
    "digest",
    "reader",
    "writer",
    "section",
    "field",
    "anchor",
    "window",
    "excerpt",
    "journal",
    "lease",
    "fence",
    "cursor",
    "stream",
    "effect",
    "receipt",
    "policy",
    "signer",
    "review",
    "evidence",
    "branch",
    "merge",
    "orphan",
    "drift",
    "projection",
]


def write_tree(root: Path, packets: int, *, seed: int = 1) -> int:
    """Make a repository with `packets` packets, half of them stubs, board and registry; return the number of files."""
    chance = random.Random(seed)
    rows: list[tuple[WorkPacketId, str]] = []
    (root / ".git").mkdir(parents=True, exist_ok=True)
    stubs = root / ".GOV/task_packets/stubs"
    stubs.mkdir(parents=True, exist_ok=True)
    for number in range(packets):
        wp_id = WorkPacketId.parse(f"WP-1-{_word(chance).capitalize()}-{number}-v1")
        kind = "STUB" if number % 2 else "READY_FOR_DEV"
        rows.append((wp_id, kind))
        text = stub_text(chance, wp_id) if kind == "STUB" else packet_text(chance, wp_id)
        folder = stubs if kind == "STUB" else stubs.parent
        (folder / f"{wp_id}.md").write_text(text, encoding="utf-8")
    shared = root / ".GOV/roles_shared"
    shared.mkdir(parents=True, exist_ok=True)
    (shared / "TASK_BOARD.md").write_text(board_text(rows), encoding="utf-8")
    (shared / "WP_TRACEABILITY_REGISTRY.md").write_text(registry_text(rows), encoding="utf-8")
    return packets + 2


def _word(chance: random.Random) -> str:
    return chance.choice(WORDS)


def _sentence(chance: random.Random) -> str:
    words = [_word(chance) for _ in range(chance.randint(6, 16))]
    return " ".join(words).capitalize() + "."


class _Writer:
    """Generate one document's lists. Some documents are long throughout, so the weight is drawn once per document."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._weight = chance.lognormvariate(0.2, 0.95)

    def sentences(self) -> list[str]:
        count = int(self._weight * self._chance.uniform(2, 9))
        return [_sentence(self._chance) for _ in range(max(1, min(count, 80)))]


def stub_text(chance: random.Random, wp_id: WorkPacketId) -> str:
    writer = _Writer(chance)
    return render_stub(
        StubText(
            wp_id=wp_id,
            created_at="2026-03-01T00:00:00Z",
            roadmap_pointer="Spec_v1.md 7, item 3",
            what=_sentence(chance),
            why=_sentence(chance),
            anchors=[f"Spec_v1.md 4.{chance.randint(1, 99)}"],
            in_scope=writer.sentences(),
            out_of_scope=writer.sentences(),
            acceptance_criteria=writer.sentences(),
            risks=writer.sentences(),
        )
    )


def packet_text(chance: random.Random, wp_id: WorkPacketId) -> str:
    return "\n".join(_packet_lines(chance, wp_id)) + "\n"


def _packet_lines(chance: random.Random, wp_id: WorkPacketId) -> Iterator[str]:
    writer = _Writer(chance)
    yield from (f"# Task Packet: {wp_id}", "", "## METADATA", f"- TASK_ID: {wp_id}", f"- WP_ID: {wp_id}")
    yield from (
        f"- BASE_WP_ID: {wp_id.base}",
        "- DATE: 2026-03-01T00:00:00Z",
        "- REQUESTOR: User",
        "- ROLE: Orchestrator",
    )
    yield from ("- **Status:** Ready for Dev", "- RISK_TIER: LOW", f"- USER_SIGNATURE: {_signature(chance)}", "")
    yield from ("## SCOPE", f"- What: {_sentence(chance)}", f"- Why: {_sentence(chance)}", "- IN_SCOPE_PATHS:")
    yield from (f"  - src/{_word(chance)}/{_word(chance)}_{number}.py" for number in range(chance.randint(1, 6)))
    yield "- OUT_OF_SCOPE:"
    yield from (f"  - {line}" for line in writer.sentences())
    yield from ("", "## QUALITY_GATE", "### TEST_PLAN", "```bash", "just test", "```", "", "### DONE_MEANS")
    yield from (f"- {line}" for line in writer.sentences())
    yield from ("", "## AUTHORITY", "- SPEC_BASELINE: Spec_v1.md", "- SPEC_ANCHOR: Spec_v1.md 4.2", "")
    yield from ("## BOOTSTRAP", "- FILES_TO_OPEN:", "  - src/main.py", "- RISK_MAP:", '  - "a" -> "b"', "")
    yield "## IMPLEMENTATION"
    yield from (f"- {line}" for line in writer.sentences())
    yield from ("", "## HYGIENE")
    yield from (f"- {line}" for line in writer.sentences())


def _signature(chance: random.Random) -> str:
    """Return a unique token for each packet, because a signature approves only one packet."""
    name = "".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(8))
    return f"{name}{chance.randint(1, 28):02}{chance.randint(1, 12):02}2026{chance.randint(0, 23):02}00"


def board_text(rows: list[tuple[WorkPacketId, str]]) -> str:
    sections = {
        "Active (Cross-Branch Status)": "",
        "Ready for Dev": "READY_FOR_DEV",
        "Stub Backlog (Not Activated)": "STUB",
        "In Progress": "IN_PROGRESS",
        "Done": "VALIDATED",
        "Blocked": "BLOCKED",
        "Superseded (Archive)": "SUPERSEDED",
    }
    parts = ["# Task Board"]
    for heading, token in sections.items():
        entries = [f"- **[{wp_id}]** - [{token}]" for wp_id, lane in rows if lane == token]
        parts.append("\n".join([f"## {heading}", *entries]))
    return "\n\n".join(parts) + "\n"


def registry_text(rows: list[tuple[WorkPacketId, str]]) -> str:
    lines = ["# Traceability Registry", "", "| Base WP ID | Active Packet | Task Board | Notes |", "|---|---|---|---|"]
    for wp_id, lane in rows:
        stub = lane == "STUB"
        path = f".GOV/task_packets/{'stubs/' if stub else ''}{wp_id}.md"
        section = "Stub Backlog (Not Activated)" if stub else "Ready for Dev"
        lines.append(f"| {wp_id.base} | {path} | {section}: {wp_id} | active={wp_id} |")
    return "\n".join(lines) + "\n"
