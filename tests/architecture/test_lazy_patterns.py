"""Every pattern that is compiled on use can be compiled, and its kept form is the same pattern."""

from __future__ import annotations

import ast
import importlib
import marshal
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source_tree import PACKAGE
from workpacket import lazy_pattern


def lazy_patterns() -> Iterator[tuple[str, str]]:
    """Module and name of each."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(("workpacket", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                made_by, target = node.value.func, node.targets[0]
                if isinstance(made_by, ast.Name) and made_by.id == "lazy_pattern" and isinstance(target, ast.Name):
                    yield module, target.id


def test_every_lazy_pattern_can_be_compiled() -> None:
    found = list(lazy_patterns())

    assert len(found) > 150
    for module, name in found:
        pattern = getattr(importlib.import_module(module), name)
        assert isinstance(pattern.pattern, (str, bytes)), (module, name)
        assert isinstance(pattern.match(type(pattern.pattern)()), (re.Match, type(None)))


@pytest.mark.parametrize(("module", "name"), [*lazy_patterns()], ids=str)
def test_a_kept_form_is_the_pattern_that_re_compiles(module: str, name: str) -> None:
    later = getattr(importlib.import_module(module), name)

    form = marshal.loads(marshal.dumps(lazy_pattern._form(later._source, int(later._flags))))

    assert lazy_pattern._from_form(later._source, form) == re.compile(later._source, later._flags)


PROGRAM = """
import sys
from workpacket import lazy_pattern
lazy_pattern.__spec__.cached = sys.argv[1]
before = lazy_pattern._form
made = []
lazy_pattern._form = lambda *what: made.append(what) or before(*what)
found = lazy_pattern.lazy_pattern("(?P<word>[a-z]+)|x", 2).match("ABC")["word"]
lazy_pattern.keep_compiled()
print(found, len(made))
"""


def run(cached: str, **environment: str) -> str:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, cached], capture_output=True, text=True, check=True, env=env, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_pattern_is_compiled_once(tmp_path: Path) -> None:
    cached = str(tmp_path / "lazy_pattern.pyc")

    assert [run(cached), run(cached)] == ["ABC 1", "ABC 0"]
    assert [path.name for path in tmp_path.iterdir()] == ["lazy_pattern.patterns"]


@pytest.mark.parametrize("content", [b"", b"\0", b"no form", marshal.dumps(5), marshal.dumps((("3.1",), {}))])
def test_a_damaged_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    cached = str(tmp_path / "lazy_pattern.pyc")
    (tmp_path / "lazy_pattern.patterns").write_bytes(content)

    assert [run(cached), run(cached)] == ["ABC 1", "ABC 0"]


@pytest.mark.parametrize("form", [(34, b"", 1, {}, (None,)), (34, b"\xff" * 40, 1, {}, (None, None)), (1, 2), None])
def test_a_form_that_python_refuses_is_compiled_again(tmp_path: Path, form: object) -> None:
    cached = str(tmp_path / "lazy_pattern.pyc")
    forms = {("(?P<word>[a-z]+)|x", 2): form}
    (tmp_path / "lazy_pattern.patterns").write_bytes(marshal.dumps((lazy_pattern._python(), forms)))  # type: ignore[arg-type]

    assert run(cached) == "ABC 0"


def test_nothing_is_written_where_python_writes_no_compiled_modules(tmp_path: Path) -> None:
    assert run(str(tmp_path / "lazy_pattern.pyc"), PYTHONDONTWRITEBYTECODE="1") == "ABC 1"
    assert run(str(tmp_path / "missing" / "lazy_pattern.pyc")) == "ABC 1"
    assert run("") == "ABC 1"
    assert [*tmp_path.iterdir()] == []
