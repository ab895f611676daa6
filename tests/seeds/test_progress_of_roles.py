"""The third founding document, progress of roles: its file, its milestones, and going on after an interruption."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridges.roles import FILE, Roles, checkpoint
from git.scratch import make_repository
from workpacket.cli.main import main

KEYS = ["feature", "team", "agent", "phase", "status", "last_action", "updated"]
ARCHITECT = "docs/progress/auth-architect.md"


@pytest.fixture
def roles(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Roles:
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKPACKET_INSTANCE", raising=False)
    return Roles(tmp_path, capsys)


def said_by(roles: Roles, *words: str) -> str:
    roles.capture.readouterr()
    assert main([*words]) == 0
    return "".join(roles.capture.readouterr())


def milestone(roles: Roles, name: str, *words: str) -> str:
    roles.done(name, "auth", "architect", *words)
    return roles.said


# ---- the file ------------------------------------------------------------------------------------------------------


def test_a_first_milestone_writes_the_file_with_its_seven_keys_in_order_and_a_note(roles: Roles) -> None:
    milestone(roles, "claimed", "--team", "plan-product", "--phase", "design")
    _, front, body = roles.text(ARCHITECT).split("---\n", 2)
    assert re.findall(r"^(\w+): ", front, re.MULTILINE) == KEYS
    assert (
        'feature: "auth"\nteam: "plan-product"\nagent: "architect"\nphase: "design"\nstatus: "in_progress"\n' in front
    )
    assert re.search(r'^updated: "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"$', front, re.MULTILINE)
    assert re.fullmatch(r"\n## Progress Notes\n\n- \[\d\d:\d\d\] Claimed the task\n", body)
    assert main(["check", ARCHITECT]) == 0


@pytest.mark.parametrize("phase", ["research", "design", "review", "implementation", "testing"])
def test_each_phase_of_the_document_may_be_written(roles: Roles, phase: str) -> None:
    assert f"architect: {phase}, in_progress" in milestone(roles, "claimed", "--team", "t", "--phase", phase)


def test_each_status_of_the_document_is_reached_by_a_milestone(roles: Roles) -> None:
    reached = [
        milestone(roles, "claimed", "--team", "t"), milestone(roles, "review-requested"),
        milestone(roles, "blocked", "Nobody decided"), milestone(roles, "done"),
    ]  # fmt: skip
    for status, line in zip(("in_progress", "awaiting_review", "blocked", "complete"), reached, strict=True):
        assert f", {status}: " in line


@pytest.mark.parametrize(("field", "code"), [("phase", "role_phase_foreign"), ("status", "value_not_allowed")])
def test_other_words_for_phase_and_status_are_found(roles: Roles, field: str, code: str) -> None:
    roles.write(checkpoint(**{field: "somewhere"}))
    main(["check", FILE])
    assert field in (said := roles.capture.readouterr().out), said
    assert "somewhere" in said


# ---- milestones ----------------------------------------------------------------------------------------------------


def test_the_four_milestones_are_one_call_and_one_line_each(roles: Roles) -> None:
    for name in ("claimed", "drafted", "review-requested", "review-approved"):
        line = milestone(roles, name, "--team", "plan-product")
        assert len(line.splitlines()) == 1
        assert len(line) < 100
    assert len(re.findall(r"^- \[", roles.text(ARCHITECT), re.MULTILINE)) == 4


def test_the_convention_is_in_what_init_tells_agents(roles: Roles) -> None:
    assert main(["init", "--skills"]) == 0
    skills = {path.parent.name: path.read_text("utf-8") for path in roles.root.glob(".agents/skills/*/SKILL.md")}
    told = next(text for name, text in skills.items() if "checkpoint" in name)
    for name in ("claimed", "drafted", "review-requested", "review-approved"):
        assert name in told
    assert "workpacket progress claimed FEATURE AGENT" in told
    assert any("workpacket resume" in text for text in skills.values())
    assert all(len(text.splitlines()) < 40 for text in skills.values())


# ---- going on ------------------------------------------------------------------------------------------------------


def test_a_session_that_was_killed_goes_on_from_its_last_milestone(roles: Roles) -> None:
    roles.claim()
    roles.done("drafted", "auth", "backend-eng", "Drafted the plan of the door", "--instance", "a")
    roles.killed("note", "auth", "backend-eng", "Wrote half of it", "--instance", "a")
    said = said_by(roles, "resume", "--team", "build", "--yes", "--instance", "a")
    assert "The last thing done: Wrote half of it." in said
    assert f"Read {FILE} and go on from there." in said
    assert "Resumed the work" in roles.text()
    assert "Drafted the plan of the door" in roles.text()


def test_resume_without_words_finds_every_incomplete_checkpoint_and_no_complete_one(roles: Roles) -> None:
    roles.write(checkpoint())
    roles.write(checkpoint("door", "architect"), "docs/progress/door-architect.md")
    roles.write(checkpoint("wall", "architect", status="complete"), "docs/progress/wall-architect.md")
    said = said_by(roles, "resume")
    assert "role/auth/build/backend-eng  design: Drafted the plan" in said
    assert "role/door/build/architect" in said
    assert "role/wall" not in said


def test_a_team_resumes_its_own_roles_only(roles: Roles) -> None:
    roles.write(checkpoint())
    roles.write(checkpoint("auth", "architect", team="plan-product"), ARCHITECT)
    said = said_by(roles, "resume", "--team", "plan-product")
    assert "role/auth/plan-product/architect" in said
    assert "role/auth/build" not in said


def test_two_writers_of_one_checkpoint_do_not_conflict_because_there_is_only_one(roles: Roles) -> None:
    roles.claim()
    before = roles.text()
    assert roles("note", "auth", "backend-eng", "me too", "--instance", "b") == 44
    assert roles.text() == before
