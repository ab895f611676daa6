"""The runtime beside the floor of this machine and beside its peers, in one run: a table, and JSON with --json FILE.

The floor of a durable step is one append and one fdatasync of as many bytes; everything else is measured as a multiple
of it, side by side and in turns, so that a slow moment of the disk hits all alike. Peers are installed into an
environment of their own (--peers FOLDER, default a temporary one); one that cannot be installed is left out, and the
table says so. Run it on a quiet machine: `python bench/runtime_bench.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from workpacket.runtime import Runtime  # noqa: E402  # the path above is needed first
from workpacket.runtime.records.events import NewEvent  # noqa: E402
from workpacket.runtime.stores.contract import Append  # noqa: E402
from workpacket.runtime.stores.sqlite.store import SQLiteStore  # noqa: E402

STEPS = 400
PATIENCE = 300  # seconds after which a peer counts as not to be had here
TEXT = "x" * 1000
PEERS = {"langgraph": ("langgraph", "langgraph-checkpoint-sqlite"), "dbos": ("dbos",)}


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


def figures(samples: list[float], floor: list[float]) -> dict[str, float]:
    return {
        "median_us": round(statistics.median(samples), 1),
        "mean_us": round(statistics.fmean(samples), 1),
        "times_floor_median": round(statistics.median(samples) / statistics.median(floor), 2),
        "times_floor_mean": round(statistics.fmean(samples) / statistics.fmean(floor), 2),
    }


def steps_and_effects(folder: Path) -> dict[str, object]:
    """A durable step and a step with an effect, each in turn with its floor."""
    samples: dict[str, list[float]] = {"floor": [], "step": [], "effect": []}
    record = TEXT.encode() + b"\n"
    descriptor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, record)
        os.fdatasync(descriptor)

    def work(number: int) -> dict[str, object]:
        return {"number": number, "text": TEXT}

    with Runtime.open(folder / "steps.db") as runtime, runtime.run("bench") as run:
        for number in range(STEPS):
            samples["floor"].append(timed(append))
            samples["step"].append(timed(partial(run.step, "work", work, number)))
            samples["effect"].append(timed(partial(run.effect, "send", work, number)))
    os.close(descriptor)
    return {name: figures(taken, samples["floor"]) for name, taken in samples.items()}


def latest_checkpoint(folder: Path, events: int) -> dict[str, object]:
    """The last checkpoint among so many events, while the log goes on growing."""
    store = SQLiteStore(folder / "many.db")
    batch = 1000
    writer = "w" * 32
    for first in range(0, events, batch):
        news = tuple(NewEvent("step.completed", f'{{"step":"s{first + n}"}}') for n in range(batch - 1))
        news += (NewEvent("checkpoint", '{"id":"c","name":""}'),)
        store.append(Append("many@1", news, writer, first + 1, "bench", 1, 1))
    samples = [timed(lambda: store.latest("checkpoints", "many@1")) for _ in range(2000)]
    store.close()
    ordered = sorted(samples)
    return {"events": events, "median_us": round(statistics.median(ordered), 1), "p99_us": round(ordered[1980], 1)}


RESUME = """
import sys, time
from pathlib import Path
from workpacket.runtime import Runtime
import workpacket.runtime.runtime, workpacket.runtime.stores.sqlite.store
began = time.perf_counter()
with Runtime.open(Path(sys.argv[1])) as runtime, runtime.run("resume") as run:
    for number in range(101):
        if number == 100:
            print((time.perf_counter() - began) * 1000)
        run.step("work", lambda: number)
    raise SystemExit
"""

STOPPED = RESUME.replace("range(101)", "range(100)")


def python(program: str, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(HERE.parent / "tools")}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout


def resume(folder: Path) -> dict[str, object]:
    """From opening the store to the first step that is not stored, 100 stored steps before it."""
    python(STOPPED, str(folder / "resume.db"))
    taken = [float(python(RESUME.replace("range(101)", f"range({100 + n})").replace("== 100", f"== {99 + n}"),
                          str(folder / "resume.db"))) for n in range(1, 8)]  # fmt: skip
    return {"median_ms": round(statistics.median(taken), 2), "worst_ms": round(max(taken), 2)}


def growth(folder: Path) -> dict[str, object]:
    """1,000 turns of 1 KB each: what the store takes on disk, while it is open and after."""

    def turn(number: int) -> str:
        return f"{number:06d}" + "y" * 1018

    path = folder / "growth" / "runs.db"
    with Runtime.open(path) as runtime:
        with runtime.run("talk") as run:
            for number in range(1000):
                run.step("turn", turn, number)
        opened = sum(file.stat().st_size for file in path.parent.iterdir())
    closed = sum(file.stat().st_size for file in path.parent.iterdir())
    return {"open_times": round(opened / 1_024_000, 2), "closed_times": round(closed / 1_024_000, 2)}


WRITER = """
import sys, time
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
print(waits)
"""


def eight_writers(folder: Path) -> dict[str, object]:
    path = folder / "eight.db"
    SQLiteStore(path).close()
    environment = os.environ | {"PYTHONPATH": str(HERE.parent / "tools")}
    command = [sys.executable, "-c", WRITER, str(path)]
    children = [
        subprocess.Popen([*command, f"w{number}"], stdout=subprocess.PIPE, text=True, env=environment)
        for number in range(8)
    ]
    outputs = [child.communicate()[0] for child in children]
    waits = sorted(wait for output in outputs if output for wait in json.loads(output))
    errors = sum(child.returncode != 0 for child in children)
    return {"errors": errors, "p99_ms": round(waits[int(len(waits) * 0.99)], 1), "worst_ms": round(waits[-1], 1)}


def peers(folder: Path) -> dict[str, object]:
    """The same step with each peer, in its own environment, in turns with the same floor."""
    results: dict[str, object] = {}
    for name, requirements in PEERS.items():
        with tempfile.TemporaryDirectory() as work:
            results[name] = asked(folder / name, requirements, HERE / f"runtime_peer_{name}.py", work)
    with tempfile.TemporaryDirectory() as work:  # both savers, in the environment of that peer
        program = HERE / "runtime_peer_growth.py"
        results["langgraph growth"] = asked(folder / "langgraph", PEERS["langgraph"], program, work)
    return results


def asked(place: Path, requirements: tuple[str, ...], program: Path, *arguments: str) -> object:
    """What the program of a peer prints last, as JSON; or why there is nothing. The environment is made if need be."""
    interpreter = place / "bin" / "python"
    try:
        if not interpreter.exists():
            venv.create(place, with_pip=True)
            install = [str(interpreter), "-m", "pip", "install", "-q", *requirements]
            subprocess.run(install, check=True, capture_output=True, timeout=PATIENCE)
        command = [str(interpreter), str(program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except (subprocess.SubprocessError, OSError) as error:
        return f"left out: {type(error).__name__}"
    try:
        return json.loads((done.stdout.strip().splitlines()[-1:] or [""])[0])
    except ValueError:
        return f"left out: {(done.stderr.strip().splitlines() or ['it says nothing'])[-1]}"


def many_runs(folder: Path, runs: int) -> dict[str, object]:
    """The list of so many finished runs, from a store that was just opened."""
    path = folder / "list.db"
    store = SQLiteStore(path)
    for number in range(runs):
        stream, writer = f"nightly@{number:08d}", f"w{number}"
        news = (NewEvent("run.started", '{"name":"nightly"}'), NewEvent("run.completed", '{"steps":3}'))
        store.append(Append(stream, news, writer, 1, "bench", 1, 1))
    store.close()
    with Runtime.open(path) as runtime:
        samples = [timed(runtime.runs) / 1000 for _ in range(5)]
    return {"runs": runs, "first_ms": round(samples[0], 1), "median_ms": round(statistics.median(samples), 1)}


def measure(results: Path, *, quick: bool, environments: Path | None = None, with_peers: bool = True) -> None:
    """Print the table and write the figures. Quick: fewer events, and no peers, which have to be installed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures_of: dict[str, object] = {
            "steps": steps_and_effects(folder),
            "latest_checkpoint": latest_checkpoint(folder, 20_000 if quick else 1_000_000),
            "resume": resume(folder),
            "growth": growth(folder),
            "eight_writers": eight_writers(folder),
            "list": many_runs(folder, 1000 if quick else 5000),
        }
        if with_peers and not quick:
            figures_of["peers"] = peers(environments or folder / "peers")
    for key, value in figures_of.items():
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for row, content in rows:
            print(f"{key:20} {row:28} {content}")
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(figures_of, indent=2) + "\n", "utf-8")
    print(f"\nwritten to {results}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "runtime.json", help="where the figures go")
    parser.add_argument("--peers", type=Path, help="keep the environments of the peers here")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--quick", action="store_true", help="fewer events, no peers")
    options = parser.parse_args()
    measure(options.json, quick=options.quick, environments=options.peers, with_peers=not options.no_peers)


if __name__ == "__main__":
    main()
