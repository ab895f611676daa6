"""docs/runtime/temporal.md is what happens: its programs are run, and its tables are compared with the code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from temporal.server import TemporalServer
from workpacket.temporal.fitness import Code

PAGE = (Path(__file__).parents[2] / "docs" / "runtime" / "temporal.md").read_text("utf-8")
PRINTED = "charged 42 for order-14"


def test_the_programs_print_what_the_page_says(temporal_server: TemporalServer, tmp_path: Path) -> None:
    for name, body in re.findall(r"^```python file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(body, "utf-8")
    assert f"print `{PRINTED}`" in PAGE
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TEMPORAL_ADDRESS": temporal_server.address,
    }  # fmt: skip
    for program in ("embedded.py", "worker.py"):
        done = subprocess.run(
            [sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout == f"{PRINTED}\n", done.stderr
        # The SDK sometimes aborts a program that has ended, which the page says.
        aborted = (
            done.returncode == -signal.SIGABRT and "PyGILState_Release" in done.stderr and "finalizing" in done.stderr
        )
        assert done.returncode == 0 or aborted, done.stderr
    assert "PyGILState_Release" in PAGE


@pytest.mark.parametrize("code", get_args(Code))
def test_each_code_of_the_checker_is_explained(code: str) -> None:
    assert f"| `{code}` |" in PAGE


def test_the_page_lists_no_other_code() -> None:
    (table,) = re.findall(r"^\| code \| what it is \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(get_args(Code))
