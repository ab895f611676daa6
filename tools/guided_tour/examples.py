"""`just example full [FOLDER]`: makes a repository to explore, with throw-away keys, and shows each command.

`light` needs no keys: one packet landed and was not judged, one was judged, and one is a draft. `full` has older
documents that were adopted, and a packet in the forms of the founding documents, from stub to VALIDATED.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from guided_tour import texts
from guided_tour.stage import Stage, WentWrong
from guided_tour.story import PHRASE, fill_in_the_refinement
from guided_tour.terminal import Answer

NAME = texts.NAME
OLD_BOARD = """# Task Board

Ours since March.

## In Progress
- **[WP-1-Parser-v1]** - [IN_PROGRESS]

## Done
- **[WP-1-Reader-v1]** - [VALIDATED]
"""
OLD_PACKET = """# Task Packet: {name}

## METADATA
- TASK_ID: {name}
- WP_ID: {name}
- BASE_WP_ID: {base} (stable id without the revision)
- DATE: 2026-03-01T00:00:00Z
- REQUESTOR: ann
- AGENT_ID: bob
- **Status:** {status}
- RISK_TIER: LOW
- USER_SIGNATURE: {token}

## SCOPE
- What: {what}
- IN_SCOPE_PATHS:
  - src/
- OUT_OF_SCOPE:
  - The writer.

## QUALITY_GATE
### DONE_MEANS
- {criterion}

## AUTHORITY
- SPEC_BASELINE: spec.md
- SPEC_ANCHOR: spec.md 1.1

## BOOTSTRAP
- FILES_TO_OPEN:
  - src/parser.py
"""
OLD_SPECIFICATION = f"""# Specification

## 1 Main body

### 1.1 Parser
Every byte is kept.

### 1.2 Greeting
{texts.REQUIREMENT}

## 2 Roadmap
Later it will sing.
"""
OLD_FILES = {
    ".GOV/roles_shared/TASK_BOARD.md": OLD_BOARD,
    ".GOV/roles_shared/SPEC_CURRENT.md": "# Specification in force\n\nspec.md\n",
    ".GOV/task_packets/WP-1-Parser-v1.md": OLD_PACKET.format(
        name="WP-1-Parser-v1", base="WP-1-Parser", status="In Progress", token="ann010320260800",
        what="Read packets without losing a byte.", criterion="What is written back has the same digest.",
    ),
    ".GOV/task_packets/WP-1-Reader-v1.md": OLD_PACKET.format(
        name="WP-1-Reader-v1", base="WP-1-Reader", status="Done", token="ann010320260700",
        what="Find the packets of a folder.", criterion="Every packet is found once.",
    ),
    "spec.md": OLD_SPECIFICATION,
    "src/parser.py": "def parse(data: bytes) -> bytes:\n    return data\n",
}  # fmt: skip
STUB_EDITS = tuple((old, new.replace("SPEC_v1.md 1.1", "spec.md 1.2")) for old, new in texts.STUB_EDITS)
LIGHT_TEST = """import unittest

from src.{name} import {name}


class Test(unittest.TestCase):
    def test_{name}(self):
        self.assertEqual({name}("Ann"), "{word}, Ann")
"""
GREETINGS = {f"src/{language}.txt": "Hello\n" for language in ("de", "fr", "it")}


def full(stage: Stage) -> None:
    adopt(stage)
    name_approvers(stage)
    approve_packet(stage)
    do_the_work(stage)
    judge_and_land(stage)


def adopt(stage: Stage) -> None:
    stage.scene("Adopt", "A repository has a board and packets that were written by hand and never checked.")
    begin(stage)
    commit(stage, "As it was", OLD_FILES)
    stage.type("workpacket init")
    stage.type("workpacket check --fix", ends=0)
    stage.type("workpacket adopt")
    stage.type("workpacket board sync")
    stage.type("workpacket check")
    commit(stage, "Adopt what was there")


def begin(stage: Stage) -> None:
    stage.quietly("git init --quiet --initial-branch=main")
    stage.quietly("git config user.name ann && git config user.email ann@example.org")


def commit(stage: Stage, message: str, files: Mapping[str, str] | None = None) -> None:
    for path, text in (files or {}).items():
        stage.write(path, text)
    stage.quietly(f"git add --all && git commit --quiet -m '{message}'")


def name_approvers(stage: Stage) -> None:
    stage.scene("Name approvers", "Ann approves with a key; she and her agent each sign their events with another.")
    stage.type("workpacket key init", answers=[Answer("Enter passphrase", PHRASE), Answer("passphrase again", PHRASE)])
    stage.type("workpacket key init --event")
    stage.type("workpacket key init --agent coder")
    stage.type("workpacket policy trust")
    commit(stage, "Ann approves")


def approve_packet(stage: Stage) -> None:
    stage.scene("Approve", "The agent drafts a packet; Ann reads the whole contract and signs it.")
    stage.type(f"workpacket new {NAME} --what 'Greet in three languages' --why 'Our users speak them' --as coder")
    stage.edit(texts.STUB, *STUB_EDITS)
    stage.type(f"workpacket evidence demand {NAME} 1 --command '{texts.PROOF}' --as coder")
    stage.type(f"workpacket refine {NAME} --as coder")
    fill_in_the_refinement(stage, OLD_SPECIFICATION.splitlines().index(texts.REQUIREMENT) + 1)
    stage.type(f"workpacket refine {NAME} --present --as coder")
    words = Answer("type: ", f"APPROVE REFINEMENT {NAME}")
    stage.type(f"workpacket approve {NAME}", answers=[words, Answer("Enter passphrase", PHRASE)])
    commit(stage, "Approve the greeting")
    stage.type(f"workpacket packet activate {NAME} --as coder")
    stage.edit(texts.PACKET, *texts.PACKET_EDITS)
    stage.type(f"workpacket packet prepare {NAME} --for coder")
    stage.type(f"workpacket claim {NAME} --as coder")
    commit(stage, "Activate the greeting")


def do_the_work(stage: Stage) -> None:
    stage.scene("Work", "The agent works on the branch of the packet, and proves the criterion with a test.")
    stage.quietly(f"git switch --quiet --force-create wp/{NAME}")
    commit(stage, "Greet in three languages", {**GREETINGS, texts.TEST: texts.REAL_TEST})
    stage.type(f"workpacket submit {NAME} --as coder")


def judge_and_land(stage: Stage) -> None:
    stage.scene("Judge", "Ann judges what her agent did, with a signature of her own; the branch is merged.")
    stage.write("report.md", "Read each of the three files. They greet.\n")
    words = Answer("type: ", f"APPROVE VERDICT {NAME}")
    signed = [words, Answer("Enter passphrase", PHRASE)]
    stage.type(f"workpacket approve {NAME} --gate verdict --verdict PASS --report report.md", answers=signed)
    stage.type(f"workpacket verdict {NAME} PASS --report report.md --as ann")
    commit(stage, "Judge the greeting")
    stage.type("workpacket check --base main")
    stage.quietly(f"git switch --quiet main && git merge --quiet --no-ff -m 'Merge the greeting' wp/{NAME}")
    stage.type("workpacket board sync")
    commit(stage, "The greeting is on main")
    stage.type("workpacket status")


def light(stage: Stage) -> None:
    stage.scene("Begin", "A light packet is one document. Ann needs no keys, and opens no document.")
    begin(stage)
    stage.type("workpacket init --commit")
    land(stage, "Greet the user", "greet", "Hello")
    stage.type("workpacket show WP-1-Greet-The-User-v1")
    stage.scene("Judge", "Eve judges the second packet, which makes it VALIDATED; no one has judged the first.")
    land(stage, "Say goodbye", "part", "Goodbye")
    stage.type("workpacket verdict WP-1-Say-Goodbye-v1 PASS --reason 'It says goodbye.' --as eve --commit")
    stage.scene("Go on", "A third packet is a draft: `start` would say what it lacks.")
    stage.type("workpacket new 'Greet in French' --criterion 'The program says Bonjour.' --commit")
    stage.type("workpacket status")


def land(stage: Stage, title: str, name: str, word: str) -> None:
    """Write a packet for a function that says a word, do the work, and merge it."""
    packet = f"WP-1-{title.title().replace(' ', '-')}-v1"
    stage.type(
        f"workpacket new '{title}' --criterion 'The program says {word}.' --scope src/ --scope tests/"
        f" --prove 'python3 -m unittest tests.test_{name}'"
        f" --requirement 'The program says {word}.' --refinement 'A function that takes a name.'"
    )
    stage.type(f"workpacket start {packet}")
    commit(
        stage,
        title,
        {
            f"src/{name}.py": f'def {name}(user):\n    return f"{word}, {{user}}"\n',
            f"tests/test_{name}.py": LIGHT_TEST.format(name=name, word=word),
        },
    )
    stage.type(f"workpacket done {packet} --commit")
    stage.quietly(f"git merge --quiet --no-ff -m 'Merge {packet}' wp/{packet}")


EXAMPLES: dict[str, Callable[[Stage], None]] = {"full": full, "light": light}


def main() -> int:
    parser = argparse.ArgumentParser(prog="just example", description="Make a repository to explore.")
    parser.add_argument("form", choices=sorted(EXAMPLES))
    parser.add_argument("folder", type=Path, nargs="?", help="an empty or new folder (default: a temporary one)")
    arguments = parser.parse_args()
    folder = (arguments.folder or Path(tempfile.mkdtemp(prefix="workpacket-example-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        parser.error(f"{folder} is not empty")
    stage = Stage.in_folder(folder, fast=True)
    try:
        EXAMPLES[arguments.form](stage)
    except WentWrong as fault:
        sys.stderr.write(f"example: {fault}\nthe repository is in {stage.root}\n")
        return 1
    keys = f" Its keys are in {folder / 'home'}." if (folder / "home" / ".ssh").exists() else ""
    sys.stdout.write(f"\nThe repository is in {stage.root}.{keys}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
