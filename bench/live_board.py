"""The live board compared with Backlog.md's `browser`: 1,000 tasks each, in one Chromium, in turns.

`python -m bench.live_board [PAIRS [ROW...]]` measures wall-clock time until a person sees the result: the board after
an address is opened (`load`), the matches after a word is typed (`filter`), the answer after an action is sent (`act`:
a signed note in the log of a packet; a task moved to another column). The ratio is ours : theirs.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from bench.intervals import median_interval, ratios
from bench.many_events import key_of, write_long_logs
from bench.peer_trees import backlog_tasks
from bench.peers import BACKLOG
from bench.timing import NotMeasured

HERE = Path(__file__).parent.parent
sys.path.insert(0, str(HERE / "tests"))  # the browser is driven as the tests drive it

from browser.chromium import Page, browser, found  # noqa: E402
from live.serving import served  # noqa: E402

TASKS, PAIRS, PORT = 1000, 15, 6711
# Looked for in the page, every four milliseconds.
_UNTIL = """new Promise((done, late) => {
  const began = performance.now();
  const look = () => {
    if (%s) done();
    else if (performance.now() - began > 60000) late("late");
    else setTimeout(look, 4);
  };
  look();
})"""
_SENT = "fetch(%s, %s).then(answer => answer.text().then(text => [answer.status, text.includes(%s)]))"


def until(page: Page, condition: str) -> None:
    page.ask(_UNTIL % condition)


def processor_time(group: int) -> float:
    """Return the processor time of the processes of a group, in seconds, with that of children that have ended."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) if int(fields[2]) == group else 0
    return total / os.sysconf("SC_CLK_TCK")


class Ours:
    def __init__(self, page: Page, address: str, packet: str, group: int) -> None:
        self.group = group
        self.page, self.at, self.packet = page, address.partition("/?")[0], packet
        page.open(address)

    def load(self) -> None:
        self.page.open(f"{self.at}/0/")
        until(self.page, "document.querySelectorAll('.card').length > 20")

    def search(self, word: str) -> None:
        self.page.ask("document.getElementById('q').focus()")
        self.page.type_at_once(word)
        until(
            self.page,
            f"location.search.includes('{word}') && document.getElementById('count').innerText.includes(' of ')",
        )

    word = "lease"

    def prepare(self) -> None:
        self.page.open(f"{self.at}/0/packet/{self.packet}")

    def act(self, number: int) -> None:
        self.page.ask(
            f"document.querySelector('#act-note textarea').value = 'note {number}';"
            "document.querySelector('#act-note form').requestSubmit()"
        )
        until(self.page, "document.querySelector('h1').textContent === 'Done'")


class Theirs:
    def __init__(self, page: Page, group: int) -> None:
        self.group = group
        self.page, self.at = page, f"http://localhost:{PORT}"

    def load(self) -> None:
        self.page.open(f"{self.at}/")
        until(self.page, "document.body.innerText.includes('TASK-20')")

    def search(self, word: str) -> None:
        self.page.ask("document.querySelector('input[placeholder^=Search]').focus()")
        self.page.type_at_once(word)
        # The list of matches: each has its share of the best one.
        until(self.page, "/Search Results[^]*TASK-[0-9]+[^]*[0-9]%/i.test(document.body.innerText)")

    word = "Keep"

    def prepare(self) -> None:
        """The board is open."""

    def act(self, number: int) -> None:
        body = json.dumps({"status": ("In Progress", "Done")[number % 2]})
        options = f"{{method: 'PUT', headers: {{'Content-Type': 'application/json'}}, body: {json.dumps(body)}}}"
        sent = _SENT % (f"'{self.at}/api/tasks/TASK-{number + 1}'", options, "'status'")
        assert self.page.ask(sent) == [200, True]


@contextmanager
def theirs(folder: Path, page: Page) -> Iterator[Theirs]:
    backlog_tasks(folder, TASKS)
    words = [str(BACKLOG.installed()), "browser", "--port", str(PORT), "--no-open"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        for _ in range(200):
            try:
                urlopen(f"http://localhost:{PORT}/", timeout=2).close()  # this machine
                break
            except OSError:
                time.sleep(0.1)
        yield Theirs(page, process.pid)
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the program is a wrapper of another
        process.wait(20)


class Taken(NamedTuple):
    wall: list[float]
    processor: list[float]


def measured(sides: tuple[Ours | Theirs, Ours | Theirs], what: str, pairs: int) -> tuple[Taken, Taken]:
    taken = (Taken([], []), Taken([], []))
    for number in range(pairs + 1):
        for place in (0, 1) if number % 2 else (1, 0):
            side = sides[place]
            if what != "load":
                side.load()
            if what == "act":
                side.prepare()
            spent, began = processor_time(side.group), time.perf_counter()
            if what == "load":
                side.load()
            elif what == "filter":
                side.search(side.word)
            else:
                side.act(number)
            took = time.perf_counter() - began
            time.sleep(0.2)  # what the server does after its answer counts, too
            if number:  # the first pair warms both
                taken[place].wall.append(took)
                taken[place].processor.append(processor_time(side.group) - spent)
    return taken


def told(what: str, ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Print a row, and return the verdict. A server that used less than a tick counts as one tick."""
    tick = 1 / os.sysconf("SC_CLK_TCK")
    ratio = median_interval(ratios([max(one, tick) for one in ours], [max(one, tick) for one in theirs]))
    middle = [1000 * statistics.median(each) for each in (ours, theirs)]
    bounds = f"({ratio.low:.2f} to {ratio.high:.2f})"
    print(f"{what:27}{middle[0]:9.0f}{middle[1]:11.0f}   {ratio.median:.2f} {bounds}", flush=True)
    return ratio.verdict(0)


def main(pairs: int, rows: Sequence[str]) -> int:
    program = found()
    if program is None:
        raise NotMeasured("Chromium is not on this machine")
    slower = []
    with tempfile.TemporaryDirectory(prefix="workpacket-live-") as name:
        folder = Path(name)
        (folder / "ours").mkdir()
        root = write_long_logs(folder / "ours", TASKS, 2)
        acting = {"WORKPACKET_EVENT_KEY": str(key_of(root)), "WORKPACKET_ACTOR": "ann"}
        packet = min(path.name for path in (root / ".GOV/log").iterdir())
        with (
            browser(program, folder / "profile") as page,
            served(root, options=("--write",), environment=acting) as running,
            theirs(folder / "theirs", page) as other,
        ):
            sides = (Ours(page, running.address, packet, running.process.pid), other)
            print(f"{'':27}{'ours ms':>9}{'theirs ms':>11}   ratio, with 95 % interval")
            for what in rows or ("load", "filter", "act"):
                ours, others = measured(sides, what, pairs)
                slower += [what] if told(what, ours.wall, others.wall) == "slower" else []
                told(f"{what}, CPU of the server", ours.processor, others.processor)
    return bool(slower)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS, sys.argv[2:]))
