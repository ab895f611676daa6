"""Governed files are written by the transaction and nobody else; the few other writers are named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from architecture.source_tree import PACKAGE, nodes, parsed, python_files

# Module, and what it writes.
WRITERS = {
    "cli/trace.py": "the report of an audit, into the file that was named",
    "cli/failure.py": "the log of an internal error, in the temporary folder",
    "harness.py": "runs commands of this program",
    "lazy_pattern.py": "the compiled forms of patterns, next to the compiled modules",
    "cli/issues.py": "runs the program of a forge, which prints an issue",
    "cli/live_readings.py": "runs the audit, which writes its page into a temporary folder",
    "cli/main.py": "the null device, when nobody reads the output any more",
    "cli/workspace.py": "reports, checkpoints in a foreign form, the page of the board: into the file that was named",
    "cli/moved_runs.py": "exports of runs, into the file that was named",
    "git/index.py": "an index that holds attributes alone, in a temporary folder",
    "git/run.py": "runs git, which makes branches and work trees",
    "git/merging.py": "the objects of merges that are only tried, in a temporary folder",
    "shell/cache.py": "the cache, in the git directory and in the person's own folder",
    "shell/governing/proof_process.py": "the end of what a proof printed, in the git directory",
    "shell/governing/contract_proofs.py": "our probe and what it is told, in a temporary folder",
    "shell/governing/evidence.py": "fresh trees to run proofs in, in a temporary folder",
    "shell/notify.py": "runs the command that the person names in WORKPACKET_NOTIFY",
    "shell/keys.py": "the person's keys, in their own folders; keys that it tries to sign with, in a temporary one",
    "shell/transactions/transaction.py": "the lock, in the git directory",
    "cli/registers.py": "the file that git made for a merge; three versions for git to merge, in a temporary folder",
    "shell/transactions/storage.py": "what the transaction asks for: the only way to a governed file",
    "shell/base.py": "the policy last seen, in the user's own folder, outside of the repository",
}
# The runtime keeps its own store, which is not governed.
OTHERS = ("runtime/",)

_CALLS = frozenset({
    "makedirs", "mkdir", "mkdtemp", "mkstemp", "NamedTemporaryFile", "open_code", "pwrite", "removedirs", "rename",
    "rmdir", "rmtree", "symlink", "TemporaryDirectory", "truncate", "ftruncate", "unlink", "write_bytes", "write_text",
    "copyfile", "copytree", "fdopen",
})  # fmt: skip
_MODULES = frozenset({"subprocess", "shutil", "sqlite3", "tempfile"})


def writes(module: ast.Module) -> Iterator[str]:
    """What in a module can write to the disk or start a process that does."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in _MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in _MODULES:
            yield node.module
        elif isinstance(node, ast.Call):
            yield from _call(node)


def _call(node: ast.Call) -> Iterator[str]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    modes = [value.value for value in [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
             if isinstance(value, ast.Constant)]  # fmt: skip
    if name == "fdopen" and modes == ["rb"]:
        return
    if name in _CALLS:
        yield name
    elif name == "open" and any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes):
        yield "open"


@pytest.mark.parametrize(
    "code",
    ["open(p, 'w')", "open(p, mode='a')", "p.write_text('x')", "os.makedirs(p)", "import shutil", "import subprocess"],
)
def test_a_writer_is_recognised(code: str) -> None:
    assert list(writes(ast.parse(code)))


@pytest.mark.parametrize("code", ["open(p)", "open(p, 'rb')", "sys.stdout.write('x')", "p.read_text()"])
def test_a_reader_is_left_alone(code: str) -> None:
    assert not list(writes(ast.parse(code)))


def test_only_the_modules_named_here_write() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in python_files(PACKAGE) if any(writes(parsed(path)))}
    writers = {path for path in found if not path.startswith(OTHERS)}
    assert writers == WRITERS.keys(), "WRITERS, above, says of each module why it writes"
