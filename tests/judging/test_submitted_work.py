"""What git and the page of a packet say of a submission, asked of trees without a command."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from git.scratch import git
from judging.repositories import Tree, Written, laid_out
from judging.test_coverage_of_changes import page, place
from ledger.stories import Story
from workpacket.lifecycle.change_checks import SubmittedWork
from workpacket.lifecycle.facts import PacketFacts
from workpacket.model.events import LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.shell.governed_files import GovernedFiles
from workpacket.shell.judging.change import submitted_versions, submitted_work
from workpacket.shell.work_done import described
from workpacket.text.source import Source

A, B = "WP-1-Kettle-v1", "WP-1-Stove-v1"
GATE = "\n## QUALITY_GATE\n### DONE_MEANS\n- It boils.\n- It stops.\n"
OLD: Tree = {"src/a.py": "1\n2\n", "README.md": "x\n"}
MET: dict[str, Any] = {"criterion": "It boils.", "result": "met"}


class Desk:
    """A packet that was claimed, and what is submitted for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = Written(folder)
        self.story = Story(A)
        self.story.tell("created", "activated")
        self.base = self.commit(OLD)
        self.claim = self.story.add("claimed")
        self.page: str | None = page(A) + GATE
        self.governed = GovernedFiles(str(folder))

    def commit(self, files: Tree, *parents: str) -> str:
        events = {event.path: event.encode() for event in self.story.events}
        return self.written.commit({**events, **files}, *parents)

    def submit(self, commit: str, **said: Any) -> LogEvent:
        return self.story.add("submitted", commit=commit, **said)

    def asked(self, event: LogEvent, base: str = "") -> SubmittedWork:
        repository = self.written.stored()
        source = Source(place(A), self.page) if self.page is not None else None
        packet = PacketFacts(WorkPacketId(A), self.story.log(), None, source)
        return submitted_work(repository, base or self.base, self.governed, packet, event)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "repository")
    yield desk
    desk.written.close()


WORK: Tree = {**OLD, "src/b.py": "b\n", "lib/c.py": "c\n", ".GOV/roles_shared/TASK_BOARD.md": "x"}


def test_work_is_what_its_commit_changes_since_it_left_the_base(desk: Desk) -> None:
    later = desk.written.commit({**OLD, "lib/new.py": "n\n"}, desk.base)
    found = desk.asked(desk.submit(desk.commit(WORK, desk.base)), later)
    assert (list(found.criteria), found.scope) == (["It boils.", "It stops."], ["`src/`"])
    assert found.changed is not None
    assert sorted(found.changed) == ["lib/c.py", "src/b.py"]
    assert (found.older, found.amended, found.same, found.absent) == (False, False, frozenset(), frozenset())
    assert (found.required, found.misdescribed) == (False, False)


def test_a_criterion_of_several_paragraphs_is_asked_for_as_a_whole(desk: Desk) -> None:
    desk.page = page(A) + GATE.replace("- It boils.", "- It boils.\n\n  Quickly.")
    found = desk.asked(desk.submit(desk.commit(WORK, desk.base)))
    assert list(found.criteria) == ["It boils. Quickly.", "It stops."]


def test_without_a_page_nothing_is_asked_and_nothing_is_in_scope(desk: Desk) -> None:
    desk.page = None
    found = desk.asked(desk.submit(desk.commit(WORK, desk.base)))
    assert (list(found.criteria), found.scope) == ([], [])


def test_a_commit_that_is_not_here_or_has_another_beginning_is_unknown(desk: Desk) -> None:
    assert desk.asked(desk.submit("9" * 40)).changed is None
    alone = desk.asked(desk.submit(desk.commit(WORK)))
    assert (alone.changed, list(alone.criteria), alone.scope) == (None, ["It boils.", "It stops."], ["`src/`"])


def test_the_report_of_a_verdict_is_the_validators(desk: Desk) -> None:
    text = "Good.\n"
    for report, counts in ((text, False), ("Bad.\n", True)):
        work = desk.commit({**OLD, "docs/report.md": report}, desk.base)
        event = desk.submit(work)
        desk.story.add(
            "verdict.given", report={"path": "docs/report.md", "sha256": hashlib.sha256(text.encode()).hexdigest()}
        )
        assert ("docs/report.md" in (desk.asked(event).changed or ())) is counts


# --- work that is described ---


def describing(desk: Desk, work: str, *changed: str) -> dict[str, Any]:
    digest = described(desk.written.stored(), desk.base, work, changed)
    return {"changed": list(changed), "work": {"base": desk.base, "sha256": digest}}


def at_head(desk: Desk, commit: str) -> None:
    desk.written.stored()
    git(desk.folder, "update-ref", "--no-deref", "HEAD", commit)


def test_work_whose_commit_is_gone_is_what_the_submission_describes_if_that_landed(desk: Desk) -> None:
    work = desk.commit(WORK, desk.base)
    event = desk.submit("9" * 40, **describing(desk, work, "src/b.py"))
    at_head(desk, desk.commit({**OLD, "src/b.py": "b\n"}, desk.base))
    found = desk.asked(event)
    assert (list(found.criteria), found.scope) == (["It boils.", "It stops."], ["`src/`"])
    assert (found.changed, found.same, found.exempt) == (("src/b.py",), {"9" * 40}, frozenset())
    at_head(desk, desk.commit({**OLD, "src/b.py": "other\n"}, desk.base))
    assert desk.asked(event).changed is None


def test_a_description_does_not_take_the_place_of_a_commit_that_is_here(desk: Desk) -> None:
    work = desk.commit(WORK, desk.base)
    event = desk.submit(work, **describing(desk, work, "src/b.py"))
    at_head(desk, work)
    found = desk.asked(event)
    assert sorted(found.changed or ()) == ["lib/c.py", "src/b.py"]
    assert not found.misdescribed


def test_a_description_of_other_work_is_told(desk: Desk) -> None:
    work, other = desk.commit(WORK, desk.base), desk.commit({**WORK, "src/b.py": "other\n"}, desk.base)
    assert desk.asked(desk.submit(work, **describing(desk, other, "src/b.py"))).misdescribed


# --- the versions of a file that may have been submitted ---

PAGE = "docs/kettle.md"


def versions(desk: Desk, path: str = PAGE) -> set[bytes]:
    repository = desk.written.stored()
    found = submitted_versions(repository, PacketFacts(WorkPacketId(A), desk.story.log(), None, None), path)
    assert all(hashlib.sha256(data).hexdigest() == digest for digest, data in found.items())
    return set(found.values())


def test_every_version_of_every_branch_counts_and_that_of_the_work_tree(desk: Desk) -> None:
    one = desk.commit({**OLD, PAGE: "one\n", "docs/other.md": "other\n"}, desk.base)
    two = desk.commit({**OLD, PAGE: "two\n"}, desk.base)
    desk.commit({**OLD, PAGE: "of the merge\n"}, one, two)
    desk.commit(OLD, two)
    desk.submit(one)
    at_head(desk, one)
    assert versions(desk) == {b"one\n", b"two\n", b"of the merge\n"}
    laid_out(desk.folder, {PAGE: "of the work tree\n"})
    assert versions(desk) == {b"one\n", b"two\n", b"of the merge\n", b"of the work tree\n"}


def test_a_commit_that_no_branch_holds_counts_if_it_is_checked_out(desk: Desk) -> None:
    desk.submit(desk.base)
    alone = desk.commit({**OLD, PAGE: "alone\n"}, desk.base)
    at_head(desk, alone)
    git(desk.folder, "update-ref", "HEAD", alone)
    for tag in git(desk.folder, "tag", "--points-at", alone).split():
        git(desk.folder, "tag", "--delete", tag)
    git(desk.folder, "switch", "--quiet", "--detach", alone)
    git(desk.folder, "update-ref", "-d", "refs/heads/main")
    (desk.folder / PAGE).unlink()
    assert versions(desk) == {b"alone\n"}


def test_what_was_below_a_folder_of_that_name_is_no_version(desk: Desk) -> None:
    below = desk.commit({**OLD, f"{PAGE}/x": "below\n"}, desk.base)
    at_head(desk, desk.commit({**OLD, PAGE: "page\n"}, below))
    desk.submit(below)
    assert versions(desk) == {b"page\n"}


def test_without_all_of_the_submitted_commits_nothing_is_known(desk: Desk) -> None:
    work = desk.commit({**OLD, PAGE: "one\n"}, desk.base)
    at_head(desk, work)
    desk.submit("9" * 40)
    assert versions(desk) == set()
    desk.submit(work)
    assert versions(desk) == set(), "one of two is missing"
    desk.story = Story(A)
    assert versions(desk) == {b"one\n"}, "nothing was submitted"


# --- commits of before ---


def test_a_commit_of_the_base_that_does_not_know_the_claim_is_older(desk: Desk) -> None:
    assert desk.asked(desk.submit(desk.base)).older


def test_work_that_is_on_the_base_already_and_knows_its_claim_is_not(desk: Desk) -> None:
    work = desk.commit(WORK, desk.base)
    assert not desk.asked(desk.submit(work), work).older


def test_the_last_claim_that_the_submission_has_seen_is_asked_for(desk: Desk) -> None:
    work = desk.commit(WORK, desk.base)
    desk.story.add("released")
    again = desk.story.add("claimed", holder="cem")
    event = desk.submit(work)
    assert desk.asked(event, work).older, "it was made under the claim of before"
    knows = desk.commit(WORK, work)
    desk.story.add("claimed", after=(again,), holder="dan", lane_from="IN_PROGRESS")
    assert not desk.asked(desk.story.add("submitted", after=(again,), commit=knows), knows).older


def test_work_that_is_not_on_the_base_is_not_older_whatever_it_knows(desk: Desk) -> None:
    work = desk.written.commit(WORK, desk.base)
    assert not desk.asked(desk.submit(work)).older


def test_a_packet_that_was_adopted_in_work_has_no_claim(desk: Desk) -> None:
    desk.story = Story(A)
    desk.story.add("adopted")
    assert not desk.asked(desk.submit(desk.base)).older


# --- amendments ---


def test_a_submission_before_an_amendment_was_under_another_contract(desk: Desk) -> None:
    event = desk.submit(desk.commit(WORK, desk.base))
    desk.story.add("noted")
    assert not desk.asked(event).amended
    desk.story.add("amended", after=(desk.claim,))
    assert not desk.asked(event).amended, "the amendment is beside it"
    desk.story.add("amended", after=(event,))
    assert desk.asked(event).amended


# --- evidence ---


def evidence(desk: Desk, *rows: dict[str, Any]) -> SubmittedWork:
    work = desk.commit(WORK, desk.base)
    return desk.asked(desk.submit(work, evidence=[{**MET, **row} for row in rows]))


def test_what_was_proved_at_a_commit_counts_where_only_the_log_is_otherwise(desk: Desk) -> None:
    same = desk.commit({**WORK, ".GOV/roles_shared/TASK_BOARD.md": "other"}, desk.base)
    other = desk.commit({**WORK, "src/b.py": "other\n"}, desk.base)
    found = evidence(desk, {"commit": same}, {"commit": other}, {"commit": "9" * 40}, {})
    assert found.same == {same}


@pytest.mark.parametrize(
    ("proof", "there"),
    [
        ("src/a.py:1", True),
        ("src/a.py:2", True),
        ("src/a.py:3", False),
        ("src/a.py:0", False),
        ("src/a.py:x", False),
        ("src/a.py:", False),
        ("src/none.py:1", False),
        ("src/b.py:1", True),
        ("src:1", False),
        (":1", False),
    ],
)
def test_a_place_is_a_line_of_a_file_that_the_commit_holds(desk: Desk, proof: str, there: bool) -> None:
    assert evidence(desk, {"proof": [proof, "src/a.py:1"]}).absent == (frozenset() if there else {proof})


# --- work upon the work of another packet ---


def upon_another(
    desk: Desk, scope: str, *, begun: bool = True, claimed: bool = False, **said: Any
) -> tuple[LogEvent, str]:
    """B changed lib/ and more, and A began where that ended. `begun`: B was claimed by then; `claimed`: A was, too."""
    path, other = place(B), Story(B)
    other.tell("created", "activated", "claimed")
    events = {event.path: event.encode().decode() for event in other.events}
    laid_out(desk.folder, {path: page(B, scope), **events})
    desk.governed.packets, desk.governed.logs = {B: path}, frozenset({B})
    held = {name: data for name, data in events.items() if begun or name != other.events[-1].path}
    if not claimed:
        desk.story.events = desk.story.events[:2]
    before = desk.commit({**OLD, **held, "lib/c.py": "c\n", "lib/d.py": "d\n", "app/x": "x\n"}, desk.base)
    desk.story.add("prepared", **{"base_commit": before, "base_packet": B, **said})
    if not claimed:
        desk.story.add("claimed")
    new = {"lib/c.py": "c\n", "lib/d.py": "more\n", "app/x": "x\n", "src/b.py": "b\n"}
    work = desk.commit({**OLD, **held, **new}, before)
    return desk.submit(work), before


def test_work_begins_where_that_of_the_other_packet_ended_as_far_as_its_scope_goes(desk: Desk) -> None:
    event, _ = upon_another(desk, "`lib/`")
    assert sorted(desk.asked(event).changed or ()) == ["app/x", "lib/d.py", "src/b.py"]


@pytest.mark.parametrize("how", [{"begun": False}, {"claimed": True}, {"begun": False, "claimed": True}])
def test_a_beginning_before_the_other_work_or_after_this_one_is_not_believed(desk: Desk, how: dict[str, bool]) -> None:
    event, _ = upon_another(desk, "`lib/`", **how)
    assert sorted(desk.asked(event).changed or ()) == ["app/x", "lib/c.py", "lib/d.py", "src/b.py"]


def test_another_packet_that_was_claimed_again_since_had_begun(desk: Desk) -> None:
    event, before = upon_another(desk, "`lib/`")
    other = Story(B)
    other.tell("created", "activated", "claimed", "released", "claimed")
    laid_out(desk.folder, {event.path: event.encode().decode() for event in other.events})
    assert before
    assert sorted(desk.asked(event).changed or ()) == ["app/x", "lib/d.py", "src/b.py"]


def test_a_packet_that_was_claimed_again_since_begins_with_its_last_claim(desk: Desk) -> None:
    event, before = upon_another(desk, "`lib/`", claimed=True)
    assert "lib/c.py" in (desk.asked(event).changed or ())
    desk.story.events.remove(event)
    desk.story.add("released")
    desk.story.add("prepared", base_commit=before, base_packet=B)
    desk.story.add("claimed", holder="cem")
    again = desk.submit(event.text("commit") or "")
    assert "lib/c.py" not in (desk.asked(again).changed or ())


def test_a_packet_that_was_adopted_in_work_begins_where_it_was_prepared(desk: Desk) -> None:
    event, before = upon_another(desk, "`lib/`")
    desk.story = Story(A)
    desk.story.add("adopted")
    desk.story.add("prepared", base_commit=before, base_packet=B)
    again = desk.submit(event.text("commit") or "")
    assert "lib/c.py" not in (desk.asked(again).changed or ())


def test_a_beginning_that_is_not_here_is_none(desk: Desk) -> None:
    event, _ = upon_another(desk, "`lib/`", base_commit="9" * 40)
    assert "lib/c.py" in (desk.asked(event).changed or ())


def test_work_that_was_prepared_upon_no_packet_begins_where_it_left_the_base(desk: Desk) -> None:
    upon_another(desk, "`lib/`")
    before = desk.commit({**OLD, "lib/c.py": "c\n"}, desk.base)
    desk.story = Story(A)
    desk.story.tell("created", "activated")
    desk.story.add("prepared", base_commit=before)
    desk.story.add("claimed")
    event = desk.submit(desk.commit({**OLD, "lib/c.py": "c\n", "src/b.py": "b\n"}, before))
    assert sorted(desk.asked(event).changed or ()) == ["lib/c.py", "src/b.py"]


def test_a_packet_that_is_not_known_or_has_no_page_answers_for_nothing(desk: Desk) -> None:
    every = ["app/x", "lib/c.py", "lib/d.py", "src/b.py"]
    event, _ = upon_another(desk, "`lib/`", base_packet="WP-1-None-v1")
    assert sorted(desk.asked(event).changed or ()) == every
    desk.governed.packets, desk.governed.stubs = {}, {B: ".GOV/none.md"}
    event, _ = upon_another(desk, "`lib/`")
    desk.governed.packets, desk.governed.stubs = {}, {B: ".GOV/none.md"}
    assert sorted(desk.asked(event).changed or ()) == every
