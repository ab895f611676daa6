"""The options of all commands: one name means one thing, and what a name was before still works."""

from __future__ import annotations

from collections import defaultdict

import pytest

from cli.commands import Commands
from workpacket.cli.commands import COMMANDS
from workpacket.cli.main import load
from workpacket.cli.options import COMMON_OPTIONS, Option, parse
from workpacket.model.wording import FORMER_OPTIONS, SILENT

# What these six mean, by the value that they take.
MEANS = {"base": "REV", "key": "PATH", "kind": "KIND", "lane": "LANE", "out": "FILE", "until": "YYYY-MM-DD"}
# Names with one meaning for which not every command takes every value.
SEVERAL = {
    "at": "the time as of which something is shown: a day, an event, a revision or a checkpoint",
    "format": "the format of the output: each command has its own",
    "from": "what something is made from",
    "kind": "the kind of document: only three kinds are work",
    "phase": "the phase of the work: batches have three, roles any",
    "prove": "a command that proves a criterion; its number is needed where there is a contract already",
    "since": "where the comparison begins: a day or a checkpoint",
    "to": "where it goes: a person or a lane",
    "until": "when it ends: a signed end is an instant",
}


def declared() -> dict[str, list[tuple[str, Option]]]:
    found: dict[str, list[tuple[str, Option]]] = defaultdict(list)
    for name in COMMANDS:
        for option in load(name).options:
            if option not in COMMON_OPTIONS:
                found[option.name].append((name, option))
    return found


OPTIONS = declared()


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_an_option_takes_the_same_kind_of_value_in_every_command(name: str) -> None:
    values = {option.value for _, option in OPTIONS[name]}
    if name in SEVERAL:
        assert len(values) > 1, "it takes one kind of value now: strike it from the list"
        assert "" not in values, "it is a flag in one command and takes a value in another"
    else:
        assert len(values) == 1, {command: option.value for command, option in OPTIONS[name]}


@pytest.mark.parametrize(("name", "value"), MEANS.items())
def test_the_names_that_several_subjects_want_belong_to_one(name: str, value: str) -> None:
    assert value in {option.value for _, option in OPTIONS[name]}


def renamed() -> list[tuple[str, str, str]]:
    """Each command with an option that was called otherwise."""
    return [(command, new, old) for new, old in FORMER_OPTIONS.items() for command, _ in OPTIONS[new]]


@pytest.mark.parametrize(("name", "new", "old"), renamed())
def test_what_an_option_was_called_is_understood_and_answered_with_a_notice(
    capsys: pytest.CaptureFixture[str], name: str, new: str, old: str
) -> None:
    command = load(name)
    taken = next(option for option in command.options if option.name == new)
    value = [taken.choices[0] if taken.choices else "x"] if taken.value else []
    given = parse(command, [f"--{old}", *value])
    assert given.flag(new)
    notice = "" if new in SILENT else f"note: `--{old}` is now `--{new}`\n"
    assert capsys.readouterr().err == notice
    parse(command, [f"--{old}", *value, "--json"])
    assert capsys.readouterr().err == ""


def test_help_and_completion_offer_only_what_is_written_now(commands: Commands) -> None:
    assert "--waits-for" in commands("block", "--help").out
    assert "--until" not in commands("block", "--help").out
    assert "--until" not in commands("help", "completion", "words", "--", "block", "--").out
