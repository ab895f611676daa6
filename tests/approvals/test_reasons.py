"""Every code that this layer speaks is explained, and no explanation is left over."""

from __future__ import annotations

import ast
from pathlib import Path

import workpacket.approvals
from workpacket.model.reason_tables.approval import JUDGING
from workpacket.model.reasons import Registry

FOLDER = Path(next(iter(workpacket.approvals.__path__)))
CODES = {reason.code for reason in JUDGING}


def spoken() -> set[str]:
    """The texts in the layer's code that have the shape of one of our codes."""
    trees = [ast.parse(path.read_text("utf-8")) for path in FOLDER.glob("*.py")]
    constants = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)} & CODES


def given_as_code() -> set[str]:
    """The first arguments of `Problem(...)` and `WorkpacketError(...)`, as far as they are literal."""
    trees = [ast.parse(path.read_text("utf-8")) for path in FOLDER.glob("*.py")]
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    firsts = (
        call.args[0]
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in ("Problem", "WorkpacketError")
    )
    return {first.value for first in firsts if isinstance(first, ast.Constant) and isinstance(first.value, str)}


def test_every_code_is_registered_once() -> None:
    assert len(Registry(JUDGING)) == len(JUDGING)


def test_every_code_of_the_table_is_spoken() -> None:
    assert CODES - spoken() == set()


def test_every_code_that_is_spoken_is_in_the_table() -> None:
    assert given_as_code() - CODES == set()
    assert len(given_as_code()) > 50


def test_no_reason_of_an_approval_can_be_ignored() -> None:
    assert [reason.code for reason in JUDGING if reason.ignorable] == []


def test_every_remedy_is_an_instruction() -> None:
    assert [reason.code for reason in JUDGING if not reason.remedy.endswith((".", "`"))] == []
