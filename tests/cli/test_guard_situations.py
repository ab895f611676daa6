"""`guard` in situations that git and agents bring about: other indexes, merges, work trees, stale caches, odd calls."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.test_guard import LISTS, World, world

__all__ = ["world"]
SITUATIONS = [json.loads(line) for line in (LISTS / "situations.jsonl").read_text("utf-8").splitlines()]
_PROGRAM = '#!/bin/sh\nexec {python} -m workpacket "$@"\n'


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "workpacket"
    program.write_text(_PROGRAM.format(python=sys.executable), "utf-8")
    program.chmod(0o755)
    return folder


@pytest.mark.share(8)
@pytest.mark.parametrize("case", SITUATIONS, ids=lambda case: case["id"])
def test_the_guard_answers_as_listed(case: dict[str, Any], world: World, programs: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(world.root, root, symlinks=True)
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "WORKPACKET_ACTOR": "coder",
    }

    def run(script: str) -> subprocess.CompletedProcess[bytes]:
        command = ["sh", "-c", script]
        return subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False, timeout=60)

    for name, text in (("user.name", "Coder"), ("user.email", "coder@example.org")):
        run(f"git config {name} {text}")
    before = run(f"set -e; {case['before']}")
    assert before.returncode == 0, before.stderr.decode()
    done = run(case["run"])
    said = (done.stdout + done.stderr).decode(errors="replace")
    wanted = case["status"]
    if wanted == "not 0":
        assert done.returncode != 0, said
    else:
        assert str(done.returncode) in str(wanted).split(" or "), said
    assert "Traceback" not in said
    assert any(one in said for one in case["says"].split("|")), said
