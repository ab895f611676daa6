"""Runs commands inside the test process, in a small repository."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from workpacket.cli.main import main

STUB = """# Work Packet Stub: WP-1-Parser-v1
This is a BACKLOG STUB. It is NOT an executable Task Packet.
## STUB_METADATA
- WP_ID: WP-1-Parser-v1
- BASE_WP_ID: WP-1-Parser
- CREATED_AT: 2026-03-01T00:00:00Z
- STUB_STATUS: STUB (NOT READY FOR DEV)
- SPEC_TARGET: .GOV/roles_shared/SPEC_CURRENT.md
- ROADMAP_POINTER: Spec_v1.md 7, item 3
- SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap):
  - Spec_v1.md 4.2 Parser

## INTENT (DRAFT)
- What: Read packets without loss.
- Why: Hand edits must survive.

## SCOPE_SKETCH (DRAFT)
- IN_SCOPE:
  - The reader.
- OUT_OF_SCOPE:
  - The writer.

## ACCEPTANCE_CRITERIA (DRAFT)
- Every byte is given back.

## DEPENDENCIES / BLOCKERS (DRAFT)
- None known.

## RISKS / UNKNOWNs (DRAFT)
- None known.

## ACTIVATION_CHECKLIST (REQUIRED BEFORE ANY CODING)
- [ ] Confirm the requirement exists in Master Spec Main Body (not just Roadmap).
- [ ] Produce the in-chat Technical Refinement Block (per `.GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md`).
- [ ] Obtain USER_SIGNATURE for the WP.
- [ ] Create `.GOV/refinements/WP-1-Parser-v1.md` (approved/signed).
- [ ] Create the official task packet via `just create-task-packet WP-1-Parser-v1` (in `.GOV/task_packets/`).
- [ ] Copy relevant scope/acceptance notes from this stub into the official packet.
- [ ] Move `.GOV/roles_shared/TASK_BOARD.md` entry from STUB to Ready for Dev.
"""

STUB_PATH = ".GOV/task_packets/stubs/WP-1-Parser-v1.md"


@dataclass(frozen=True, slots=True)
class Result:
    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Commands:
    """A repository, and the commands run in it."""

    root: Path
    capture: pytest.CaptureFixture[str]

    def write(self, path: str, text: str | bytes, *, age: float = 3600.0) -> Path:
        """A file that has been at rest for a while, as far as its times tell.

        One that is written again is a second younger: git compares sizes and seconds, and would see no change.
        """
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        before = target.stat().st_mtime if target.exists() else 0.0
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        then = max(target.stat().st_mtime - age, before + 1)
        os.utime(target, (then, then))
        return target

    def __call__(self, *words: str) -> Result:
        self.capture.readouterr()
        status = main(list(words))
        out, err = self.capture.readouterr()
        return Result(status, out, err)
