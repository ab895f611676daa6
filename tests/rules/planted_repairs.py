"""Documents with something planted that a repair could destroy, one line a case in `planted_repairs.jsonl`.

`base` names one of the documents below, in which `old` is replaced by `new`. `lost` are the lines that the command may
take away or change, `gained` those that it may bring; any other line has to be there afterwards as it was before.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from cli.commands import STUB
from rules.canonical import PACKET, REFINEMENT

OLDER = """# Task Packet Stub: WP-1-Parser-v1

**Status:** STUB (Not Activated)

## Identity
- WP_ID: WP-1-Parser-v1
- BASE_WP_ID: WP-1-Parser
- Created: 2026-02-11
- SPEC_TARGET: .GOV/roles_shared/SPEC_CURRENT.md (currently Spec_v1.md)

## Why this stub exists
The first writer lost a byte.

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

## Activation checklist (before any coding)
1. Technical refinement.
2. USER_SIGNATURE.
"""
BOARD = """# Task Board

## Ready for Dev

## In Progress

## Done

## Blocked

## Stub Backlog (Not Activated)
- **[WP-1-Parser-v1]** - [STUB]

## Superseded (Archive)
"""
REGISTRY = """# Registry

| Base WP ID | Active Packet | Task Board | Notes |
|---|---|---|---|
| WP-1-Lexer | .GOV/task_packets/WP-1-Lexer-v1.md | Done: WP-1-Lexer-v1 | |
| WP-1-Parser | .GOV/task_packets/stubs/WP-1-Parser-v1.md | Stub Backlog: WP-1-Parser-v1 | |
"""
BATCH = """checkpoint:
  scope_name: front-matter
  scope_path: ./specs/active/front-matter
  branch: feat/front-matter
  timestamp: 2026-03-01T09:00:00Z
  last_batch: "1"
  last_commit: abcdef0
  note: x
"""
ROLE = """---
feature: front-matter
team: build
agent: architect
phase: design
status: in_progress
last_action: Drafted the plan
updated: 2026-03-01T09:30:00Z
---

## Progress Notes

- [09:30] Claimed the task
"""
PACKAGE = """---
work_package_id: WP01
title: Reader
dependencies: []
subtasks: []
lane: planned
---

# Work package
"""


class Base(NamedTuple):
    kind: str
    path: str
    text: str


BASES = {
    "packet": Base("packet", ".GOV/task_packets/WP-1-Parser-v1.md", PACKET),
    "refinement": Base("refinement", ".GOV/refinements/WP-1-Parser-v1.md", REFINEMENT),
    "stub": Base("stub", ".GOV/task_packets/stubs/WP-1-Parser-v1.md", STUB),
    "older": Base("stub", ".GOV/task_packets/stubs/WP-1-Parser-v1.md", OLDER),
    "board": Base("task_board", ".GOV/roles_shared/TASK_BOARD.md", BOARD),
    "registry": Base("registry", ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md", REGISTRY),
    "batch": Base("batch_checkpoint", "specs/active/front-matter/checkpoint.yaml", BATCH),
    "role": Base("role_progress", "docs/progress/front-matter-architect.md", ROLE),
    "package": Base("work_package", "kitty-specs/012-parser/tasks/WP01-reader.md", PACKAGE),
}


class Planted(NamedTuple):
    name: str
    command: str
    base: str
    old: str
    new: str
    lost: list[str]
    gained: list[str]

    @property
    def text(self) -> str:
        text = BASES[self.base].text
        assert self.old in text, self.name
        # CRLF is planted everywhere, anything else once.
        return text.replace(self.old, self.new, -1 if self.old == "\n" else 1)


PLANTED = [
    Planted(**json.loads(line))
    for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="ascii").splitlines()
]


def lines_of(text: str) -> Counter[str]:
    """The lines that are not blank."""
    return Counter(line for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")) if line.strip())
