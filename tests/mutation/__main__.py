"""The command: tries the changes, shows what survived and the score of each module."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import cryptography.hazmat.primitives.asymmetric.ec
import cryptography.hazmat.primitives.serialization
import hypothesis
import jsonschema

from mutation.changes import Change, changes
from mutation.equivalents import EQUIVALENT
from mutation.forks import answer_of
from mutation.fresh import try_afresh
from mutation.subjects import GROUPS, PACKAGE, WANTED, Group
from mutation.warm import Session, Touch, Try, run_pytest

LOADED = (cryptography, hypothesis, jsonschema)  # what every test needs and no change touches


class Score:
    """What became of the changes of each module."""

    def __init__(self) -> None:
        self.noticed: Counter[str] = Counter()
        self.survived: Counter[str] = Counter()
        self.equivalent: Counter[str] = Counter()

    def show(self, modules: Sequence[str]) -> float:
        """Prints the table; the share of all changes that was noticed."""
        print(f"{'module':34}{'noticed':>8}{'of':>6}{'score':>8}{'equivalent':>12}")
        for module in modules:
            self._show(module, self.noticed[module], self.survived[module], self.equivalent[module])
        noticed, survived = self.noticed.total(), self.survived.total()
        self._show("all", noticed, survived, self.equivalent.total())
        return noticed / max(1, noticed + survived)

    def _show(self, name: str, noticed: int, survived: int, equivalent: int) -> None:
        tried = noticed + survived
        print(f"{name:34}{noticed:8}{tried:6}{noticed / max(1, tried):8.1%}{equivalent:12}")


def of_module(module: str) -> Iterator[tuple[int, Change]]:
    return enumerate(changes((PACKAGE / module).read_text("utf-8")))


def try_group(group: Group, share: int, score: Score) -> bool:
    """False if the tests fail without any change."""
    excused = {tuple(entry[:4]) for entry in EQUIVALENT}
    noticed: dict[tuple[str, int], str | None] = {}
    told: list[Touch] = []

    def chosen() -> Iterator[tuple[str, int, Change]]:
        for module in group.modules:
            for number, change in of_module(module):
                if change.is_in_share(share):
                    yield module, number, change

    def in_warm_session() -> tuple[list[Touch], dict[tuple[str, int], str | None]]:
        def work(touch: Touch, attempt: Try) -> None:
            told.append(touch)
            for module, number, change in () if touch.failed else chosen():
                if (module, *change.name) not in excused:
                    noticed[module, number] = attempt(module, change)

        run_pytest(group.tests, Session(group.modules, work))
        return told, noticed

    told, noticed = answer_of(in_warm_session)
    if not told or told[0].failed:
        print("the tests fail as it is:", *(told[0].failed if told else ["they cannot be collected"]))
        return False
    for module, number, change in chosen():
        if (module, *change.name) in excused:
            score.equivalent[module] += 1
        elif noticed[module, number] or try_afresh(
            module, change.tree, change.lines if change.in_function else (), told[0]
        ):
            score.noticed[module] += 1
        else:
            score.survived[module] += 1
            print(f"survived: {module}:{change.lines.start} in {change.where}\n  - {change.before}\n  + {change.now}")
    return True


def outdated() -> list[str]:
    """Entries of `EQUIVALENT` that fit no change."""
    existing = {(module, *change.name) for module in {entry.module for entry in EQUIVALENT}
                for _, change in of_module(module)}  # fmt: skip
    return [f"{entry.module} in {entry.where}: {entry.now}" for entry in EQUIVALENT if entry[:4] not in existing]


def main(share: int, only: Sequence[str]) -> int:
    if gone := outdated():
        print("no change fits these entries of equivalents.py any longer:", *gone, sep="\n  ")
        return 2
    began, score = time.monotonic(), Score()
    tried: list[str] = []
    for group in GROUPS:
        modules = tuple(module for module in group.modules if not only or module in only)
        if modules and not try_group(Group(modules, group.tests), share, score):
            return 2
        tried += modules
    reached = score.show(tried)
    print(f"one change in {share}, {time.monotonic() - began:.0f} s")
    return int(reached < WANTED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m mutation")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="try one change in N")
    parser.add_argument("modules", nargs="*", help="such as approvals/wire.py; all if none is named")
    wanted = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main(wanted.share, wanted.modules))
