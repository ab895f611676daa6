"""The list of requirements and the tests are one to one, each test was seen failing, and none looks inside.

`requirements.toml` has every requirement of the five founding documents that the product meets, `taken_out.toml` what
was taken out of the product to see its test fail.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpora.seeds.user import PUBLIC

HERE = Path(__file__).parent
# How many requirements of each document are met; a number may grow, never shrink.
MET = {
    "test_step_of_a_pipeline": 27,
    "test_batches_of_a_spec": 25,
    "test_progress_of_roles": 15,
    "test_sessions_after_a_crash": 31,
    "test_sprint_about_checkpoints": 25,
}
OWN = {"test_requirements", "test_literals"}


def rows(name: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = tomllib.loads((HERE / name).read_text("utf-8"))["requirement"]
    return listed


def trees() -> dict[str, ast.Module]:
    return {path.stem: ast.parse(path.read_text("utf-8")) for path in sorted(HERE.glob("*.py"))}


def written() -> list[str]:
    return [
        f"{module}::{one.name}" for module, tree in trees().items() if module not in OWN
        for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")
    ]  # fmt: skip


def test_each_requirement_has_one_test_and_each_test_one_requirement() -> None:
    listed = [one["test"] for one in rows("requirements.toml")]
    assert sorted(listed) == sorted(written())
    assert len(set(listed)) == len(listed)
    ids = [one["id"] for one in rows("requirements.toml")]
    assert len(set(ids)) == len(ids)


def test_no_requirement_got_lost() -> None:
    counted = Counter(one["test"].partition("::")[0] for one in rows("requirements.toml"))
    for module, number in MET.items():
        assert counted[module] >= number, module


def test_each_test_was_seen_failing_when_its_behaviour_was_taken_out() -> None:
    tests = {one["id"]: one["test"] for one in rows("requirements.toml")}
    seen = {one["id"]: one["failed"] for one in rows("taken_out.toml")}
    assert seen == tests
    assert all(one["taken_out"] and one["commit"] for one in rows("taken_out.toml"))


@pytest.mark.share(4)
@pytest.mark.parametrize("module", trees())
def test_nothing_here_imports_more_of_the_product_than_users_are_told_to(module: str) -> None:
    """Programs that the tests hand to Python count too."""
    texts = [node.value for node in ast.walk(trees()[module]) if isinstance(node, ast.Constant)]
    programs = [text for text in texts if isinstance(text, str) and text.startswith("\nimport os")]
    sources = [trees()[module], *map(ast.parse, programs)]
    imported = {
        name for tree in sources for node in ast.walk(tree)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else
                     [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
    }  # fmt: skip
    assert {name for name in imported if name.partition(".")[0] == "workpacket"} <= set(PUBLIC)
