"""Branches brought together by git itself: nothing of the log and no word is lost, the board is as the log has it.

With the merge driver nothing is left to do; without it, `board sync` settles what git could not.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from git.scratch import copy_of, git
from lifecycle.governed import TOKENS_COUNT, Governed, Quiet, govern
from workpacket.lifecycle.starter_documents import MERGE_DRIVER

ROOT = Path(__file__).parents[2]
FIRST, SECOND, THIRD = "WP-1-Greeting-v1", "WP-1-Song-v1", "WP-1-Dance-v1"
NAMES = (FIRST, SECOND, THIRD)
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
LANES = {FIRST: "BLOCKED", SECOND: "IN_PROGRESS", THIRD: "IN_PROGRESS"}
NEW = "WP-2-Lamp-v1"


@pytest.fixture(scope="module")
def parting(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    """Two branches that have moved neighbours on the board, and written on it; `two` is checked out. Made once."""
    root = tmp_path_factory.mktemp("parted")
    with pytest.MonkeyPatch.context() as patch:
        governed = Quiet(root, None, govern(root, patch, None).clock)
        part(governed)
    return governed


@pytest.fixture
def parted(
    parting: Quiet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Governed:
    """A copy for one test."""
    governed = govern(copy_of(parting.root, tmp_path / "repository"), monkeypatch, capsys)
    governed.clock.now, governed.clock.count = parting.clock.now, parting.clock.count
    return governed


def part(governed: Governed) -> None:
    governed.begin()
    for name in NAMES:
        governed.activate(name)
    governed.write(BOARD, governed.read(BOARD).replace("# Task Board\n", "# Task Board\n\nOne line.\n\nAnother.\n"))
    governed.commit("three packets")
    governed.git("switch", "--quiet", "--create", "one")
    governed.done("block", FIRST, "--reason", "no water", "--until", "rain")
    governed.done("claim", THIRD, "--as", "first")
    governed.replace(BOARD, "One line.", "One line, by the first.")
    governed.replace(BOARD, "## In Progress\n", "## In Progress\n\nWords of the first.\n")
    governed.commit("one")
    governed.git("switch", "--quiet", "--create", "two", "main")
    governed.done("claim", SECOND, "--as", "second")
    governed.stub(NEW)
    governed.replace(BOARD, "Another.", "Another, by the second.")
    governed.commit("two")


def with_driver(governed: Governed) -> None:
    """As `init` says, with this Python and these sources in the place of the installed program."""
    _, _, key, command = shlex.split(MERGE_DRIVER)
    program = "import sys; from workpacket.cli.main import main; sys.exit(main(sys.argv[1:]))"
    run = f"PYTHONPATH={shlex.quote(str(ROOT / 'tools'))} {shlex.quote(sys.executable)} -c {shlex.quote(program)}"
    git(governed.root, "config", key, command.replace("workpacket", run, 1))


def assert_all_is_said(governed: Governed, lanes: dict[str, str] = LANES) -> None:
    board, registry = governed.read(BOARD), governed.read(REGISTRY)
    for name, lane in lanes.items():
        assert governed.state(name).lane == lane
        assert board.count(f"**[{name}]** - [{lane}]") == 1
        assert board.count(name) == 1
        assert len([line for line in registry.splitlines() if f": {name} |" in line]) == 1
    governed.done("check", "--fail-on", "warning")


def assert_all_words_are_kept(governed: Governed) -> None:
    board = governed.read(BOARD)
    for words in ("One line, by the first.", "Another, by the second.", "Words of the first."):
        assert board.count(words) == 1
    assert "\nOne line.\n" not in board
    assert "\nAnother.\n" not in board


def parted_in_an_added_lane(governed: Governed) -> None:
    """One branch hands a packet in, which brings it to a lane of the policy; the other, checked out, claims another."""
    lane = '\n[lifecycle.lanes.SELF_TEST]\nafter = "IN_PROGRESS"\nbefore = "IN_REVIEW"\n'
    governed.begin(policy=lane + TOKENS_COUNT)
    governed.done("board", "sync")
    for name in (FIRST, SECOND):
        governed.activate(name)
    governed.work(FIRST)
    governed.done("submit", FIRST, "--as", "coder", "--prove", "all=true")
    governed.commit("handed in")
    governed.git("switch", "--quiet", "--create", "two", "main")
    governed.done("claim", SECOND, "--as", "second")
    governed.commit("two")


ADDED = {FIRST: "SELF_TEST", SECOND: "IN_PROGRESS"}


def test_with_the_driver_branches_merge_in_added_lanes(governed: Governed) -> None:
    parted_in_an_added_lane(governed)
    with_driver(governed)
    governed.git("merge", "--quiet", "--message", "merged", f"wp/{FIRST}")
    assert_all_is_said(governed, ADDED)
    assert f"## Self Test\n- **[{FIRST}]** - [SELF_TEST]\n" in governed.read(BOARD)


def test_without_the_driver_board_sync_knows_the_added_lanes(governed: Governed) -> None:
    parted_in_an_added_lane(governed)
    git(governed.root, "merge", "--quiet", "--message", "merged", f"wp/{FIRST}", check=False)
    governed.done("board", "sync")
    governed.git("add", "--update", ".GOV")
    governed.git("-c", "core.editor=true", "merge", "--continue")
    assert_all_is_said(governed, ADDED)


def test_with_the_driver_a_merge_leaves_nothing_to_do(parted: Governed) -> None:
    with_driver(parted)
    parted.git("merge", "--quiet", "--message", "merged", "one")
    assert_all_is_said(parted)
    assert_all_words_are_kept(parted)
    assert "everything agrees with the log" in parted.done("board", "sync").out


def test_it_does_not_matter_which_side_is_merged_into_which(parted: Governed) -> None:
    with_driver(parted)
    parted.git("switch", "--quiet", "one")
    parted.git("merge", "--quiet", "--message", "merged", "two")
    assert_all_is_said(parted)
    assert_all_words_are_kept(parted)


@pytest.mark.parametrize("onto", ["one", "main"])
def test_with_the_driver_a_rebase_leaves_nothing_to_do(parted: Governed, onto: str) -> None:
    with_driver(parted)
    parted.git("switch", "--quiet", "main")
    parted.git("merge", "--quiet", "--message", "merged", "one")
    parted.git("switch", "--quiet", "two")
    parted.git("rebase", "--quiet", onto)
    assert_all_is_said(parted)
    assert_all_words_are_kept(parted)


def test_with_the_driver_a_cherry_pick_brings_over_what_one_commit_says_and_no_more(parted: Governed) -> None:
    with_driver(parted)
    parted.done("packet", "abandon", NEW, "--reason", "dark enough")
    parted.commit("two again")
    parted.git("switch", "--quiet", "one")
    parted.git("cherry-pick", "two~1")
    assert_all_is_said(parted, {**LANES, NEW: "STUB"})
    assert_all_words_are_kept(parted)
    parted.git("cherry-pick", "two")
    assert_all_is_said(parted, {**LANES, NEW: "ABANDONED"})


def test_with_the_driver_stashed_work_comes_back_upon_other_work(parted: Governed) -> None:
    with_driver(parted)
    parted.done("packet", "release", SECOND, "--as", "second", "--reason", "ill")
    parted.git("stash", "--quiet", "--include-untracked")
    parted.git("merge", "--quiet", "--message", "merged", "one")
    parted.git("stash", "pop", "--quiet")
    assert_all_is_said(parted, {**LANES, SECOND: "READY_FOR_DEV"})


def test_a_packet_that_moved_on_both_sides_keeps_our_status_until_somebody_settles_it(governed: Governed) -> None:
    governed.begin()
    governed.activate(FIRST)
    governed.done("claim", FIRST, "--as", "coder", "--branch", "b")
    governed.commit("claimed")
    governed.git("switch", "--quiet", "--create", "one")
    governed.done("block", FIRST, "--reason", "no water", "--until", "rain")
    governed.commit("one")
    governed.git("switch", "--quiet", "--create", "two", "main")
    governed.done("packet", "release", FIRST, "--as", "coder", "--reason", "ill")
    governed.replace(f".GOV/task_packets/{FIRST}.md", "SEARCH_TERMS: x", "SEARCH_TERMS: hello")
    governed.commit("two")
    with_driver(governed)
    governed.git("merge", "--quiet", "--message", "merged", "one")
    assert governed.state(FIRST).forked
    packet = governed.read(f".GOV/task_packets/{FIRST}.md")
    assert "**Status:** Ready for Dev" in packet  # nobody can say which counts, so it is ours, and no conflict
    assert "SEARCH_TERMS: hello" in packet
    governed.done("packet", "resolve", FIRST, "--lane", "READY_FOR_DEV", "--reason", "nobody has it")
    governed.done("check", "--fail-on", "error")


def test_two_moves_of_one_packet_that_follow_each_other_need_no_person(governed: Governed) -> None:
    governed.begin()
    governed.activate(FIRST)
    governed.commit("a packet")
    governed.git("switch", "--quiet", "--create", "one")
    governed.done("claim", FIRST, "--as", "coder", "--branch", "b")
    governed.commit("claimed")
    governed.git("switch", "--quiet", "--create", "two")
    governed.done("packet", "release", FIRST, "--as", "coder", "--reason", "ill")
    governed.commit("released")
    governed.git("switch", "--quiet", "one")
    path = f".GOV/task_packets/{FIRST}.md"
    governed.replace(path, "**Status:** In Progress", "**Status:** In Review")  # a hand edit, on the line that two has
    governed.commit("a hand edit")
    with_driver(governed)
    governed.git("merge", "--quiet", "--message", "merged", "two")
    assert "**Status:** Ready for Dev" in governed.read(path)
    assert_all_is_said(governed, {FIRST: "READY_FOR_DEV"})


def test_words_that_contradict_each_other_in_a_packet_stay_a_conflict_between_people(parted: Governed) -> None:
    path = f".GOV/task_packets/{FIRST}.md"
    parted.replace(path, "SEARCH_TERMS: x", "SEARCH_TERMS: two")
    parted.commit("terms")
    parted.git("switch", "--quiet", "one")
    parted.replace(path, "SEARCH_TERMS: x", "SEARCH_TERMS: one")
    parted.commit("terms")
    with_driver(parted)
    git(parted.root, "merge", "--quiet", "--message", "merged", "two", check=False)
    assert parted.git("diff", "--name-only", "--diff-filter=U") == path
    text = parted.read(path)
    assert "<<<<<<< ours" in text
    assert "**Status:** Blocked" in text
    assert parted.done("board", "sync").next == f"resolve the remaining conflicts in {path} by hand"
    assert parted.read(path) == text
    parted.write(path, re.sub(r"(?s)<{7}.*?={7}\n(.*?)>{7} theirs\n", r"\1", text))
    assert parted.done("board", "sync").next == f"git add {path} && git merge --continue"


def test_without_the_driver_board_sync_settles_what_the_merge_left(parted: Governed) -> None:
    assert git(parted.root, "merge", "--quiet", "--message", "merged", "one", check=False) is not None
    assert BOARD in parted.git("diff", "--name-only", "--diff-filter=U")
    assert parted.done("board", "sync").next == f"git add {BOARD} {REGISTRY} && git merge --continue"
    parted.git("add", "--update", ".GOV")
    parted.git("-c", "core.editor=true", "merge", "--continue")
    assert_all_is_said(parted)
    board = parted.read(BOARD)
    for words in ("One line, by the first.", "Another, by the second.", "Words of the first."):
        assert words in board


def test_without_the_driver_board_sync_settles_what_the_rebase_left(parted: Governed) -> None:
    git(parted.root, "rebase", "--quiet", "one", check=False)
    assert parted.done("board", "sync").next == f"git add {BOARD} {REGISTRY} && git rebase --continue"
    parted.git("add", "--update", ".GOV")
    parted.git("-c", "core.editor=true", "rebase", "--continue")
    assert_all_is_said(parted)


@pytest.mark.parametrize("style", ["merge", "diff3"])
def test_without_the_driver_a_status_that_both_sides_changed_is_settled(governed: Governed, style: str) -> None:
    governed.begin()
    governed.activate(FIRST)
    governed.commit("a packet")
    path = f".GOV/task_packets/{FIRST}.md"
    governed.git("switch", "--quiet", "--create", "one")
    governed.done("claim", FIRST, "--as", "coder", "--branch", "b")
    governed.commit("claimed")
    governed.git("switch", "--quiet", "--create", "two", "main")
    governed.replace(path, "**Status:** Ready for Dev", "**Status:** Done")
    governed.commit("a hand edit")
    git(governed.root, "-c", f"merge.conflictStyle={style}", "merge", "--message", "merged", "one", check=False)
    before = governed.read(path)
    assert "<<<<<<< HEAD" in before
    assert ("|||||||" in before) == (style == "diff3")
    governed.done("board", "sync")
    assert governed.read(path) == governed.git("show", f"one:{path}") + "\n"


def test_what_stands_in_a_conflict_that_nobody_can_read_is_left_alone(governed: Governed) -> None:
    governed.begin()
    governed.stub(FIRST)
    marks = "<<<<<<< a\nTitle\n=======\nx\n=======\ny\n>>>>>>> b\n"
    governed.write(BOARD, governed.read(BOARD) + marks)
    before = governed.read(BOARD)
    governed.done("board", "sync")
    assert governed.read(BOARD) == before


def test_a_driver_that_finds_no_commits_keeps_the_lines_of_both_sides_and_says_so(parted: Governed) -> None:
    versions = {"base": "main", "ours": "two", "theirs": "one"}
    for file, commit in versions.items():
        parted.write(f"../{file}", parted.git("show", f"{commit}:{BOARD}") + "\nmore\n")
    try:
        result = parted("board", "merge-driver", "../base", "../ours", "../theirs", BOARD)
        text = parted.read("../ours")
    finally:
        for file in versions:
            (parted.root / ".." / file).unlink()
    assert (result.status, "merged without the log" in result.err) == (0, True)
    assert result.next == "workpacket board sync"
    assert all(text.count(f"[{name}]") >= 1 for name in NAMES)


@pytest.mark.parametrize("words", [[], ["a", "b", "c"], ["a", "b", "c", "d", "seven"]])
def test_a_driver_called_otherwise_than_by_git_says_how(governed: Governed, words: list[str]) -> None:
    assert governed("board", "merge-driver", *words).status == 2


# What is typed in the middle of a merge, and refused there.
REFUSED = (
    ("init",), ("new", NEW), ("refine", NEW), ("activate", FIRST), ("create-task-packet", FIRST), ("claim", FIRST),
    ("release", FIRST, "--reason", "x"), ("handover", FIRST, "--to", "bob", "--reason", "x"),
    ("verdict", FIRST, "CHANGES", "--reference", "x"), ("merged", FIRST), ("reopen", FIRST, "--reason", "x"),
    ("block", FIRST, "--reason", "x", "--until", "y"), ("unblock", FIRST),
    ("supersede", FIRST, "--by", SECOND), ("abandon", FIRST, "--reason", "x"),
    ("waive", FIRST, "evidence_missing", "--reason", "x", "--until", "2026-12-01"),
    ("override", FIRST, "evidence_missing", "--reason", "x", "--until", "2026-12-01"),
    ("resolve", FIRST, "--lane", "STUB", "--reason", "x"), ("adopt",),
    ("prepare", SECOND, "--branch", "fresh"),
    ("submit", FIRST, "--prove", "all=true"), ("board", "move", FIRST, "BLOCKED"),
)  # fmt: skip
LOOKING = (
    ("status",), ("next",), ("why", FIRST), ("show", FIRST), ("history", FIRST), ("board", "show"),
    ("registry", "show"), ("policy", "show"), ("log", "verify"), ("list",),
)  # fmt: skip


def test_in_the_middle_of_a_merge_or_rebase_only_what_draws_or_looks_is_done(parted: Governed) -> None:
    for begin, end in ((("merge", "one"), "merge"), (("rebase", "one"), "rebase")):
        git(parted.root, *begin, check=False)
        before, branches = parted.files(), parted.git("branch", "--list")
        for words in REFUSED:
            result = parted(*words)
            assert (words, result.status) == (words, 4), result
            assert "operation_in_progress" in result.err, result
        assert (parted.files(), parted.git("branch", "--list")) == (before, branches)
        for words in LOOKING:
            assert parted(*words).status in {0, 1}, words
        assert parted.files() == before
        parted.done("board", "registry", "sync")
        parted.done("board", "sync")
        parted.git(end, "--abort")


def test_the_same_packet_claimed_on_two_branches_is_forked_and_can_be_settled(governed: Governed) -> None:
    governed.begin()
    governed.activate(FIRST)
    governed.commit("a packet")
    for branch in ("one", "two"):
        governed.git("switch", "--quiet", "--create", branch, "main")
        governed.done("claim", FIRST, "--as", branch)
        governed.commit(branch)
    governed.git("merge", "--quiet", "--message", "merged", "one")
    assert governed.state(FIRST).forked
    assert governed.refused("packet", "release", FIRST, "--reason", "x") == ["packet_is_forked"]
    assert "packet_forked" in governed("check").out
    governed.done("packet", "resolve", FIRST, "--lane", "IN_PROGRESS", "--reason", "one began first")
    governed.done("check", "--fail-on", "error")
    assert governed.state(FIRST).lane == "IN_PROGRESS"


def test_line_ends_of_the_log_are_left_alone_by_git(governed: Governed) -> None:
    governed.begin()
    governed.stub(FIRST)
    governed.commit("a stub")
    event = governed.state(FIRST).history[0]
    assert governed.git("check-attr", "text", event.path).endswith("text: unset")


def test_no_command_sets_the_driver_uninvited(governed: Governed) -> None:
    before = (governed.root / ".git" / "config").read_bytes()
    assert MERGE_DRIVER in governed.done("init", "--form", "full").out
    assert (governed.root / ".git" / "config").read_bytes() == before
    done = subprocess.run(["git", "config", "--get", "merge.workpacket.driver"], cwd=governed.root, check=False)
    assert done.returncode == 1
    assert "merge.workpacket" not in os.environ.get("GIT_CONFIG_PARAMETERS", "")
