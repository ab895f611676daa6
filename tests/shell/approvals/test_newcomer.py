"""In an empty repository, from `init` to VALIDATED, only by what each command says comes next; with a real key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shell.approvals.newcomer import NAME, newcomer_in
from shell.approvals.test_tutorial import environment_of

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")


def test_a_newcomer_gets_from_nothing_to_validated_by_what_is_said_next(tmp_path: Path) -> None:
    newcomer = newcomer_in(tmp_path / "greeter", environment_of(tmp_path))
    screen = newcomer.follow("workpacket init --form full", until=f"{NAME} is VALIDATED")
    assert "verdict.given by eve" in screen
    assert f"workpacket approve {NAME} --gate activation" in newcomer.typed
