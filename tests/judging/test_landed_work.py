"""Judged work that landed as it was judged is done, decided about the landing: asked of trees without a command.

`tests/lifecycle/test_landed_work.py` asks the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judging.repositories import Tree
from judging.test_coverage_of_changes import OLD, WORK, A, B, Kitchen, page, place
from ledger.stories import Story
from workpacket.lifecycle.policy import CoveragePolicy, LifecyclePolicy
from workpacket.shell.judging import landed_work
from workpacket.shell.judging.landed_work import landed, landing_faults, merge_faults, passed_verdicts
from workpacket.shell.work_done import described

pytestmark = pytest.mark.share(4)

POLICY = LifecyclePolicy(coverage=CoveragePolicy("required"))


@pytest.fixture
def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kitchen]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    kitchen = Kitchen(tmp_path / "repository")
    kitchen.packet(A, "created", "activated")
    yield kitchen
    kitchen.written.close()


def done(kitchen: Kitchen, tip: str) -> frozenset[str]:
    """Asked twice: of what was decided, and of what is remembered."""
    repository = kitchen.written.stored()
    logs = {name: story.log() for name, story in kitchen.stories.items()}
    first = landed(repository, tip, logs, POLICY)
    assert landed(repository, tip, logs, POLICY) == first
    return first


def test_work_that_landed_as_it_was_judged_is_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    merged = kitchen.commit(WORK, base, verdict)
    assert done(kitchen, merged) == {A}
    assert done(kitchen, kitchen.commit(WORK, base)) == {A}, "squashed"


def test_it_stays_done_whatever_is_changed_later(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    landing = kitchen.commit(WORK, base)
    assert done(kitchen, kitchen.commit({**WORK, "src/b.py": "later\n"}, landing)) == {A}


def test_work_that_was_changed_on_the_way_is_not_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    changed = {**WORK, "src/b.py": "evil\n"}
    assert done(kitchen, kitchen.commit(changed, base, verdict)) == frozenset()
    assert done(kitchen, kitchen.commit({**WORK, "lib/x": "evil\n"}, base)) == frozenset()


def test_what_was_decided_is_remembered(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    honest, false = kitchen.commit(WORK, base), kitchen.commit({**WORK, "lib/x": "evil\n"}, base)
    assert done(kitchen, honest) == {A}
    assert done(kitchen, false) == frozenset()
    monkeypatch.setattr(landed_work, "_decide", None)
    assert done(kitchen, honest) == {A}
    assert done(kitchen, false) == frozenset()


def test_what_cannot_be_known_without_a_commit_is_asked_again(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = kitchen.commit(OLD)
    kitchen.add("claimed")
    kitchen.add("submitted", commit="9" * 40)
    kitchen.add("verdict.given")
    landing = kitchen.commit(WORK, base)
    assert done(kitchen, landing) == frozenset()
    monkeypatch.setattr(landed_work, "_decide", lambda *_: "landed")
    assert done(kitchen, landing) == {A}


def test_a_landing_is_not_mended_by_taking_it_back(kitchen: Kitchen) -> None:
    """The commit that removes the verdict is not the one that brought it."""
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    landing = kitchen.commit({**WORK, "lib/x": "evil\n"}, base)
    assert done(kitchen, alone(kitchen, OLD, landing)) == frozenset()


def test_a_verdict_that_does_not_settle_by_landing_is_not_asked_about(kitchen: Kitchen) -> None:
    """Here the run of the packet is still open."""
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    kitchen.add("run.linked")
    assert done(kitchen, kitchen.commit(WORK, base)) == frozenset()


def test_a_packet_that_was_adopted_after_its_verdict_is_not_asked_about(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.stories[A] = Story(A)
    kitchen.add("adopted", lane_to="MERGE_PENDING")
    assert done(kitchen, kitchen.commit(WORK, base)) == frozenset()


def test_before_it_lands_or_without_a_branch_it_is_not_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    assert done(kitchen, base) == frozenset()
    assert done(kitchen, "") == frozenset()


def test_the_first_commit_of_a_history_has_nothing_to_be_compared_with(kitchen: Kitchen) -> None:
    kitchen.judged(WORK, kitchen.commit(OLD))
    assert done(kitchen, kitchen.commit(WORK)) == frozenset()


def test_work_that_was_not_judged_is_not_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.add("claimed")
    kitchen.add("submitted", commit=kitchen.commit(WORK, base))
    assert done(kitchen, kitchen.commit(WORK, base)) == frozenset()


def test_each_packet_is_decided_by_the_landing_that_brought_its_verdict(kitchen: Kitchen) -> None:
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    first = kitchen.commit(WORK, base)
    both: Tree = {**WORK, "lib/b.py": "b\n"}
    kitchen.judged(both, first, B)
    second = kitchen.commit({**both, "lib/b.py": "evil\n"}, first)
    assert done(kitchen, second) == {A}
    assert done(kitchen, kitchen.commit(both, first)) == {A, B}


def test_events_that_came_later_do_not_speak_for_the_landing(kitchen: Kitchen) -> None:
    """Else a packet that is held today would answer for what came along then."""
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    landing = kitchen.commit({**WORK, "lib/x": "evil\n"}, base)
    kitchen.add("claimed", B)
    assert done(kitchen, kitchen.commit({**WORK, "lib/x": "evil\n"}, landing)) == frozenset()


def test_with_very_many_packets_the_whole_log_is_looked_at(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landed_work, "_FEW", 0)
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    assert done(kitchen, kitchen.commit(WORK, base)) == {A}


def test_a_verdict_that_was_taken_back_and_brought_again_is_decided_by_the_last_time(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    first = kitchen.commit(WORK, base)
    told, kitchen.stories = kitchen.stories, {}
    begun = {event.path: event.encode() for event in told[A].events[:2]}
    back = kitchen.written.commit({**OLD, **begun, place(A): page(A)}, first)
    kitchen.stories = told
    assert done(kitchen, kitchen.commit({**WORK, "lib/x": "evil\n"}, back)) == frozenset()
    assert done(kitchen, kitchen.commit(WORK, back)) == {A}


def test_a_standing_packet_answers_by_the_day_of_the_landing(kitchen: Kitchen) -> None:
    """Not by the day on which somebody asks: two clones would come to two answers, and work be undone by a date."""
    base = kitchen.commit(OLD)
    kitchen.packet(B, "created", "activated", scope="`lock.json`, Standing until 1970-02-01")
    _, verdict = kitchen.judged(WORK, base)
    assert done(kitchen, kitchen.commit({**WORK, "lock.json": "1"}, base, verdict)) == {A}


# --- what `merged` and `audit` ask ---


def merging(kitchen: Kitchen, tip: str, name: str = A) -> set[tuple[str, str]]:
    """Why the landing can't be recorded as the merge of the packet's work."""
    found = merge_faults(kitchen.written.stored(), tip, kitchen.stories[name].log(), POLICY)
    assert all(one.hint == f"workpacket packet reopen {name} --reason TEXT" for one in found)
    return {(one.code, one.path) for one in found}


def of_landings(kitchen: Kitchen, tip: str, *, most: int = 9) -> dict[str, set[str]]:
    logs = {name: story.log() for name, story in kitchen.stories.items()}
    found = landing_faults(kitchen.written.stored(), tip, passed_verdicts(logs), POLICY, most)
    return {commit: {one.path for one in faults} for commit, faults in found.items()}


def alone(kitchen: Kitchen, files: Tree, *parents: str) -> str:
    """A commit of these files without the events that were told since the activation."""
    told = kitchen.stories[A].events
    kitchen.stories[A].events = told[:2]
    commit = kitchen.commit(files, *parents)
    kitchen.stories[A].events = told
    return commit


def test_a_merge_of_what_was_judged_can_be_recorded(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    assert merging(kitchen, base) == set(), "without a verdict"
    _, verdict = kitchen.judged(WORK, base)
    assert merging(kitchen, base) == set(), "before it lands"
    landing = kitchen.commit(WORK, base, verdict)
    assert merging(kitchen, landing) == set()
    assert of_landings(kitchen, landing) == {landing: set()}
    assert of_landings(kitchen, "") == {}


def test_a_merge_of_something_else_is_named_by_its_paths(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    landing = kitchen.commit({**WORK, "src/b.py": "evil\n", "lib/x": "x\n"}, base, verdict)
    assert merging(kitchen, landing) == {("changed_after_verdict", "src/b.py")}
    assert of_landings(kitchen, landing) == {landing: {"src/b.py", "lib/x"}}


def test_work_that_was_merged_before_its_verdict_is_compared_at_its_own_landing(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    work, _ = kitchen.judged(WORK, base)
    evil: Tree = {**WORK, "src/b.py": "evil\n", ".GOV/spec/a.md": "x"}
    honest, false = alone(kitchen, WORK, base, work), alone(kitchen, evil, base, work)
    assert merging(kitchen, kitchen.commit(WORK, honest)) == set()
    assert merging(kitchen, kitchen.commit(evil, false)) == {("landed_otherwise", "src/b.py")}


def test_work_whose_commits_are_the_line_itself_landed_as_it_is(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    assert merging(kitchen, verdict) == set()


def codes_of_landings(kitchen: Kitchen, tip: str) -> dict[str, list[tuple[str, str]]]:
    logs = {name: story.log() for name, story in kitchen.stories.items()}
    found = landing_faults(kitchen.written.stored(), tip, passed_verdicts(logs), POLICY)
    return {commit: [(one.code, one.path) for one in faults] for commit, faults in found.items()}


def test_a_verdict_in_the_first_commit_has_nothing_to_be_compared_with(kitchen: Kitchen) -> None:
    kitchen.judged(WORK, kitchen.commit(OLD))
    first = kitchen.commit(WORK)
    assert codes_of_landings(kitchen, first) == {first: [("landed_otherwise", ".GOV/log")]}


def test_faults_of_another_packet_that_landed_with_it_are_not_its_own(kitchen: Kitchen) -> None:
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    both: Tree = {**WORK, "lib/b.py": "b\n"}
    one, _ = kitchen.judged(WORK, base)
    other, _ = kitchen.judged({**OLD, "lib/b.py": "b\n"}, base, B)
    landing = kitchen.commit({**both, "lib/b.py": "evil\n"}, base, one, other)
    assert merging(kitchen, landing) == set()
    assert merging(kitchen, landing, B) == {("changed_after_verdict", "lib/b.py")}


def test_what_no_packet_covers_is_a_fault_of_the_landing_and_not_of_the_work(kitchen: Kitchen) -> None:
    """B's work brings a path that is in the scope of A only, which did not change it."""
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    one, _ = kitchen.judged(WORK, base)
    other, _ = kitchen.judged({**OLD, "lib/b.py": "b\n", "src/z.py": "z\n"}, base, B)
    landing = kitchen.commit({**WORK, "lib/b.py": "b\n", "src/z.py": "z\n"}, base, one, other)
    assert codes_of_landings(kitchen, landing)[landing] == [("change_uncovered", "src/z.py")]
    assert merging(kitchen, landing) == set()


def test_a_verdict_is_asked_about_where_it_landed_and_not_where_its_log_grows(kitchen: Kitchen) -> None:
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    work, _ = kitchen.judged(WORK, base)
    evil: Tree = {**WORK, "src/b.py": "evil\n"}
    first = kitchen.commit(evil, alone(kitchen, evil, base, work))
    kitchen.add("noted")
    both: Tree = {**evil, "lib/b.py": "b\n"}
    other, _ = kitchen.judged(both, first, B)
    second = kitchen.commit(both, first, other)
    found = codes_of_landings(kitchen, second)
    assert found == {second: [], first: [("landed_otherwise", "src/b.py")]}


def test_work_that_landed_otherwise_between_submission_and_verdict_is_named_once(kitchen: Kitchen) -> None:
    """Two questions find it: what landed before the verdict, and where the judged commit itself landed."""
    base = kitchen.commit(OLD)
    kitchen.add("claimed")
    work = kitchen.commit(WORK, base)
    kitchen.add("submitted", commit=work)
    evil: Tree = {**WORK, "src/b.py": "evil\n"}
    early = kitchen.commit(evil, base, work)
    kitchen.add("verdict.given")
    tip = kitchen.commit(evil, early)
    assert codes_of_landings(kitchen, tip)[tip] == [("landed_otherwise", "src/b.py")]


def test_a_path_that_is_changed_again_with_the_verdict_keeps_the_fault_of_its_landing(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    work, _ = kitchen.judged(WORK, base)
    evil: Tree = {**WORK, "src/b.py": "evil\n"}
    tip = kitchen.commit({**WORK, "src/b.py": "eviler\n"}, alone(kitchen, evil, base, work))
    assert codes_of_landings(kitchen, tip)[tip] == [
        ("changed_after_verdict", "src/b.py"),
        ("landed_otherwise", "src/b.py"),
    ]


def test_what_others_changed_on_the_base_meanwhile_is_not_part_of_the_work(kitchen: Kitchen) -> None:
    old = kitchen.commit(OLD)
    work, _ = kitchen.judged(WORK, old)
    base = alone(kitchen, {**OLD, "README.md": "new\n"}, old)
    merged: Tree = {**WORK, "README.md": "newer\n"}
    assert merging(kitchen, kitchen.commit(merged, alone(kitchen, merged, base, work))) == set()


def test_work_with_a_history_of_its_own_that_was_merged_is_compared_as_a_whole(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.add("claimed")
    own: Tree = {**OLD, "src/b.py": "b\n"}
    work = kitchen.commit(own)
    kitchen.add("submitted", commit=work)
    kitchen.add("verdict.given")
    evil: Tree = {**OLD, "src/b.py": "evil\n"}
    honest, false = alone(kitchen, own, base, work), alone(kitchen, evil, base, work)
    assert merging(kitchen, kitchen.commit(own, honest)) == set()
    assert merging(kitchen, kitchen.commit(evil, false)) == {("landed_otherwise", "src/b.py")}


def submitted_as(kitchen: Kitchen, base: str, changed: str = "src/b.py") -> str:
    """The work, handed in with the list of what it changes, and judged."""
    kitchen.add("claimed")
    work = kitchen.commit(WORK, base)
    kitchen.add("submitted", commit=work, changed=[changed])
    kitchen.add("verdict.given")
    return work


def test_work_that_lands_after_its_verdict_is_compared_where_it_lands(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    work = submitted_as(kitchen, base)
    early = kitchen.commit(OLD, base)
    honest, false = kitchen.commit(WORK, early, work), kitchen.commit({**WORK, "src/b.py": "evil\n"}, early, work)
    assert merging(kitchen, honest) == set()
    assert ("landed_otherwise", "src/b.py") in merging(kitchen, false)


def test_work_that_lands_squashed_after_its_verdict_is_compared_where_it_lands(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    submitted_as(kitchen, base)
    early = kitchen.commit(OLD, base)
    kitchen.add("noted")
    evil = kitchen.commit({**WORK, "src/b.py": "evil\n"}, early)
    assert ("changed_after_verdict", "src/b.py") in merging(kitchen, evil)


def test_of_many_landings_the_newest_are_asked_about(kitchen: Kitchen) -> None:
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    first = kitchen.commit({**WORK, "src/b.py": "evil\n"}, base)
    both: Tree = {**WORK, "src/b.py": "evil\n", "lib/b.py": "b\n"}
    kitchen.judged(both, first, B)
    second = kitchen.commit(both, first)
    assert of_landings(kitchen, second) == {second: set(), first: {"src/b.py"}}
    assert of_landings(kitchen, second, most=1) == {second: set()}


# --- work that no one has to judge ---

UNJUDGED = LifecyclePolicy(judged=False)


def light(kitchen: Kitchen, base: str, **said: Any) -> str:
    """A packet in the light form, handed in: its work."""
    story = kitchen.stories[A] = Story(A)
    story.add("created", form="light")
    story.add("activated", form="light")
    story.add("claimed")
    work = kitchen.commit(WORK, base)
    story.add("submitted", **{"commit": work, "changed": ["src/b.py"], **said})
    return work


def ended(kitchen: Kitchen, tip: str) -> frozenset[str]:
    logs = {A: kitchen.stories[A].log()}
    return landed(kitchen.written.stored(), tip, logs, UNJUDGED)


def test_work_in_the_light_form_is_finished_where_it_landed_as_submitted(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    work = light(kitchen, base)
    assert ended(kitchen, kitchen.commit(WORK, base, work)) == {A}
    assert ended(kitchen, kitchen.commit({**WORK, "README.md": "other\n"}, base, work)) == {A}, "of others"
    assert ended(kitchen, kitchen.commit({**WORK, "src/b.py": "evil\n"}, base, work)) == frozenset()
    assert ended(kitchen, kitchen.commit(WORK)) == frozenset(), "the first commit"
    kitchen.add("noted")
    assert ended(kitchen, kitchen.commit({**WORK, "README.md": "other\n"}, base, work)) == {A}, "a note moves nothing"


def test_work_in_the_light_form_is_compared_at_every_path_that_git_finds(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    work = light(kitchen, base, changed=[])
    assert ended(kitchen, kitchen.commit(WORK, base, work)) == {A}
    assert ended(kitchen, kitchen.commit({**WORK, "src/b.py": "evil\n"}, base, work)) == frozenset()
    board = ".GOV/roles_shared/TASK_BOARD.md"
    drawn = kitchen.commit({**WORK, board: "two\n"}, base)
    light(kitchen, base, commit=drawn)
    assert ended(kitchen, kitchen.commit({**WORK, board: "three\n"}, base, drawn)) == {A}, "a document is drawn again"


def test_work_in_the_light_form_is_not_compared_where_only_the_base_went_on(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    later = kitchen.commit({**OLD, "README.md": "later\n"}, base)
    work = light(kitchen, base)
    assert ended(kitchen, kitchen.commit({**WORK, "README.md": "of others\n"}, later, work)) == {A}


def test_work_in_the_light_form_with_a_history_of_its_own_is_compared_as_a_whole(kitchen: Kitchen) -> None:
    base, alone = kitchen.commit(OLD), kitchen.commit({"src/b.py": "b\n"})
    light(kitchen, base, commit=alone, changed=[])
    assert ended(kitchen, kitchen.commit({**OLD, "src/b.py": "b\n"}, base, alone)) == {A}
    assert ended(kitchen, kitchen.commit({**OLD, "src/b.py": "evil\n"}, base, alone)) == frozenset()


def test_what_was_decided_about_work_in_the_light_form_is_remembered(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = kitchen.commit(OLD)
    light(kitchen, base)
    false = kitchen.commit({**WORK, "src/b.py": "evil\n"}, base)
    assert ended(kitchen, false) == frozenset()
    monkeypatch.setattr(landed_work, "_decide", None)
    assert ended(kitchen, false) == frozenset()


def test_work_in_the_light_form_whose_commit_is_gone_is_asked_again_unless_it_landed(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = kitchen.commit(OLD)
    work = light(kitchen, base)
    digest = described(kitchen.written.stored(), base, work, ["src/b.py"])
    light(kitchen, base, commit="9" * 40, work={"base": base, "sha256": digest})
    honest, false = kitchen.commit(WORK, base), kitchen.commit({**WORK, "src/b.py": "evil\n"}, base)
    assert (ended(kitchen, honest), ended(kitchen, false)) == (frozenset({A}), frozenset())
    monkeypatch.setattr(landed_work, "_decide", lambda *_: "asked")
    assert (ended(kitchen, honest), ended(kitchen, false)) == (frozenset({A}), frozenset())
    monkeypatch.setattr(landed_work, "_decide", lambda *_: "landed")
    assert ended(kitchen, false) == {A}


def test_work_in_the_light_form_whose_commit_is_gone_is_known_by_its_description(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    work = light(kitchen, base)
    digest = described(kitchen.written.stored(), base, work, ["src/b.py"])
    light(kitchen, base, commit="9" * 40, work={"base": base, "sha256": digest})
    assert ended(kitchen, kitchen.commit(WORK, base)) == {A}
    light(kitchen, base, commit="9" * 40)
    assert ended(kitchen, kitchen.commit(WORK, base)) == frozenset(), "nothing describes it"


POINTER, SPEC = ".GOV/roles_shared/SPEC_CURRENT.md", ".GOV/spec/SPEC_v1.md"
TEXT, WAITING, DANCING = "# Spec\n", "\n## Waiting\n\nIt waits.\n", "\n## Dancing\n\nIt dances.\n"


@pytest.mark.parametrize(
    ("meanwhile", "landed_as", "done"),
    [
        (WAITING, WAITING + DANCING, True),
        (WAITING, WAITING.replace("It", "He") + DANCING, False),
        (WAITING, WAITING, False),
        ("", DANCING, True),
        ("", DANCING + WAITING, False),
    ],
    ids=["both kept", "one rewritten", "one left out", "as submitted", "more than submitted, without a conflict"],
)
def test_a_requirement_in_the_light_form_landed_if_both_sides_are_kept(
    kitchen: Kitchen, meanwhile: str, landed_as: str, done: bool
) -> None:
    old: Tree = {**OLD, POINTER: "In force: **SPEC_v1.md**\n", SPEC: TEXT}
    begun = kitchen.commit(old)
    base = kitchen.commit({**old, SPEC: TEXT + meanwhile}, begun)
    story = kitchen.stories[A] = Story(A)
    story.add("created", form="light")
    story.add("activated", form="light")
    story.add("claimed")
    work = kitchen.commit({**old, SPEC: TEXT + DANCING}, begun)
    story.add("submitted", commit=work, changed=[SPEC])
    landing = kitchen.commit({**old, SPEC: TEXT + landed_as}, base, work)
    assert ended(kitchen, landing) == (frozenset({A}) if done else frozenset())
