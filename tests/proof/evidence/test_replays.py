"""A hundred submissions are replayed in another clone: each comes to the verdict that it had where it was submitted.

As in CI, the account that WORKPACKET_REPLAY_AS names runs the commands, if root runs the tests and that account can run
this Python.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evidence.play import ADVERSARY, HOLLOW, HONEST, Case, clean, demands_of_case, policy_of, read_cases, scene
from git.scratch import git
from proof.share import share
from workpacket.git.repository import find_repository
from workpacket.lifecycle.contract import is_complete
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.proofs import folded
from workpacket.shell.governing import replay as module
from workpacket.shell.governing.contract_proofs import ContractProver, asked_of
from workpacket.shell.governing.proof_process import Account, account_of
from workpacket.shell.governing.replay import Recorded, replay

ACCEPTED = [case for path in (HONEST, ADVERSARY) for case in read_cases(path) if case.expect == "accepted"]
# Refused at the submission, and then written into the log by hand.
FORGED = [case for case in read_cases(HOLLOW) if all(proof["command"] for proof in case.proofs) and not case.stray]
CASES = [*ACCEPTED, *FORGED[:: len(FORGED) // (100 - len(ACCEPTED))]][:100]


def account(tmp_path: Path) -> Account | None:
    """The account that runs the commands, which can then reach the programs of a case."""
    name = os.environ.get("WORKPACKET_REPLAY_AS", "")
    for place in (tmp_path, *tmp_path.parents) if name else ():
        if place.stat().st_mode & 0o077 == 0:
            place.chmod(0o711)
    return account_of(name) if name else None


def test_there_are_a_hundred() -> None:
    assert len(CASES) == 100
    assert sum(case.expect == "refused" for case in CASES) > 20


@pytest.mark.parametrize("case", share(CASES), ids=lambda case: case.id)
def test_a_replay_comes_to_the_same_verdict(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    made = scene(case, tmp_path / "here")
    demands = {folded(each.criterion): each for each in demands_of_case(case) if is_complete(each)}
    here = ContractProver(
        made.repository, policy_of(case), clean(), made.environment, base=made.base, commit=made.commit
    )
    proved = here.prove([(each.criterion, asked_of(each)) for each in demands.values()])
    accepted = not any(one.judged.faults for one in proved)
    assert accepted is (case.expect == "accepted")
    rows = {folded(one.criterion): row_of(one.row, each.command, made.base, made.commit) | {"criterion": one.criterion}
            for one, each in zip(proved, demands.values(), strict=True)}  # fmt: skip
    elsewhere = tmp_path / "elsewhere"
    git(tmp_path, "clone", "--quiet", str(made.repository.root), str(elsewhere))
    monkeypatch.setattr(module, "demands_of", lambda _: demands)
    differences = replay(
        find_repository(elsewhere, {}), cast("PacketFacts", SimpleNamespace()), Recorded(made.commit, rows),
        policy_of(case), clean(), {**made.environment, "HOME": str(elsewhere)},
        account(tmp_path),
    )  # fmt: skip
    assert (differences == []) is accepted, differences


def row_of(row: Any, command: str, base: str, commit: str) -> dict[str, Any]:
    """What the log says; of a refused proof, what somebody wrote there who wanted it to pass."""
    forged = {"result": "met", "command": command, "runner": "pytest", "base": base, "commit": commit}
    return dict(row) or forged
