"""Mutation score: each small change of a module that no test notices is a sentence of it that nobody checks.

    PYTHONPATH=tools:tests python tests/mutants.py [--share N]

changes the modules of `SUBJECTS` in one place at a time, runs their tests with each change in a process of its own (a
fork of this one, which has the tools of testing loaded and nothing of ours), and names every change that survives.
`--share N` tries each N-th only. The exit status is 1 below the score of `WANTED`.
"""

from __future__ import annotations

import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import cryptography.hazmat.primitives.asymmetric.ec
import cryptography.hazmat.primitives.serialization
import hypothesis
import jsonschema
import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "tools" / "workpacket"
WANTED = 0.90
SECONDS = 120  # a change that makes the tests run for so long was noticed
LOADED = (cryptography, hypothesis, jsonschema)  # what every test needs and no change touches

# What is most likely to notice a change comes first.
_RUNS = ("runtime/test_run", "runtime/test_async")
_RUNTIME = {
    "resuming/decide": ("runtime/test_decide", "runtime/test_effects", *_RUNS),
    "resuming/checks": ("runtime/test_decide", "runtime/test_effects", *_RUNS),
    "attempts/effects": ("runtime/test_effects", *_RUNS, "runtime/test_decide"),
}
_GATE = ("approvals/test_decide", "approvals/test_policy_files", "attacks/test_corpus")
# Of each module what else would notice, after its own tests; before them where those take long.
_SLOW = frozenset({"keys", "sshsig"})
_APPROVALS: dict[str, tuple[str, ...]] = {
    "allowed_signers": _GATE,
    "base64_strict": (),
    "decide": ("attacks/test_corpus",),
    "envelope": _GATE,
    "facts": ("approvals/test_decide", "attacks/test_corpus"),
    "fields": ("approvals/test_policy", "approvals/test_statement", "approvals/test_trust"),
    "instants": ("approvals/test_statement", "approvals/test_allowed_signers"),
    "json_input": ("approvals/test_envelope",),
    "keys": ("attacks/test_corpus", "approvals/test_sshsig"),
    "legacy": ("approvals/test_decide", "attacks/test_corpus"),
    "opening": ("approvals/test_selection", *_GATE),
    "policy": _GATE,
    "policy_files": _GATE,
    "primitives": ("approvals/test_keys", "approvals/test_sshsig", "attacks/test_corpus"),
    "refusal": ("approvals/test_envelope", "attacks/test_corpus"),
    "revoked_keys": _GATE,
    "selection": (),
    "sshsig": ("attacks/test_corpus",),
    "statement": _GATE,
    "trust": ("attacks/test_corpus",),
    "verify": _GATE,
    "wire": ("approvals/test_sshsig", "approvals/test_keys"),
    "words": (),
}
SUBJECTS: dict[str, tuple[str, ...]] = {
    **{f"runtime/{name}.py": tests for name, tests in _RUNTIME.items()},
    **{
        f"approvals/{name}.py": (*tests, f"approvals/test_{name}")
        if name in _SLOW
        else (f"approvals/test_{name}", *tests)
        for name, tests in _APPROVALS.items()
    },
}

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in the place of this node and be wrong."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER:
        yield _with(node, ops=[_OTHER[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.BoolOp):
        yield _with(node, op=_OTHER[type(node.op)]())
        for left_out in range(len(node.values)):
            rest = [value for number, value in enumerate(node.values) if number != left_out]
            yield _with(node, values=rest) if len(rest) > 1 else rest[0]
    if isinstance(node, ast.BinOp) and type(node.op) in _OTHER:
        yield _with(node, op=_OTHER[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    if isinstance(node, ast.If | ast.IfExp):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _other_values(node.value))
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield ast.Return(ast.Constant(None))
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield ast.Pass()


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _other_values(value: object) -> list[bool | int | str]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    return [f"{value}?"] if isinstance(value, str) and value else []


def mutants(source: str) -> Iterator[tuple[int, str, ast.Module]]:
    """Each change: its line, what it says now, and the whole module with it."""
    tree = ast.parse(source)
    passed_over = {id(part) for node in ast.walk(tree) for idle in _without_behaviour(node) for part in ast.walk(idle)}
    for parent in ast.walk(tree):
        if id(parent) in passed_over:
            continue
        for name, field in ast.iter_fields(parent):
            for position, node in enumerate(field if isinstance(field, list) else [field]):
                if not isinstance(node, ast.AST) or id(node) in passed_over:
                    continue
                for change in changes(node):
                    if isinstance(field, list):
                        setattr(parent, name, [*field[:position], change, *field[position + 1 :]])
                    else:
                        setattr(parent, name, change)
                    ast.fix_missing_locations(ast.copy_location(change, node))
                    yield getattr(node, "lineno", 0), ast.unparse(change)[:100], tree
                    setattr(parent, name, field)


def _without_behaviour(node: ast.AST) -> list[ast.AST]:
    """Docstrings, types, imports, how a class is built; and messages, whose exact words no test should hold fast."""
    match node:
        case ast.ClassDef():
            return [*node.decorator_list]
        case ast.FunctionDef(returns=ast.AST() as returns):
            return [returns]
        case ast.AnnAssign():
            return [node.annotation]
        case ast.Call():
            return [argument for argument in node.args if _is_message(argument)]
        # A docstring; a name for a type.
        case ast.Expr(value=ast.Constant()) | ast.Assign(value=ast.Subscript()):
            return [node]
        case _:
            return [node] if isinstance(node, ast.ImportFrom | ast.Import | ast.JoinedStr | ast.arg) else []


def _is_message(node: ast.AST) -> bool:
    """A sentence that is given to a function: three words and no sign of a pattern."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return text.count(" ") > 1 and not set(text) & set("()[]\\+^$")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the changed module to whoever imports it."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def is_noticed(subject: str, tests: Sequence[str], tree: ast.Module) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        name = "workpacket." + subject.removesuffix(".py").replace("/", ".")
        sys.meta_path.insert(0, _Finder(name, PACKAGE / subject, tree))
        loaded_before = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        files = [str(path) for one in dict.fromkeys(tests) if (path := TESTS / f"{one}.py").exists()]
        os._exit(pytest.main(["-xq", "-p", "no:cacheprovider", *loaded_before, *files]))
    _, status = os.waitpid(child, 0)
    return status != 0


def main(share: int) -> int:
    tried = noticed = 0
    for subject, tests in SUBJECTS.items():
        source = (PACKAGE / subject).read_text("utf-8")
        if is_noticed(subject, tests, ast.parse(source)):
            print(f"{subject}: its tests fail as it is")
            return 2
        for number, (line, now, tree) in enumerate(mutants(source)):
            if number % share:
                continue
            tried += 1
            if is_noticed(subject, tests, tree):
                noticed += 1
            else:
                print(f"survived: {subject}:{line}: {now}", flush=True)
    print(f"{noticed} of {tried} changes were noticed: {noticed / tried:.1%}")
    return int(noticed < WANTED * tried)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[sys.argv.index("--share") + 1]) if "--share" in sys.argv else 1))
