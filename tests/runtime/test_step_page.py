"""The page about step checkpoints is true: its programs are run, and what its table names exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from runtime import test_step
from workpacket.runtime.errors import LogDamaged

PAGE = ROOT / "docs" / "runtime" / "step.md"
BLOCK = re.compile(r"^```(?P<info>\S+(?: [^\n]*)?)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (?P<subtask>T\d+)[^|]* \| (?P<code>[^|]*) \| (?P<tests>[^|]*) \|$", re.MULTILINE)


def test_the_examples_are_what_happens(tmp_path: Path) -> None:
    played = 0
    for match in BLOCK.finditer(PAGE.read_text("utf-8")):
        info, body = match["info"], match["body"]
        named = re.search(r"file=(\S+)", info)
        if named is not None:
            (tmp_path / named[1]).write_text(body, "utf-8")
            continue
        command = [sys.executable, *body.splitlines()[0].removeprefix("$ python ").split()]
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) == ("exits-with-error" in info), done.stderr
        assert [*done.stdout.splitlines(), *done.stderr.splitlines()[-2:]] == body.splitlines()[1:]
        played += 1
    assert played == 4


ROWS = {row["subtask"]: row for row in ROW.finditer(PAGE.read_text("utf-8"))}


def test_every_subtask_has_a_row() -> None:
    assert list(ROWS) == ["T030", "T031", "T032", "T033", "T034", "T035"]


@pytest.mark.parametrize("subtask", ROWS)
def test_the_code_and_the_tests_of_a_subtask_exist(subtask: str) -> None:
    code = re.findall(r"`([\w.]+)\.(\w+)`", ROWS[subtask]["code"])
    tests = re.findall(r"`(\w+)`", ROWS[subtask]["tests"])
    assert code
    assert tests
    for module, name in code:
        found = import_module(f"workpacket.runtime.{module}")
        assert hasattr(found, name)
        assert name in Path(str(found.__file__)).read_text("utf-8")
    for name in tests:
        assert callable(getattr(test_step, name))


def test_every_reason_on_the_page_is_one_that_the_tests_see() -> None:
    seen = Path(test_step.__file__).read_text("utf-8") + LogDamaged.default_code
    codes = re.findall(r"(?:asks|blocks), `(\w+)`", PAGE.read_text("utf-8"))
    assert len(codes) == 8
    assert [code for code in codes if code not in seen] == []
