"""The justfile: what people type, what CI types, and what both may rely on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
JUST = Path(sys.executable).with_name("just")


@cache
def recipes(justfile: Path = ROOT / "justfile") -> dict[str, Any]:
    command = (JUST, "--justfile", justfile, "--dump", "--dump-format", "json")
    dump = json.loads(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout)
    return {name: recipe for name, recipe in dump["recipes"].items() if not recipe["private"]}


def groups(recipe: dict[str, Any]) -> list[str]:
    return [attribute["group"] for attribute in recipe["attributes"] if "group" in attribute]


def test_every_recipe_is_documented_and_belongs_to_a_group() -> None:
    assert [name for name, recipe in recipes().items() if not recipe["doc"] or len(groups(recipe)) != 1] == []


def unsafe(recipe: dict[str, Any]) -> bool:
    """Whether it pastes anything into a command line, where the shell would read it again, or drops its arguments."""
    fragments = [fragment for line in recipe["body"] for fragment in line]
    pastes = not all(isinstance(fragment, str) for fragment in fragments)
    return pastes or (bool(recipe["parameters"]) and not any('"$@"' in fragment for fragment in fragments))


def test_no_recipe_pastes_an_argument_into_a_command_line() -> None:
    assert [name for name, recipe in recipes().items() if unsafe(recipe)] == []


@pytest.mark.parametrize("body", ["echo {{ words }}", "echo $@", "echo"])
def test_a_recipe_that_does_is_found(tmp_path: Path, body: str) -> None:
    justfile = tmp_path / "justfile"
    justfile.write_text(f"set positional-arguments\n\nsay *words:\n    {body}\n", "utf-8")

    assert unsafe(recipes(justfile)["say"])


def test_arguments_reach_the_tool_as_they_were_typed(tmp_path: Path) -> None:
    argument = 'a "quoted" $HOME `id` ; b'
    tool = tmp_path / "workpacket"
    tool.write_text('#!/bin/sh\nprintf "%s|" "$@"\n', "utf-8")
    tool.chmod(0o755)
    command = (JUST, "--justfile", ROOT / "justfile", "explain", argument, "", "last")
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.defpath}"}

    said = subprocess.run(command, env=path, check=True, capture_output=True, encoding="utf-8").stdout

    assert said == f"explain|{argument}||last|"


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", ".ci/run", ".github/workflows/ci.yml", "noxfile.py"])
def test_a_recipe_that_is_named_anywhere_exists(file: str) -> None:
    text = ROOT.joinpath(file).read_text("utf-8")
    called = re.findall(r"(?:tools/just\.py|^step|`just|just\(session,) +\"?([a-z][\w-]+)", text, re.MULTILINE)

    assert called
    assert [name for name in called if name not in recipes()] == []


def test_ci_ends_with_the_fast_tests_so_that_their_summary_ends_the_log() -> None:
    steps = re.findall(r"^ *step (\S+)", ROOT.joinpath(".ci", "run").read_text("utf-8"), re.MULTILINE)

    assert steps[-1] == "test"
    assert {"lint", "types", "package", "proof", "fuzz"} < set(steps)
