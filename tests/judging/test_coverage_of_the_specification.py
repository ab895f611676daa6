"""A change of what the specification in force says needs a packet, although the file is in the folder of governance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.repositories import Tree
from judging.test_coverage_of_changes import HELD, A, Kitchen
from workpacket.lifecycle.policy import CoveragePolicy, LifecyclePolicy
from workpacket.shell.judging.landed_work import landed, landing_faults, passed_verdicts
from workpacket.shell.work_done import described

pytestmark = pytest.mark.share(4)

POINTER, SPEC, OTHER = ".GOV/roles_shared/SPEC_CURRENT.md", ".GOV/spec/SPEC_v1.md", ".GOV/spec/SPEC_v2.md"
TEXT = "# Greeter\n\n## 1 Main body\n\n### 1.1 Greeting\n\nIt greets.\n\n### 1.2 Singing\n\nIt sings.\n"
EDITED = TEXT.replace("It greets.", "It greets nobody.")
OLD: Tree = {POINTER: "In force: **SPEC_v1.md**\n", SPEC: TEXT, OTHER: "# Another\n", "src/a.py": "1\n"}
UNCOVERED = {SPEC: "change_uncovered"}


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    kitchen = Kitchen(tmp_path / "repository")
    yield kitchen
    kitchen.written.close()


def found(kitchen: Kitchen, old: Tree, new: Tree) -> dict[str, str]:
    base = kitchen.commit(old)
    return kitchen.found(base, kitchen.commit({path: text for path, text in new.items() if text}, base))


@pytest.mark.parametrize("text", [EDITED, "", TEXT + "\n### 1.3 Waiting\n\n<!--\n"])
def test_another_wording_needs_a_packet(kitchen: Kitchen, text: str) -> None:
    assert found(kitchen, OLD, {**OLD, SPEC: text}) == UNCOVERED


def test_a_new_section_needs_none(kitchen: Kitchen) -> None:
    assert found(kitchen, OLD, {**OLD, SPEC: TEXT + "\n### 1.3 Waiting\n\nIt waits.\n"}) == {}


def test_another_file_in_force_needs_a_packet(kitchen: Kitchen) -> None:
    assert found(kitchen, OLD, {**OLD, POINTER: "In force: **SPEC_v2.md**\n"}) == {POINTER: "change_uncovered"}


def test_a_specification_that_is_in_force_no_more_needs_a_packet(kitchen: Kitchen) -> None:
    assert found(kitchen, OLD, {**OLD, POINTER: ""}) == {POINTER: "change_uncovered"}


def test_another_wording_of_the_pointer_needs_none(kitchen: Kitchen) -> None:
    assert found(kitchen, OLD, {**OLD, POINTER: "# Specification\n\nIn force is **SPEC_v1.md**.\n"}) == {}


def test_a_specification_that_is_not_in_force_needs_none(kitchen: Kitchen) -> None:
    assert found(kitchen, OLD, {**OLD, OTHER: "# New\n", ".GOV/spec/SPEC_v3.md": "# Third\n"}) == {}


def test_a_file_that_would_be_read_in_its_place_needs_a_packet(kitchen: Kitchen) -> None:
    assert found(kitchen, OLD, {**OLD, ".GOV/SPEC_v1.md": EDITED}) == {".GOV/SPEC_v1.md": "change_uncovered"}


def test_a_file_that_is_read_after_it_needs_none(kitchen: Kitchen) -> None:
    assert found(kitchen, OLD, {**OLD, ".GOV/roles_shared/SPEC_v1.md": EDITED}) == {}


@pytest.mark.parametrize("named", ["In force: **SPEC_v9.md**\n", "Nothing.\n", ""])
def test_the_first_specification_needs_none(kitchen: Kitchen, named: str) -> None:
    old = {path: text for path, text in {**OLD, POINTER: named}.items() if text}
    assert found(kitchen, old, {**OLD, POINTER: "In force: **SPEC_v2.md**\n"}) == {}


def test_a_specification_outside_of_the_folder_is_a_path_like_any_other(kitchen: Kitchen) -> None:
    old = {POINTER: "In force: docs/SPEC.md\n", "docs/SPEC.md": TEXT}
    assert found(kitchen, old, {**old, "docs/SPEC.md": TEXT + "\n### 1.3 X\n"}) == {"docs/SPEC.md": "change_uncovered"}


def test_a_held_packet_covers_it_in_its_scope(kitchen: Kitchen) -> None:
    kitchen.packet(A, *HELD, scope="`.GOV/spec/`")
    new = {**OLD, SPEC: EDITED, POINTER: "In force: **SPEC_v2.md**\n"}
    assert found(kitchen, OLD, new) == {POINTER: "change_uncovered"}


def test_what_was_judged_covers_it_as_it_was_judged(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", scope="`.GOV/spec/`")
    base = kitchen.commit(OLD)
    _, head = kitchen.judged({**OLD, SPEC: EDITED}, base)
    assert kitchen.found(base, head) == {}
    later = kitchen.commit({**OLD, SPEC: EDITED.replace("It sings.", "It hums.")}, head)
    assert kitchen.found(base, later) == {SPEC: "changed_after_verdict"}


def test_a_section_added_on_the_base_since_is_not_part_of_what_was_judged(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", scope="`.GOV/spec/`")
    old = kitchen.commit(OLD)
    more = "\n### 1.3 Waiting\n\nIt waits.\n"
    base = kitchen.commit({**OLD, SPEC: TEXT + more}, old)
    _, head = kitchen.judged({**OLD, SPEC: EDITED}, old)
    assert kitchen.found(base, kitchen.commit({**OLD, SPEC: EDITED + more}, base, head)) == {}


def test_a_judged_wording_that_is_not_in_this_clone_is_asked_for(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", "claimed", scope="`.GOV/spec/`, `src/`")
    base = kitchen.commit(OLD)
    # Nothing outside of the folder was changed, and no more than that is described.
    work = {"base": base, "sha256": hashlib.sha256(b"").hexdigest()}
    kitchen.add("submitted", commit="d" * 40, changed=[SPEC], work=work)
    kitchen.add("verdict.given")
    found = kitchen.found(base, kitchen.commit({**OLD, SPEC: EDITED}, base))
    assert found == {f".GOV/task_packets/{A}.md": "landed_otherwise", SPEC: "changed_after_verdict"}


def test_a_specification_outside_of_the_folder_is_described_like_any_other_path(kitchen: Kitchen) -> None:
    old: Tree = {POINTER: "In force: docs/SPEC.md\n", "docs/SPEC.md": TEXT}
    kitchen.packet(A, "created", "activated", "claimed", scope="`docs/`")
    base = kitchen.commit(old)
    work = kitchen.commit({**old, "docs/SPEC.md": EDITED}, base)
    digest = described(kitchen.written.stored(), base, work, ["docs/SPEC.md"])
    kitchen.add("submitted", commit="d" * 40, changed=["docs/SPEC.md"], work={"base": base, "sha256": digest})
    kitchen.add("verdict.given")
    assert kitchen.found(base, kitchen.commit({**old, "docs/SPEC.md": EDITED}, base)) == {}
    more: Tree = {**old, "docs/SPEC.md": EDITED, "docs/other.md": "nobody judged it"}
    assert kitchen.found(base, kitchen.commit(more, base)) == {"docs/other.md": "changed_after_verdict"}


def test_other_work_that_is_described_does_not_vouch_for_the_wording(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", "claimed", scope="`.GOV/spec/`, `src/`")
    base = kitchen.commit(OLD)
    work = kitchen.commit({**OLD, "src/a.py": "2\n"}, base)
    digest = described(kitchen.written.stored(), base, work, ["src/a.py"])
    kitchen.add("submitted", commit="d" * 40, changed=["src/a.py", SPEC], work={"base": base, "sha256": digest})
    kitchen.add("verdict.given")
    found = kitchen.found(base, kitchen.commit({**OLD, "src/a.py": "2\n", SPEC: EDITED}, base))
    assert found[f".GOV/task_packets/{A}.md"] == "landed_otherwise"


def test_a_pointer_that_was_judged_to_go_and_stayed_did_not_land_as_it_was_judged(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", scope="`.GOV/`, `src/`")
    base = kitchen.commit(OLD)
    without = {path: text for path, text in OLD.items() if path != POINTER}
    work, _ = kitchen.judged(without, base)
    assert kitchen.found(base, kitchen.commit(without, base, work)) == {}
    assert kitchen.found(base, kitchen.commit(OLD, base, work)) == {POINTER: "changed_after_verdict"}


def test_a_wording_that_landed_before_its_verdict_landed_as_it_was_judged(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", "claimed", scope="`.GOV/spec/`")
    base = kitchen.commit(OLD)
    work = kitchen.commit({**OLD, SPEC: EDITED}, base)
    as_judged, otherwise = {**OLD, SPEC: EDITED}, {**OLD, SPEC: TEXT.replace("It sings.", "It hums.")}
    kitchen.add("submitted", commit=work)
    merged = [kitchen.commit(tree, base, work) for tree in (as_judged, otherwise)]
    kitchen.add("verdict.given")
    told = [kitchen.commit(tree, commit) for tree, commit in zip((as_judged, otherwise), merged, strict=True)]
    policy = LifecyclePolicy(coverage=CoveragePolicy("required"))
    logs = {A: kitchen.stories[A].log()}
    repository = kitchen.written.stored()
    codes = [
        [each.code for each in landing_faults(repository, tip, passed_verdicts(logs), policy)[tip]] for tip in told
    ]
    assert codes == [[], ["landed_otherwise"]]


WAITING, DANCING = "\n### 1.3 Waiting\n\nIt waits.\n", "\n### 1.4 Dancing\n\nIt dances.\n"


@pytest.mark.parametrize(
    ("wording", "faults"),
    [
        (TEXT + WAITING + DANCING, []),
        (TEXT + WAITING, [SPEC]),
        (EDITED + WAITING + DANCING, [SPEC]),
        ("", [SPEC]),
    ],
)
def test_sections_added_at_one_place_may_both_land_and_nothing_else(
    kitchen: Kitchen, wording: str, faults: list[str]
) -> None:
    kitchen.packet(A, "created", "activated", "claimed", scope="`.GOV/spec/`")
    old = kitchen.commit(OLD)
    base = kitchen.commit({**OLD, SPEC: TEXT + WAITING}, old)
    work = kitchen.commit({**OLD, SPEC: TEXT + DANCING}, old)
    kitchen.add("submitted", commit=work, changed=[SPEC])
    new = {path: text for path, text in {**OLD, SPEC: wording}.items() if text}
    landing = kitchen.commit(new, base, work)
    kitchen.add("verdict.given")
    later = kitchen.commit(new, landing)
    logs = {A: kitchen.stories[A].log()}
    policy = LifecyclePolicy(coverage=CoveragePolicy("required"))
    found = landing_faults(kitchen.written.stored(), later, passed_verdicts(logs), policy)[later]
    assert [one.path for one in found] == faults


def test_a_section_that_was_added_on_the_way_needs_no_verdict(kitchen: Kitchen) -> None:
    kitchen.packet(A, "created", "activated", "claimed", scope="`.GOV/spec/`")
    base = kitchen.commit(OLD)
    work = kitchen.commit({**OLD, SPEC: EDITED}, base)
    kitchen.add("submitted", commit=work, changed=[SPEC])
    new: Tree = {**OLD, SPEC: EDITED + WAITING}
    landing = kitchen.commit(new, base, work)
    kitchen.add("verdict.given")
    later = kitchen.commit(new, landing)
    logs = {A: kitchen.stories[A].log()}
    policy = LifecyclePolicy(coverage=CoveragePolicy("required"))
    found = landing_faults(kitchen.written.stored(), later, passed_verdicts(logs), policy)[later]
    assert [(one.code, one.path) for one in found] == []


@pytest.mark.parametrize(
    ("path", "named", "landed_whole"),
    [
        (SPEC, "SPEC_v1.md", True),
        (OTHER, "SPEC_v1.md", False),
        ("docs/SPEC.md", "docs/SPEC.md", False),
    ],
    ids=["the specification", "another document of the folder", "a specification outside of the folder"],
)
def test_only_sections_of_the_specification_are_settled_without_a_judge(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, named: str, landed_whole: bool
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    before: Tree = {**OLD, POINTER: f"In force: **{named}**\n", path: TEXT}
    kitchen.packet(A)
    story = kitchen.stories[A]
    story.add("created", form="light")
    story.add("activated", form="light")
    story.add("claimed")
    old = kitchen.commit(before)
    base = kitchen.commit({**before, path: TEXT + WAITING}, old)
    work = kitchen.commit({**before, path: TEXT + DANCING}, old)
    story.add("submitted", commit=work, changed=[path])
    landing = kitchen.commit({**before, path: TEXT + WAITING + DANCING}, base, work)
    found = landed(kitchen.written.stored(), landing, {A: story.log()}, LifecyclePolicy(judged=False))
    assert found == (frozenset({A}) if landed_whole else frozenset())
