"""What a loader needs is imported when there is something to load."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PARSERS = {"yaml", "tomllib", "markdown_it", "jsonschema"}


@pytest.mark.parametrize(
    "module",
    [
        "text.yaml_strict",
        "text.toml_strict",
        "text.json_strict",
        "text.yaml_edit",
    ],
)
def test_importing_a_loader_imports_no_parser(module: str) -> None:
    script = f"import sys, workpacket.{module}\nprint(*sorted(sys.modules))"
    # Measuring coverage of child processes would load modules of its own into them.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert PARSERS.isdisjoint(done.stdout.split())
