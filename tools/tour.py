"""`just tour`: shows the tool at work on a small repository, which it leaves for you to look at.

Each command is shown before it runs, with a word on what to look for. `--fast` leaves out the pauses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from workpacket.documents.stub_text import StubText, render_stub
from workpacket.model.ids import WorkPacketId

PAUSE = 1.5

OLD_STUB = """# Task Packet Stub: WP-1-Writer-v1

**Status:** STUB (Not Activated)

## Identity
- WP_ID: WP-1-Writer-v1
- BASE_WP_ID: WP-1-Writer
- Created: 2026-02-11
- SPEC_TARGET: .GOV/roles_shared/SPEC_CURRENT.md (currently Spec_v1.md)

## Why this stub exists
What was read must be written back without losing a byte.

## Activation checklist (before any coding)
1. Technical refinement.
2. USER_SIGNATURE.
3. Refinement file.
4. Task packet.
5. Board.
"""

PACKET = """# Task Packet: WP-1-Lexer-v1

## METADATA
- TASK_ID: WP-1-Lexer-v1
- WP_ID: WP-1-Lexer-v1
- BASE_WP_ID: WP-1-Lexer (stable id without the revision)
- DATE: 2026-03-01T00:00:00Z
- REQUESTOR:
- **Status:** Ready for Dev
- RISK_TIER: LOW
- USER_SIGNATURE: ada

## SCOPE
- What: Cut the text into words.
- IN_SCOPE_PATHS:
  - src/lexer.py
- OUT_OF_SCOPE:
  - The parser.

## QUALITY_GATE
### DONE_MEANS
- Every word has its place.

## AUTHORITY
- SPEC_ANCHOR: Spec_v1.md 4.1

## BOOTSTRAP
- FILES_TO_OPEN:
  - src/lexer.py
"""

BOARD = """# Task Board

## Active (Cross-Branch Status)

## Ready for Dev

## Stub Backlog (Not Activated)
- **[WP-1-Parser-v1]** - [STUB]
- **[WP-1-Writer-v1]** - [STUB]

## In Progress
- **[WP-1-Lexer-v1]** - [IN_PROGRESS]

## Done

## Blocked

## Superseded (Archive)
"""

REGISTRY = """# Work Packet Traceability Registry

| Base WP ID | Active Packet | Task Board | Notes |
|---|---|---|---|
| WP-1-Lexer | .GOV/task_packets/WP-1-Lexer-v1.md | Ready for Dev: WP-1-Lexer-v1 | active=WP-1-Lexer-v1 |
| WP-1-Parser | .GOV/task_packets/stubs/WP-1-Parser-v1.md | Stub Backlog: WP-1-Parser-v1 | stub |
"""


def parser_stub() -> str:
    return render_stub(
        StubText(
            wp_id=WorkPacketId.parse("WP-1-Parser-v1"),
            created_at="2026-03-01T00:00:00Z",
            roadmap_pointer="Spec_v1.md 7, item 3",
            what="Read documents without losing a byte.",
            why="People edit them by hand, and their edits must survive.",
            anchors=["Spec_v1.md 4.2 Parser"],
            in_scope=["The reader."],
            out_of_scope=["The writer (WP-1-Writer-v1)."],
            acceptance_criteria=["What is written back has the same digest."],
            dependencies=["Depends on: the lexer (WP-1-Lexer-v1)."],
        )
    )


@dataclass(frozen=True)
class Tour:
    root: Path
    pause: float

    def write(self) -> None:
        files = {
            ".GOV/task_packets/stubs/WP-1-Parser-v1.md": parser_stub(),
            ".GOV/task_packets/stubs/WP-1-Writer-v1.md": OLD_STUB,
            ".GOV/task_packets/WP-1-Lexer-v1.md": PACKET,
            ".GOV/roles_shared/TASK_BOARD.md": BOARD,
            ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md": REGISTRY,
            ".GOV/roles_shared/SPEC_CURRENT.md": "The specification in force is Spec_v1.md.\n",
            "Spec_v1.md": "# Specification\n\n## 4.2 Parser\nA parser MUST keep every byte.\n",
        }
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text, encoding="utf-8")
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)

    def say(self, text: str) -> None:
        print(f"\n# {text}", flush=True)
        time.sleep(self.pause)

    def run(self, *words: str, status: int) -> None:
        """Shows a command, runs it, and makes sure that it ended as the tour says."""
        print(f"$ workpacket {' '.join(words)}", flush=True)
        done = subprocess.run([sys.executable, "-m", "workpacket", *words], cwd=self.root, check=False)
        if done.returncode != status:
            raise SystemExit(f"the tour is wrong: this should have ended with {status}, not {done.returncode}")
        time.sleep(self.pause)

    def play(self) -> None:
        self.say("A repository with two stubs, a packet, a board and a registry, edited by hand for a while.")
        self.run("list", status=0)
        self.say("One command finds everything that is wrong, with line, column and remedy. It ends with 1.")
        self.run("check", status=1)
        self.say("What a code means, and why it matters:")
        self.run("explain", "hint_text_left", status=0)
        self.say("What can be repaired without changing what a document says, first as a diff, then for good:")
        self.run("check", "--fix", "--diff", status=1)
        self.run("fmt", "--upgrade", status=0)
        self.say("What is left needs a person. CI reads the same as JSON, SARIF, JUnit or GitHub annotations:")
        self.run("check", "--statistics", status=1)
        self.run("check", "--format", "github", status=1)
        print(f"\nThe repository is yours to look at: {self.root}")


def main() -> None:
    fast = "--fast" in sys.argv or not sys.stdout.isatty() or "CI" in os.environ
    tour = Tour(Path(tempfile.mkdtemp(prefix="workpacket-tour-")), 0.0 if fast else PAUSE)
    tour.write()
    tour.play()


if __name__ == "__main__":
    main()
