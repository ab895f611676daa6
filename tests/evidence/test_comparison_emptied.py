"""New functions are emptied, and nothing else of a source."""

from __future__ import annotations

import ast

import pytest

from workpacket.evidence.comparison import ANSWERS, FileAdditions, PythonFile, additions, emptied, new_names

BEFORE = "def old():\n    return 1\n\n\nclass Kept:\n    def stays(self):\n        return 2\n"
ADDED = """

def new(x):
    def inner():
        yield 3
    return inner


async def waits():
    await x
    return 4


def many():
    if True:
        yield 5


def delegates():
    yield from many()


class Kept2:
    def __init__(self):
        self.x = lambda: (yield)

    @property
    def y(self):
        return 6


if True:
    def guarded():
        return 7
"""
FILE = PythonFile(
    "src/x.py", BEFORE.replace("return 2", "return 2\n\n    def added(self):\n        return 8") + ADDED, BEFORE
)
NAMES = {"new", "waits", "many", "delegates", "Kept2", "guarded", "added"}


def bodies(text: str | None) -> dict[str, str]:
    assert text is not None
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    return {node.name: "; ".join(map(ast.unparse, node.body)) for node in functions}


def test_the_names_of_new_functions_are_theirs_and_those_of_their_classes() -> None:
    assert new_names(FILE) == NAMES | {"Kept", "__init__", "y"}
    assert new_names(PythonFile("x.py", "x = 1\n")) == frozenset()
    assert additions([FileAdditions("src/x.py", {1: "x"}, BEFORE, FILE.text)]).functions == new_names(FILE)


@pytest.mark.parametrize("answer", ["object()", "None"])
def test_new_functions_answer_nothing_of_their_own(answer: str) -> None:
    found = bodies(emptied(FILE, NAMES, answer))
    said = f"return {answer}"
    assert found == {
        "old": "return 1", "stays": "return 2", "added": said, "new": said, "waits": said, "many": "return; yield",
        "delegates": "return; yield", "__init__": "return", "y": said, "guarded": said,
    }  # fmt: skip


def test_what_no_test_means_stays() -> None:
    assert bodies(emptied(FILE, {"added"}, "None"))["new"].startswith("def inner")
    assert emptied(FILE, {"old", "stays"}, "None") is None
    assert emptied(FILE, set(), "None") is None
    assert emptied(PythonFile("x.py", "x = 1\n"), {"x"}, "None") is None


@pytest.mark.parametrize("text", ["def broken(:\n", "x = '\0'\n"])
def test_what_is_not_python_is_left_alone(text: str) -> None:
    assert emptied(PythonFile("x.py", text), {"broken", "x"}, "None") is None
    assert new_names(PythonFile("x.py", text)) == frozenset()
    # At the base it was not Python: everything is new.
    assert new_names(PythonFile("x.py", "def f():\n    pass\n", text)) == {"f"}


def test_a_body_is_replaced_by_an_object_and_by_none() -> None:
    assert ANSWERS == ("object()", "None")
