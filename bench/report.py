"""Prints and saves the figures with their commit, machine and command."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.comparing import Compared
from bench.rows import Measured
from bench.sides import ROOT

RESULTS = ROOT / "bench" / "results"
Conditions = dict[str, object]


def conditions(arguments: Sequence[str], sources: Path, module: str = "bench") -> Conditions:
    """Return what the figures depend on, as far as it is known."""
    return {
        "command": shlex.join(["python", "-m", module, *arguments]),
        "commit": _git(sources, "rev-parse", "HEAD"),
        "uncommitted changes": bool(_git(sources, "status", "--porcelain", "--", ".", ":!bench/results")),
        "machine": _machine(),
        "started": _now(),
        "load at the start": _load(),
    }


def at_the_end() -> Conditions:
    return {"load at the end": _load(), "ended": _now()}


def print_conditions(found: Conditions) -> None:
    for name, value in found.items():
        shown = ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, Mapping) else value
        print(f"{name}: {shown}")
    print(flush=True)


def print_heading() -> None:
    print(f"{'row':38}{'wall ms':>10}{'least':>10}{'CPU ms':>10}{'x floor':>9}  {'target':8} verdict")


def print_measured(row: Measured) -> None:
    if row.missing:
        print(f"{row.row.name:38}not measured: {row.missing}", flush=True)
        return
    figures = dict(row.figures)
    columns = [figures.pop(name, None) for name in ("wall_ms", "least_wall_ms", "cpu_ms")]
    times = figures.pop("times_floor", figures.pop("times_floor_wall", None))
    cells = "".join(f"{_milliseconds(value):>10}" for value in columns)
    others = ", ".join(f"{name} {value:.4g}" for name, value in figures.items() if not name.startswith("times_floor_"))
    ratio = "" if times is None else f"{times:.2f}"
    line = f"{row.row.name:38}{cells}{ratio:>9}  {row.row.target:8} {row.verdict:8}{others}"
    print(line.rstrip(), flush=True)


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def print_compared(row: Compared) -> None:
    intervals = "; ".join(
        f"{name} {each.median:.3f} [{each.low:.3f}, {each.high:.3f}]" for name, each in row.intervals.items()
    )
    print(f"{row.row.name:38}{row.verdict:14}{row.missing or intervals}", flush=True)


def measured_as_json(row: Measured) -> dict[str, object]:
    found = {"name": row.row.name, "kind": row.row.kind, "target": row.row.target, "verdict": row.verdict}
    return {**found, "floor": row.row.floor, "figures": row.figures, "samples": row.samples, "missing": row.missing}


def compared_as_json(row: Compared) -> dict[str, object]:
    intervals = {figure: asdict(interval) for figure, interval in row.intervals.items()}
    return {"name": row.row.name, "verdict": row.verdict, "ratios": intervals, "missing": row.missing}


def result_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid name: use lower-case letters, digits and dashes")
    return text


def save(path: Path, found: Conditions, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {**found, **at_the_end(), "rows": rows}
    path.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


def _machine() -> dict[str, object]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "git": _git(ROOT, "version").rpartition(" ")[2],
    }


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or platform.machine()


def _load() -> list[float]:
    return [round(value, 1) for value in os.getloadavg()]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
