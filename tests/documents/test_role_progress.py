"""Role checkpoints, told apart from everything else that lies in their folder."""

from __future__ import annotations

import pytest

from workpacket.documents.role_progress import Note, RoleProgress
from workpacket.text.source import Source

SEVEN = """feature: reader
team: build
agent: architect
phase: design
status: in_progress
last_action: x
updated: 2026-03-01"""


def read(name: str, front: str, body: str = "") -> RoleProgress:
    return RoleProgress(Source(f"docs/progress/{name}.md", f"---\n{front}\n---\n{body}"))


@pytest.mark.parametrize(
    ("name", "front", "note"),
    [
        ("reader-architect", SEVEN, "checkpoint"),
        ("reader-architect", SEVEN.replace("team: build\n", "").replace("\nlast_action: x", ""), "checkpoint"),
        ("reader-architect", SEVEN + "\ntype: progress-checkpoint", "checkpoint"),
        ("reader-analyst", "type: progress-checkpoint\nagent: analyst\nstatus: complete", "older_checkpoint"),
        ("reader-stories", SEVEN + "\ntype: user-stories", "other"),
        ("build-reader-2026-03-01-cost-summary", SEVEN, "cost_summary"),
        ("reader-costs", "type: cost-summary\nfeature: reader", "cost_summary"),
        ("reader-summary", SEVEN, "summary"),
        ("reader", "feature: reader\nstatus: complete", "summary"),
        ("reader-notes", "feature: reader\nstatus: complete\ncompleted: 2026-03-01", "summary"),
        ("p1-plan", "feature: reader\nrole: architect\nstatus: plan-pending-review", "other"),
        ("template", 'feature: ""\nteam: "<team>"\nagent: ""\nphase: ""', "template"),
    ],
)
def test_what_kind_of_file_it_is(name: str, front: str, note: Note) -> None:
    assert read(name, front).note == note


@pytest.mark.parametrize(
    ("name", "front", "feature"),
    [
        ("reader-summary", "feature: reader\nstatus: complete", "reader"),
        ("reader", "feature: reader\nstatus: Completed", "reader"),
        ("reader-build-summary", "feature: reader\nstatus: complete", "reader"),
        ("p1-02-summary", "feature: reader\nstatus: done", "reader"),
        ("reader-spec-summary", "feature: reader\nstatus: complete", ""),
        ("reader-summary", "feature: reader\nstatus: in_progress", ""),
        ("plan-reader-cost-summary", "feature: reader\nstatus: complete", ""),
        ("reader-architect", SEVEN.replace("in_progress", "complete"), ""),
    ],
)
def test_which_feature_a_file_says_is_complete(name: str, front: str, feature: str) -> None:
    assert read(name, front).finishes == feature


def test_every_field_has_its_place() -> None:
    document = read("reader-architect", SEVEN)

    assert document.place(document.status) == (6, 9)
    assert document.place(document.updated) == (8, 10)


def test_the_notes_below_their_heading() -> None:
    body = "\n## Progress Notes\n\n- [09:30] one\n- two\n\n## Results\n\n- three\n"

    assert [item.text for item in read("reader-architect", SEVEN, body).notes()] == ["[09:30] one", "two"]


def test_a_file_without_front_matter_is_a_note() -> None:
    document = RoleProgress(Source("docs/progress/notes.md", "# Notes\n"))

    assert document.root is None
    assert document.faults == ()
    assert document.note == "other"
