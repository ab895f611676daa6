"""The workflow that judges a change comes from the base, holds no secret, and runs no code of the change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "approvals.yml"


@pytest.fixture
def workflow() -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    return loaded


def test_it_runs_as_the_base_has_it(workflow: dict[Any, Any]) -> None:
    assert list(workflow[True]) == ["pull_request_target"]  # YAML 1.1 reads `on` as true


def test_it_can_only_read(workflow: dict[Any, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in WORKFLOW.read_text("utf-8")
    checkouts = [step["with"] for step in workflow["jobs"]["verify"]["steps"] if "checkout" in step.get("uses", "")]
    assert [each["persist-credentials"] for each in checkouts] == [False, False]


def test_what_runs_is_installed_from_the_base_and_only_reads_the_change(workflow: dict[Any, Any]) -> None:
    steps = [step for step in workflow["jobs"]["verify"]["steps"] if "run" in step]
    assert [step["run"] for step in steps] == [
        "python -m pip install ./base",
        'workpacket approvals verify --base "$BASE"',
    ]
    assert "${{" not in "".join(step["run"] for step in steps)
