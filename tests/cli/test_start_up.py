"""What a command does not need is not imported: start-up time is part of the interface.

Times are measured by `just bench`; here stands what they rest on, which is the same on every machine.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cli.commands import STUB, STUB_PATH, Commands

# Each takes some milliseconds to import; together they would be most of the time of a call.
HEAVY = {
    "argparse",
    "asyncio",
    "cryptography",
    "dataclasses",
    "inspect",
    "json",
    "jsonschema",
    "markdown_it",
    "pathlib",
    "re",
    "subprocess",
    "tomllib",
    "typing",
    "yaml",
}


def imported(commands: Commands, *words: str) -> set[str]:
    """The modules that a fresh process has imported when the command is done."""
    script = (
        "import sys\nfrom workpacket.cli.main import main\nmain(sys.argv[1:])\n"
        "sys.stderr.write('\\n'.join(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}", *words],
        cwd=commands.root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split("\n"))


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["check", "--help"]])
def test_help_and_version_import_nothing_heavy(commands: Commands, words: list[str]) -> None:
    assert HEAVY & imported(commands, *words) == set()


@pytest.mark.parametrize(
    ("words", "computing"), [(["check", STUB_PATH], "checking"), (["show", "WP-1-Parser-v1"], "show")]
)
def test_a_cached_answer_imports_nothing_heavy(commands: Commands, words: list[str], computing: str) -> None:
    commands.write(STUB_PATH, STUB)
    script = "import workpacket.shell.cache as r, sys; r.RACY_NS = -10**18\n"
    script += "from workpacket.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    first = [sys.executable, "-c", script, *words]
    subprocess.run(first, cwd=commands.root, env=environment, check=True, capture_output=True)
    modules = imported(commands, *words)
    assert f"workpacket.cli.{computing}" not in modules
    assert HEAVY & modules == set()


def test_a_cached_answer_about_a_lease_reads_the_clock_without_heavy_modules() -> None:
    script = f"import sys; sys.path[:] = {sys.path!r}\nfrom workpacket.shell.actor import moment\nmoment()\n"
    script += "print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True, capture_output=True, text=True)
    modules = set(done.stdout.split())
    assert "workpacket.shell.actor" in modules
    assert (HEAVY | {"hashlib"}) & modules == set()


def test_a_check_of_a_plain_document_needs_no_big_library(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    modules = imported(commands, "check", STUB_PATH)
    assert "workpacket.cli.checking" in modules
    assert {"jsonschema", "markdown_it", "yaml", "cryptography", "subprocess", "asyncio"} & modules == set()


# The most modules of this package that a call may import; lower a number when a change makes it smaller.
MOST_OWN_MODULES = {
    "check": (["check", STUB_PATH], 70),
    "check all": (["check"], 106),
    "claim": (["claim", "WP-1-Parser-v1"], 96),
    "create-task-packet": (["create-task-packet", "WP-1-Parser-v1"], 80),
    "show": (["show", "WP-1-Parser-v1"], 110),
    "status": (["status"], 113),
}


@pytest.mark.parametrize("name", MOST_OWN_MODULES)
def test_a_command_imports_few_of_our_modules(commands: Commands, name: str) -> None:
    commands.write(STUB_PATH, STUB)
    words, most = MOST_OWN_MODULES[name]
    own = sorted(module for module in imported(commands, *words) if module.startswith("workpacket."))
    assert len(own) <= most, f"{name} imports {len(own)} own modules, at most {most} are allowed: {' '.join(own)}"


def ended(script: str) -> subprocess.CompletedProcess[str]:
    script += "\nfrom workpacket.cli.main import console\nsys.argv = ['workpacket', '--unknown']\nconsole()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", script], env=environment, check=False, capture_output=True, text=True)


FREED = "class Freed:\n    def __del__(self): print('freed')\nfreed = Freed()\n"


def test_a_command_that_ends_frees_nothing_and_does_what_was_registered() -> None:
    """Freeing every object was a thirtieth of a cold `check`."""
    found = ended(f"import atexit, sys\n{FREED}atexit.register(lambda: print('registered'))\nprint('said', end=' ')")
    assert (found.returncode, found.stdout) == (2, "said registered\n")
    assert "unknown" in found.stderr


def test_a_thread_that_is_still_running_is_waited_for() -> None:
    """Then the interpreter ends as usual, but searches nothing for garbage, which was an eighth of a cold `check`."""
    script = "import atexit, gc, sys, threading, time\n"
    script += "threading.Thread(target=lambda: (time.sleep(0.5), print('thread'))).start()\n"
    found = ended(f"{script}atexit.register(lambda: print('registered', gc.get_freeze_count() > 0))")
    assert (found.returncode, found.stdout) == (2, "thread\nregistered True\n")


def test_a_refusal_of_the_guard_from_the_cache_imports_no_rules(commands: Commands) -> None:
    commands.write(".GOV/policy/policy.toml", '[coverage]\nmode = "required"\n')
    commands.write(STUB_PATH, STUB)
    subprocess.run(["git", "add", "-A"], cwd=commands.root, check=True)
    subprocess.run(["git", "commit", "-qm", "governed"], cwd=commands.root, check=True)
    script = "import workpacket.shell.cache as r, sys; r.RACY_NS = -10**18\n"
    script += "from workpacket.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = ["guard", "lib/a.py", "--as", "agent"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=commands.root, env=environment, check=False, capture_output=True
    )
    assert done.returncode == 3, done.stderr
    modules = imported(commands, *words)
    assert {"workpacket.lifecycle.gates", "workpacket.documents.document", "hashlib", "jsonschema"} & modules == set()
    assert len([name for name in modules if name.startswith("workpacket.")]) <= 40
