"""The report for people is on the way of every `check`: it must not bring heavy modules along."""

from __future__ import annotations

import os
import subprocess
import sys

HEAVY = ("json", "difflib", "textwrap", "hashlib", "urllib.parse", "xml", "html", "markdown_it", "yaml", "jsonschema")


def loaded_by(module: str) -> set[str]:
    script = f"import sys, {module}\nprint(*sorted(sys.modules))"
    # Measuring coverage of child processes would load modules of its own into them.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def test_the_text_report_loads_no_heavy_module() -> None:
    assert loaded_by("workpacket.report.text").isdisjoint(HEAVY)


def test_the_measure_notices_a_heavy_module() -> None:
    assert {"json", "hashlib", "urllib.parse"} <= loaded_by("workpacket.report.ci")
