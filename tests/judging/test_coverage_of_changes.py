"""Which packet answers for what a change does: asked of trees and logs, without a command.

`tests/lifecycle/test_coverage.py` asks it of changes that commands made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest

from judging.repositories import LINK, PROGRAM, SUBMODULE, Tree, Written
from ledger.stories import Story
from workpacket.cli.init import gov_just
from workpacket.git.merging import trial_merges
from workpacket.lifecycle.policy import CoveragePolicy, LifecyclePolicy
from workpacket.model.events import LogEvent
from workpacket.shell.judging.coverage import coverage_problems, uncovered_paths

pytestmark = pytest.mark.share(4)

A, B = "WP-1-Kettle-v1", "WP-1-Stove-v1"
TODAY = date(2026, 3, 1)
Found = dict[str, str]


def page(name: str, scope: str = "`src/`") -> str:
    entries = "".join(f"  - {entry}\n" for entry in scope.split(", "))
    return f"# Task Packet: {name}\n\n## METADATA\n- WP_ID: {name}\n\n## SCOPE\n- What: x\n- IN_SCOPE_PATHS:\n{entries}"


def place(name: str) -> str:
    return f".GOV/task_packets/{name}.md"


class Kitchen:
    """A base with one packet or more, and what is done upon it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = Written(folder)
        self.stories: dict[str, Story] = {}
        self.pages: dict[str, str] = {}
        self.exempt: tuple[str, ...] = ()
        self.judged_by_someone = True
        self.today = TODAY
        self.mode: Literal["required", "warn"] = "required"
        self.messages: list[str] = []

    def packet(self, name: str = A, *kinds: str, scope: str = "`src/`", **said: Any) -> None:
        """A packet with its page; told so far by events of these kinds."""
        self.stories[name] = Story(name)
        self.pages[place(name)] = page(name, scope)
        for kind in kinds:
            self.add(kind, name, **(said if kind == kinds[-1] else {}))

    def add(self, kind: str, name: str = A, **said: Any) -> LogEvent:
        return self.stories[name].add(kind, **said)

    def commit(self, files: Tree, *parents: str) -> str:
        """A commit of these files, and of all pages and events so far."""
        events = {event.path: event.encode() for story in self.stories.values() for event in story.events}
        return self.written.commit({**self.pages, **events, **files}, *parents)

    def judged(self, files: Tree, base: str, name: str = A, **said: Any) -> tuple[str, str]:
        """Work that was claimed, submitted and judged: its commit, and that of the verdict."""
        for kind in ("claimed",) if self.stories[name].events[-1].type == "activated" else ():
            self.add(kind, name)
        work = self.commit(files, base)
        self.add("submitted", name, commit=work)
        self.add("verdict.given", name, **said)
        return work, self.commit(files, work)

    def uncovered(self, base: str, head: str) -> list[Any]:
        repository = self.written.stored()
        logs = {name: story.log() for name, story in self.stories.items()}
        policy = LifecyclePolicy(judged=self.judged_by_someone, coverage=CoveragePolicy(self.mode, self.exempt))
        with trial_merges(repository) as trials:
            return uncovered_paths(repository, trials, base, head, logs, policy, self.today)

    def found(self, base: str, head: str) -> Found:
        found = self.uncovered(base, head)
        self.messages = [one.message for one in found]
        return {one.path: one.code for one in found}

    def why(self, base: str, head: str) -> str:
        (one,) = self.uncovered(base, head)
        return str(one.message)


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    kitchen = Kitchen(tmp_path / "repository")
    yield kitchen
    kitchen.written.close()


HELD = ("created", "activated", "claimed")
OLD: Tree = {"src/a.py": "1\n2\n3\n4\n5\n", "README.md": "x\n"}


# --- held work ---


def test_held_work_covers_its_scope_and_nothing_else(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, "src/a.py": "0\n", "src/b.py": "1\n", "lib/a.py": "1\n"}, base)
    assert kitchen.found(base, head) == {"lib/a.py": "change_uncovered"}


@pytest.mark.parametrize(
    ("kinds", "why"),
    [
        (("created",), "it is STUB"),
        (("created", "activated"), "it is READY_FOR_DEV"),
        ((*HELD, "blocked"), "it is BLOCKED"),
        (("created", "activated", "abandoned"), "it is ABANDONED"),
    ],
)
def test_a_packet_that_nobody_holds_covers_nothing_and_is_named(
    kitchen: Kitchen, kinds: tuple[str, ...], why: str
) -> None:
    kitchen.packet(A, *kinds)
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, "src/a.py": "0\n"}, base)
    assert kitchen.why(base, head) == f"it is in the scope of {A}, but {why}"


def test_what_lies_in_the_folder_of_governance_needs_no_packet(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, ".GOV/spec/x.md": "x"}, base)
    assert kitchen.found(base, head) == {}


def test_a_document_of_governance_that_becomes_a_program_needs_a_packet(kitchen: Kitchen) -> None:
    old, new = ".GOV/old.md", ".GOV/new.md"
    base = kitchen.commit({**OLD, old: (PROGRAM, "x"), ".GOV/text.md": "x"})
    head = {**OLD, old: (PROGRAM, "y"), ".GOV/text.md": (PROGRAM, "x"), new: (PROGRAM, "x")}
    found = kitchen.found(base, kitchen.commit(head, base))
    assert found == {".GOV/text.md": "change_uncovered", new: "change_uncovered"}


def test_a_submodule_that_is_to_be_ignored_is_a_change_all_the_same(kitchen: Kitchen) -> None:
    modules = '[submodule "lib"]\n path = lib\n url = x\n ignore = all\n'
    base = kitchen.commit({**OLD, ".gitmodules": modules, "lib": (SUBMODULE, "1" * 40)})
    (kitchen.folder / ".gitmodules").write_text(modules)
    head = kitchen.commit({**OLD, ".gitmodules": modules, "lib": (SUBMODULE, "2" * 40)}, base)
    assert kitchen.found(base, head) == {"lib": "change_uncovered"}


def test_a_removed_file_and_another_mode_are_changes(kitchen: Kitchen) -> None:
    base = kitchen.commit({**OLD, "lib/b.py": "1\n"})
    head = kitchen.commit({"src/a.py": (PROGRAM, str(OLD["src/a.py"])), "README.md": "x\n"}, base)
    assert kitchen.found(base, head) == {"src/a.py": "change_uncovered", "lib/b.py": "change_uncovered"}


def test_a_branch_without_the_newest_of_the_base_takes_nothing_back(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    first = kitchen.commit(OLD)
    base = kitchen.commit({**OLD, "lib/new.py": "1\n"}, first)
    head = kitchen.commit({**OLD, "src/a.py": "0\n"}, first)
    assert kitchen.found(base, head) == {}


def test_a_history_of_its_own_is_compared_with_the_base_as_a_whole(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, "lib/new.py": "1\n"})
    assert kitchen.found(base, head) == {"lib/new.py": "change_uncovered"}


# --- exempt paths ---


def test_text_at_exempt_paths_needs_no_packet_and_programs_and_links_do(kitchen: Kitchen) -> None:
    kitchen.exempt = ("`docs/`",)
    base = kitchen.commit({**OLD, "docs/old": (PROGRAM, "x")})
    new: Tree = {"docs/a.md": "x", "docs/run": (PROGRAM, "x"), "docs/link": (LINK, "x"), "doc.md": "x"}
    assert kitchen.found(base, kitchen.commit({**OLD, **new}, base)) == {
        "docs/run": "change_uncovered",
        "docs/link": "change_uncovered",
        "doc.md": "change_uncovered",
    }


# --- scopes ---


def test_the_scope_is_that_of_the_approved_page_and_of_the_present_one(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", scope="`src/`, `lib/`")
    activated = kitchen.commit(OLD)
    kitchen.add("claimed")
    kitchen.pages[place(A)] = page(A, "`src/`, `app/`")
    base = kitchen.commit(OLD, activated)
    head = kitchen.commit({**OLD, "src/b": "1", "lib/b": "1", "app/b": "1"}, base)
    assert kitchen.found(base, head) == {"lib/b": "change_uncovered", "app/b": "change_uncovered"}


def test_the_scope_of_an_amendment_counts_from_its_landing(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    activated = kitchen.commit(OLD)
    kitchen.add("amended")
    kitchen.pages[place(A)] = page(A, "`src/`, `app/`")
    base = kitchen.commit(OLD, activated)
    assert kitchen.found(base, kitchen.commit({**OLD, "app/b": "1"}, base)) == {}
    assert kitchen.found(activated, kitchen.commit({**OLD, "app/b": "1"}, activated)) == {}, "it comes with the change"


def test_a_packet_that_comes_with_the_change_is_judged_by_its_page_alone(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.packet(A, *HELD)
    assert kitchen.found(base, kitchen.commit({**OLD, "src/b": "1"}, base)) == {}


def test_an_adopted_packet_has_the_scope_of_the_base(kitchen: Kitchen) -> None:
    kitchen.packet(A, "adopted")
    base = kitchen.commit(OLD)
    kitchen.pages[place(A)] = page(A, "`src/`, `app/`")
    head = kitchen.commit({**OLD, "src/b": "1", "app/b": "1"}, base)
    assert kitchen.found(base, head) == {"app/b": "change_uncovered"}


def test_an_event_of_the_change_does_not_widen_the_scope_of_an_adopted_packet(kitchen: Kitchen) -> None:
    kitchen.packet(A, "adopted")
    base = kitchen.commit(OLD)
    kitchen.add("noted")
    kitchen.pages[place(A)] = page(A, "`src/`, `app/`")
    assert kitchen.found(base, kitchen.commit({**OLD, "app/b": "1"}, base)) == {"app/b": "change_uncovered"}


def test_a_packet_adopted_by_the_change_has_the_scope_of_its_page(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.packet(A, "adopted")
    assert kitchen.found(base, kitchen.commit({**OLD, "src/b": "1"}, base)) == {}


def test_a_page_may_lie_in_a_folder_of_its_own(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    kitchen.pages = {f".GOV/task_packets/{A}/packet.md": page(A)}
    base = kitchen.commit(OLD)
    assert kitchen.found(base, kitchen.commit({**OLD, "src/b": "1"}, base)) == {}


def test_of_two_pages_the_first_place_counts(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    kitchen.pages[f".GOV/task_packets/{A}/packet.md"] = page(A, "`lib/`")
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, "src/b": "1", "lib/b": "1"}, base)
    assert kitchen.found(base, head) == {"lib/b": "change_uncovered"}


def test_without_a_page_nothing_is_covered(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    kitchen.pages.clear()
    base = kitchen.commit(OLD)
    assert kitchen.found(base, kitchen.commit({**OLD, "src/b": "1"}, base)) == {"src/b": "change_uncovered"}


def test_a_page_that_can_be_read_in_two_ways_covers_nothing(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    kitchen.pages[place(A)] = page(A) + "- What: y\n"
    base = kitchen.commit(OLD)
    assert kitchen.found(base, kitchen.commit({**OLD, "src/b": "1"}, base)) == {"src/b": "change_uncovered"}


@pytest.mark.parametrize(
    "field",
    [
        "- IN_SCOPE_PATHS: `src/`",
        "- IN_SCOPE_PATHS:\n  - `s?c/`",
        "- IN_SCOPE_PATHS:\n  - `s?c/*`",
        "### IN_SCOPE_PATHS\n- `src/`",
        "- NOTES: IN_SCOPE_PATHS names it\n- IN_SCOPE_PATHS:\n  - `src/`",
        "- IN_SCOPE_PATHS:\n  - `**/b`",
        "- IN_SCOPE_PATHS:\n  - `lib/`\n\n  - `src/`",
        "- In scope paths:\n  - `src/`",
        "- **IN_SCOPE_PATHS**\n\n  - x\n\n### IN_SCOPE\n- `src/`",
    ],
)
def test_a_scope_is_found_however_it_is_written(kitchen: Kitchen, field: str) -> None:
    kitchen.packet(A, *HELD)
    kitchen.pages[place(A)] = page(A).partition("- IN_SCOPE_PATHS")[0] + field + "\n"
    base = kitchen.commit(OLD)
    assert kitchen.found(base, kitchen.commit({**OLD, "src/b": "1"}, base)) == {}


def test_a_quoted_name_that_the_stub_lists_is_in_scope_and_a_folder_that_it_mentions_is_not(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD)
    kitchen.pages[place(A)] = page(A) + "- SCOPE_OF_STUB:\n  - `justfile`\n  - `lib/` (all)\n"
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, "justfile": "x", "lib/x": "x"}, base)
    assert kitchen.found(base, head) == {"lib/x": "change_uncovered"}


# --- standing packets ---


def standing(kitchen: Kitchen, now: str = "2026-03-01", approved: str = "2026-03-01") -> tuple[str, str]:
    until = "`lock.json`, Standing until "
    kitchen.packet(A, "created", "activated", scope=until + approved if approved else "`lock.json`")
    base = kitchen.commit(OLD)
    kitchen.pages[place(A)] = page(A, until + now if now else "`lock.json`")
    return base, kitchen.commit({**OLD, "lock.json": "1"}, base)


def test_a_standing_packet_covers_on_its_last_day(kitchen: Kitchen) -> None:
    assert kitchen.found(*standing(kitchen)) == {}


@pytest.mark.parametrize(
    ("now", "approved", "why"),
    [
        ("2026-02-28", "2026-02-28", "it ended on 2026-02-28"),
        ("2026-03-09", "2026-02-28", "it ended on 2026-02-28"),
        ("2026-02-27", "2026-03-09", "it ended on 2026-02-27"),
        ("2026-03-09", "", "it was not approved as a standing packet"),
        ("", "2026-03-09", "it was not approved as a standing packet"),
    ],
)
def test_a_standing_packet_ends_on_the_earlier_day(kitchen: Kitchen, now: str, approved: str, why: str) -> None:
    assert kitchen.why(*standing(kitchen, now, approved)) == f"it is in the scope of {A}, but {why}"


def test_a_standing_packet_that_is_worked_on_is_still_one(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD, scope="`lock.json`, Standing until 2026-02-01")
    base = kitchen.commit(OLD)
    assert kitchen.found(base, kitchen.commit({**OLD, "lock.json": "1"}, base)) == {"lock.json": "change_uncovered"}


# --- judged work ---


@pytest.fixture
def activated(kitchen: Kitchen) -> str:
    """The base of work that will be judged."""
    kitchen.packet(A, "created", "activated")
    return kitchen.commit(OLD)


WORK: Tree = {**OLD, "src/a.py": "1\n2\n3\n4\nfive\n", "src/b.py": "b\n"}


def test_work_lands_as_it_was_judged(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    assert kitchen.found(activated, verdict) == {}
    other = kitchen.commit({**OLD, "README.md": "y\n"}, activated)
    merged = kitchen.commit({**WORK, "README.md": "y\n"}, other, verdict)
    assert kitchen.found(other, merged) == {}
    assert kitchen.found(other, kitchen.commit({**WORK, "README.md": "y\n"}, other)) == {}, "squashed"


def test_what_was_judged_covers_whatever_day_its_scope_names(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", scope="`src/`, Standing until 2026-02-01")
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    assert kitchen.found(base, verdict) == {}


def test_what_was_changed_after_the_verdict_is_named(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    assert kitchen.found(activated, kitchen.commit({**WORK, "src/b.py": "evil\n"}, verdict)) == {
        "src/b.py": "changed_after_verdict"
    }


def test_what_was_added_after_the_verdict_is_named(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    assert kitchen.found(activated, kitchen.commit({**WORK, "src/c.py": "evil\n", "lib/c": "evil\n"}, verdict)) == {
        "src/c.py": "changed_after_verdict",
        "lib/c": "change_uncovered",
    }


def test_a_verdict_does_not_land_without_all_of_its_work(kitchen: Kitchen, activated: str) -> None:
    kitchen.judged(WORK, activated)
    assert kitchen.found(activated, kitchen.commit({**OLD, "src/b.py": "b\n"}, activated)) == {
        "src/a.py": "changed_after_verdict"
    }
    assert kitchen.found(activated, kitchen.commit(OLD, activated)) == dict.fromkeys(
        ("src/a.py", "src/b.py"), "changed_after_verdict"
    )


def since(kitchen: Kitchen, files: Tree, *parents: str, scope: str = "`src/`") -> str:
    """A commit of the base that another packet covered, which is nobody's work afterwards."""
    kitchen.packet(B, *HELD, scope=scope)
    commit = kitchen.commit(files, *parents)
    kitchen.add("released", B)
    return commit


def test_work_that_was_on_the_base_before_its_verdict_may_have_changed_since(kitchen: Kitchen, activated: str) -> None:
    kitchen.add("claimed")
    work = kitchen.commit(WORK, activated)
    kitchen.add("submitted", commit=work)
    landed = kitchen.commit(WORK, activated)
    later = since(kitchen, {**WORK, "src/b.py": "later\n"}, landed)
    kitchen.add("verdict.given")
    assert kitchen.found(later, kitchen.commit({**WORK, "src/b.py": "later\n"}, later)) == {}


def test_work_of_which_a_part_was_on_the_base_is_asked_for_the_rest(kitchen: Kitchen, activated: str) -> None:
    kitchen.add("claimed")
    work = kitchen.commit(WORK, activated)
    kitchen.add("submitted", commit=work)
    landed = kitchen.commit({**OLD, "src/b.py": "b\n"}, activated)
    later = since(kitchen, {**OLD, "src/b.py": "later\n"}, landed)
    kitchen.add("verdict.given")
    assert kitchen.found(later, kitchen.commit({**OLD, "src/b.py": "later\n"}, later)) == {
        "src/a.py": "changed_after_verdict"
    }


MORE_WORK: Tree = {**WORK, "src/b.py": "later\n", "src/c.py": "c\n", "docs/d.md": "d\n"}


def landed_with_more(kitchen: Kitchen, activated: str, *then: Tree) -> dict[str, str]:
    """What a verdict leaves unjudged: the work landed as submitted, then these trees, one after another."""
    kitchen.exempt = ("docs/",)
    kitchen.add("claimed")
    kitchen.add("submitted", commit=kitchen.commit(WORK, activated))
    base = kitchen.commit(WORK, activated)
    for files in then:
        base = kitchen.commit(files, base)
    kitchen.add("verdict.given")
    return kitchen.found(base, kitchen.commit(then[-1], base))


def test_work_that_landed_between_submission_and_verdict_is_judged_too(kitchen: Kitchen, activated: str) -> None:
    found = landed_with_more(kitchen, activated, MORE_WORK)
    assert found == {"src/b.py": "landed_otherwise", "src/c.py": "landed_otherwise"}


def test_work_that_was_taken_back_before_the_verdict_needs_none(kitchen: Kitchen, activated: str) -> None:
    assert landed_with_more(kitchen, activated, MORE_WORK, WORK) == {}


def test_a_part_that_was_taken_back_before_the_verdict_needs_none(kitchen: Kitchen, activated: str) -> None:
    found = landed_with_more(kitchen, activated, MORE_WORK, {**MORE_WORK, "src/b.py": "b\n"})
    assert found == {"src/c.py": "landed_otherwise"}


def test_work_that_landed_twice_unjudged_is_told_once(kitchen: Kitchen, activated: str) -> None:
    again: Tree = {**MORE_WORK, "src/b.py": "still later\n"}
    found = landed_with_more(kitchen, activated, MORE_WORK, again)
    assert found == {"src/b.py": "landed_otherwise", "src/c.py": "landed_otherwise"}
    assert len(kitchen.messages) == 2


def test_a_verdict_that_the_base_has_is_not_asked_again_about_what_landed_before_it(
    kitchen: Kitchen, activated: str
) -> None:
    """It landed where nothing was required, or by a version that did not ask: no later change could mend it."""
    kitchen.add("claimed")
    kitchen.add("submitted", commit=kitchen.commit(WORK, activated))
    early = kitchen.commit(MORE_WORK, kitchen.commit(WORK, activated))
    kitchen.add("verdict.given")
    base = kitchen.commit(MORE_WORK, early)
    kitchen.packet(B, "created", "activated", "claimed", scope="`lib/`")
    assert kitchen.found(base, kitchen.commit({**MORE_WORK, "lib/b.py": "b\n"}, base)) == {}


def test_what_landed_before_the_verdict_out_of_the_scope_is_not_the_packets_work(
    kitchen: Kitchen, activated: str
) -> None:
    kitchen.packet(B, "created", "activated", "claimed", scope="`lib/`")
    assert landed_with_more(kitchen, activated, {**WORK, "lib/b.py": "b\n"}) == {}


def test_what_another_packet_covered_too_is_not_missing_whatever_else_landed_with_it(
    kitchen: Kitchen, activated: str
) -> None:
    kitchen.packet(B, "created", "activated", "claimed", scope="`src/c.py`")
    assert landed_with_more(kitchen, activated, MORE_WORK) == {"src/b.py": "landed_otherwise"}


def test_what_another_packet_covered_when_it_landed_is_not_missing_although_its_scope_changed(
    kitchen: Kitchen, activated: str
) -> None:
    kitchen.exempt = ("docs/",)
    kitchen.add("claimed")
    kitchen.add("submitted", commit=kitchen.commit(WORK, activated))
    base = kitchen.commit(WORK, activated)
    kitchen.packet(B, *HELD, scope="`src/c.py`")
    base = kitchen.commit(MORE_WORK, base)
    kitchen.pages[place(B)] = page(B, "`lib/`")
    kitchen.add("verdict.given")
    assert kitchen.found(base, kitchen.commit(MORE_WORK, base)) == {"src/b.py": "landed_otherwise"}


def test_where_coverage_is_not_required_work_may_land_before_its_verdict(kitchen: Kitchen, activated: str) -> None:
    kitchen.mode = "warn"
    assert landed_with_more(kitchen, activated, MORE_WORK) == {}


def test_the_first_commit_of_the_base_is_not_work_of_a_packet(kitchen: Kitchen, activated: str) -> None:
    """The work has a history of its own, so the line of the base begins with a commit that the work lacks."""
    kitchen.add("claimed")
    work = kitchen.commit(WORK)
    kitchen.add("submitted", commit=work)
    base = kitchen.commit(WORK, activated, work)
    kitchen.add("verdict.given")
    assert kitchen.found(base, kitchen.commit(WORK, base)) == {}


def test_both_sides_that_git_joins_are_what_was_judged(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    other = kitchen.commit({**OLD, "src/a.py": "one\n2\n3\n4\n5\n"}, activated)
    joined = {**WORK, "src/a.py": "one\n2\n3\n4\nfive\n"}
    assert kitchen.found(other, kitchen.commit(joined, other, verdict)) == {}


def test_a_conflict_that_somebody_settled_was_not_judged(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    other = kitchen.commit({**OLD, "src/a.py": "1\n2\n3\n4\nFIVE\n"}, activated)
    joined = kitchen.commit({**WORK, "src/a.py": "1\n2\n3\n4\nfive!\n"}, other, verdict)
    assert kitchen.found(other, joined) == {"src/a.py": "landed_otherwise"}


def test_changes_requested_are_no_verdict_that_covers(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated, verdict="CHANGES", lane_to="IN_PROGRESS")
    assert kitchen.found(activated, kitchen.commit({**WORK, "src/c.py": "c\n"}, verdict)) == {}, "it is held again"


def test_work_that_was_finished_on_the_base_covers_nothing_more(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    merged = kitchen.add("merged")
    base = kitchen.commit(WORK, verdict)
    head = kitchen.commit({**WORK, "src/b.py": "more\n"}, base)
    assert merged.lane_to == "VALIDATED"
    assert kitchen.why(base, head) == f"it is in the scope of {A}, but it is VALIDATED"


def test_work_whose_end_comes_with_the_change_covers_as_it_was_judged(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    kitchen.add("merged")
    head = kitchen.commit(WORK, verdict)
    assert kitchen.found(activated, head) == {}
    assert kitchen.found(verdict, kitchen.commit({**WORK, "src/b.py": "more\n"}, verdict)) == {
        "src/b.py": "changed_after_verdict"
    }


def test_judged_work_on_the_base_answers_for_later_changes_in_its_scope_as_it_was_judged(
    kitchen: Kitchen, activated: str
) -> None:
    _, base = kitchen.judged(WORK, activated)
    assert kitchen.found(base, kitchen.commit({**WORK, "src/b.py": "more\n"}, base)) == {
        "src/b.py": "changed_after_verdict"
    }
    assert kitchen.found(base, kitchen.commit({**WORK, "lib/b.py": "more\n"}, base)) == {"lib/b.py": "change_uncovered"}


def test_a_judged_commit_that_is_not_here_is_asked_for_where_its_verdict_lands(
    kitchen: Kitchen, activated: str
) -> None:
    kitchen.add("claimed")
    kitchen.add("submitted", commit="9" * 40)
    kitchen.add("verdict.given")
    head = kitchen.commit(WORK, activated)
    (first, *others) = kitchen.uncovered(activated, head)
    assert (first.code, first.path, first.packet) == ("landed_otherwise", place(A), A)
    fetch = f"git fetch origin {'9' * 40}"
    assert (
        first.message == f"the judged commit of {A} is not in this clone, so it is unknown how it was merged; {fetch}"
    )
    assert {one.path: one.code for one in others} == dict.fromkeys(("src/a.py", "src/b.py"), "changed_after_verdict")
    # On the base it was asked for when it landed.
    assert kitchen.found(head, kitchen.commit({**WORK, "src/b.py": "2"}, head)) == {"src/b.py": "changed_after_verdict"}


def test_work_that_no_one_judges_covers_until_its_submission_has_landed(kitchen: Kitchen) -> None:
    kitchen.judged_by_someone = False
    kitchen.packet(A)
    for kind in ("created", "activated", "claimed"):
        kitchen.add(kind, **({} if kind == "claimed" else {"form": "light"}))
    base = kitchen.commit(OLD)
    kitchen.add("submitted", commit=kitchen.commit(WORK, base))
    landing = kitchen.commit(WORK, base)
    assert kitchen.found(base, landing) == {}
    later = kitchen.commit({**WORK, "src/b.py": "2"}, landing)
    assert kitchen.found(landing, later) == {"src/b.py": "change_uncovered"}
    kitchen.judged_by_someone = True
    assert kitchen.found(landing, later) == {}, "it is in review still"


def test_work_that_is_held_on_the_base_covers_although_its_claim_has_landed(kitchen: Kitchen) -> None:
    kitchen.judged_by_someone = False
    kitchen.packet(A)
    for kind in ("created", "activated", "claimed"):
        kitchen.add(kind, **({} if kind == "claimed" else {"form": "light"}))
    base = kitchen.commit(OLD)
    assert kitchen.found(base, kitchen.commit(WORK, base)) == {}


def test_each_path_is_told_why_no_packet_answers_for_it(kitchen: Kitchen, activated: str) -> None:
    _, verdict = kitchen.judged(WORK, activated)
    kitchen.packet(B, "created", scope="`lib/`")
    head = kitchen.commit({**WORK, "src/b.py": "evil\n", "lib/a": "1"}, verdict)
    assert {one.path: one.message for one in kitchen.uncovered(activated, head)} == {
        "src/b.py": f"it differs from the result of merging the judged commit of {A} into the base",
        "lib/a": f"it is in the scope of {B}, but it is STUB",
    }


def test_a_packet_adopted_after_its_verdict_has_no_judged_commit(kitchen: Kitchen) -> None:
    kitchen.packet(A, "adopted", lane_to="MERGE_PENDING")
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, "src/b": "1"}, base)
    assert kitchen.why(base, head) == f"it is in the scope of {A}, but it is MERGE_PENDING"


def test_what_a_verdict_lacks_may_be_the_work_of_a_packet_that_is_held(kitchen: Kitchen, activated: str) -> None:
    kitchen.packet(B, *HELD, scope="`src/a.py`")
    kitchen.judged(WORK, activated)
    assert kitchen.found(activated, kitchen.commit({**OLD, "src/b.py": "b\n"}, activated)) == {}


def test_a_verdict_that_landed_before_asks_for_no_more_than_what_is_changed(kitchen: Kitchen, activated: str) -> None:
    kitchen.judged(WORK, activated)
    base = kitchen.commit(OLD, activated)
    assert kitchen.found(base, kitchen.commit({**OLD, "src/b.py": "b\n"}, base)) == {}


def test_two_works_that_were_on_the_base_before_their_verdicts(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", scope="`src/`")
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    one, two = {**OLD, "src/b.py": "b\n"}, {**OLD, "lib/b.py": "b\n"}
    for name, files in ((A, one), (B, two)):
        kitchen.add("claimed", name)
        kitchen.add("submitted", name, commit=kitchen.commit(files, base))
    both = kitchen.commit({**one, **two}, base)
    kitchen.packet("WP-1-Cup-v1", *HELD, scope="`src/`, `lib/`")
    later = kitchen.commit({**one, **two, "src/b.py": "2\n", "lib/b.py": "2\n"}, both)
    kitchen.add("verdict.given", A)
    kitchen.add("verdict.given", B)
    assert kitchen.found(later, kitchen.commit({**one, **two, "src/b.py": "2\n", "lib/b.py": "2\n"}, later)) == {}


def test_a_folder_of_before_is_not_the_file_that_was_judged(kitchen: Kitchen, activated: str) -> None:
    kitchen.add("claimed")
    kitchen.add("submitted", commit=kitchen.commit({**OLD, "src/lib": "file\n"}, activated))
    folder = kitchen.commit({**OLD, "src/lib/x": "file\n"}, activated)
    base = kitchen.commit(OLD, folder)
    kitchen.add("verdict.given")
    assert kitchen.found(base, kitchen.commit(OLD, base)) == {"src/lib": "changed_after_verdict"}


def test_work_that_landed_after_its_verdict_together_with_that_of_another_packet(
    kitchen: Kitchen, activated: str
) -> None:
    kitchen.packet(B, *HELD, scope="`lib/`")
    work, _ = kitchen.judged(WORK, activated)
    base = kitchen.commit(OLD, activated)
    assert kitchen.found(base, kitchen.commit({**WORK, "lib/x": "x"}, base, work)) == {}


def test_what_the_base_had_at_the_time_was_not_the_judged_work(kitchen: Kitchen, activated: str) -> None:
    kitchen.judged(WORK, activated)
    told, kitchen.stories[A].events = kitchen.stories[A].events, kitchen.stories[A].events[:2]
    base = kitchen.commit({**OLD, "src/b.py": "of somebody else\n"}, activated)
    kitchen.stories[A].events = told
    head = kitchen.commit({**WORK, "src/b.py": "of somebody else\n"}, base)
    assert kitchen.found(base, head) == {"src/b.py": "landed_otherwise"}


def test_what_the_base_has_as_it_was_judged_is_of_nobody_any_more(kitchen: Kitchen, activated: str) -> None:
    """A's branch has what was on the base; B changes it further."""
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    told = kitchen.stories[A].events[:2]
    base = kitchen.commit({**OLD, "lib/x": "1"}, activated)
    kitchen.stories[A].events = told
    one, _ = kitchen.judged({**WORK, "lib/x": "1"}, activated)
    other, _ = kitchen.judged({**OLD, "lib/x": "2"}, base, B)
    assert kitchen.found(base, kitchen.commit({**WORK, "lib/x": "2"}, base, one, other)) == {}


def test_a_verdict_about_a_history_of_its_own_does_not_land_without_it(kitchen: Kitchen, activated: str) -> None:
    kitchen.add("claimed")
    kitchen.add("submitted", commit=kitchen.commit({"src/b.py": "b\n"}))
    kitchen.add("verdict.given")
    assert kitchen.found(activated, kitchen.commit(OLD, activated))["src/b.py"] == "changed_after_verdict"


def test_work_that_the_base_has_together_with_more_is_not_missing(kitchen: Kitchen, activated: str) -> None:
    kitchen.add("claimed")
    work = kitchen.commit({**OLD, "src/a.py": "1\n2\n3\n4\nfive\n"}, activated)
    both: Tree = {**OLD, "src/a.py": "one\n2\n3\n4\nfive\n"}
    base = since(kitchen, both, activated)
    kitchen.add("submitted", commit=work)
    kitchen.add("verdict.given")
    assert kitchen.found(base, kitchen.commit(both, base)) == {}


def test_work_answers_for_nothing_that_the_base_has_already(kitchen: Kitchen) -> None:
    """B was begun upon the branch of A, and holds what A did; meanwhile A has landed, and C changes that."""
    kitchen.packet(A, "created", "activated", scope="`src/b.py`")
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    kitchen.packet("WP-1-Cup-v1", "created", "activated", scope="`src/b.py`")
    base = kitchen.commit(OLD)
    _, branch = kitchen.judged({**OLD, "src/b.py": "b\n"}, base)
    landed = kitchen.commit({**OLD, "src/b.py": "b\n"}, base)
    kitchen.judged({**OLD, "src/b.py": "b\n", "lib/x": "x"}, branch, B)
    kitchen.judged({**OLD, "src/b.py": "c\n"}, landed, "WP-1-Cup-v1")
    head = kitchen.commit({**OLD, "src/b.py": "c\n", "lib/x": "x"}, landed)
    assert kitchen.found(landed, head) == {}


def test_a_verdict_after_which_work_went_on_asks_for_no_commit(kitchen: Kitchen, activated: str) -> None:
    kitchen.add("claimed")
    kitchen.add("submitted", commit="9" * 40)
    kitchen.add("verdict.given")
    kitchen.add("reopened")
    assert kitchen.found(activated, kitchen.commit(WORK, activated)) == {}


def test_two_judged_works_land_together(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated")
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    kitchen.judged({**OLD, "lib/b.py": "b\n"}, base, B)
    both = {**WORK, "lib/b.py": "b\n"}
    assert kitchen.found(base, kitchen.commit(both, base)) == {}
    assert kitchen.found(base, kitchen.commit({**both, "lib/b.py": "evil\n"}, base)) == {
        "lib/b.py": "changed_after_verdict"
    }


def test_judged_work_that_is_not_about_a_path_does_not_answer_for_it(kitchen: Kitchen) -> None:
    """What it once changed out of its scope is an affair of the base."""
    kitchen.packet(A, "created", "activated", scope="`lib/a.py`")
    kitchen.packet(B, "created", "activated", scope="`lib/b.py`")
    base = kitchen.commit(OLD)
    kitchen.judged({**OLD, "lib/a.py": "a\n", "lib/b.py": "1\n"}, base)
    both = {**OLD, "lib/a.py": "a\n", "lib/b.py": "2\n"}
    landed = kitchen.commit(both, base)
    _, verdict = kitchen.judged({**both, "lib/b.py": "3\n"}, landed, B)
    assert kitchen.found(landed, verdict) == {}


def test_work_begun_upon_judged_work_answers_for_what_differs(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated")
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    _, both = kitchen.judged({**WORK, "lib/b.py": "b\n"}, verdict, B)
    assert kitchen.found(base, both) == {}


def test_work_with_a_history_of_its_own_is_compared_with_the_base(kitchen: Kitchen, activated: str) -> None:
    kitchen.add("claimed")
    work = kitchen.commit(WORK)
    kitchen.add("submitted", commit=work)
    kitchen.add("verdict.given")
    assert kitchen.found(activated, kitchen.commit(WORK, activated)) == {"src/a.py": "landed_otherwise"}


def test_a_program_of_the_folder_as_init_writes_it_needs_no_packet(kitchen: Kitchen) -> None:
    recipes = gov_just()
    base = kitchen.commit({**OLD, ".GOV/gov.just": "old"})
    assert kitchen.found(base, kitchen.commit({**OLD, ".GOV/gov.just": recipes}, base)) == {}
    other = {**OLD, ".GOV/gov.just": f"{recipes}\nmore:\n    true\n"}
    assert kitchen.found(base, kitchen.commit(other, base)) == {".GOV/gov.just": "change_uncovered"}


# --- reports ---

REPORT = "Good.\n"


def reported(kitchen: Kitchen, base: str, path: str = "docs/report.md", text: str = REPORT) -> str:
    report = {"path": path, "sha256": hashlib.sha256(REPORT.encode()).hexdigest()}
    _, verdict = kitchen.judged(WORK, base, report=report)
    return kitchen.commit({**WORK, path: text}, verdict)


def test_the_report_of_a_verdict_needs_no_packet(kitchen: Kitchen, activated: str) -> None:
    assert kitchen.found(activated, reported(kitchen, activated)) == {}


@pytest.mark.parametrize("ending", ["markdown", "rst", "MD"])
def test_a_report_is_a_text(kitchen: Kitchen, activated: str, ending: str) -> None:
    assert kitchen.found(activated, reported(kitchen, activated, f"docs/x.{ending}")) == {}


@pytest.mark.parametrize(
    "path",
    ["docs/report.py", "docs/report", "CMakeLists.txt", ".claude/report.md", "docs/.x/report.md", "AGENTS.md",
     "x/Claude.md", "gemini.md", "docs/skill.md", "docs/.md"],
)  # fmt: skip
def test_what_a_program_or_an_agent_reads_is_no_report(kitchen: Kitchen, activated: str, path: str) -> None:
    assert kitchen.found(activated, reported(kitchen, activated, path)) == {path: "change_uncovered"}


def test_a_report_that_is_gone_again_is_not_asked_for(kitchen: Kitchen, activated: str) -> None:
    head = reported(kitchen, activated)
    assert kitchen.found(activated, kitchen.commit(WORK, head)) == {}


def test_a_report_has_the_bytes_that_the_verdict_names(kitchen: Kitchen, activated: str) -> None:
    head = reported(kitchen, activated, text="Another.\n")
    assert kitchen.found(activated, head) == {"docs/report.md": "change_uncovered"}


@pytest.mark.parametrize("mode", [PROGRAM, LINK])
def test_a_report_is_a_plain_file(kitchen: Kitchen, activated: str, mode: str) -> None:
    head = reported(kitchen, activated)
    head = kitchen.commit({**WORK, "docs/report.md": (mode, REPORT)}, head)
    assert kitchen.found(activated, head) == {"docs/report.md": "change_uncovered"}


def test_a_page_of_before_is_no_report_unless_it_was_one(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated")
    base = kitchen.commit({**OLD, "docs/report.md": "A guide.\n"})
    head = reported(kitchen, base)
    assert kitchen.found(base, head) == {"docs/report.md": "change_uncovered"}
    # The verdict of before named it; now another one does.
    kitchen.add("reopened")
    again = {"path": "docs/report.md", "sha256": hashlib.sha256(b"Better.\n").hexdigest()}
    _, verdict = kitchen.judged({**WORK, "src/b.py": "better\n", "docs/report.md": REPORT}, head, report=again)
    better = kitchen.commit({**WORK, "src/b.py": "better\n", "docs/report.md": "Better.\n"}, verdict)
    assert kitchen.found(head, better) == {}


# --- taking back ---


def test_a_landing_is_taken_back_as_a_whole(kitchen: Kitchen, activated: str) -> None:
    before = {event.path: event.encode() for event in kitchen.stories[A].events}
    _, verdict = kitchen.judged(WORK, activated)
    landing = kitchen.commit(WORK, activated, verdict)
    later = kitchen.commit({**WORK, "docs/x.md": "x"}, landing)
    told = kitchen.stories[A]
    kitchen.stories = {}
    undone: Tree = {**kitchen.pages, **before, **OLD, "docs/x.md": "x"}
    back = kitchen.commit(undone, later)
    kitchen.stories = {A: Story(A)}
    kitchen.stories[A].events = told.events[:2]
    assert kitchen.found(later, back) == {}
    kitchen.stories = {}
    more = kitchen.commit({**undone, "src/b.py": "b\n", "lib/evil": "x"}, later)
    kitchen.stories = {A: Story(A)}
    kitchen.stories[A].events = told.events[:2]
    assert kitchen.found(later, more) == {"lib/evil": "change_uncovered", "src/b.py": "change_uncovered"}


def test_a_landing_that_was_taken_back_comes_back_as_a_whole(kitchen: Kitchen, activated: str) -> None:
    begun = {event.path: event.encode() for event in kitchen.stories[A].events}
    _, verdict = kitchen.judged({**WORK, "lib/x": "x"}, activated)
    landing = kitchen.commit({**WORK, "lib/x": "x"}, activated, verdict)
    told, kitchen.stories = kitchen.stories, {}
    back = kitchen.commit({**kitchen.pages, **begun, **OLD}, landing)
    kitchen.stories = told
    again = kitchen.commit({**WORK, "lib/x": "x"}, back)
    assert kitchen.found(back, again) == {}
    assert kitchen.found(back, kitchen.commit({**WORK, "lib/x": "evil"}, back)) == {"lib/x": "change_uncovered"}


# --- severities ---


@pytest.mark.parametrize(("mode", "severity"), [("required", "error"), ("warn", "warning"), ("off", "")])
def test_the_policy_says_how_much_it_matters(kitchen: Kitchen, mode: Any, severity: str) -> None:
    base = kitchen.commit(OLD)
    head = kitchen.commit({**OLD, "src/b": "1"}, base)
    policy = LifecyclePolicy(coverage=CoveragePolicy(mode))
    found = coverage_problems(kitchen.written.stored(), base, head, {}, policy)
    assert [(one.code, one.path, one.severity) for one in found] == (
        [("change_uncovered", "src/b", severity)] if severity else []
    )
    assert all(one.hint and one.message for one in found)
