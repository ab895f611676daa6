"""Bad input and faults, as issue 3 lists them: each has a code, a sentence, a remedy and a status; no byte changes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifecycle.governed import Governed
from workpacket.git.repository import find_repository
from workpacket.shell.transactions.transaction import writing

NAME, NEXT, OTHER = "WP-1-Greeting-v1", "WP-1-Greeting-v2", "WP-1-Song-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
POINTER = ".GOV/roles_shared/SPEC_CURRENT.md"
ABANDON = ("abandon", NAME, "--reason", "x")

Prepare = Callable[[Governed], object]


def stub(governed: Governed) -> None:
    governed.stub(NAME)


def pointer_missing(governed: Governed) -> None:
    stub(governed)
    (governed.root / POINTER).unlink()
    governed.commit("without the pointer")


def specification_missing(governed: Governed) -> None:
    stub(governed)
    (governed.root / ".GOV/spec/SPEC_v1.md").unlink()
    governed.commit("without the specification")


def section_missing(governed: Governed) -> None:
    stub(governed)
    governed.replace(BOARD, "## Superseded (Archive)", "## Attic")


def table_malformed(governed: Governed) -> None:
    governed.replace(REGISTRY, "| Base WP ID |", "| Something else |")


def stub_superseded(governed: Governed) -> None:
    stub(governed)
    governed.stub(NEXT)
    governed.done("packet", "supersede", NAME, "--by", NEXT)


def stub_gone(governed: Governed) -> None:
    stub(governed)
    (governed.root / f".GOV/task_packets/stubs/{NAME}.md").unlink()


def packet_there(governed: Governed) -> None:
    stub(governed)
    governed.write(f".GOV/task_packets/{NAME}.md", "# Task Packet: written by hand\n")


def refinement_of_another(governed: Governed) -> None:
    stub(governed)
    governed.refine(NAME)
    governed.replace(f".GOV/refinements/{NAME}.md", f"WP_ID: {NAME}", f"WP_ID: {OTHER}")


def merging(governed: Governed) -> None:
    stub(governed)
    governed.write(".git/MERGE_HEAD", "0" * 40 + "\n")


def rebasing(governed: Governed) -> None:
    stub(governed)
    (governed.root / ".git/rebase-merge").mkdir()


def detached(governed: Governed) -> None:
    governed.activate(NAME)
    governed.commit("activated")
    governed.git("checkout", "--quiet", "--detach")


def detached_at_work(governed: Governed) -> None:
    governed.activate(NAME)
    governed.work(NAME)
    governed.git("checkout", "--quiet", "--detach")


def branch_of_another(governed: Governed) -> None:
    governed.activate(NAME)
    governed.activate(OTHER)
    governed.done("packet", "prepare", OTHER, "--for", "coder")
    governed.work(NAME)
    governed.git("switch", "--quiet", f"wp/{OTHER}")
    governed.git("merge", "--quiet", f"wp/{NAME}")


def linked(governed: Governed) -> None:
    stub(governed)
    (governed.root / ".GOV").rename(governed.root / "elsewhere")
    (governed.root / ".GOV").symlink_to("elsewhere")


def clock_behind(governed: Governed) -> None:
    stub(governed)
    governed.clock.turn(days=-1)


def no_git(governed: Governed) -> None:
    stub(governed)
    (governed.root / ".git").rename(governed.root / "git-of-another-name")


FAULTS: dict[str, tuple[Prepare, tuple[str, ...], int, str]] = {
    "unknown id": (stub, ("abandon", "WP-1-Greting-v1", "--reason", "x"), 2, "packet_unknown"),
    "stub by its base": (stub, ("activate", "WP-1-Greeting"), 2, "packet_ambiguous"),
    "stub exists": (stub, ("new", NAME), 3, "packet_exists"),
    "packet exists": (packet_there, ("activate", NAME), 3, "packet_exists"),
    "stub superseded": (stub_superseded, ("activate", NAME), 3, "packet_superseded"),
    "stub gone": (stub_gone, ("activate", NAME), 3, "stub_missing"),
    "refinement of another": (refinement_of_another, ("refine", NAME, "--present"), 3, "refinement_incomplete"),
    "pointer missing": (pointer_missing, ("refine", NAME), 3, "spec_pointer_missing"),
    "specification missing": (specification_missing, ("refine", NAME), 3, "specification_unreadable"),
    "section missing": (section_missing, ABANDON, 3, "board_section_absent"),
    "table malformed": (table_malformed, ("new", NAME), 3, "registry_table_absent"),
    "merge in progress": (merging, ABANDON, 4, "operation_in_progress"),
    "rebase in progress": (rebasing, ABANDON, 4, "operation_in_progress"),
    "detached HEAD, claiming": (detached, ("claim", NAME), 3, "work_branch_missing"),
    "detached HEAD, submitting": (
        detached_at_work, ("submit", NAME, "--as", "coder", "--prove", "all=true"), 3, "other_work_branch",
    ),
    "branch of another packet": (
        branch_of_another, ("submit", NAME, "--as", "coder", "--prove", "all=true"), 3, "other_work_branch",
    ),
    **{
        f"{words[0]} on the branch of another packet": (branch_of_another, words, 3, "other_work_branch")
        for words in (
            ("claim", NAME, "--as", "coder", "--renew"), ("release", NAME, "--reason", "x", "--as", "coder"),
            ("handover", NAME, "--to", "x", "--reason", "x", "--as", "coder"), ("verdict", NAME, "PASS"),
            ("merged", NAME), ("reopen", NAME, "--reason", "x"), ("block", NAME, "--reason", "x", "--until", "y"),
            ("unblock", NAME), ("abandon", NAME, "--reason", "x"),
        )
    },
    "no git": (no_git, ABANDON, 6, "no_repository"),
    "linked .GOV": (linked, ABANDON, 6, "path_is_link"),
    "clock backwards": (clock_behind, ABANDON, 6, "clock_behind"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_code_its_status_and_a_remedy(governed: Governed, fault: str) -> None:
    prepare, words, status, code = FAULTS[fault]
    governed.begin()
    prepare(governed)
    before = governed.files()
    told = governed.json(*words)
    assert governed.files() == before
    assert (told["exit_code"], told["ok"]) == (status, False), told
    (found, *_) = [finding for finding in told["findings"] if finding["code"] == code]
    assert found["message"]
    assert found["hint"]


def test_the_backlog_may_be_worked_on_from_the_branch_of_any_packet(governed: Governed) -> None:
    governed.begin()
    branch_of_another(governed)
    governed.stub("WP-1-Found-v1")
    governed.refine("WP-1-Found-v1")
    for words in (
        ("why", NAME),
        ("show", NAME),
        ("check",),
        ("board", "sync"),
        ("refine", "WP-1-Found-v1", "--present"),
    ):
        assert governed(*words).codes != ["other_work_branch"]
    governed.git("switch", "--quiet", "main")
    governed.done("block", NAME, "--reason", "x", "--until", "y")


def test_who_follows_what_is_said_can_hand_in_from_a_work_tree(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("trees") / "song"
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    governed.done("packet", "prepare", NAME, "--for", "coder", "--worktree", str(place))
    commit, merge, enter, *_ = governed.done("claim", NAME, "--as", "coder").next.split(", then: ")
    assert commit == "commit the governed files"
    governed.commit("claimed")
    governed.git(*shlex.split(merge)[1:], "--quiet")
    assert (governed.root / enter.removeprefix("cd ")).resolve() == place.resolve()
    (place / "src").mkdir(exist_ok=True)
    (place / "src/greet.py").write_text("print('hello')\n")
    governed.git("-C", str(place), "add", "--all")
    governed.git("-C", str(place), "commit", "--quiet", "--message", "work")
    with working_in(place):
        governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")


def test_a_work_tree_that_would_lack_the_packet_is_not_made(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("trees") / "song"
    governed.begin()
    governed.activate(NAME)
    assert governed.refused("packet", "prepare", NAME, "--for", "coder", "--worktree", str(place)) == [
        "packet_uncommitted"
    ]
    assert (place.exists(), f"wp/{NAME}" in governed.git("branch", "--list")) == (False, False)
    governed.git("branch", f"wp/{NAME}")
    assert governed.refused("packet", "prepare", NAME, "--worktree", str(place)) == ["packet_uncommitted"]
    governed.commit("activated")
    governed.git("branch", "--force", f"wp/{NAME}")
    governed.done("packet", "prepare", NAME, "--for", "coder", "--worktree", str(place))
    with working_in(place):
        assert governed.json("show", NAME)["ok"]


def test_in_a_work_tree_of_another_packet_nothing_is_handed_in(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("trees") / "song"
    governed.begin()
    for name in (NAME, OTHER):
        governed.activate(name)
    governed.commit("activated")
    governed.done("packet", "prepare", NAME, "--for", "coder")
    governed.done("packet", "prepare", OTHER, "--worktree", str(place))
    governed.done("claim", NAME, "--as", "coder")
    governed.commit("claimed")
    governed.git("-C", str(place), "merge", "--quiet", "main")
    with working_in(place):
        told = governed.json("submit", NAME, "--as", "coder", "--prove", "all=true")
    assert told["exit_code"] == 3
    (found,) = [finding for finding in told["findings"] if finding["code"] == "other_work_branch"]
    assert found["hint"].startswith(f"git switch wp/{NAME}")
    assert f"the branch of {OTHER}" in found["message"]
    governed.git("switch", "--quiet", "--create", "elsewhere")
    (found,) = governed.json("submit", NAME, "--as", "coder", "--prove", "all=true")["findings"]
    assert "which does not belong to a packet" in found["message"]


def test_a_lock_that_is_held_says_by_whom_and_since_when(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    before = governed.files()
    with writing(find_repository(governed.root, {}), "claim"):
        impatient = (
            "from workpacket.shell.transactions import transaction\n"
            "kept = transaction.writer_lock\n"
            "transaction.writer_lock = lambda *words, wait: kept(*words, wait=0.1)\n"
            "from workpacket.cli.main import console; console()"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", impatient, *ABANDON]
        done = subprocess.run(command, cwd=governed.root, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, governed.files() == before) == (4, True), done.stderr
    assert f"claim (process {os.getpid()} on " in done.stderr
    assert "since 20" in done.stderr


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
