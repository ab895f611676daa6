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

from mutation.changes import Change
from mutation.equivalents import EQUIVALENT, outdated
from mutation.forks import answer_of
from mutation.fresh import try_afresh
from mutation.subjects import GROUPS, WANTED, Group, changes_of
from mutation.warm import Session, Touch, Try, run_pytest

LOADED = (cryptography, hypothesis, jsonschema)  # what every test needs and no change touches


class Score:
    """What became of the changes of each module.

    Of those noticed, some `ended` the process without a failed test: the module could not be loaded, or no test ended.
    """

    def __init__(self) -> None:
        self.noticed: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.survived: Counter[str] = Counter()
        self.equivalent: Counter[str] = Counter()

    def show(self, modules: Sequence[str]) -> float:
        """Prints the table; the share of all changes that was noticed."""
        print(f"{'module':34}{'noticed':>8}{'of':>6}{'score':>8}{'ended':>7}{'equivalent':>12}")
        for module in modules:
            self._show(module, *(each[module] for each in self._counted))
        noticed, survived = self.noticed.total(), self.survived.total()
        self._show("all", *(each.total() for each in self._counted))
        return noticed / max(1, noticed + survived)

    @property
    def _counted(self) -> tuple[Counter[str], ...]:
        return self.noticed, self.survived, self.ended, self.equivalent

    def _show(self, name: str, noticed: int, survived: int, ended: int, equivalent: int) -> None:
        tried = noticed + survived
        score = f"{noticed / tried:.1%}" if tried else "-"
        print(f"{name:34}{noticed:8}{tried:6}{score:>8}{ended:7}{equivalent:12}")


Name = tuple[str, int]


class Trial:
    """The changes of one group that are in the share, and what became of each: first warm, then, if need be, afresh."""

    def __init__(self, group: Group, share: int) -> None:
        self._group, self._share = group, share
        self._excused = {entry[:4] for entry in EQUIVALENT}

    def run(self, score: Score) -> bool:
        """False if the tests fail without any change."""
        touch, noticed = answer_of(self._in_warm_session)
        if touch is None or touch.failed:
            print("the tests fail as it is:", *(touch.failed if touch else ["they cannot be collected"]))
            return False
        for (module, number), change in self._chosen():
            if (module, *change.name) in self._excused:
                score.equivalent[module] += 1
            elif by := noticed[module, number] or try_afresh(module, change, touch):
                score.noticed[module] += 1
                score.ended[module] += by not in touch.seconds
            else:
                score.survived[module] += 1
                place = f"{module}:{change.lines.start} in {change.where or 'the module'}"
                print(f"survived: {place}\n  - {change.before}\n  + {change.now}")
        return True

    def _in_warm_session(self) -> tuple[Touch | None, dict[Name, str | None]]:
        told: list[Touch] = []
        noticed: dict[Name, str | None] = {}

        def work(touch: Touch, attempt: Try) -> None:
            told.append(touch)
            for name, change in () if touch.failed else self._chosen():
                if (name[0], *change.name) not in self._excused:
                    noticed[name] = attempt(name[0], change)

        run_pytest(self._group.tests, Session(self._group.modules, work))
        return (told[0] if told else None), noticed

    def _chosen(self) -> Iterator[tuple[Name, Change]]:
        for module in self._group.modules:
            for number, change in enumerate(changes_of(module)):
                if change.is_in_share(self._share):
                    yield (module, number), change


def main(share: int, only: Sequence[str]) -> int:
    if gone := outdated():
        print("no change fits these entries of equivalents.py any longer:", *gone, sep="\n  ")
        return 2
    began, score = time.monotonic(), Score()
    tried: list[str] = []
    for group in GROUPS:
        modules = tuple(module for module in group.modules if not only or module in only)
        if modules and not Trial(Group(modules, group.tests), share).run(score):
            return 2
        tried += modules
    reached = score.show(tried)
    print(f"one change in {share}, {time.monotonic() - began:.0f} s")
    return int(reached < WANTED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m mutation")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="try one change in N")
    parser.add_argument("modules", nargs="*", help="such as approvals/fields.py; all if none is named")
    wanted = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main(wanted.share, wanted.modules))
