"""A secret of the process that judges is unreadable for the commands of the change, if another account runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evidence.play import HONEST as LIST
from evidence.play import Case, faults_as, read_cases

CANARY = "canary-5f1d2c"
# What a curious test looks at: its own environment, that of every process, and files of who judges.
SPY = """
import glob
import os
import unittest
from pathlib import Path

from src.greet import ciao


def read(place):
    try:
        return Path(place).read_bytes()
    except OSError:
        return b''


class TestCiao(unittest.TestCase):
    def test_ciao(self):
        self.assertEqual(ciao('Ann'), 'Ciao Ann')
        places = [*glob.glob('/proc/[0-9]*/environ'), *glob.glob('/proc/[0-9]*/cmdline'), PLACE]
        self.assertEqual([place for place in places if CANARY in read(place)], [])
        self.assertNotIn(CANARY, repr(dict(os.environ)).encode())
"""
DRIVER = """
import json, sys
from pathlib import Path
from proof.evidence.test_canary import judge_as
print(json.dumps(judge_as(sys.argv[1], Path(sys.argv[2]))))
"""


def spying(secret: Path) -> Case:
    honest = next(case for case in read_cases(LIST) if case.id == "feature")
    text = SPY.replace("PLACE", repr(str(secret))).replace("CANARY", repr(CANARY.encode()))
    # One that every account may run: ours may lie in a home.
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    proof = {"criterion": "It says Ciao.", "command": f"{python} -m unittest tests.test_ciao"}
    work = {**honest.work, "tests/__init__.py": "", "tests/test_ciao.py": text}
    return Case(**{**vars(honest), "work": work, "proofs": [proof]})


def judge_as(name: str, folder: Path) -> list[str]:
    from workpacket.shell.governing.proof_process import account_of

    return faults_as(spying(folder / "secret"), folder, account_of(name) if name else None)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can run the commands as another")
@pytest.mark.parametrize(("name", "finds"), [("nobody", False), ("", True)])
def test_a_canary_is_seen_only_by_its_own_account(name: str, finds: bool, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    secret.chmod(0o600)
    environment = {**os.environ, "SECRET": CANARY, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", DRIVER, name, str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert bool(found) is finds, found
    assert not finds or "proc" in found[0] or "secret" in found[0]
