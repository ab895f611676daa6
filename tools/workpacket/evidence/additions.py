"""The names that a change adds: whether an error is about one of them, and the same source with new functions emptied.

A test that needs something new cannot run without it: the module cannot be imported, the function does not exist, the
file is missing. Such an error shows that the test needs the change. Any other error shows only that the test could not
run. Therefore a name counts only if an error says that it is missing, and only if the change adds it: a new module or
file, or a word in an added line that its file did not have before.

A test that calls a new function and asserts nothing fails without the change, because the name is missing, and executes
the change, but does not check the result. With the bodies removed and the names kept, such a test passes. Each body is
replaced twice, with an object and with None as the result; a test that passes both times says nothing about the
function. Old functions are not emptied, because a test may show that a function no longer does something.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from workpacket.lazy_pattern import lazy_pattern
from workpacket.value import Value

_WORD: Final = lazy_pattern(r"[^\W\d]\w*")
_NAME: Final = r"[`'\"\u2018]?(?P<name>[\w./:@$-]+)"
_QUOTED: Final = _NAME + r"[`'\"\u2019]?"  # with more text after it
# How runners, compilers and systems say that something is missing.
_MISSING: Final = tuple(
    lazy_pattern(pattern.replace("NAME ", f"{_QUOTED} ").replace("NAME", _NAME))
    for pattern in (
        r"No module named NAME",
        r"cannot import name NAME from",
        r"has no attribute NAME",
        r"does not have the attribute NAME",
        r"unexpected keyword argument NAME",
        r"can't open file NAME",
        r"undefined: (?:\w+\.)?NAME",
        r"has no field or method NAME",
        r"unknown field NAME",
        r"no required module provides package NAME",
        r"package NAME is not in",
        r"(?:too many|not enough) arguments in call to (?:\w+\.)?NAME",
        r"unresolved import NAME",
        r"no [a-z, ]+ named NAME found",
        r"no field NAME on",
        r"use of (?:undeclared|unresolved) [a-z, ]+ NAME",
        r"has no exported member NAME",
        r"Property NAME does not exist",
        r"does not provide an export named NAME",
        r"\bNAME is not (?:a function|a constructor|defined)",
    )
)
# A line with one of these names what is missing as one of its words.
_NOT_FOUND: Final = lazy_pattern(
    r"not found|no such file|could ?n[o']t (?:find|read)|can ?not (?:find|open)|ENOENT|must be present", re.IGNORECASE
)
_PATH: Final = lazy_pattern(r"[^\s'\"`,;()<>]+")
# Errors that say that something is missing or unreadable, not that an answer is wrong.
_NOT_THERE: Final = lazy_pattern(
    r"\b(?:ModuleNotFoundError|ImportError|FileNotFoundError|NotADirectoryError|SyntaxError|IndentationError|TabError)\b"
    r"|Cannot find module|command not found|[Nn]o such file or directory|can't open file"
)
# Files that are read and not run: a test that needs one opens it.
_DATA: Final = frozenset({
    "", ".json", ".yaml", ".yml", ".toml", ".txt", ".md", ".rst", ".csv", ".tsv", ".xml", ".html", ".css", ".svg",
    ".sql", ".ini", ".cfg", ".conf", ".env", ".tmpl", ".j2", ".jinja", ".po", ".sh", ".bash", ".schema",
})  # fmt: skip


class FileAdditions(Value):
    """A file that the change adds or changes. `added` are its new lines by number; `before` is its text at the base,
    or None for a new file; `text` is its text with the work, if it is Python.
    """

    path: str
    added: Mapping[int, str]
    before: str | None = None
    text: str = ""


class Additions(Value):
    """Everything that a change adds. `words` are new in their file, `paths` are new files and folders. `lines` are the
    added lines of Python, `data` the changed files that programs only read, `other` the source files that cannot be
    watched, `python` the changed Python files.
    """

    words: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    lines: Mapping[str, Sequence[int]] = {}
    data: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    python: tuple[PythonFile, ...] = ()

    @property
    def functions(self) -> frozenset[str]:
        """Return the names by which a test can refer to a new function."""
        return frozenset(name for file in self.python for name in new_names(file))

    @property
    def measurable(self) -> bool:
        """Whether a test that needs the change must be seen to touch it, because its files can be watched."""
        return bool(self.lines) or bool(self.data and not self.other)

    def names(self, path: str) -> bool:
        """Whether a word of a command is one of the changed files."""
        name = posixpath.basename(path)
        return any(posixpath.basename(each) == name for each in {*self.lines, *self.data, *self.other})


def additions(files: Sequence[FileAdditions], folders: Iterable[str] = ()) -> Additions:
    """Return the additions of a change. `folders` are the new ones."""
    words: set[str] = set()
    lines: dict[str, tuple[int, ...]] = {}
    data, other = set(), set()
    python: list[PythonFile] = []
    for file in files:
        known = set(_WORD.findall(file.before or ""))
        words |= {word for text in file.added.values() for word in _WORD.findall(text)} - known
        ending = posixpath.splitext(file.path)[1]
        if ending in {".py", ".pyi"}:
            lines |= {file.path: tuple(sorted(file.added))} if file.added else {}
            python += [PythonFile(file.path, file.text, file.before or "")] if file.text else []
        elif ending in _DATA:
            data.add(file.path)
        else:
            other.add(file.path)
    paths = {*folders, *(file.path for file in files if file.before is None)}
    return Additions(frozenset(words), frozenset(paths), lines, frozenset(data), frozenset(other), tuple(python))


def names_addition(message: str, added: Additions, beside: Sequence[str] = ()) -> bool:
    """Whether an error says that something that the change adds is missing. Names in `beside` do not count."""
    return any(_is_added(name, added) for name in _missing(message) if name not in beside)


def says_missing(message: str) -> bool:
    """Whether an error says that something is missing, rather than that an answer is wrong."""
    return _NOT_THERE.search(message) is not None and not message.startswith(("AssertionError", "Failed:"))


def _missing(message: str) -> Iterator[str]:
    for pattern in _MISSING:
        for match in pattern.finditer(message):
            yield match["name"]
    for line in message.splitlines():
        if _NOT_FOUND.search(line):
            yield from (match[0].rstrip(".:") for match in _PATH.finditer(line))


def _is_added(name: str, added: Additions) -> bool:
    """Whether the change adds this path, dotted module name, attribute of a module, or word."""
    name = name.strip("`'\":").rstrip(".")
    last = re.split(r"::|\.", name)[-1] if "/" not in name else name
    return last in added.words or any(_is_path_of(name, path) for path in added.paths)


def _is_path_of(name: str, path: str) -> bool:
    """Whether a name is this file or folder: `greet.it`, `../src/greet`, `/tmp/x/src/greet.py`."""
    stem = posixpath.splitext(path)[0].removesuffix("/__init__").removesuffix("/index").removesuffix("/mod")
    asked = name if "/" in name or name == path else name.replace("::", "/").replace(".", "/")
    asked = re.sub(r"\A(?:\.{0,2}/)+", "", asked)
    asked = re.sub(r":\d+\Z", "", asked)
    return any(whole == asked or whole.endswith(f"/{asked}") or asked.endswith(f"/{whole}") for whole in (path, stem))


_Function = ast.FunctionDef | ast.AsyncFunctionDef
# The replacements of a body, one after the other.
ANSWERS: Final = ("object()", "None")


class PythonFile(Value):
    """A changed file of Python, and its text at the base, or '' for a new file."""

    path: str
    text: str
    before: str = ""


def new_names(file: PythonFile) -> frozenset[str]:
    """Return the names by which a test can refer to a new function: its own, and that of its class."""
    found = (name for _, names in _new(file) for name in names)
    return frozenset(found)


def emptied(file: PythonFile, names: Collection[str], answer: str) -> str | None:
    """Return the text with the new functions that one of these names refers to emptied; None if there are none."""
    tree, changed = _parsed(file.text), False
    if tree is None:
        return None
    before = _known(file.before)
    for qualified, function in _functions(tree):
        if qualified not in before and not {*qualified.split(".")}.isdisjoint(names):
            function.body = _body(function, answer)
            changed = True
    return ast.unparse(tree) if changed else None


def _new(file: PythonFile) -> Iterator[tuple[str, set[str]]]:
    tree = _parsed(file.text)
    before = _known(file.before)
    for qualified, _ in _functions(tree) if tree is not None else ():
        if qualified not in before:
            yield qualified, {*qualified.split(".")}


def _known(text: str) -> frozenset[str]:
    tree = _parsed(text)
    return frozenset(name for name, _ in _functions(tree)) if tree is not None else frozenset()


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):  # of a later Python version, or not Python
        return None


def _functions(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    """Yield functions and methods by their qualified names, except those inside functions."""
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        owner, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Function):
                yield f"{owner}{child.name}", child
            elif isinstance(child, ast.ClassDef):
                todo.append((f"{owner}{child.name}.", child))
            elif isinstance(child, ast.stmt):
                todo.append((owner, child))


def _body(function: _Function, answer: str) -> list[ast.stmt]:
    """Return the new body. An initializer returns None. A generator remains a generator, but yields nothing."""
    said = "return" if function.name == "__init__" else f"return {answer}"
    text = "return\n    yield" if _yields(function) else said
    made = ast.parse(f"def f():\n    {text}").body[0]
    assert isinstance(made, ast.FunctionDef)
    return made.body


def _yields(function: _Function) -> bool:
    todo: list[ast.AST] = [*function.body]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_Function.__args__, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False
