"""Files of reports are read and removed only inside of the tree that is proved, and only if they are plain files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from workpacket.shell.governing.contract_proofs import _Reports, _texts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of a POSIX system")
REPORT = "<testsuite><testcase name='a'/></testsuite>"


def test_a_link_leads_to_no_report(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    for folder in (outside, tree / "real"):
        folder.mkdir(parents=True)
        (folder / "a.xml").write_text(REPORT)
    (tree / "linked").symlink_to(outside)
    (tree / "b.xml").symlink_to(outside / "a.xml")
    reports = _Reports(str(tree), ["**/*.xml", "../outside/*.xml", str(outside / "*.xml")])
    assert reports.read() == [REPORT.encode()]
    reports.remove()
    assert (outside / "a.xml").exists()
    assert not (tree / "real/a.xml").exists()


def test_a_pipe_or_a_link_in_the_place_of_a_report_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.jsonl")
    (tmp_path / "2.jsonl").write_text("two")
    (tmp_path / "3.jsonl").symlink_to(tmp_path / "2.jsonl")
    (tmp_path / "4.jsonl").mkdir()
    assert _texts(map(str, tmp_path.iterdir())) == ["two"]
