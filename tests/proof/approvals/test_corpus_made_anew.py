"""The generator of the attack corpus still makes what it says, with the ssh-keygen of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corpora.attacks.case_files import complaint_about
from corpora.attacks.generate import all_cases, generate


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="the generator signs with ssh-keygen")
def test_a_corpus_made_anew_is_judged_alike(tmp_path: Path) -> None:
    assert generate(tmp_path) == len(all_cases())
    complaints = (complaint_about(tmp_path / case.name) for case in all_cases())
    assert [complaint for complaint in complaints if complaint] == []
