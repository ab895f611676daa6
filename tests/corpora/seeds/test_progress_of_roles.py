"""The third founding document, progress of roles: its file, its milestones, and going on after an interruption."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from corpora.seeds.user import PROGRAMS, Repository, environment, new_repository

KEYS = ["feature", "team", "agent", "phase", "status", "last_action", "updated"]
FILE = "docs/progress/auth-architect.md"
ROLE = ("auth", "architect")
CLAIM = ("progress", "claimed", *ROLE, "--team", "plan-product", "--instance", "a")
MILESTONES = ("claimed", "drafted", "review-requested", "review-approved")
# As people write it, with comments behind values and words of their own below.
WRITTEN = """\
---
feature: "{feature}"
team: "{team}"
agent: "architect"
phase: "design"           # one of the phases
status: "{status}"     # one of the statuses
last_action: "Sent the draft to a colleague"
updated: "2026-02-14T10:30:00Z"
---

## Progress Notes

- [10:00] Began with the door
- [10:30] Sent the draft   with  blanks

Words that somebody added.
"""


class Roles(Repository):
    """A repository in which roles write their progress."""

    def milestone(self, name: str, *words: str) -> str:
        return self.done("runtime", "progress", name, *ROLE, *words, "--instance", "a").out

    def checkpoint(self, feature: str = "auth", team: str = "plan-product", status: str = "in_progress") -> None:
        self.write(f"docs/progress/{feature}-architect.md", WRITTEN.format(feature=feature, team=team, status=status))

    def front(self) -> str:
        return self.read(FILE).split("---\n")[1]


@pytest.fixture
def roles(tmp_path: Path) -> Roles:
    return Roles(new_repository(tmp_path).root)


# ---- the file ------------------------------------------------------------------------------------------------------


def test_the_file_has_seven_keys_in_order_and_one_that_people_wrote_is_continued(roles: Roles) -> None:
    roles.done(*CLAIM, "--phase", "design")
    assert re.findall(r"^(\w+): ", roles.front(), re.MULTILINE) == KEYS
    assert roles.front().startswith(
        'feature: "auth"\nteam: "plan-product"\nagent: "architect"\nphase: "design"\nstatus: "in_progress"\n'
    )
    assert re.search(r'^updated: "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"$', roles.front(), re.MULTILINE)
    assert roles("check", FILE, "--json").errors() == []
    roles.checkpoint("wall")
    path = "docs/progress/wall-architect.md"
    assert roles("check", path, "--json").errors() == []
    roles.done("runtime", "progress", "drafted", "wall", "architect", "--instance", "a")
    assert re.findall(r"^(\w+): ", roles.read(path), re.MULTILINE) == KEYS
    assert 'last_action: "Drafted the plan"' in roles.read(path)


def test_each_of_the_four_milestones_is_written_down_as_it_is_reached(roles: Roles) -> None:
    said = [roles.milestone(name, "--team", "plan-product") for name in MILESTONES]
    actions = ["Claimed the task", "Drafted the plan", "Requested a review", "The review approved the work"]
    for line, action in zip(said, actions, strict=True):
        assert action in line
    assert re.findall(r"^- \[\d\d:\d\d\] (.*)$", roles.read(FILE), re.MULTILINE) == actions


def test_a_phase_is_one_of_five(roles: Roles) -> None:
    for phase in ("research", "design", "review", "implementation", "testing"):
        assert f"architect: {phase}, in_progress" in roles.done(*CLAIM, "--phase", phase).out
        assert f'phase: "{phase}"' in roles.front()
    before = roles.read(FILE)
    said = roles(*CLAIM, "--phase", "build")
    assert said.status == 1
    assert "role_phase_foreign" in said.text
    assert roles.read(FILE) == before


def test_a_status_is_one_of_four(roles: Roles) -> None:
    reached = {
        "in_progress": roles.done(*CLAIM).out, "awaiting_review": roles.milestone("review-requested"),
        "blocked": roles.milestone("blocked", "Waiting for a decision"), "complete": roles.milestone("done"),
    }  # fmt: skip
    for status, line in reached.items():
        assert f", {status}: " in line
    assert 'status: "complete"' in roles.front()
    roles.checkpoint(status="sleeping")
    assert "role_status_unknown" in [error["code"] for error in roles("check", FILE, "--json").errors()]


def test_a_note_is_appended_with_its_time_whatever_its_words_are(roles: Roles) -> None:
    roles.done(*CLAIM)
    roles.milestone("note", 'one\n---\nupdated: "never"')
    body = roles.read(FILE).split("---\n", 2)[2]
    assert body.startswith("\n## Progress Notes\n\n")
    notes = re.findall(r"^- \[[0-2]\d:[0-5]\d\] (.*)$", body, re.MULTILINE)
    assert notes[0] == "Claimed the task"
    assert len(notes) == len(body.strip().splitlines()) - 2 == 2
    assert roles("check", FILE, "--json").errors() == []


def test_the_convention_is_in_a_skill_that_agents_read(roles: Roles) -> None:
    roles.done("init", "--skills")
    told = roles.read(".agents/skills/workpacket-checkpoint/SKILL.md")
    for name in MILESTONES:
        assert name in told
    assert "workpacket runtime progress claimed FEATURE AGENT" in told
    skills = [path.read_text("utf-8") for path in roles.root.glob(".agents/skills/*/SKILL.md")]
    assert any("workpacket resume" in text for text in skills)
    assert all(len(text.splitlines()) < 40 for text in skills)


# ---- going on ------------------------------------------------------------------------------------------------------


def test_resume_without_words_finds_every_incomplete_checkpoint_and_no_complete_one(roles: Roles) -> None:
    roles.checkpoint("auth")
    roles.checkpoint("door", "build")
    roles.checkpoint("bell", status="blocked")
    roles.checkpoint("wall", status="complete")
    said = roles("resume").text
    assert "role/auth/plan-product/architect  design: Sent the draft to a colleague" in said
    assert "role/door/build/architect" in said
    assert "role/bell/plan-product/architect" in said
    assert "role/wall" not in said
    of_team = roles("resume", "--team", "build").text
    assert "role/door/build/architect" in of_team
    assert "role/auth" not in of_team


@pytest.mark.long
def test_two_sessions_never_write_one_checkpoint_at_once(roles: Roles) -> None:
    roles.done(*CLAIM)
    before = roles.read(FILE)
    other = roles("runtime", "progress", "note", *ROLE, "me too", "--instance", "b")
    assert (other.status, roles.read(FILE)) == (44, before)
    assert "run_busy" in other.text
    at_once = [
        subprocess.Popen([PROGRAMS / "workpacket", "progress", "note", *ROLE, f"note {number}", "--instance", "a"],
                         cwd=roles.root, env=environment(), stdout=subprocess.DEVNULL)
        for number in range(3)
    ]  # fmt: skip
    assert [process.wait(60) for process in at_once] == [0] * 3
    assert sorted(re.findall(r"note \d", roles.read(FILE).partition("## Progress Notes")[2])) == [
        f"note {number}" for number in range(3)
    ]


def test_a_checkpoint_costs_one_call_and_one_short_line(roles: Roles) -> None:
    said = roles.milestone("claimed", "--team", "plan-product")
    assert len(said.splitlines()) == 1
    assert len(said) < 100
    assert roles.milestone("note", "half of it is done").count("\n") == 1


def test_an_interrupted_session_is_resumed_from_its_last_checkpoint_and_not_from_the_start(
    roles: Roles, tmp_path_factory: pytest.TempPathFactory
) -> None:
    roles.done(*CLAIM)
    roles.milestone("drafted", "Drafted the plan of the door")
    roles.milestone("note", "Wrote half of it")
    roles.commit("as far as it came")
    clone = Roles(tmp_path_factory.mktemp("clone"))
    clone.git("clone", "--quiet", str(roles.root), ".")
    for repository, instance in ((roles, "a"), (clone, "b")):
        said = repository.done("resume", "--team", "plan-product", "--yes", "--instance", instance)
        assert "Last action: Wrote half of it." in said.text
        assert f"Read {FILE} and continue from there." in said.text
        assert "Drafted the plan of the door" in repository.read(FILE)
        assert "Resumed the work" in repository.read(FILE)


def test_a_milestone_changes_phase_status_last_action_and_updated_and_no_other_byte(roles: Roles) -> None:
    roles.checkpoint()
    before = roles.read(FILE)
    roles.milestone("review-requested", "--phase", "review")
    expected = before.replace('"design" ', '"review" ').replace('"in_progress" ', '"awaiting_review" ')
    expected = expected.replace('last_action: "Sent the draft to a colleague"', 'last_action: "Requested a review"')
    after = roles.read(FILE)
    (updated,) = re.findall(r'^updated: "(.*)"$', after, re.MULTILINE)
    assert updated != "2026-02-14T10:30:00Z"
    (note,) = set(re.findall(r"^- \[.*\n", after, re.MULTILINE)) - set(re.findall(r"^- \[.*\n", before, re.MULTILINE))
    assert after.replace(note, "").replace(updated, "2026-02-14T10:30:00Z") == expected


# ---- what a careful reader of the document found missing -----------------------------------------------------------

SKILL = "---\nname: build-product\ndescription: Builds what was planned.\n---\n\n# Build\n\n## Determine Mode\n\n"


def test_spawn_prompts_get_a_text_that_requires_checkpoints_where_the_plugin_reads_skills(roles: Roles) -> None:
    roles.done("init", "--skills")
    texts = [roles.read(f"{place}/skills/workpacket-checkpoint/SKILL.md") for place in (".agents", ".claude")]
    assert texts[0] == texts[1]
    (prompt,) = re.findall(r"^## Spawn prompts\n.*?^```text\n(.*?)^```$", texts[0], re.MULTILINE | re.DOTALL)
    assert "workpacket runtime progress" in prompt
    for milestone in MILESTONES:
        assert milestone in prompt
    assert "must" in prompt.lower()


@pytest.mark.parametrize("status", ["in_progress", "blocked", "awaiting_review"])
def test_every_incomplete_status_is_resumed_with_what_it_waits_for_and_without_an_approval(
    roles: Roles, status: str
) -> None:
    roles.checkpoint(status=status)
    (row,) = roles.json("resume")["unfinished"]
    said = roles.done("resume", row["id"], "--yes", "--instance", "a").out
    assert "Sent the draft to a colleague" in said
    assert ("is waiting for" in said) is (status != "in_progress"), said
    assert f"status: {status}" in roles.front().replace('"', "")
    assert "approved" not in roles.read(FILE)
    assert "Resumed" in roles.read(FILE)


def test_the_skills_of_the_document_resume_by_a_line_that_init_adds_when_told_to(roles: Roles) -> None:
    paths = [f".claude/skills/{name}/SKILL.md" for name in ("build-product", "plan-product")]
    for path in paths:
        roles.write(path, SKILL)
    offered = roles.done("init", "--skills").out
    assert all(roles.read(path) == SKILL for path in paths)
    assert "--hook" in offered
    assert all(path in offered for path in paths)
    for _ in range(2):
        roles.done("init", "--skills", "--hook")
        for path in paths:
            text = roles.read(path)
            (added,) = set(text.splitlines()) - set(SKILL.splitlines())
            assert "workpacket resume --team " in added
            assert len(text.splitlines()) == len(SKILL.splitlines()) + 1


def test_a_folder_of_a_working_team_passes_the_check(roles: Roles) -> None:
    roles.done("init")
    for status in ("in_progress", "blocked", "awaiting_review", "complete"):
        roles.checkpoint(feature=f"auth-{status.replace('_', '-')}", status=status)
        roles.write(f"docs/progress/auth-{status.replace('_', '-')}-summary.md",
                    f"---\nfeature: auth-{status.replace('_', '-')}\nstatus: complete\n---\n\n# Summary\n")  # fmt: skip
    roles.commit("as it is")
    said = roles("check", "--json")
    assert [one for one in said.errors() if one["path"].startswith("docs/progress/")] == []
    assert "role_zombie" in said.codes
