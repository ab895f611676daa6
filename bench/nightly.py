"""Runs the long proofs in full: each call of `.ci/nightly` runs one part, and the next call continues from there.

When its minutes are over, a part stops the step that is running, which becomes the first step of the next part. The
results and the output of each step are kept in build/nightly, for one commit. After the last step, the report is
written to bench/results/nightly.json, to be committed.

Exit status: 0 every step passed; 1 every step has ended, and one failed; 2 the tree has uncommitted changes, which a
report could not name; 3 steps are left: call it again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench import report
from bench.sides import ROOT
from bench.timing import stop_on_sigterm

PASSED, FAILED, CHANGED, UNFINISHED = 0, 1, 2, 3
MINUTES = 90
REPORT = "nightly.json"
# A session of nox in full, not the share that `.ci/run` runs.
SESSIONS = ("docs", "servers", "langgraph", "corpus", "report", "coverage", "package")
FUZZ_SECONDS = 3600
# What `just test` leaves out of long lists: tests/long_lists.py.
LONG_LISTS = ("-m", "long or share", "--lists=whole", "--numprocesses=auto", "--dist=worksteal")
NIGHTLY_PROFILE = ("-m", "hypothesis", "--hypothesis-profile=proof", "--numprocesses=auto", "--dist=worksteal")


class Step(NamedTuple):
    """A command of the nightly run; the report lists it by its name."""

    name: str
    command: Sequence[str]


def steps() -> list[Step]:
    """Yield every step in the order of execution: one for each function or class of tests/proof."""
    nox = (sys.executable, "-m", "nox", "--session")
    return [
        *(Step(test, (sys.executable, "-m", "pytest", test)) for test in _proofs()),
        Step("long lists", (sys.executable, "-m", "pytest", *LONG_LISTS)),
        Step("properties", (sys.executable, "-m", "pytest", *NIGHTLY_PROFILE)),
        *(Step(name, (*nox, name)) for name in SESSIONS),
        *(Step(f"mutation of {name}", (*nox, "mutation", "--", "--share", "1", name)) for name in _mutated()),
        Step("fuzz", (*nox, "fuzz", "--", str(FUZZ_SECONDS))),
        Step("bench", (sys.executable, "-m", "bench", "--save", "bench")),
    ]


def _proofs() -> list[str]:
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/proof", "--collect-only", "-q"],
        cwd=ROOT, env=_environment(), check=True, capture_output=True, text=True,
    )  # fmt: skip
    return names_of_tests(listed.stdout)


def names_of_tests(listed: str) -> list[str]:
    """Return the functions and classes whose tests `pytest --collect-only -q` lists, each once."""
    found = (re.match(r"tests/[^\s:]+::[^\s\[:]+", line) for line in listed.splitlines())
    return list(dict.fromkeys(match.group() for match in found if match))


def _mutated() -> list[str]:
    code = "from mutation.subjects import GROUPS; print(*(name for group in GROUPS for name in group.modules))"
    paths = os.pathsep.join((str(ROOT / "tests"), str(ROOT / "tools")))
    environment = {**os.environ, "PYTHONPATH": paths}
    listed = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return listed.stdout.split()


def _environment() -> dict[str, str]:
    """Return CI's environment, where a skipped test is a failure, but without limiting the proofs to CI's share."""
    return {name: value for name, value in os.environ.items() if name != "WORKPACKET_PROOF"} | {"CI": "true"}


class Progress:
    """The finished steps for one commit, written after every step, so that a killed part loses only one."""

    def __init__(self, folder: Path, conditions: report.Conditions) -> None:
        self._path = folder / REPORT
        self._found: dict[str, Any] = {**conditions, "parts": [], "steps": {}}
        with suppress(OSError, ValueError):
            before = json.loads(self._path.read_text("utf-8"))
            if before["commit"] == conditions["commit"] and before["machine"] == conditions["machine"]:
                self._found = before
        self._found["parts"].append({key: conditions[key] for key in ("started", "load at the start")})

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        """By name: whether the step passed, its seconds, and the end of its output if it failed."""
        steps: dict[str, dict[str, Any]] = self._found["steps"]
        return steps

    def left(self, among: Iterable[Step]) -> list[Step]:
        return [step for step in among if step.name not in self.steps]

    def add(self, step: Step, outcome: dict[str, Any]) -> None:
        self.steps[step.name] = outcome
        self.save(self._path)

    def end_part(self) -> None:
        self._found["parts"][-1] |= report.at_the_end()
        self.save(self._path)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self._found, indent=2) + "\n", "utf-8")


def main(
    arguments: Sequence[str] | None = None,
    chosen: Sequence[Step] | None = None,
    sources: Path = ROOT,
    folder: Path = ROOT / "build" / "nightly",
    results: Path = report.RESULTS,
) -> int:
    parser = argparse.ArgumentParser(".ci/nightly", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"how long this part may take, {MINUTES} at most"
    )
    words = list(sys.argv[1:] if arguments is None else arguments)
    seconds = min(parser.parse_args(words).minutes, MINUTES) * 60
    until = time.monotonic() + seconds
    conditions = report.conditions(words, sources, "bench.nightly")
    report.print_conditions(conditions)
    if conditions["uncommitted changes"]:
        print("uncommitted changes: commit them first, a report names the commit that it is of")
        return CHANGED
    progress = Progress(folder, conditions)
    every = steps() if chosen is None else chosen
    for number, step in enumerate(progress.left(every)):
        if time.monotonic() >= until:
            break
        print(f"{step.name}: ", end="", flush=True)
        outcome = run(step, folder, sources, until)
        if outcome["outcome"] == "stopped" and (number > 0 or seconds < MINUTES * 60):
            print("stopped at the end of this part; it is the first of the next one")
            break
        progress.add(step, outcome)
        print(f"{outcome['outcome']}, {outcome['seconds']:.0f} s", flush=True)
    progress.end_part()
    return _conclude(progress, every, results)


def _conclude(progress: Progress, every: Sequence[Step], results: Path) -> int:
    if left := progress.left(every):
        print(f"\n{len(left)} of {len(every)} steps are left; call this again")
        return UNFINISHED
    failed = [name for name, outcome in progress.steps.items() if outcome["outcome"] != "passed"]
    progress.save(results / REPORT)
    print(f"\nall {len(every)} steps have ended; the report is {results / REPORT}")
    for name in failed:
        print(f"failed: {name}")
    return FAILED if failed else PASSED


def run(step: Step, folder: Path, sources: Path, until: float) -> dict[str, Any]:
    """Report the state; `stopped` is a step that did not finish in its part. If it had the whole part, divide it."""
    began = time.monotonic()
    path = folder / (re.sub(r"[^\w.-]+", "-", step.name).strip("-") + ".log")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as output:
        child = subprocess.Popen(
            step.command, cwd=sources, env=_environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            status: int | None = child.wait(max(0.0, until - began))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(child)
    outcome: dict[str, Any] = {
        "outcome": "stopped" if status is None else "failed" if status else "passed",
        "seconds": round(time.monotonic() - began, 1),
    }
    if outcome["outcome"] != "passed":
        outcome["end of its output"] = list(_last_lines(path))
    return outcome


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the step and all processes that it started, such as servers and workers."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _last_lines(path: Path) -> Iterator[str]:
    """Remove the folders of this machine from the text, because the report is committed."""
    for line in path.read_text("utf-8", errors="replace").splitlines()[-15:]:
        yield line.replace(str(ROOT), ".").replace(str(Path.home()), "~")


if __name__ == "__main__":
    stop_on_sigterm()
    sys.exit(main())
