"""The tour plays to its end: each of its commands ends as the tour says, or it stops."""

from __future__ import annotations

import os
import subprocess
import sys

from architecture.source_tree import ROOT


def test_the_tour_plays_to_its_end() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(ROOT / "tools" / "tour.py"), "--fast"]
    played = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    for code in ("registry_board_stale", "hint_text_left", "field_empty", "signature_malformed", "stub_old_family"):
        assert code in played.stdout
    assert "The repository is yours to look at:" in played.stdout
