"""LangGraph's own tests, run from a scratch folder: with its InMemorySaver, and with ours under the same names, on
SQLite and on PostgreSQL.

Every test that passes with the former passes with the latter. `inside.txt` names those that look into the attributes
of InMemorySaver, which is nothing that a saver promises. `racy.txt` names those that race threads against one another,
with InMemorySaver too: only these are tried again if they fail with ours. `nox -s langgraph` brings the versions that
the tests are of; with WORKPACKET_PROOF=bounded, as in CI, only the files about persistence are run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from corpora.suites.published import suite
from postgres.conftest import server  # noqa: F401  # the server of the tests of PostgreSQL is used here too

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BOUNDED = (
    "test_time_travel.py", "test_time_travel_async.py", "test_subgraph_persistence.py", "test_interruption.py",
    "test_subgraph_persistence_async.py", "test_checkpoint_migration.py", "test_interrupt_migration.py",
    "test_delta_channel_exit_mode.py", "test_delta_channel_migration.py", "test_delta_channel_supersteps_bound.py",
    "test_delta_channel_update_state.py",
)  # fmt: skip
# This one asks LangGraph's server, which is not installed.
LEFT_OUT = ("test_remote_graph.py",)
AT_LEAST = 150  # fewer tests that pass with InMemorySaver mean that the suite did not run


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tests."""
    scratch = tmp_path_factory.mktemp("suite")
    shutil.copytree(suite("langgraph") / "tests", scratch / "tests", copy_function=shutil.copyfile)
    for path in (scratch, *scratch.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.copyfile(HERE / "scratch_conftest.py", scratch / "tests" / "conftest.py")
    (scratch / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return scratch


@pytest.fixture(scope="module")
def expected(scratch: Path) -> set[str]:
    """What passes with the saver in memory."""
    passing = {test for test, passed in run(scratch, "memory").items() if passed} - listed("inside.txt")
    assert len(passing) >= AT_LEAST
    return passing


@pytest.mark.parametrize("saver", ["sqlite", "postgres"])
def test_what_passes_with_the_saver_in_memory_passes_with_ours(
    saver: str, scratch: Path, expected: set[str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if saver == "postgres":
        monkeypatch.setenv("SAVER_SERVER", request.getfixturevalue("server").url())
    ours = run(scratch, saver)
    failed = {test for test in expected if not ours.get(test)}
    for _ in range(2):
        if again := sorted(test.partition("[")[0].rpartition("::")[2] for test in failed & listed("racy.txt")):
            failed -= {test for test, passed in run(scratch, saver, "-k", " or ".join(again)).items() if passed}
    assert sorted(failed) == []


def listed(name: str) -> frozenset[str]:
    """The tests that a file names, each followed by the reason."""
    lines = (HERE / name).read_text("utf-8").splitlines()
    return frozenset(test for test, _ in (line.split(maxsplit=1) for line in lines if line[:1] != "#"))


def run(scratch: Path, saver: str, *chosen: str) -> dict[str, bool]:
    report, stores = scratch / f"{saver}.xml", scratch / f"stores-{saver}"
    stores.mkdir(exist_ok=True)
    files = BOUNDED if os.environ.get("WORKPACKET_PROOF") == "bounded" else ()
    # These tests come with plugins of their own.
    plugins = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    environment = {name: value for name, value in os.environ.items() if name != plugins} | {
        "SAVER_UNDER_TEST": saver,
        "SAVER_FOLDER": str(stores),
        "PYTHONPATH": str(ROOT / "tools"),
    }
    command = [
        sys.executable, "-m", "pytest", "--quiet", f"--numprocesses={0 if files else 'auto'}", "-p", "no:cacheprovider",
        "-p", "no:langsmith_plugin",
        f"--junitxml={report}", "--tb=line", *(f"--ignore=tests/{name}" for name in LEFT_OUT),
        *chosen, *(f"tests/{name}" for name in files),
    ]  # fmt: skip
    ended = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode in {0, 1}, ended.stdout[-4000:] + ended.stderr[-4000:]
    return {
        f"{case.get('classname')}::{case.get('name')}": not any(part.tag in {"failure", "error"} for part in case)
        for case in ET.parse(report).iter("testcase")
    }
