"""Who may write to the disk: governed files only through the transaction, everything else through its own writer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source_tree import PACKAGE

# Module, and what it writes.
WRITERS = {
    "cli/approving.py": "what is to be signed elsewhere, into a file that the person names",
    "cli/failure.py": "the log of a defect, among the temporary files",
    "shell/cache.py": "the cache of facts, in the git directory",
    "shell/key_doctor.py": "a public key, in a temporary folder",
    "shell/locks.py": "the lock, in the git directory",
    "shell/own_key.py": "the folder of a new key, which ssh-keygen writes",
    "shell/ssh_keygen.py": "signature and signers for a second opinion, in a temporary folder",
    "shell/storage.py": "the disk of the transaction",
    "shell/storage_windows.py": "the disk of the transaction",
    "shell/trust_file.py": "the memory of the policy, in the person's folder of settings",
    "shell/writing.py": "documents that `check --fix` and `fmt` repair",
}

WRITING_METHODS = frozenset({"write_bytes", "write_text", "unlink", "rename", "rmdir", "mkdir", "touch", "symlink_to"})
WRITING_CALLS = frozenset(
    {"mkstemp", "mkdtemp", "TemporaryDirectory", "NamedTemporaryFile", "makedirs", "remove", "removedirs"}
)
WRITING_OWNERS = frozenset({"", "os", "shutil", "tempfile"})


def writes(tree: ast.AST) -> Iterator[str]:
    """The calls in a module that make, change or remove files."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            owner, name = _called(node.func)
            if _is_writing(node, owner, name):
                yield name


def _is_writing(call: ast.Call, owner: str, name: str) -> bool:
    if name == "open":
        return owner != "os" and any(set(mode) & set("wax+") for mode in _modes(call))
    if name == "replace":
        # Of a text it takes two arguments, of a dataclass keywords; with one, a file is moved over another.
        return owner == "os" or bool(owner and len(call.args) == 1 and not call.keywords)
    return name in WRITING_METHODS or (name in WRITING_CALLS and owner in WRITING_OWNERS)


def _called(function: ast.expr) -> tuple[str, str]:
    """What a function is called on, '' for a plain name, and its own name."""
    if isinstance(function, ast.Attribute):
        return (function.value.id if isinstance(function.value, ast.Name) else "an expression"), function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def _modes(call: ast.Call) -> list[str]:
    """The mode of a call of `open`, if it is written there."""
    values = [*call.args, *(each.value for each in call.keywords if each.arg == "mode")]
    modes = values[1:] if isinstance(call.func, ast.Name) else values
    return [each.value for each in modes if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def modules() -> dict[str, ast.AST]:
    paths = [path for folder in ("shell", "cli", "report") for path in (PACKAGE / folder).rglob("*.py")]
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_bytes()) for path in paths}


def test_only_the_modules_on_the_list_write() -> None:
    found = {name: sorted(set(writes(tree))) for name, tree in modules().items()}
    assert {name: calls for name, calls in found.items() if calls and name not in WRITERS} == {}


def test_no_module_on_the_list_has_stopped_writing() -> None:
    trees = modules()
    low_level = {"shell/storage.py", "shell/storage_windows.py", "shell/locks.py", "shell/ssh_keygen.py"}
    assert {name for name in WRITERS.keys() - low_level if not list(writes(trees[name]))} == set()


@pytest.mark.parametrize(
    "code",
    [
        "open(path, 'w')",
        "path.open('xb')",
        "open(path, mode='a')",
        "path.write_text(text)",
        "os.replace(a, b)",
        "temporary.replace(path)",
        "tempfile.mkstemp()",
        "os.makedirs(path)",
    ],
)
def test_a_call_that_writes_is_recognised(code: str) -> None:
    assert list(writes(ast.parse(code)))


@pytest.mark.parametrize("code", ["open(path)", "open(path, 'rb')", "path.open('rb')", "text.replace('a', 'b')"])
def test_a_call_that_reads_is_left_alone(code: str) -> None:
    assert list(writes(ast.parse(code))) == []


def test_the_list_names_files_that_are_there() -> None:
    assert [name for name in WRITERS if not (Path(PACKAGE) / name).exists()] == []
