"""The commands of the skills are typed, in the order of the skill, in repositories in which they make sense."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from cli.places import Place
from cli.test_guard import World
from cli.test_resume import UNKNOWN, started
from corpora.seeds.test_batches_of_a_spec import Scope, two_batches_done
from git.scratch import git
from workpacket.cli.init import SKILLS

STEPS = {skill.name: [step.command for step in skill.steps] for skill in SKILLS}
NAME = "WP-1-Greet-The-User-v1"
VALUES = {
    "WORD": "greet", "TITLE": "Greet the user", "TEXT": "It gets the word hello.", "PATH": "src/greeting",
    "COMMAND": "grep -q hello src/greeting", "WP_ID": NAME, "HEADING": "1 Main body", "TEAM": "build",
    "CODE": "lease_ended", "REASON": "Later.",
}  # fmt: skip


def filled(command: str, values: Mapping[str, str]) -> list[str]:
    return [values.get(word, word) for word in shlex.split(command)]


def repository(root: Path, form: str) -> World:
    git(root, "init", "-q", "-b", "main")
    world = World(root)
    world.type("init", "--dialect", "plain", "--form", form)
    specification = root / ".GOV/spec/SPEC_v1.md"
    text = specification.read_text("utf-8")
    specification.write_text(text.replace("State here what is required.", "Users are greeted."), "utf-8")
    (root / "src").mkdir()
    (root / "src/greeting").write_text("to do\n", "utf-8")
    world.commit("governed")
    return world


@pytest.fixture
def light(tmp_path: Path) -> World:
    return repository(tmp_path, "light")


def test_the_skill_for_stubs_leads_from_an_idea_to_a_packet_that_is_started(light: World) -> None:
    *commands, in_full_form = STEPS["workpacket-stub"]
    for command in commands:
        if command.startswith("start"):
            light.commit("stub")
        light.type(*filled(command, VALUES))
    assert f"{NAME}, IN_PROGRESS" in light.type("prime")
    assert in_full_form == "refine WP_ID --present"


def test_in_the_full_form_the_skill_for_stubs_says_what_the_refinement_lacks(tmp_path: Path) -> None:
    world = repository(tmp_path, "full")
    world.type("new", "WP-1-Greet-v1", "--what", "Greet", "--why", "People like it")
    world.type("refine", "WP-1-Greet-v1")
    shown = world.type(*filled(STEPS["workpacket-stub"][-1], {"WP_ID": "WP-1-Greet-v1"}), status=3)
    assert "next: edit .GOV/refinements/WP-1-Greet-v1.md" in shown  # its findings are still to be written


def test_the_skill_for_resuming_a_packet_can_be_typed(light: World) -> None:
    for command in STEPS["workpacket-stub"][1:3]:
        light.type(*filled(command, VALUES))
    light.commit("stub")
    light.type("start", NAME)
    for command in STEPS["workpacket-resume"]:
        if " ID" in command:
            continue
        if command.startswith("start"):  # the lease has ended, and someone has released the packet
            light.type("packet", "release", NAME, "--reason", "It ended.")
        light.type(*filled(command, VALUES))
    assert f"{NAME}, IN_PROGRESS" in light.type("prime")


@pytest.fixture
def runs(place: Place) -> Place:
    started(place, UNKNOWN)
    return place


@pytest.mark.parametrize("command", [one for one in STEPS["workpacket-resume"] if " ID" in one])
def test_the_skill_for_resuming_a_run_can_be_typed(runs: Place, command: str) -> None:
    done = runs(*filled(command, {"ID": "post@one", "STEP": "post"}))
    expected = 74 if "--plan" in command else 0  # a plan only says that the run waits for an answer
    assert done.returncode == expected, done.stdout + done.stderr


@pytest.mark.parametrize("end", range(3))
def test_the_skill_for_batches_leads_through_all_phases(tmp_path: Path, end: int) -> None:
    two_batches_done(tmp_path)
    scope = Scope(tmp_path)
    *phases, plain, deferring, resolving = STEPS["task-continue"]
    values = {"SPEC": "auth", "ID": "T003", "SEVERITY:TEXT": "low:More names", "NUMBER": "1"}
    begin = phases[1]
    for command in phases:
        scope.done(*filled(command, values))
        if "--outcome rejected" in command:  # the implementers go on
            scope.done(*filled(begin, values))
            scope.done(*filled(phases[4], values))
        if "--phase" in command and command != phases[-1]:
            scope.done(*filled(begin, values))
    scope.write("src/session.py", "session = 1\n")
    scope.done(*filled((plain, deferring, resolving)[end], values))
    assert scope.checkpoint()["last_batch"] == 3
    assert len(scope.checkpoint()["deferred_issues"] or ()) == (1, 2, 0)[end]


def test_the_skill_for_continuing_leads_from_a_stub_to_submitted_work(light: World) -> None:
    for command in STEPS["workpacket-stub"][1:3]:
        light.type(*filled(command, VALUES))
    light.commit("stub")
    for command in STEPS["workpacket-continue"]:
        if "batch" in command:
            continue  # see above
        if command.startswith("done"):
            (light.root / "src/greeting").write_text("hello\n", "utf-8")
            light.commit("work")
        refused = command.startswith("packet release")  # it is handed in
        light.type(*filled(command, VALUES), status=3 if refused else 0)
    assert "MERGED" in light.type("show", NAME) or "REVIEW" in light.type("show", NAME).upper()
