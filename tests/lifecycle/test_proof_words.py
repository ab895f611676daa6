"""A proof is run without a shell, and nothing that only a shell understands reaches a program as plain text."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from workpacket.problem import WorkpacketError
from workpacket.shell.governing.proof_process import proof_words

pytestmark = pytest.mark.share(5)

CASES = Path(__file__).with_name("proofs") / "operator_forms.txt"
ROWS: list[tuple[str, str | list[str]]] = [
    tuple(json.loads(line)) for line in CASES.read_text("utf-8").splitlines() if not line.startswith("#")
]
REFUSED = [(command, said.removeprefix("refused: ")) for command, said in ROWS if isinstance(said, str)]
TAKEN = [(command, words) for command, words in ROWS if not isinstance(words, str)]
UNREADABLE = {"nothing", "'", '"', "\\"}


def test_there_are_enough_of_them() -> None:
    assert (len(REFUSED) >= 60, len(TAKEN) >= 20) == (True, True)


@pytest.mark.parametrize(("command", "mark"), REFUSED, ids=[command for command, _ in REFUSED])
def test_a_form_for_a_shell_is_refused_by_its_name(command: str, mark: str) -> None:
    with pytest.raises(WorkpacketError) as refused:
        proof_words(command)
    if mark in UNREADABLE:
        assert refused.value.code == "proof_not_run"
    else:
        assert refused.value.code == "proof_needs_shell"
        assert ("a newline" if mark == "newline" else f"`{mark}`") in refused.value.message
        assert refused.value.hint.startswith("to use a shell, specify it: sh -c ")


@pytest.mark.parametrize(("command", "mark"), [row for row in REFUSED if row[1] not in UNREADABLE])
def test_what_the_error_proposes_is_taken_and_says_the_same(command: str, mark: str) -> None:
    with pytest.raises(WorkpacketError) as refused:
        proof_words(command)
    proposed = refused.value.hint.removeprefix("to use a shell, specify it: ").removesuffix(
        "; to use the character itself, quote it"
    )
    assert proof_words(proposed) == ["sh", "-c", command.strip()]


@pytest.mark.parametrize(("command", "words"), TAKEN, ids=[command for command, _ in TAKEN])
def test_anything_else_is_taken_as_it_is(command: str, words: list[str]) -> None:
    assert proof_words(command) == words


@pytest.mark.skipif(sys.platform == "win32", reason="compares with a POSIX shell")
@pytest.mark.parametrize(("command", "words"), TAKEN, ids=[command for command, _ in TAKEN])
def test_a_shell_would_give_the_program_the_same_words(command: str, words: list[str]) -> None:
    show = f"{shlex.quote(sys.executable)} -c 'import json, sys; print(json.dumps(sys.argv[1:]))'"
    done = subprocess.run(["sh", "-c", f"{show} {command}"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == words
