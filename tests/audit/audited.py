"""A repository with a packet in each state that an audit tells of: finished, in progress, blocked, and a stub."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.governed import Quiet, govern
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event, read_log
from workpacket.model.events import Actor, LogEvent

DONE, WORKED, STUCK, STUB = "WP-1-Greeting-v1", "WP-1-Farewell-v1", "WP-1-Song-v1", "WP-1-Dance-v1"
REPORT = "reports/greeting.md"
LOG = "src/logs/greeting.txt"
SPEC = ".GOV/spec/SPEC_v1.md"
BOARD, REGISTRY = ".GOV/roles_shared/TASK_BOARD.md", ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
BLOCK = """## EVIDENCE
- COMMAND: `python -m pytest`
- EXIT_CODE: 0
- LOG_PATH: `src/logs/greeting.txt`
- LOG_SHA256: 971870a2577e813bf60b1a08ef524063299fda43f5a1cc1ee143fc09f9288579
"""


class Audited(Quiet):
    """With what tests of an audit look at."""

    def packet_path(self, name: str) -> str:
        return f".GOV/task_packets/{name}.md"

    def events(self, name: str) -> tuple[LogEvent, ...]:
        folder = self.root / ".GOV/log" / name
        return read_log(name, {path.name: path.read_bytes() for path in folder.iterdir()}).events

    def record(self, name: str, happening: NewLogEvent, *, after: int | None = None) -> LogEvent:
        """An event of the log; `after` is the number of the event that it follows, the last unless told."""
        events = self.events(name)
        before = events[-1:] if after is None else (events[after],)
        now = self.clock()
        event = next_event(EventWriter(Actor("ann", "human"), now.now, now.tx, "test"), name, happening, after=before)
        self.write(event.path, event.encode().decode())
        return event

    def line_of(self, path: str, words: str) -> int:
        """The first line of a file that holds these words."""
        return next(number for number, line in enumerate(self.read(path).splitlines(), 1) if words in line)


def build(root: Path) -> Audited:
    """Everything is committed, and nothing is wrong."""
    root.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        town = Audited(root, None, govern(root, patch, None).clock)
        town.begin()
        town.activate(DONE)
        _finish(town)
        for name in (WORKED, STUCK):
            town.activate(name)
        town.stub(STUB, depends=WORKED)
        town.done("packet", "prepare", WORKED, "--for", "coder")
        town.done("claim", WORKED, "--as", "coder")
        town.done("block", STUCK, "--reason", "No melody is licensed.", "--until", "The licence is signed.")
        town.done("board", "sync")
        town.commit("Two more packets and a stub")
    return town


def _finish(town: Audited) -> None:
    town.replace(town.packet_path(DONE), "## EVIDENCE\n(nothing yet)\n", BLOCK)
    town.write(LOG, "2 passed in 0.01s\n")
    town.work(DONE)
    town.done("submit", DONE, "--as", "coder", "--prove", "1=python -c pass", "--prove", "2=src/greet.py:1")
    town.write(REPORT, "It greets, by name, and ends the line.\n")
    town.done("verdict", DONE, "PASS", "--report", REPORT, "--as", "validator")
    town.commit("Judged")
    town.git("switch", "--quiet", "main")
    town.git("merge", "--quiet", "--no-ff", f"wp/{DONE}")
    town.done("merged", DONE)
    town.commit("Merged")
