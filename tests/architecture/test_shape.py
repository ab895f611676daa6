"""The code keeps a shape that a reader can take in: small modules, short functions, names that say what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.small_parts import listed, small_functions, small_modules, small_parts
from architecture.source_tree import ROOT, committed_files, nodes, parsed, python_files, relative

LONGEST_MODULE = 600
LONGEST_FUNCTION = 60

# Module, or module and function, with the reason why it may be longer.
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

NAMES_THAT_SAY_NOTHING = re.compile(
    r"_*(utils?|helpers?|common|misc|stuff)(_.*)?|.*_(utils?|helpers?|common|misc|stuff)"
)

# Folders of the machines on which this was written. Home folders of invented people stand in fixtures on purpose.
MACHINE_PATHS = re.compile(rb"(?<![\w.~-])/((root|work)/[\w.]|tmp/(lab|wt)\b|opt/(pypi|wheels)\b)|\.pyenv/")
MACHINE_PATHS_ALLOWED = {"tests/architecture/test_shape.py": "names them in order to find them"}


def functions(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function in the module, nested ones and methods included."""
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def long_modules(folder: Path) -> set[str]:
    files = python_files(folder)
    return {relative(path) for path in files if len(path.read_bytes().splitlines()) > LONGEST_MODULE}


def long_functions(folder: Path) -> set[str]:
    return {
        f"{relative(path)}::{name}"
        for path in python_files(folder)
        for name, lines in functions(parsed(path))
        if lines > LONGEST_FUNCTION
    }


def test_no_module_is_longer_than_a_sitting() -> None:
    assert long_modules(ROOT / "tools") == LONG_MODULES.keys()


def test_no_function_is_longer_than_a_screen() -> None:
    assert long_functions(ROOT / "tools") == LONG_FUNCTIONS.keys()


def test_what_is_too_small_to_stand_alone_is_merged_or_listed_with_a_reason() -> None:
    found, known = small_parts(), listed()

    assert found - known.keys() == set(), "merge each into its one user, or say in small_parts.txt why it stands alone"
    assert known.keys() - found == set(), "run tests/architecture/small_parts.py: these are no longer there"


def test_small_modules_and_functions_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "workpacket"
    folder.mkdir()
    monkeypatch.setattr("architecture.source_tree.ROOT", tmp_path)
    monkeypatch.setattr("architecture.small_parts.PACKAGE", folder)
    texts = {
        "small": "def short():\n    return 1\n",
        "shared": "def tested():\n    return 2\n",
        "long": "x = 1\n" * 40 + "from workpacket.shared import tested\n",
        "user": "from workpacket import long\nfrom workpacket.small import short\n"
        "from workpacket.shared import tested\nprint(short(), tested())\n",
    }
    files = [folder / f"{name}.py" for name in texts]
    for path, text in zip(files, texts.values(), strict=True):
        path.write_text(text)

    assert list(small_modules(files)) == ["workpacket.small"]
    assert list(small_functions([ast.parse(text) for text in texts.values()], {"tested"})) == ["short()"]


def test_the_length_of_a_function_counts_its_signature_and_its_last_line() -> None:
    module = "class A:\n    def f(\n        self,\n    ) -> None:\n        x = 1\n        del x\n"

    assert list(functions(ast.parse(module))) == [("f", 5)]


@pytest.mark.parametrize("name", ["utils", "_util", "common", "git_helpers", "helpers_for_git", "misc", "text_common"])
def test_a_name_that_says_nothing_is_recognised(name: str) -> None:
    assert NAMES_THAT_SAY_NOTHING.fullmatch(name)


@pytest.mark.parametrize("name", ["futile", "commonmark", "commons", "help", "miscount"])
def test_a_name_that_only_begins_alike_is_left_alone(name: str) -> None:
    assert not NAMES_THAT_SAY_NOTHING.fullmatch(name)


def test_every_module_and_folder_has_a_name_that_says_what_it_is_for() -> None:
    names = {part for path in python_files(ROOT) for part in path.relative_to(ROOT).with_suffix("").parts}

    assert {name for name in names if NAMES_THAT_SAY_NOTHING.fullmatch(name)} == set()


@pytest.mark.parametrize(
    "text",
    [b"cd /root/project", b"'/work/main'", b"path=/tmp/lab/v", b"/opt/wheels", b"~/.pyenv/versions"],
)
def test_a_path_of_this_machine_is_recognised(text: bytes) -> None:
    assert MACHINE_PATHS.search(text)


@pytest.mark.parametrize(
    "text", [b"/home/alice/notes", b"docs/work/plan.md", b"/workers/1", b"../root/x", b"/tmp/x", b"'/root/'"]
)
def test_other_paths_are_left_alone(text: bytes) -> None:
    assert not MACHINE_PATHS.search(text)


def test_no_committed_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    home = re.compile(rb"(?<![\w/])" + re.escape(bytes(Path.home())) + rb"/[\w.]")
    found = {
        relative(path)
        for path in committed_files()
        if MACHINE_PATHS.search(content := path.read_bytes()) or home.search(content)
    }

    assert found == MACHINE_PATHS_ALLOWED.keys()


def test_every_module_is_valid_for_the_oldest_python_that_is_supported() -> None:
    for path in python_files(ROOT):
        parsed(path)  # SyntaxError if it is not


def test_the_first_script_is_valid_for_pythons_that_can_only_be_told_to_go() -> None:
    code = (ROOT / "tools" / "just.py").read_bytes()

    ast.parse(code, feature_version=(3, 7))
    with pytest.raises(SyntaxError):
        ast.parse(code + b"\nif (x := 1): pass\n", feature_version=(3, 7))
