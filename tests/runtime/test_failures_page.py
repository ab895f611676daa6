"""The page of failure modes is complete: a guard and a test for each row, and each of them exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from architecture.source_tree import ROOT
from proof.kinds.guards import GUARDS, Guard
from workpacket.report.catalogue import catalogue

PAGE = ROOT / "docs" / "runtime" / "failures.md"
ROW = re.compile(
    r"^\| (?P<mode>[^|]+) \| (?P<noticed>[^|]+) \| (?P<code>[^|]*) \| (?P<choices>[^|]+) \| `(?P<test>\w+)` \|$"
)
# What issue 6 lists under "Must reach", as this page names it.
DEMANDED = {
    "step": ["changed input", "wider scope", "less strictness", "missing token", "used token", "unknown cursor",
             "torn log"],
    "batch": ["crash while testers, implementers or reviewers begin", "crash while it is completed",
              "partial parallel success", "edited task", "un-done task", "cycle", "deadlock", "reviewer time-out",
              "label '5a'", "failed verification", "rejected review", "second batch"],
    "role": ["zombie", "same role twice", "rename", "date without a time"],
    "commit": ["crash before the commit", "crash after the commit", "crash after the sidecar", "rebase", "squash",
               "amend", "reset", "milestone without changes", "foreign legacy message", "message quoted in a body"],
    "session": ["killed between chunks", "killed in a tool call", "killed after the effect, before its outcome",
                "program that keeps running", "damaged artifact", "oversize"],
}  # fmt: skip


def rows() -> dict[str, re.Match[str]]:
    """The rows of the page by kind and mode."""
    found, kind = {}, ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            kind = line.removeprefix("## ").casefold()
        elif row := ROW.match(line):
            found[f"{kind}: {row['mode']}"] = row
    return found


ROWS = rows()


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_failure_mode_that_was_demanded_is_on_the_page() -> None:
    assert {f"{kind}: {mode}" for kind, modes in DEMANDED.items() for mode in modes} - set(ROWS) == set()


def test_every_row_has_a_guard_and_every_guard_a_row() -> None:
    assert [guard.mode for guard in GUARDS] == list(ROWS)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.mode)
def test_guard_test_and_code_of_a_failure_mode_exist(guard: Guard) -> None:
    path, _, name = guard.test.partition("::")
    assert ROWS[guard.mode]["test"] == name.partition("[")[0]
    assert ROWS[guard.mode]["test"] in names_in(path)
    source = (ROOT / "tools" / "workpacket" / guard.file).read_text("utf-8")
    assert source.count(guard.guard) == 1
    code = ROWS[guard.mode]["code"].strip("`")
    assert not code or code in catalogue()
