"""Measurements that a process takes of itself and prints as JSON: `python -m bench.in_process NAME ARGUMENTS`.

Each sample has its own process, so that two revisions of the package can alternate. Private names of the package that
are imported here may be missing in an older revision; the row is then reported as not measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workpacket.runtime import Run, Runtime

TEXT = "x" * 1000
STEPS = 100


class Clock:
    """Collects the wall-clock and processor milliseconds of a call."""

    def __init__(self) -> None:
        self.walls: list[float] = []
        self.cpus: list[float] = []

    def time(self, action: Callable[[], object]) -> None:
        began, cpu = time.perf_counter(), time.process_time()
        action()
        self.cpus.append((time.process_time() - cpu) * 1e3)
        self.walls.append((time.perf_counter() - began) * 1e3)

    def figures(self) -> dict[str, float]:
        # The mean of processor time, because its clock is too coarse on some machines for the median of short calls.
        return {"wall_ms": statistics.median(self.walls), "cpu_ms": statistics.fmean(self.cpus)}


def work(number: int) -> dict[str, object]:
    return {"number": number, "text": TEXT}


def step(folder: Path) -> dict[str, float]:
    return _beside_appends(folder, "step")


def effect(folder: Path) -> dict[str, float]:
    return _beside_appends(folder, "effect")


def _beside_appends(folder: Path, method: str) -> dict[str, float]:
    """Alternate with an append and fdatasync of as many bytes, so that a slow moment of the disk affects both."""
    from workpacket.runtime import Runtime

    floor, calls = Clock(), Clock()
    descriptor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, TEXT.encode() + b"\n")
        os.fdatasync(descriptor)

    with Runtime.open(folder / "runs.db") as runtime, runtime.run("bench") as run:
        call = getattr(run, method)
        for number in range(STEPS):
            floor.time(append)
            calls.time(partial(call, "work", work, number))
    os.close(descriptor)
    times = statistics.median(calls.walls) / statistics.median(floor.walls)
    return {**calls.figures(), "floor_ms": statistics.median(floor.walls), "times_floor": times}


def latest_checkpoint(folder: Path, events: str) -> dict[str, float]:
    """Find the last checkpoint among this many events."""
    from workpacket.runtime.records.events import NewEvent
    from workpacket.runtime.stores.contract import Append
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

    store = SQLiteStore(folder / "many.db")
    batch = 1000
    for first in range(0, int(events), batch):
        news = tuple(NewEvent("step.completed", f'{{"step":"s{first + n}"}}') for n in range(batch - 1))
        news += (NewEvent("checkpoint", '{"id":"c","name":""}'),)
        store.append(Append("many@1", news, "w" * 32, first + 1, "bench", 1, 1))
    clock = Clock()
    for _ in range(2000):
        clock.time(lambda: store.latest("checkpoints", "many@1"))
    store.close()
    return {**clock.figures(), "p99_ms": sorted(clock.walls)[1980]}


def resume(folder: Path) -> dict[str, float]:
    """Measure from opening the store to the first step that is not stored, after a hundred stored ones."""
    from workpacket.runtime import Runtime

    class Stopped(BaseException):
        """Raise a keyboard interrupt, which leaves the run unfinished."""

    def steps(count: int, before: Callable[[int], None]) -> None:
        with Runtime.open(folder / "runs.db") as runtime, runtime.run("resume") as run:
            for number in range(count):
                before(number)
                run.step("work", lambda: 1)
            raise Stopped

    def ignore(_number: int) -> None:
        pass

    for count in (1, 100):  # this call also imports everything
        with suppress(Stopped):
            steps(count, ignore)
    clock = Clock()

    def to_the_first_new_step() -> None:
        def before(number: int) -> None:
            if number == 100:
                raise Stopped

        with suppress(Stopped):
            steps(101, before)

    for _ in range(7):
        clock.time(to_the_first_new_step)
    return clock.figures()


def store_growth(folder: Path) -> dict[str, float]:
    """Store 1,000 turns of 1 KB each; return the size of the store on disk, closed and open."""
    from workpacket.runtime import Runtime

    def turn(number: int) -> str:
        return f"{number:06d}" + "y" * 1018

    def times() -> float:
        return sum(file.stat().st_size for file in folder.iterdir()) / 1_024_000

    with Runtime.open(folder / "runs.db") as runtime:
        with runtime.run("talk") as run:
            for number in range(1000):
                run.step("turn", turn, number)
        opened = times()
    return {"times": times(), "open_times": opened}


_WRITER = """
import json, sys, time
from pathlib import Path
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.testing import Writer
store = SQLiteStore(Path(sys.argv[1]))
writer = Writer(sys.argv[2], "run@" + sys.argv[2])
waits = []
for _ in range(150):
    began = time.perf_counter()
    store.append(writer.request("step.completed"))
    waits.append((time.perf_counter() - began) * 1000)
print(json.dumps(waits))
"""


def eight_writers(folder: Path) -> dict[str, float]:
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

    path = folder / "eight.db"
    SQLiteStore(path).close()
    command = [sys.executable, "-c", _WRITER, str(path)]
    children = [subprocess.Popen([*command, f"w{number}"], stdout=subprocess.PIPE) for number in range(8)]
    outputs = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise SystemExit("a writer failed")
    waits = sorted(wait for output in outputs for wait in json.loads(output))
    return {"wall_ms": statistics.median(waits), "p99_ms": waits[int(len(waits) * 0.99)], "worst_ms": waits[-1]}


def list_runs(folder: Path, runs: str) -> dict[str, float]:
    """List this many finished runs from a newly opened store."""
    from workpacket.runtime import Runtime
    from workpacket.runtime.records.events import NewEvent
    from workpacket.runtime.stores.contract import Append
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

    path = folder / "list.db"
    store = SQLiteStore(path)
    for number in range(int(runs)):
        news = (NewEvent("run.started", '{"name":"nightly"}'), NewEvent("run.completed", '{"steps":3}'))
        store.append(Append(f"nightly@{number:08d}", news, f"w{number}", 1, "bench", 1, 1))
    store.close()
    clock = Clock()
    with Runtime.open(path) as runtime:
        for _ in range(5):
            clock.time(runtime.runs)
    return {**clock.figures(), "first_ms": clock.walls[0]}


def long_run(folder: Path, steps: str, what: str) -> dict[str, float]:
    """Open an interrupted run with this many finished steps, or replay one of them (the mean of all)."""
    from workpacket.runtime import Runtime

    count, clock = int(steps), Clock()

    def attempt(runtime: Runtime, replay: Callable[[Run], object]) -> None:
        with suppress(KeyboardInterrupt), runtime.run("long", key="one") as run:
            replay(run)
            raise KeyboardInterrupt

    def ask(run: Run) -> None:
        for number in range(count):
            run.step("load", dict, n=number)

    with Runtime.open(folder / "long.db") as runtime:
        attempt(runtime, ask)
        for _ in range(5):
            if what == "open":
                clock.time(lambda: attempt(runtime, lambda _: None))
            else:
                attempt(runtime, lambda run: clock.time(lambda: ask(run)))
    figures = clock.figures()
    return figures if what == "open" else {name: figure / count for name, figure in figures.items()}


def events(_folder: Path, count: str) -> dict[str, float]:
    """Read logs of seven events, from bytes to state."""
    from bench.governed_trees import long_history
    from workpacket.ledger.fold import fold
    from workpacket.ledger.log import read_log

    files = {event.path.rpartition("/")[2]: event.encode() for event in long_history("WP-1-Parser-v1", 7)}

    def verify() -> None:
        for _ in range(-(-int(count) // len(files))):
            if not fold(read_log("WP-1-Parser-v1", files)).sound:
                raise SystemExit("the log was refused")

    clock = Clock()
    clock.time(verify)
    return clock.figures()


def verdict(_folder: Path, root: str, packet: str, base: str) -> dict[str, float]:
    """Verify one approval repeatedly in a warm process."""
    from workpacket.git.repository import find_repository
    from workpacket.shell.actor import moment
    from workpacket.shell.approvals.facts import gate_verdict

    repository = find_repository(Path(root))
    clock = Clock()

    def verify() -> None:
        found = gate_verdict(repository, packet, "activation", base=base, moment=moment())
        if not found.met:
            raise SystemExit(f"the approval was refused: {found.unmet}")

    verify()
    for _ in range(50):
        clock.time(verify)
    return clock.figures()


def main() -> None:
    name, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="workpacket-bench-") as folder:
        print(json.dumps(MEASUREMENTS[name](Path(folder), *arguments)), flush=True)


MEASUREMENTS: dict[str, Callable[..., dict[str, float]]] = {
    "step": step,
    "effect": effect,
    "latest-checkpoint": latest_checkpoint,
    "resume": resume,
    "store-growth": store_growth,
    "eight-writers": eight_writers,
    "list-runs": list_runs,
    "long-run": long_run,
    "events": events,
    "verdict": verdict,
}

if __name__ == "__main__":
    main()
