"""What the base holds for ever is there, or its whole landing was taken back: asked of trees without a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from approvals.gates import envelope
from judging.repositories import Tree, Written, laid_out
from ledger.stories import Story
from workpacket.git.objects import blob_id
from workpacket.problem import Problem
from workpacket.shell.judging import merged_tree
from workpacket.shell.judging.merged_tree import judge_append_only

EVENT, LATER = ".GOV/log/WP-1-A-v1/a.json", ".GOV/log/WP-1-A-v1/b.json"
YES, NO = envelope(), envelope(decision="reject")
GIVEN = f".GOV/attestations/{YES.name}"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
OLD: Tree = {EVENT: "{}\n", "src/a.py": "a\n", BOARD: "one\n"}
LANDED: Tree = {**OLD, LATER: "{1}\n", GIVEN: YES.data, "src/b.py": "b\n", BOARD: "two\n"}


class Past:
    """A base whose last commit is a landing; what is said of a change of it."""

    def __init__(self, folder: Path) -> None:
        self.written = Written(folder)
        self.folder = folder
        self.first = self.written.commit(OLD)
        self.landing = self.written.commit(LANDED, self.first)

    def found(
        self, head: Tree, *, base: str = "", upon: str = "", here: Tree | None = None, **how: Any
    ) -> list[Problem]:
        change = self.written.commit(head, upon or base or self.landing)
        repository = self.written.stored()
        (self.folder / ".git/HEAD").write_text(f"{change}\n")
        laid_out(self.folder, head if here is None else here)
        return judge_append_only(repository, base or self.landing, **how)

    def said(self, head: Tree, **how: Any) -> list[tuple[str, str]]:
        return sorted((one.code, one.path) for one in self.found(head, **how))


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    past = Past(tmp_path / "repository")
    yield past
    past.written.close()


def without(tree: Tree, *paths: str) -> Tree:
    return {path: said for path, said in tree.items() if path not in paths}


REVERTED = [("landing_reverted", ".GOV")]


def test_what_is_added_is_no_fault(past: Past) -> None:
    assert past.said({**LANDED, ".GOV/log/WP-1-A-v1/c.json": "{}\n", "src/a.py": "x\n"}) == []


def test_what_the_base_holds_is_neither_changed_nor_taken_away(past: Past) -> None:
    head = {**without(LANDED, GIVEN), EVENT: "{ }\n"}
    assert past.said(head) == [("log_file_deleted", GIVEN), ("log_file_modified", EVENT)]


def test_files_that_were_read_already_are_compared(past: Past) -> None:
    files = {path: data.encode() if isinstance(data, str) else data for path, data in without(LANDED, EVENT).items()
             if not isinstance(data, tuple)}  # fmt: skip
    ids = {path: blob_id(data, past.landing) for path, data in files.items()}
    assert past.said(LANDED, ids=ids) == [("log_file_deleted", EVENT)]
    assert past.said(LANDED, here={}, ids={**ids, EVENT: blob_id(b"{}\n", past.landing)}) == []


def test_what_lies_here_is_compared_and_not_what_is_committed(past: Past) -> None:
    assert past.said(LANDED, here=without(LANDED, EVENT)) == [("log_file_deleted", EVENT)]


def test_a_landing_that_was_taken_back_as_a_whole_is_told(past: Past) -> None:
    (told,) = past.found(OLD)
    assert (told.code, told.path, told.severity, bool(told.hint)) == ("landing_reverted", ".GOV", "info", True)
    assert told.message == (f"the merge {past.landing[:12]} is reverted as a whole, with the events that it added")


def test_in_a_work_tree_nothing_is_taken_back_yet(past: Past) -> None:
    assert past.said(OLD, worktree=True) == [("log_file_deleted", GIVEN), ("log_file_deleted", LATER)]


@pytest.mark.parametrize("kept", ["src/b.py", GIVEN], ids=["code", "an approval"])
def test_a_landing_that_was_taken_back_in_part_is_not(past: Past, kept: str) -> None:
    assert ("log_file_deleted", LATER) in past.said({**OLD, kept: LANDED[kept]})
    assert ("landing_reverted", ".GOV") not in past.said({**OLD, kept: LANDED[kept]})


def test_code_of_the_landing_that_was_changed_instead_is_not_taken_back(past: Past) -> None:
    assert past.said({**OLD, "src/b.py": "other\n"}) == [("log_file_deleted", GIVEN), ("log_file_deleted", LATER)]


def test_board_and_packets_are_drawn_anew_after_a_revert(past: Past) -> None:
    assert past.said({**OLD, BOARD: "three\n"}) == REVERTED


def test_a_page_that_the_landing_brought_may_go_on_after_a_revert(past: Past) -> None:
    page = ".GOV/task_packets/WP-1-A-v1.md"
    base = past.written.commit({**LANDED, page: "one\n"}, past.first)
    assert past.said({**OLD, page: "two\n"}, base=base) == REVERTED


def test_what_was_changed_shows_beside_a_revert(past: Past) -> None:
    changed = ("log_file_modified", EVENT)
    assert past.said({**OLD, EVENT: "{ }\n"}) == [*REVERTED, changed]
    base = past.written.commit({**LANDED, EVENT: "{2}\n"}, past.first)
    assert past.said(OLD, base=base) == [*REVERTED, changed], "also where the landing had changed it"


def test_an_event_that_was_gone_once_and_is_changed_now_is_no_revert(past: Past) -> None:
    gone = past.written.commit(without(LANDED, LATER), past.landing)
    base = past.written.commit(LANDED, gone)
    found = past.said({**without(LANDED, GIVEN), LATER: "{ }\n"}, base=base)
    assert found == [("log_file_deleted", GIVEN), ("log_file_modified", LATER)]


def test_other_work_may_come_with_a_revert(past: Past) -> None:
    assert past.said({**OLD, "src/a.py": "other\n"}) == REVERTED


def test_what_another_landing_brought_stays(past: Past) -> None:
    """The first commit of all cannot be taken back, and is not said to be."""
    assert past.said(without(OLD, EVENT)) == [*REVERTED, ("log_file_deleted", EVENT)]


def test_a_branch_from_before_the_landing_takes_nothing_back(past: Past) -> None:
    """It lacks the files as long as it is not merged; with the base in it they are there."""
    head = {**OLD, "src/c.py": "c\n"}
    (found,) = past.found(head, upon=past.first, base=past.landing)
    assert (found.code, found.severity) == ("base_not_merged", "error")
    assert found.message == "the base has 2 files of the log, merged after this branch began"


def test_a_branch_that_deletes_what_it_began_with_is_told_so_though_it_lacks_more(past: Past) -> None:
    base = past.written.commit({**LANDED, ".GOV/log/WP-1-A-v1/c.json": "{2}\n"}, past.landing)
    branch = past.written.commit(without(LANDED, EVENT), past.landing)
    found = past.said(without(LANDED, EVENT), upon=branch, base=base)
    assert found == [("base_not_merged", ".GOV"), ("log_file_deleted", EVENT)]


def test_a_packet_whose_id_is_taken_on_the_base_is_named(past: Past) -> None:
    folder = ".GOV/log/WP-1-B-v1"
    base = past.written.commit({**LANDED, f"{folder}/a.json": "{a}\n"}, past.landing)
    found = past.said({**LANDED, f"{folder}/b.json": "{b}\n"}, upon=past.landing, base=base)
    assert found == [("base_not_merged", ".GOV"), ("log_second_genesis", folder)]


def test_a_packet_of_the_branch_alone_is_no_second_beginning(past: Past) -> None:
    base = past.written.commit({**LANDED, ".GOV/log/WP-1-B-v1/a.json": "{a}\n"}, past.landing)
    found = past.said({**LANDED, ".GOV/log/WP-1-C-v1/c.json": "{c}\n"}, upon=past.landing, base=base)
    assert found == [("base_not_merged", ".GOV")]


def test_approvals_given_on_both_sides_are_no_second_beginning(past: Past) -> None:
    found = past.said({**OLD, f".GOV/attestations/{NO.name}": NO.data}, upon=past.first, base=past.landing)
    assert found == [("base_not_merged", ".GOV")]


def test_a_file_that_differs_from_what_landed_meanwhile_is_changed_and_not_missing(past: Past) -> None:
    found = past.said({**OLD, LATER: "{9}\n"}, upon=past.first, base=past.landing)
    assert found == [("base_not_merged", ".GOV"), ("log_file_modified", LATER)]


def test_a_branch_that_takes_back_what_it_began_with_is_judged_from_there(past: Past) -> None:
    base = past.written.commit({**LANDED, "src/new.py": "n\n"}, past.landing)
    branch = past.written.commit(OLD, past.landing)
    assert past.said(OLD, base=base, upon=branch) == REVERTED


def test_a_history_of_its_own_takes_nothing_back(past: Past) -> None:
    alone = past.written.commit({"x": "x"})
    assert past.said(OLD, upon=alone, base=past.landing) == REVERTED, "compared with the base as a whole"


@pytest.mark.parametrize("data", [NO.data, b"{}", b"no envelope"])
def test_a_no_is_never_taken_back(past: Past, data: bytes) -> None:
    """Nor what cannot be read: a revocation among the envelopes would bring back a key."""
    name = f".GOV/attestations/{NO.name}"
    landed = {**LANDED, name: data}
    base = past.written.commit(landed, past.first)
    assert past.said(OLD, base=base) == sorted(("log_file_deleted", path) for path in (name, GIVEN, LATER))


@pytest.mark.parametrize("few", [0, 1, 2])
def test_of_very_many_events_the_whole_log_is_looked_at(past: Past, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(merged_tree, "_FEW", few)
    assert past.said(OLD) == REVERTED


def test_an_event_that_was_changed_is_not_taken_back(past: Past) -> None:
    base = past.written.commit({**LANDED, LATER: "{2}\n"}, past.landing)
    found = past.said({**without(LANDED, EVENT), LATER: "{3}\n"}, base=base)
    assert found == [("log_file_deleted", EVENT), ("log_file_modified", LATER)]


def test_without_a_commit_what_lies_here_is_compared(past: Past) -> None:
    past.written.stored()
    laid_out(past.folder, OLD)
    found = judge_append_only(past.written.repository, past.landing)
    assert sorted(one.path for one in found) == [GIVEN, LATER]


def test_a_signed_decision_is_taken_back_only_with_what_it_decided_about(past: Past) -> None:
    story = Story("WP-1-A-v1")
    story.tell("created")
    activated, amended = story.add("activated"), story.add("amended", attest=("a" * 64,))
    files: Tree = {event.path: event.encode() for event in story.events}
    before = past.written.commit(without(files, amended.path), past.first)
    base = past.written.commit(files, before)
    gone = [("log_file_deleted", amended.path)]
    assert past.said(without(files, amended.path), base=base) == gone
    lone = past.written.commit(without(files, amended.path, activated.path), past.first)
    whole = past.written.commit(files, lone)
    assert past.said(without(files, amended.path, activated.path), base=whole) == REVERTED
