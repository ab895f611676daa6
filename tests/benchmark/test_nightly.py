"""`.ci/nightly` runs its steps in parts that go on where one stopped, and leaves a report that says what it is of."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import nightly
from bench.nightly import FAILED, PASSED, UNFINISHED, Step

from architecture.source_tree import ROOT
from benchmark.programs import write_package


class Place:
    """A repository and the folders of its nightly runs."""

    def __init__(self, root: Path) -> None:
        self.repository, self.results = root / "repository", root / "results"
        self._folder = root / "progress"
        self.commit = write_package(self.repository, 0)

    def run(self, *steps: Step, words: tuple[str, ...] = ()) -> int:
        return nightly.main(words, steps, self.repository, self._folder, self.results)

    def times(self, name: str) -> int:
        """How often the step of this name began."""
        path = self.results.with_name(name)
        return len(path.read_text()) if path.exists() else 0

    def step(self, name: str, then: str = "pass") -> Step:
        code = f"open({str(self.results.with_name(name))!r}, 'a').write('x'); {then}"
        return Step(name, [sys.executable, "-c", code])

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.results / nightly.REPORT).read_text())
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly, "MINUTES", 0.03)


def test_the_report_names_commit_machine_and_every_step(place: Place) -> None:
    assert place.run(place.step("one"), place.step("two")) == PASSED

    assert place.report["commit"] == place.commit
    assert place.report["machine"].keys() >= {"processor", "cores", "system", "python"}
    assert {name: step["outcome"] for name, step in place.report["steps"].items()} == {"one": "passed", "two": "passed"}
    assert [part.keys() for part in place.report["parts"]] == [
        {"started", "load at the start", "load at the end", "ended"}
    ]


def test_a_failed_step_fails_the_run_when_all_have_ended_and_shows_its_output(place: Place) -> None:
    failing = place.step("failing", "print('no such file: ' + __import__('os').getcwd()); raise SystemExit(4)")

    assert place.run(failing, place.step("after")) == FAILED
    assert place.times("after") == 1
    assert place.report["steps"]["failing"]["end of its output"] == [f"no such file: {place.repository}"]


@pytest.mark.long
def test_a_part_goes_on_where_the_last_one_stopped(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    slow = place.step(
        "slow",
        f"import os, time; time.sleep(60 if os.path.getsize({str(place.results.with_name('slow'))!r}) == 1 else 0)",
    )
    steps = (place.step("quick"), slow)

    assert place.run(*steps, words=("--minutes", "0.03")) == UNFINISHED
    assert "1 of 2 steps are left" in capsys.readouterr().out
    assert not place.results.exists()

    assert place.run(*steps) == PASSED
    assert (place.times("quick"), place.times("slow")) == (1, 2)
    assert len(place.report["parts"]) == 2


@pytest.mark.long
@pytest.mark.usefixtures("short_parts")
def test_a_step_that_takes_longer_than_a_part_is_a_failure_not_a_loop(place: Place) -> None:
    steps = (place.step("endless", "import time; time.sleep(60)"), place.step("after"))

    assert place.run(*steps) == UNFINISHED
    assert place.run(*steps) == FAILED
    assert place.times("endless") == 1
    assert place.report["steps"]["endless"]["outcome"] == "stopped"


def test_another_commit_begins_again(place: Place) -> None:
    assert place.run(place.step("one")) == PASSED
    place.commit = write_package(place.repository, 0.001)
    assert place.run(place.step("one")) == PASSED

    assert place.times("one") == 2
    assert place.report["commit"] == place.commit


def test_a_report_is_only_made_of_what_is_committed(place: Place) -> None:
    (place.repository / "new.py").touch()

    assert place.run(place.step("one")) == nightly.CHANGED
    assert place.times("one") == 0


def test_steps_run_the_whole_numbers_and_take_no_skip(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPACKET_PROOF", "bounded")
    asked = "import os; raise SystemExit('WORKPACKET_PROOF' in os.environ or os.environ['CI'] != 'true')"

    assert place.run(place.step("one", asked)) == PASSED


def test_functions_and_classes_are_listed_once() -> None:
    folder = "tests/proof/a/test_b.py"
    listed = (
        f"{folder}::test_c[x::y z]\n{folder}::test_c[2]\n{folder}::K::test_d\n{folder}::K::test_e\n\n4 tests collected"
    )

    assert nightly.names_of_tests(listed) == [f"{folder}::test_c", f"{folder}::K"]


def test_every_session_of_a_step_exists() -> None:
    noxfile = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))

    assert {*nightly.SESSIONS, "mutation", "fuzz"} <= {
        each.name for each in noxfile.body if isinstance(each, ast.FunctionDef) and each.decorator_list
    }
