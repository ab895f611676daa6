"""Empty the new functions of Python source, which a test that proves them must notice.

A test that calls a new function and asserts nothing fails without the change, because the name is missing, and executes
the change, but does not check the result. With the bodies removed and the names kept, such a test passes. Each body is
replaced twice, with an object and with None as the result; a test that passes both times says nothing about the
function. Old functions are not emptied, because a test may show that a function no longer does something.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Final

from workpacket.value import Value

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# The replacements of a body, one after the other.
ANSWERS: Final = ("object()", "None")


class PythonFile(Value):
    """A changed file of Python, and its text at the base, '' for a new file."""

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
