"""With `claim --remote`, two people on two clones cannot both claim a packet."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from git.scratch import commit, git, make_repository
from lifecycle.world import adopted
from workpacket.cli.main import main
from workpacket.lifecycle.board_sync import sync
from workpacket.problem import WorkpacketError
from workpacket.shell import actor
from workpacket.value import replace

NAME = "WP-1-Parser-v1"


class Ended(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)["data"]


class Clones:
    """The clones of ann and bob, and the hub between them."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.capture, self.monkeypatch = folder, capture, monkeypatch
        make_repository(folder / "first")
        world = adopted({NAME: "READY_FOR_DEV"})
        world.do(sync)
        for path, data in world.files.items():
            (folder / "first" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "first" / path).write_bytes(data)
        commit(folder / "first", "start")
        git(folder, "clone", "--quiet", "--bare", "first", "hub.git")
        for who in ("ann", "bob"):
            git(folder, "clone", "--quiet", "hub.git", who)
            git(folder / who, "switch", "--quiet", "--create", f"work-of-{who}")

    def __call__(self, who: str, *words: str) -> Ended:
        self.monkeypatch.chdir(self.folder / who)
        self.capture.readouterr()
        return Ended(main([*words, "--as", who]), *self.capture.readouterr())

    def claims(self) -> str:
        return git(self.folder / "hub.git", "for-each-ref", "--format=%(refname)", "refs/workpacket/")


@pytest.fixture
def clones(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Clones:
    return Clones(tmp_path, capsys, monkeypatch)


def test_the_second_to_claim_is_told_who_was_first(clones: Clones) -> None:
    assert clones("ann", "claim", NAME, "--remote", "--json").data["shared_claim"] == "taken"
    refused = clones("bob", "claim", NAME, "--remote")
    assert refused.status == 3
    assert f"ann holds {NAME} in another clone, until " in refused.err
    assert "(claimed_by_other)" in refused.err
    assert git(clones.folder / "bob", "status", "--porcelain") == ""


def test_the_claim_outlasts_the_work_until_its_log_is_merged(clones: Clones) -> None:
    clones("ann", "claim", NAME, "--remote")
    assert clones("ann", "packet", "release", NAME, "--reason", "ill").status == 0
    assert clones("bob", "claim", NAME, "--remote").status == 3
    git(clones.folder / "ann", "add", "--all")
    git(clones.folder / "ann", "commit", "--quiet", "-m", "log")
    git(clones.folder / "ann", "push", "--quiet", "origin", "HEAD:main")
    git(clones.folder / "bob", "pull", "--quiet", "origin", "main")
    assert clones("bob", "claim", NAME, "--remote", "--json").data["shared_claim"] == "taken"


def test_the_holder_renews_what_the_remote_has(clones: Clones, monkeypatch: pytest.MonkeyPatch) -> None:
    clones("ann", "claim", NAME, "--remote")
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    monkeypatch.setattr(actor, "read_clock", lambda clock=actor.read_clock: replace(clock(), now=later))
    before = git(clones.folder / "hub.git", "rev-parse", clones.claims())
    assert clones("ann", "claim", NAME, "--remote", "--renew", "--json").data["shared_claim"] == "taken"
    assert git(clones.folder / "hub.git", "rev-parse", clones.claims()) != before


def test_without_its_remote_a_claim_holds_in_this_clone_only_and_says_so(clones: Clones) -> None:
    (clones.folder / "hub.git").rename(clones.folder / "away")
    claimed = clones("ann", "claim", NAME, "--remote")
    assert claimed.status == 0
    assert "local only: origin did not decide" in claimed.out


def test_a_claim_asks_no_remote_unless_the_command_line_says_so(clones: Clones) -> None:
    assert clones("ann", "claim", NAME).status == 0
    assert clones.claims() == ""
    assert clones("bob", "claim", NAME, "--remote").status == 0
    assert clones.claims() == f"refs/workpacket/claims/{NAME}"


def decided_by_policy(clones: Clones, text: str) -> None:
    """The policy of main, which everyone has."""
    folder = clones.folder / "ann"
    policy = folder / ".GOV/policy/policy.toml"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(f"[lifecycle]\n{text}\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "policy")
    git(folder, "push", "--quiet", "origin", "HEAD:main")
    git(clones.folder / "bob", "pull", "--quiet", "origin", "main")


def test_with_the_policy_every_claim_asks_the_remote(clones: Clones) -> None:
    decided_by_policy(clones, 'claims = "remote"')
    assert clones("ann", "claim", NAME, "--json").data["shared_claim"] == "taken"
    refused = clones("bob", "claim", NAME)
    assert (refused.status, "(claimed_by_other)" in refused.err) == (3, True)


def test_the_policy_names_a_branch_where_only_branches_can_be_pushed(clones: Clones) -> None:
    decided_by_policy(clones, 'claims = "remote"\nclaim_ref = "refs/heads/claims/{id}"')
    assert clones("ann", "claim", NAME).status == 0
    assert clones.claims() == ""
    assert git(clones.folder / "hub.git", "for-each-ref", "--format=%(refname)", f"refs/heads/claims/{NAME}")
    assert f"git push origin :refs/heads/claims/{NAME}" in clones("bob", "claim", NAME).err


@pytest.mark.parametrize("text", ['claims = "someone"', 'claim_ref = "refs/heads/claims"', 'claim_ref = "claims/{id}"'])
def test_a_policy_about_claims_that_cannot_be_followed_is_left_out_and_reported(clones: Clones, text: str) -> None:
    decided_by_policy(clones, text)
    assert clones("ann", "check").status == 2
    assert clones("ann", "claim", NAME).status == 0
    assert clones.claims() == ""


def test_a_claim_that_was_not_written_is_given_back(clones: Clones, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise WorkpacketError("file_unwritable", "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("workpacket.shell.transactions.transaction.Transaction.apply", full)
        assert clones("ann", "claim", NAME, "--remote").status == 6
    assert clones.claims() == ""
    assert clones("bob", "claim", NAME, "--remote").status == 0


def test_start_asks_the_remote_too(clones: Clones) -> None:
    for who in ("ann", "bob"):
        git(clones.folder / who, "switch", "--quiet", "main")
    started = clones("ann", "start", NAME, "--remote", "--json")
    assert (started.status, started.data["shared_claim"]) == (0, "taken")
    refused = clones("bob", "start", NAME, "--remote")
    assert (refused.status, "(claimed_by_other)" in refused.err) == (3, True)
