"""A change is one change, is found again by its name, and takes hold in a module that is loaded."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from mutation.changes import changes
from mutation.grafting import graft

SOURCE = '''
"""What it does."""
import re
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

State: TypeAlias = Literal["proven", "refused"]
LIMIT = 3
FORM = re.compile(r"[a-z]+")

class Box:
    size: int = 1

    @cached_property
    def big(self) -> bool:
        return self.size > LIMIT

    @property
    def named(self) -> bool:
        return FORM.fullmatch("abc") is not None

@lru_cache(maxsize=4)
def fits(size: int, most: int = 9) -> bool:
    assert size != 5, "nonesuch"
    if size < 0:
        raise ValueError("a size below zero is none")
    return size <= LIMIT and size <= most
'''


def told() -> list[tuple[str, str, str]]:
    return [change.name for change in changes(SOURCE)]


@pytest.fixture
def module() -> Iterator[ModuleType]:
    module = ModuleType("workpacket_changed")
    module.__file__ = "workpacket_changed.py"
    exec(SOURCE, vars(module))
    user = ModuleType("workpacket_user")
    vars(user)["LIMIT"] = vars(module)["LIMIT"]
    sys.modules |= {module.__name__: module, user.__name__: user}
    yield module
    del sys.modules[module.__name__], sys.modules[user.__name__]


def put(module: ModuleType, now: str) -> None:
    for change in changes(SOURCE):
        if change.now == now:
            graft(module, change.tree)
            return
    raise AssertionError(f"nothing becomes {now}")


@pytest.mark.parametrize(
    "change",
    [
        ("Box.big", "return self.size > LIMIT", "return self.size >= LIMIT"),
        ("Box.big", "return self.size > LIMIT", "return None"),
        ("Box", "size: int = 1", "size: int = 2"),
        ("fits", "if size < 0:", "if not size < 0:"),
        ("fits", "raise ValueError('a size below zero is none')", "pass"),
        ("fits", "return size <= LIMIT and size <= most", "return size <= LIMIT"),
        ("", "FORM = re.compile('[a-z]+')", "FORM = re.compile('[a-z]+!?')"),
    ],
    ids=lambda change: change[2],
)
def test_a_change_is_told_by_its_place_and_by_the_statement_before_and_after(change: tuple[str, str, str]) -> None:
    assert change in told()


def test_messages_types_and_docstrings_are_left_alone() -> None:
    said = "\n".join(now for _, _, now in told())
    assert "nonex" not in said
    assert "What it doesx" not in said
    assert "TYPE_CHECKING" not in said
    assert "provenx" not in said
    assert "nonesuchx" not in said


def test_the_module_is_as_it_was_after_all_changes() -> None:
    last = None
    for change in changes(SOURCE):
        last = change.tree
    assert last is not None
    assert ast.unparse(last) == ast.unparse(ast.parse(SOURCE))


def test_a_share_holds_the_same_changes_whatever_stands_elsewhere() -> None:
    def chosen(source: str) -> set[tuple[str, str, str]]:
        return {change.name for change in changes(source) if change.is_in_share(3) and change.where == "fits"}

    assert 0 < len(chosen(SOURCE)) < len([name for name in told() if name[0] == "fits"])
    assert chosen(SOURCE) == chosen("EARLIER = 1\n" + SOURCE)


def test_what_a_function_a_property_and_a_cached_one_do_is_exchanged(module: ModuleType) -> None:
    box, fits = vars(module)["Box"], vars(module)["fits"]
    assert (box().big, box().named, fits(4)) == (False, True, False)
    put(module, "return FORM.fullmatch('abc') is None")
    assert box().named is False
    put(module, "return None")
    assert box().big is None
    put(module, "LIMIT = 4")
    assert (box().big, box().named, fits(4)) == (False, True, True), "of the earlier changes nothing is left"


def test_a_constant_is_exchanged_wherever_it_was_imported(module: ModuleType) -> None:
    put(module, "LIMIT = 4")
    assert vars(module)["LIMIT"] == vars(sys.modules["workpacket_user"])["LIMIT"] == 4
