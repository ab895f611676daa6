"""What holds for all tests: where their files lie, how hard hypothesis tries, no skips in CI (skip_gate.py), answers
that fit (answers.py)."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

import git_answers
import remembered
from mounts import folder_on_disk
from workpacket.shell import package_files

pytest_plugins = ["answers", "long_lists", "skip_gate"]
# They take the place of what the product imports later.
IN_PLACE = (git_answers, remembered)
pytest_configure, pytest_sessionfinish = git_answers.read_what_was_kept, git_answers.keep_for_the_next_run

# pytest rewrites the asserts of all test modules. Where Python is told to keep no compiled code, as in many containers,
# every worker of every run would do so again, which takes half of the time of collecting. The programs that tests start
# would compile everything that they import.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# `bench` is not installed; it is found at the root of the repository, after everything else.
sys.path.append(str(Path(__file__).parents[1]))

# A hook of git, or `git bisect run` in a work tree, names its repository in the environment: commands of tests would
# write to it, wherever they run.
for _name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"):
    os.environ.pop(_name, None)

# Every command in this process asks whether the package is still the same, a look at 400 files. The code that runs here
# stays what was imported, whatever happens to its files.
package_files._files = cache(package_files._files)

# A shell that runs the tests in the background has them ignore Ctrl-C, which every process they start would inherit:
# tests that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test waits for the disk at every sync, and no test can see that one reached it: what a loss of power leaves is shown
# with recorded calls. So the files of tests lie in memory, where there is enough of it.
MEMORY = Path("/dev/shm")
ENOUGH = 4 * 1024**3


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that a test forked
        shutil.rmtree(folder, ignore_errors=True)


if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if "TMPDIR" not in os.environ:  # all workers use the same folder
        os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="workpacket-tests-", dir=MEMORY)
        Path(os.environ["TMPDIR"]).chmod(0o755)  # another user runs the server of PostgreSQL
        atexit.register(_remove, os.environ["TMPDIR"], os.getpid())
        tempfile.tempdir = None  # whatever was found before is forgotten

# How long one example takes says more about the machine than about us.
settings.register_profile("tests", max_examples=20, deadline=None)
# `nox -s proof` asks every property more often than `just test` has time for.
settings.register_profile("proof", max_examples=100, deadline=None)
# What CI runs of that: with CI set, `just test` always tries the same examples, and this new ones.
settings.register_profile("fresh", max_examples=30, derandomize=False, deadline=None)
# `nox -s fuzz` runs rounds of this profile until its time is up, each with a seed of its own: short rounds, so that a
# short time is kept to.
settings.register_profile(
    "fuzz", max_examples=200, derandomize=False, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")


# Seconds; `--durations` hides what took less.
SHOWN = 0.005
# How many objects may be new before Python looks for garbage, instead of 700: a test makes more than that with every
# command, nearly all of them gone by themselves.
NEW_OBJECTS = 100_000


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What collecting makes stays until the end: looking for garbage among it again and again finds none."""
    if not session.config.getoption("numprocesses", None):  # the process of xdist that starts the workers needs plugins
        # Tests run pytest in scratch projects, which use none of the plugins that are installed here.
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One worker more than there are processors: tests spend a quarter of their time waiting for what they started."""
    named = "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    return None if named or not hasattr(os, "sched_getaffinity") else len(os.sched_getaffinity(0)) + 1


if "PYTEST_XDIST_WORKER" in os.environ:

    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """A worker reports how a test ended, and a setup or teardown only if it failed or took long enough for
        `--durations` to show it. Reporting every beginning, setup and teardown takes longer than most tests.
        """
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == "call" or not report.passed or report.duration >= SHOWN:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """pytest's own, or with the mark `on_disk` a folder on a disk: `doctor` refuses a store that is kept in memory."""
    if request.node.get_closest_marker("on_disk") is None:
        yield tmp_path
        return
    with folder_on_disk() as folder:
        yield Path(folder).resolve()
