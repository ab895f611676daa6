"""Rows of the table, printed and written as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.peers import NotInstallable
from bench.timing import CommandFailed, Timing


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, or why there is none. `target` is what we want to reach, in milliseconds unless it says so."""

    group: str
    name: str
    timing: Timing | None
    target: str = ""
    missing: str = ""

    @property
    def verdict(self) -> str:
        """Whether the target is met, where it is a number: of wall-clock time, or of processor time if it says CPU."""
        number, _, of = self.target.partition(" ")
        if self.timing is None or not number.isdecimal():
            return ""
        return "met" if (self.timing.cpu if of == "CPU" else self.timing.wall) <= int(number) else "missed"


def row(group: str, name: str, run: Callable[[], object], *, target: object = "", floor: bool = False) -> Row:
    """Measures; a peer that is not to be had here is a row without figures."""
    label = f"{name} (floor)" if floor and "floor" not in name else name
    try:
        timing = run()
    except (NotInstallable, CommandFailed) as error:
        return Row(group, label, None, str(target), str(error))
    assert isinstance(timing, Timing)
    return Row(group, label, timing, str(target))


def show(rows: Iterable[Row], results: Path) -> None:
    """Prints each row as soon as it is there, and writes them all when they are."""
    done: list[Row] = []
    print(f"{'':18}{'':44}{'wall ms':>10}{'least':>10}{'CPU ms':>10}  {'target':9} verdict")
    for each in rows:
        done.append(each)
        if each.timing is None:
            print(f"{each.group:18}{each.name:44}{'not measured':>30}  {each.missing}")
            continue
        figures = "".join(f"{figure:10.1f}" for figure in (each.timing.wall, each.timing.least, each.timing.cpu))
        print(f"{each.group:18}{each.name:44}{figures}  {each.target:9} {each.verdict}".rstrip(), flush=True)
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(
        json.dumps([{**asdict(each), "verdict": each.verdict} for each in done], indent=2) + "\n", encoding="utf-8"
    )
    print(f"\nwritten to {results}")
