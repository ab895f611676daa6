"""Someone who only looks is not told to write: the `next:` line of a command that reads names another such one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from lifecycle.governed import Governed
from lifecycle.signed import NAME, OTHER
from workpacket.cli.commands import COMMANDS, resolve
from workpacket.cli.main import load

pytestmark = pytest.mark.share(5)

BOARD = ".GOV/roles_shared/TASK_BOARD.md"
# They write nothing, whatever the state of the repository.
READING = (
    "status", "list", f"search {NAME}", f"show {NAME}", f"log show {NAME}", "log verify", "board show",
    "board registry show", "board registry audit", f"packet contract {NAME}", "policy show", "policy test",
    "approvals list", "approvals verify", "audit", "trace", f"trace {NAME}", "trace impact src/a.py",
    f"trace trailers {NAME}", "check", "fmt --check", "key list", "audit deps", "audit justfile .GOV/gov.just",
    "runtime runs list", "runtime runs verify", "runtime session list", "runtime doctor", "runtime progress list",
    "log recover", "explain file_unreadable", "help schema",
)  # fmt: skip
# They are asked for the command that goes on, so they name it. They write nothing either.
NAMING = ("why", "next", "resume")
# The other commands: they write, serve, or print something else than what is in the repository.
OTHERS = {
    "abandon", "activate", "adopt", "advance", "amend", "approve", "batch", "block", "cancel", "claim",
    "completion", "done", "evidence", "export", "guard", "handover", "implement", "import", "init", "mcp",
    "merge-driver", "merged", "new", "note", "override", "prepare", "prime", "questions", "queue", "reapprove",
    "refine", "release", "rename", "reopen", "report", "resolve", "revoke", "run", "serve", "signal", "start",
    "store", "submit", "supersede", "unblock", "verdict", "waive", "worker",
}  # fmt: skip
# Options with which a command that reads writes.
WRITING = {"--adopt", "--back", "--fix", "--forward", "--yes"}


def empty(_: Governed) -> None:
    """Governed, and nothing else."""


def with_a_stub(governed: Governed) -> None:
    governed.stub(NAME)


def without_a_log(governed: Governed) -> None:
    governed.stub(NAME)
    for file in (governed.root / f".GOV/log/{NAME}").iterdir():
        file.unlink()


def ready(governed: Governed) -> None:
    governed.activate(NAME)


def with_a_hand_edit(governed: Governed) -> None:
    governed.activate(NAME)
    governed.activate(OTHER)
    governed.replace(BOARD, "[READY_FOR_DEV]", "[BLOCKED]")


@pytest.mark.share(3)
@pytest.mark.parametrize("state", [empty, with_a_stub, without_a_log, ready, with_a_hand_edit])
def test_what_reads_never_sends_on_to_what_writes(governed: Governed, state: Callable[[Governed], None]) -> None:
    governed.begin()
    state(governed)
    named = {}
    for line in READING:
        result = governed(*line.split())
        for command in re.findall(r"^next: workpacket (.+)$", result.out, re.MULTILINE):
            named[line] = command
    assert named
    writing = {line: command for line, command in named.items() if not reads(command)}
    assert writing == {}


def form(line: str) -> tuple[str, str]:
    """The command, and its subcommand if it has some."""
    words = line.split()
    name, count = resolve(words)
    return name, words[count] if name and load(name).arguments[:1].islower() else ""


def reads(command: str) -> bool:
    if command.startswith("help "):
        return True
    known = {form(line) for line in READING} | {form(line) for line in NAMING}
    return form(command) in known and not WRITING & {*command.split()}


@pytest.mark.share(6)
@pytest.mark.parametrize("line", READING)
def test_a_command_that_reads_leaves_the_repository_as_it_was(governed: Governed, line: str) -> None:
    governed.begin()
    ready(governed)
    governed.commit("ready")
    governed(*line.split())
    assert governed.git("status", "--porcelain") == ""


def test_every_command_is_in_one_of_the_lists() -> None:
    listed = {resolve(line.split())[0] for line in (*READING, *NAMING)}
    assert listed.isdisjoint(OTHERS)
    assert listed | OTHERS == set(COMMANDS), "add the command to READING, NAMING or OTHERS in this file"


def test_what_writes_is_told_from_what_reads() -> None:
    lines = ("adopt", "board sync", "board registry sync", "policy trust", "check --fix", "log recover --back")
    assert [line for line in lines if reads(line)] == []
    assert reads("board show")
