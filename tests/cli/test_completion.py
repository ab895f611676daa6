"""Completion: what may stand next, and the scripts in the shells that load them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import STUB, STUB_PATH, Commands
from git.scratch import commit
from workpacket.cli.commands import COMMANDS, GROUPS
from workpacket.cli.completion import FILES, SCRIPTS, candidates
from workpacket.cli.main import load
from workpacket.model.wording import typed_as

KNOWN = {"WP_ID": ["WP-1-Lexer-v1", "WP-1-Parser-v1"], "CODE": ["byte_order_mark"], "LANE": ["BLOCKED"]}


def words(*line: str) -> list[str]:
    return [word for word, _ in candidates(line, lambda placeholder: KNOWN.get(placeholder, ()))]


def test_the_first_word_is_a_command() -> None:
    assert words("") == [typed for _, rows in GROUPS for typed, _, _ in rows if " " not in typed]
    assert words("sta") == ["status", "start"]


def test_the_second_word_of_a_family_or_of_a_command_is_offered() -> None:
    assert words("packet", "re") == ["release", "reopen", "rename", "resolve", "reapprove"]
    assert words("log", "") == ["verify", "checkpoint", "show", "recover", "import", "export"]
    assert words("log", "show", "WP-1-L") == ["WP-1-Lexer-v1"]


def test_what_was_typed_before_is_still_completed() -> None:
    assert words("history", "WP-1-L") == ["WP-1-Lexer-v1"]


def test_behind_a_word_that_is_no_command_nothing_is_offered() -> None:
    assert words("chek", "") == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_offered(name: str) -> None:
    assert words(*typed_as(name).split(), "--") == [f"--{option.name}" for option in load(name).options]


def test_an_option_that_was_given_is_not_offered_again_unless_it_may_be() -> None:
    assert "--diff" not in words("check", "--diff", "--")
    assert "--select" in words("check", "--select", "crlf", "--")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("check", "--format", "j"), ["json", "junit"]),
        (("check", "--format=j"), ["--format=json", "--format=junit"]),
        (("check", "--format", "=", "j"), ["json", "junit"]),
        (("check", "--format", "="), ["text", "json", "sarif", "junit", "github"]),
        (("check", "--select", "byte"), ["byte_order_mark"]),
        (("check", ""), [FILES]),
        (("new", "--from", "WP-1-P"), ["WP-1-Parser-v1", FILES]),
        (("claim", ""), KNOWN["WP_ID"]),
        (("claim", "--as", "ada", "WP-1-L"), ["WP-1-Lexer-v1"]),
        (("claim", "--as=ada", "WP-1-L"), ["WP-1-Lexer-v1"]),
        (("claim", "WP-1-Lexer-v1", ""), []),
        (("verdict", "WP-1-Lexer-v1", ""), ["PASS", "FAIL", "CHANGES", "OUTDATED_ONLY"]),
        (("board", ""), ["show", "sync", "move", "export", "serve", "registry", "merge-driver"]),
        (("board", "move", "WP-1-L"), ["WP-1-Lexer-v1"]),
        (("board", "move", "WP-1-Lexer-v1", ""), ["BLOCKED"]),
        (("board", "sync", "WP-1-Lexer-v1", "WP-1-P"), ["WP-1-Parser-v1"]),
        (("board", "sink", ""), []),
        (("key", "init", ""), [FILES]),
        (("claim", "--as", ""), []),
        (("runtime", "run", "step", "HANDLE", "build", "--", ""), [FILES]),
    ],
)
def test_what_may_stand_next(line: tuple[str, ...], expected: list[str]) -> None:
    assert words(*line) == expected


def test_ids_come_from_the_repository(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    assert commands("help", "completion", "words", "--", "claim", "").out == "WP-1-Parser-v1\n"
    assert commands("help", "completion", "words", "--", "new", "--next", "W").out == "WP-1-Parser\n"


def test_branches_codes_lanes_and_kinds_are_known(commands: Commands) -> None:
    commit(commands.root, "first", a="a")
    assert commands("help", "completion", "words", "--", "merged", "--target-branch", "m").out == "main\n"
    assert "byte_order_mark" in commands("help", "completion", "words", "--", "explain", "byte").out.split()
    assert commands("help", "completion", "words", "--", "list", "--lane", "BL").out == "BLOCKED\n"
    assert commands("help", "completion", "words", "--", "fmt", "--kind", "st").out == "stub\n"
    assert commands("help", "completion", "words", "--", "approve", "--gate", "w").out == "waiver\n"


def test_outside_of_a_repository_commands_are_offered_and_ids_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    outside = Commands(tmp_path, capsys)
    assert (
        outside("help", "completion", "words", "--", "statu").out == "status\tshow the whole repository on one screen\n"
    )
    assert outside("help", "completion", "words", "--", "claim", "").out == ""


def test_one_shell_has_to_be_named(commands: Commands) -> None:
    assert commands("help", "completion").status == 2
    assert commands("help", "completion", "bash", "zsh").status == 2
    assert commands("help", "completion", "tcsh").status == 2


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_shell_accepts_its_script(shell: str, commands: Commands) -> None:
    """Bash is on every machine that runs this; the others are tried where they are."""
    program = shutil.which(shell)
    if program is None and shell != "bash":
        return
    script = commands("help", "completion", shell).out
    assert program is not None
    subprocess.run([program, "-n", commands.write("script", script)], check=True)


def test_bash_completes_a_line(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    commands.write("script", commands("help", "completion", "bash").out)
    assert in_bash(commands.root, "claim", "WP") == ["WP-1-Parser-v1"]
    assert in_bash(commands.root, "check", "--format", "=", "j") == ["json", "junit"]
    assert in_bash(commands.root, "check", "scr") == ["script"]


def in_bash(folder: Path, *line: str) -> list[str]:
    """What bash offers for the last word of a line, the other words as bash hands them on."""
    commands_on_path = f'workpacket() {{ {shlex.quote(sys.executable)} -m workpacket "$@"; }}'
    given = " ".join(map(shlex.quote, ("workpacket", *line)))
    typed = f"COMP_WORDS=({given}); COMP_CWORD={len(line)}; _workpacket; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = ["bash", "-c", f"{commands_on_path}; . ./script; {typed}"]
    shown = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return shown.stdout.split()
