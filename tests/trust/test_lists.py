"""The lists are what they are said to be; `trust.measure` plays them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from trust.measure import LISTS
from trust.play import LANDINGS, Case, Table, World, read_cases
from trust.stages import STAGES

HERE = Path(__file__).parent


def cases(name: str) -> list[Case]:
    return read_cases(HERE / f"{name}.jsonl")


def test_each_case_has_a_name_of_its_own_and_steps_that_exist() -> None:
    every = [case for name in LISTS for case in cases(name)]
    assert [name for name, count in Counter(case.id for case in every).items() if count > 1] == []
    verbs = {step.split()[0] for case in every for step in case.steps}
    assert [verb for verb in verbs if not hasattr(World, f"_{verb.replace('-', '_')}")] == []
    assert {case.stage for case in every} <= set(STAGES)


def test_the_lists_are_as_long_as_they_were_promised() -> None:
    assert sum(case.how == LANDINGS for case in cases("coverage_ways")) >= 40
    assert len(cases("honest_changes")) >= 40
    assert sum(case.id.startswith("A") or case.id.startswith("T") for case in cases("own_attacks")) >= 85
    assert sum(case.id.startswith("T") for case in cases("own_attacks")) >= 30


def test_every_finding_of_the_review_has_a_case_and_every_family_a_control() -> None:
    names = {case.id for case in cases("review_findings")}
    for finding in ("K1", "K2", "K3", "H1", "H2", "H3", "H4", "H5", "H6"):
        assert any(name.startswith(finding) for name in names), finding
    accepted = {case.id.partition("-")[0] for case in cases("review_findings") if case.expect == "accepted"}
    assert {"K1", "K2", "K3", "H2", "H3", "H4", "H5", "M"} <= accepted


def test_the_model_knows_nothing_of_the_product() -> None:
    text = (HERE / "docs_model.py").read_text("utf-8")
    imported = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "typing"}
    assert len(text.splitlines()) <= 200


@pytest.mark.parametrize("name", ["N01", "N17"])
def test_an_honest_change_can_be_played(name: str, tmp_path: Path) -> None:
    case = next(case for case in cases("honest_changes") if case.id == name)
    assert Table(tmp_path).play(case, "squash").fits(case)
