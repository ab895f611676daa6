"""The command `key`, with a real terminal and a real agent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shell.agents import add_to_agent, make_key_file, running_agent
from shell.approvals.story import ALICE, BOB, CAROL, Story

PHRASE = (("Enter passphrase", "correct horse"), ("same passphrase again", "correct horse"))


def test_a_key_is_made_with_a_passphrase_and_its_line_is_shown(story: Story) -> None:
    typed = story.type(["key", "init", "--principal", "dora@example.org"], *PHRASE)
    assert typed.status == 0, typed.screen
    assert (story.home / ".ssh/workpacket_approval").exists()
    assert 'dora@example.org namespaces="workpacket-approval@v1" ssh-ed25519 AAAA' in typed.screen
    again = story.type(["key", "init", "--principal", "dora@example.org"])
    assert (again.status, "(key_exists)" in again.screen) == (4, True)


def test_a_key_without_a_passphrase_is_not_kept(story: Story) -> None:
    typed = story.type(
        ["key", "init", str(story.home / "own"), "--principal", "dora@example.org"],
        ("Enter passphrase", ""),
        ("same passphrase again", ""),
    )
    assert (typed.status, "(key_without_passphrase)" in typed.screen) == (6, True)
    assert not (story.home / "own").exists()
    assert not (story.home / "own.pub").exists()


@pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="a real agent is asked")
def test_the_doctor_says_yes_for_a_key_in_the_agent_and_no_without(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_agent(monkeypatch):
        clear = story.run("key", "doctor")
        add_to_agent(story.keys[ALICE])
        exposed = story.run("key", "doctor")
        found = story.json("key", "doctor")
    assert (clear.status, clear.out.splitlines()[0]) == (0, "an agent on this account could approve: NO")
    assert (exposed.status, exposed.out.splitlines()[0]) == (1, "an agent on this account could approve: YES")
    assert [finding["code"] for finding in found["findings"]] == ["agent_could_approve"]
    assert "the ssh-agent signed without asking" in exposed.out


def test_a_key_that_nobody_trusts_does_not_count(story: Story) -> None:
    (story.home / ".ssh").mkdir()
    make_key_file(story.home / ".ssh" / "id_ed25519")
    assert story.run("key", "doctor").status == 0


def test_the_list_names_persons_and_roles(story: Story) -> None:
    shown = story.run("key", "list").out
    assert [line.split("  ")[0] for line in shown.splitlines()[:3]] == [ALICE, BOB, CAROL]
    assert "roles: operator" in shown
    assert [row["roles"] for row in story.json("key", "list")["data"]["signers"]] == [
        ["approver"],
        ["approver"],
        ["operator"],
    ]


def test_without_a_policy_every_key_counts_and_the_doctor_says_so(story: Story, tmp_path: Path) -> None:
    from git.scratch import make_repository

    make_repository(tmp_path / "empty")
    (story.home / ".ssh").mkdir()
    make_key_file(story.home / ".ssh" / "id_ed25519")
    bare = Story(tmp_path / "empty", story.home)
    shown = bare.run("key", "doctor")
    assert shown.status == 1
    assert "the base has no allowed_signers yet" in shown.out
    assert bare.run("key", "list").status == 3
