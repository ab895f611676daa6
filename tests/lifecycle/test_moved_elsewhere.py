"""A clone reads what others have pushed: nothing is moved that a branch of the remote has already moved on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from git.scratch import git
from lifecycle.governed import Governed
from workpacket.git.repository import find_repository
from workpacket.shell.claim_refs import ClaimRefs, RemoteClaim

NAME = "WP-1-Greeting-v1"
BRANCH = "origin/wp/parser"
HERE = ("--branch", "wp/bob")


@pytest.fixture
def pushed(governed: Governed) -> Governed:
    """A clone whose remote has a branch with ann's claim; the clone itself is on main, without the claim."""
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    _push(governed, "main", "HEAD")
    governed.git("switch", "-q", "-c", "wp/parser")
    governed.done("claim", NAME, "--as", "ann")
    governed.commit("claimed")
    _push(governed, "wp/parser", "HEAD")
    governed.git("switch", "-q", "main")
    governed.git("branch", "-q", "-D", "wp/parser")
    return governed


def _push(governed: Governed, branch: str, commit: str) -> None:
    """What a push and a fetch leave behind."""
    governed.git("update-ref", f"refs/remotes/origin/{branch}", commit)


def test_a_claim_on_a_branch_of_the_remote_holds_here_too(pushed: Governed) -> None:
    refused = pushed("claim", NAME, "--as", "bob", *HERE)
    assert (refused.status, refused.codes) == (3, ["moved_elsewhere"])
    assert f"{BRANCH} has a later move of {NAME}: claimed by ann" in refused.err
    assert f"git merge {BRANCH}" in refused.err
    assert "git push origin --delete wp/parser" in refused.err


def test_after_the_merge_that_the_refusal_names_the_holder_is_known(pushed: Governed) -> None:
    pushed.git("merge", "-q", BRANCH)
    assert pushed("claim", NAME, "--as", "bob", *HERE).status == 3
    pushed.done("packet", "release", NAME, "--as", "ann", "--reason", "ill")


def test_a_branch_that_was_deleted_stops_nobody(pushed: Governed) -> None:
    pushed.git("update-ref", "-d", f"refs/remotes/{BRANCH}")
    pushed.done("claim", NAME, "--as", "bob", *HERE)


def test_a_lease_that_has_ended_there_stops_nobody(pushed: Governed) -> None:
    pushed.clock.turn(days=30)
    pushed.done("claim", NAME, "--as", "bob", *HERE)


def test_work_that_was_handed_in_there_does_not_end_with_the_lease(pushed: Governed) -> None:
    pushed.git("switch", "-q", "-c", "wp/parser", BRANCH)
    pushed.write("src/a.py", "1\n")
    pushed.commit("work")
    pushed.done("submit", NAME, "--as", "ann", "--prove", "all=true")
    pushed.commit("submitted")
    _push(pushed, "wp/parser", "HEAD")
    pushed.git("switch", "-q", "main")
    pushed.git("branch", "-q", "-D", "wp/parser")
    pushed.clock.turn(days=30)
    assert pushed("claim", NAME, "--as", "bob", *HERE).codes == ["moved_elsewhere"]


def test_a_branch_that_already_contradicts_this_one_stops_nobody(pushed: Governed) -> None:
    pushed.git("update-ref", "refs/remotes/origin/elsewhere", BRANCH)
    pushed.git("update-ref", "-d", f"refs/remotes/{BRANCH}")
    pushed.git("config", "remote.origin.url", ".")
    pushed.clock.turn(days=30)
    pushed.done("claim", NAME, "--as", "bob", *HERE)
    pushed.commit("claimed again")
    pushed.done("packet", "block", NAME, "--as", "bob", "--reason", "no data", "--waits-for", "data")


def test_a_revert_of_landed_events_is_no_later_move(pushed: Governed) -> None:
    pushed.git("merge", "-q", "--no-ff", "-m", "land", BRANCH)
    pushed.git("revert", "--no-edit", "-m", "1", "HEAD")
    assert "moved_elsewhere" not in pushed("claim", NAME, "--as", "bob", *HERE).codes


def test_a_note_is_no_move_and_is_written(pushed: Governed) -> None:
    pushed.done("packet", "note", NAME, "Look at the old parser first.", "--as", "bob")


def test_why_names_the_branch_before_anything_else(pushed: Governed) -> None:
    first = pushed.json("why", NAME)["data"]["unmet"][0]
    assert first["code"] == "moved_elsewhere"
    assert pushed.done("why", NAME).next.startswith(f"git merge {BRANCH}")


@pytest.mark.parametrize("command", [("status",), ("next",), ("board", "show")], ids=" ".join)
def test_who_looks_is_told_that_a_branch_of_the_remote_is_ahead(pushed: Governed, command: tuple[str, ...]) -> None:
    said = pushed(*command)
    assert said.status == 0
    assert f"{NAME} ({BRANCH})" in said.out


def test_show_says_what_to_merge(pushed: Governed) -> None:
    assert f"git merge {BRANCH}" in pushed.done("show", NAME).out


def test_next_offers_no_work_that_a_branch_of_the_remote_has_begun(pushed: Governed) -> None:
    assert NAME not in [row["id"] for row in pushed.json("next")["data"]["ready"]]


def test_nothing_is_said_of_branches_whose_events_are_all_here(pushed: Governed) -> None:
    pushed.git("merge", "-q", "--squash", BRANCH)
    pushed.commit("landed")
    for command in ("status", "next", "board show"):
        assert BRANCH not in pushed(*command.split()).out


def test_json_lists_them(pushed: Governed) -> None:
    assert pushed.json("status")["data"]["elsewhere"] == [{"id": NAME, "branch": BRANCH}]


@pytest.fixture
def hub(governed: Governed, tmp_path: Path) -> Path:
    """The bare repository that the clone follows; bob has another clone of it."""
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    bare = tmp_path / "hub.git"
    git(tmp_path, "clone", "-q", "--bare", str(governed.root), str(bare))
    governed.git("remote", "add", "origin", str(bare))
    governed.git("fetch", "-q")
    return bare


def _claim_of_bob(hub: Path, folder: Path, until: str) -> None:
    git(folder, "clone", "-q", str(hub), "bob")
    refs = ClaimRefs(find_repository(folder / "bob"), "origin", "refs/workpacket/claims/{id}")
    refs.take(RemoteClaim(NAME, "bob", "lease of bob", until), "2026-03-01T00:00:00Z", ())


@pytest.mark.parametrize("command", ["status", "next"])
def test_fetching_shows_what_others_have_claimed(governed: Governed, hub: Path, tmp_path: Path, command: str) -> None:
    _claim_of_bob(hub, tmp_path, "2026-03-09T00:00:00Z")
    assert "bob" not in governed.done(command).out
    shown = governed.done(command, "--fetch").out
    assert f"Claimed in other clones: 1 packet: {NAME} (bob, until 2026-03-09T00:00:00Z)" in shown
    assert f"claim {NAME}" not in shown
    # What was fetched stays known.
    assert "bob" in governed.done(command).out
    claims = governed.json(command)["data"]["claims"]
    assert [(one["id"], one["holder"], one["until"]) for one in claims] == [(NAME, "bob", "2026-03-09T00:00:00Z")]
    assert claims[0]["seen"].endswith("Z")


def test_why_names_the_holder_in_another_clone(governed: Governed, hub: Path, tmp_path: Path) -> None:
    _claim_of_bob(hub, tmp_path, "2026-03-09T00:00:00Z")
    said = governed.done("why", NAME, "--fetch").out
    assert f"bob holds {NAME} in another clone, until 2026-03-09T00:00:00Z" in said
    assert "according to origin at 20" in said


def test_a_claim_that_has_ended_or_was_deleted_is_not_shown(governed: Governed, hub: Path, tmp_path: Path) -> None:
    _claim_of_bob(hub, tmp_path, "2026-03-02T00:00:00Z")
    assert "bob" in governed.done("next", "--fetch").out
    governed.clock.turn(days=2)
    assert "bob" not in governed.done("next").out
    governed.clock.turn(days=-2)
    git(hub, "update-ref", "-d", f"refs/workpacket/claims/{NAME}")
    assert "bob" not in governed.done("next", "--fetch").out


def test_a_fetch_brings_the_branches_too(governed: Governed, hub: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(hub), "bob")
    git(tmp_path / "bob", "push", "-q", "origin", "HEAD:refs/heads/wp/of-bob")
    governed.done("next", "--fetch")
    assert governed.git("rev-parse", "origin/wp/of-bob")


def test_without_an_answer_of_the_remote_what_is_known_is_shown_and_said_to_be_old(
    governed: Governed, hub: Path
) -> None:
    hub.rename(hub.with_name("gone.git"))
    said = governed("next", "--fetch")
    assert said.status == 0
    assert NAME in said.out
    assert re.search(
        r"note: origin was not fetched \(.+\); branches and claims are shown as of the last fetch", said.err
    )


def test_without_a_remote_there_is_nothing_to_fetch(governed: Governed) -> None:
    governed.begin()
    assert "note: there is no remote to fetch from" in governed("status", "--fetch").err
