"""What agents are told is true of the commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from workpacket.cli.commands import resolve
from workpacket.cli.init import SKILLS, command_lines, instructions, skills
from workpacket.cli.main import load
from workpacket.cli.options import parse

LINES = list(dict.fromkeys(command_lines()))
TEXTS = {"AGENTS.md": instructions()} | skills()
# Words that stand for what somebody fills in.
PLACEHOLDER = re.compile(r"[A-Z][A-Z_]+\Z|N=COMMAND\Z")


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_that_an_agent_is_told_parses(line: str) -> None:
    words = shlex.split(line)
    name, count = resolve(words)
    command = load(name)
    given = parse(command, words[count:])
    assert command.typed == " ".join(words[:count])
    alternatives = [shlex.split(one.replace("[", "").replace("]", "")) for one in command.arguments.split(" | ")]
    own = given.words[: given.words.index("PROGRAM")] if "PROGRAM" in given.words else given.words
    assert any(_fits(own, wanted) for wanted in alternatives), (own, command.arguments)


def _fits(words: list[str], wanted: list[str]) -> bool:
    """As many words as are wanted, at most; each one of the literal words, or in the place of a name."""
    wanted = wanted[: wanted.index("--")] if "--" in wanted else wanted
    if len(words) > len(wanted):
        return False
    return all(
        word == want or bool(PLACEHOLDER.match(want.rstrip("."))) for word, want in zip(words, wanted, strict=False)
    )


def test_every_command_in_the_texts_is_one_of_those_lines() -> None:
    told = {line for text in TEXTS.values() for line in re.findall(r"`workpacket ([^`]+)`", text)}
    assert told - set(LINES) == {"new --next BASE_WP_ID"}
    parse(load("new"), ["--next", "WP-1-Parser"])


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_is_short(path: str) -> None:
    assert len(TEXTS[path].splitlines()) < 40


@pytest.mark.parametrize("path", skills())
def test_a_skill_has_the_head_that_agents_look_for(path: str) -> None:
    head = re.match(r"---\nname: (?P<name>[a-z-]{1,64})\ndescription: (?P<what>[^:\n]{1,1024})\n---\n", TEXTS[path])
    assert head is not None
    assert Path(path).parent.name == head["name"]


def test_the_skills_are_those_that_were_asked_for() -> None:
    names = [skill.name.removeprefix("workpacket-") for skill in SKILLS]
    assert names == ["continue", "checkpoint", "resume", "stub", "task-continue"]
