"""What keeps a run function from running on every engine: `unfit(job)` names each place, without Temporal installed.

A run function touches the world only through `run` and through functions that can be imported. On Temporal, its body is
replayed, so it must do the same in every process and at any time: it may not read a clock, draw a random number, depend
on the order of a set, or use what only one process has (a closure, a global that it changes).

The source of the function is read, and that of the functions in its own files that it calls directly. Names are
resolved to the objects that they refer to, so an alias hides nothing. What a library does inside is not examined:
Temporal's replay reports that later.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import pathlib
import random
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple

Code = Literal["closure", "clock", "randomness", "outside", "order", "state", "run"]

# What `run` offers on every engine.
EVERYWHERE: Final = frozenset({
    "id", "attempt", "using", "step", "map", "child", "effect", "checkpoint", "cursor", "boundary", "confirm",
    "accept_unknown", "publish", "patched", "sleep", "sleep_until", "wait_for",
})  # fmt: skip

_TAKES_FUNCTION: Final = frozenset({"step", "map", "effect", "child"})
_FUNCTIONS_BY_NAME: Final = frozenset({"probe", "compensate"})
# Each name, or each module with everything in it, and why it is not fit. The longest match counts; '' is fit.
_UNFIT: Final[Mapping[str, Code | Literal[""]]] = {
    "time": "clock", "time.strptime": "", "time.struct_time": "", "datetime.datetime.now": "clock",
    "datetime.datetime.utcnow": "clock", "datetime.datetime.today": "clock", "datetime.date.today": "clock",
    "random": "randomness", "random.Random": "", "secrets": "randomness", "uuid.uuid1": "randomness",
    "uuid.uuid4": "randomness", "uuid.uuid6": "randomness", "uuid.uuid7": "randomness",
    "builtins.hash": "randomness", "builtins.id": "randomness",
    "builtins.open": "outside", "builtins.input": "outside", "builtins.exec": "outside", "builtins.eval": "outside",
    "builtins.__import__": "outside", "builtins.globals": "state", "io.open": "outside", "os": "outside",
    "os.fspath": "", "posix.fspath": "", "posix": "outside", "posix.urandom": "randomness", "genericpath": "outside",
    "genericpath.commonprefix": "", "genericpath.getmtime": "clock", "posixpath.abspath": "outside",
    "posixpath.realpath": "outside", "posixpath.expanduser": "outside", "posixpath.expandvars": "outside",
    "sys.argv": "outside", "sys.stdin": "outside", "subprocess": "outside", "socket": "outside", "_socket": "outside",
    "shutil": "outside", "tempfile": "outside", "urllib.request": "outside", "http.client": "outside",
    "sqlite3": "outside", "_sqlite3": "outside", "threading": "outside", "multiprocessing": "outside",
    "concurrent.futures": "outside", "_thread": "outside", "ssl": "outside", "smtplib": "outside",
    "ftplib": "outside", "importlib": "outside", "platform": "outside", "glob": "outside", "getpass": "outside",
    "signal": "outside", "asyncio.threads": "outside", "asyncio.runners": "outside", "asyncio.streams": "outside",
    "asyncio.subprocess": "outside", "asyncio.tasks.wait": "order", "asyncio.tasks.as_completed": "order",
    "asyncio.events": "outside", "_asyncio.get_event_loop": "outside", "_asyncio.get_running_loop": "outside",
    "requests": "outside", "httpx": "outside", "aiohttp": "outside", "urllib3": "outside", "psycopg": "outside",
    "boto3": "outside", "botocore": "outside", "redis": "outside",
}  # fmt: skip
_ON_DISK: Final = frozenset({
    "read_text", "read_bytes", "write_text", "write_bytes", "open", "exists", "is_file", "is_dir", "stat", "iterdir",
    "glob", "rglob", "mkdir", "unlink", "rename", "replace", "touch", "resolve", "cwd", "home", "absolute", "rmdir",
})  # fmt: skip
_CHANGES: Final = frozenset({
    "append", "extend", "insert", "remove", "pop", "clear", "add", "discard", "update", "setdefault", "popitem", "sort",
})  # fmt: skip
_KEEPS_ORDER_OF: Final = frozenset({list, tuple, iter, enumerate, map, filter, zip})
_REMEDY: Final[Mapping[Code, str]] = {
    "closure": "use a function at the top level of a module, and pass it what it needs",
    "clock": "read it in a step, or use run.sleep and run.sleep_until",
    "randomness": "draw it in a step, whose result is stored",
    "outside": "do it in a step or an effect",
    "order": "sort it first, or use asyncio.gather",
    "state": "pass it as an argument, or return it from a step",
    "run": "it exists on one engine only",
}


class Unfit(NamedTuple):
    """A place in a run function that keeps it from running on every engine."""

    function: str
    line: int
    code: Code
    what: str

    def __str__(self) -> str:
        return f"{self.function}, line {self.line}: {self.what} ({self.code}) -> {_REMEDY[self.code]}"


def unfit(job: Callable[..., object]) -> tuple[Unfit, ...]:
    """Return everything that keeps `job` from running on every engine, in the order of its lines."""
    why = _not_importable(job)
    if why:
        return (Unfit(getattr(job, "__qualname__", repr(job)), _first_line(job), "closure", why),)
    function = inspect.unwrap(job)
    assert isinstance(function, types.FunctionType)
    if not inspect.iscoroutinefunction(function):
        return (Unfit(job.__qualname__, _first_line(job), "run", "it is not an async function"),)
    seen: set[types.CodeType] = set()
    return tuple(sorted(set(_in_function(function, seen, takes_run=True)), key=lambda one: (one.function, one.line)))


def name_of(function: Callable[..., object]) -> str:
    """Return the name under which any process can import the function; raise ValueError if there is none."""
    why = _not_importable(function)
    if why:
        raise ValueError(f"{function!r}: {why}")
    return f"{function.__module__}:{function.__qualname__}"


def _not_importable(function: Callable[..., object]) -> str:
    """Return why other processes cannot import the function; '' if they can."""
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", None) or ""
    if not isinstance(inspect.unwrap(function), types.FunctionType | types.BuiltinFunctionType):
        return f"{type(function).__name__} objects cannot be imported by name"
    if isinstance(getattr(function, "__self__", None), object) and inspect.ismethod(function):
        return f"{name} is bound to an object"
    if "<lambda>" in name:
        return "it is a lambda"
    if "<locals>" in name or (getattr(function, "__closure__", None) and function is inspect.unwrap(function)):
        return f"{name} is defined inside a function"
    if module == "__main__":
        return f"{name} is in the script that was started, which no other process can import"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return "" if found is function else f"{module}:{name} is another object"


def _first_line(function: Callable[..., object]) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_firstlineno if code is not None else 0


def _in_function(function: types.FunctionType, seen: set[types.CodeType], *, takes_run: bool) -> Iterator[Unfit]:
    if function.__code__ in seen:
        return
    seen.add(function.__code__)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        yield Unfit(function.__qualname__, _first_line(function), "outside", "its source cannot be read")
        return
    definition = tree.body[0]
    if not isinstance(definition, ast.AsyncFunctionDef | ast.FunctionDef):
        return
    reader = _FunctionReader(function, definition, takes_run=takes_run)
    yield from reader.found()
    for called, with_run in reader.called:
        yield from _in_function(called, seen, takes_run=with_run)


class _FunctionReader(ast.NodeVisitor):
    """Reads one function. `called` are the functions of its own package that it calls, and whether each takes `run`."""

    def __init__(
        self, function: types.FunctionType, definition: ast.AsyncFunctionDef | ast.FunctionDef, *, takes_run: bool
    ) -> None:
        self.called: list[tuple[types.FunctionType, bool]] = []
        self._function = function
        self._definition = definition
        self._shift = _first_line(function) - min((d.lineno for d in definition.decorator_list), default=1)
        self._unfit: list[Unfit] = []
        own = {
            node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self._nested = {n.name for n in ast.walk(definition) if isinstance(n, inner) and n is not definition}
        parameters = [node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)]
        self._local = own | self._nested | set(parameters)
        self._imported: dict[str, object] = {}
        first = definition.args.posonlyargs + definition.args.args
        self._runs = {first[0].arg} if takes_run and first else set()
        self._sets: set[str] = set()
        self._later: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self._given_names: set[str] = set()

    def found(self) -> list[Unfit]:
        for statement in self._definition.body:
            self.visit(statement)
        for inner in self._later:
            if inner.name not in self._given_names:  # one that was given to `run` is reported already
                self.generic_visit(inner)
        return self._unfit

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._later.append(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._later.append(node)

    def _add(self, node: ast.AST, code: Code, what: str) -> None:
        line = getattr(node, "lineno", 1) + self._shift
        self._unfit.append(Unfit(self._function.__qualname__, line, code, what))

    # ---- names ---------------------------------------------------------------------------------------------------

    def _resolved(self, node: ast.AST) -> object:
        """Return the object that an expression names; None if that depends on the run."""
        if isinstance(node, ast.Name):
            if node.id in self._imported:
                return self._imported[node.id]
            if node.id in self._local:
                return None
            known = self._function.__globals__
            return known[node.id] if node.id in known else getattr(builtins, node.id, None)
        if isinstance(node, ast.Attribute):
            base = self._resolved(node.value)
            return getattr(base, node.attr, None) if isinstance(base, types.ModuleType | type) else None
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            module = sys.modules.get(one.name if one.asname else one.name.partition(".")[0])
            self._imported[one.asname or one.name.partition(".")[0]] = module or _Unloaded(one.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for one in node.names:
            module = sys.modules.get(node.module or "")
            found = getattr(module, one.name, None) or _Unloaded(f"{node.module}.{one.name}")
            self._imported[one.asname or one.name] = found

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._look(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._is_run(node.value):
            if node.attr not in EVERYWHERE:
                self._add(node, "run", f"run.{node.attr}")
            return
        if not self._look(node):
            self.visit(node.value)

    def _look(self, node: ast.Name | ast.Attribute) -> bool:
        """Report the name if it refers to something unfit; return whether what it refers to is known."""
        known = self._resolved(node)
        if known is None:
            return False
        code = _code_of(known, ast.unparse(node))
        if code:
            self._add(node, code, ast.unparse(node))
        return True

    # ---- calls ---------------------------------------------------------------------------------------------------

    def _is_run(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._runs
        using = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "using"
        return using and self._is_run(node.func.value)  # type: ignore[attr-defined]

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and self._is_run(function.value):
            self._call_of_run(node, function)
            return
        target = self._resolved(function)
        if isinstance(target, types.FunctionType) and self._is_own(target):
            self.called.append((target, bool(node.args) and self._is_run(node.args[0])))
        if target is random.Random and not node.args:
            self._add(node, "randomness", "random.Random without a seed")
        if isinstance(target, type) and target in _KEEPS_ORDER_OF and any(self._is_set(one) for one in node.args):
            self._add(node, "order", f"the order of {ast.unparse(node)}")
        if isinstance(function, ast.Attribute):
            self._method(node, function)
        self.generic_visit(node)

    def _is_own(self, target: types.FunctionType) -> bool:
        """Whether the function belongs to the program, and is not one of a library."""
        top, own = target.__module__.partition(".")[0], self._function.__module__.partition(".")[0]
        return top == own and target.__module__.partition(".")[0] != "workpacket"

    def _method(self, node: ast.Call, function: ast.Attribute) -> None:
        on = function.value
        made = self._resolved(on.func) if isinstance(on, ast.Call) else self._resolved(on)
        if isinstance(made, type) and issubclass(made, pathlib.PurePath) and function.attr in _ON_DISK:
            self._add(node, "outside", ast.unparse(function))
        base: object = self._function.__globals__.get(on.id) if isinstance(on, ast.Name) else None
        if isinstance(on, ast.Name) and on.id not in self._local and isinstance(base, list | dict | set):
            if function.attr in _CHANGES:
                self._add(node, "state", f"{on.id}.{function.attr} changes a global")
        elif function.attr == "pop" and self._is_set(on):
            self._add(node, "order", ast.unparse(function))
        elif function.attr == "run_in_executor":
            self._add(node, "outside", ast.unparse(function))

    def _call_of_run(self, node: ast.Call, function: ast.Attribute) -> None:
        self.visit_Attribute(function)
        rest, name = list(node.args), function.attr
        if name in _TAKES_FUNCTION and rest:
            named = isinstance(rest[0], ast.Constant | ast.JoinedStr) or name not in {"step", "child"}
            if not named and len(rest) > 1 and self._resolved(rest[0]) is None and self._names_function(rest[1]):
                named = True
            given = rest.pop(1) if named and len(rest) > 1 else rest.pop(0)
            self._given(given, child=name == "child")
        for one in node.keywords:
            if one.arg in _FUNCTIONS_BY_NAME:
                self._given(one.value, child=False)
            else:
                self.visit(one.value)
        for each in rest:
            self.visit(each)

    def _names_function(self, node: ast.AST) -> bool:
        return callable(self._resolved(node)) or isinstance(node, ast.Lambda)

    def _given(self, node: ast.expr, *, child: bool) -> None:
        """Look at a function that is passed to `run`: any process must be able to import it."""
        if isinstance(node, ast.Constant) and node.value is None:
            return
        if isinstance(node, ast.Call) and self._resolved(node.func) is partial and node.args:
            self._given(node.args[0], child=child)
            for each in (*node.args[1:], *(one.value for one in node.keywords)):
                self.visit(each)
            return
        why = self._why_not_given(node)
        if why:
            self._add(node, "closure", why)
            return
        function = inspect.unwrap(found) if callable(found := self._resolved(node)) else None
        if isinstance(function, types.FunctionType) and not inspect.iscoroutinefunction(function):
            self._add(node, "run", f"{ast.unparse(node)} is not an async function")
        elif child and isinstance(function, types.FunctionType):
            self.called.append((function, True))

    def _why_not_given(self, node: ast.expr) -> str:
        if isinstance(node, ast.Lambda):
            return "a lambda"
        if isinstance(node, ast.Name) and node.id in self._nested:
            self._given_names.add(node.id)
            return f"{node.id} is defined inside the function"
        found = self._resolved(node)
        if found is None:
            bound = isinstance(node, ast.Attribute)
            return f"{ast.unparse(node)} is bound to an object" if bound else ""
        return _not_importable(found) if callable(found) else ""

    # ---- order and state -----------------------------------------------------------------------------------------

    def _is_set(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._sets
        made = isinstance(node, ast.Call) and self._resolved(node.func) in {set, frozenset}
        return made or isinstance(node, ast.Set | ast.SetComp)

    def _iterated(self, node: ast.AST) -> None:
        if self._is_set(node):
            self._add(node, "order", f"the order of {ast.unparse(node)}")

    def visit_For(self, node: ast.For) -> None:
        self._iterated(node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._iterated(node.iter)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._changed(target)
            if isinstance(target, ast.Name):
                (self._sets.add if self._is_set(node.value) else self._sets.discard)(target.id)
                (self._runs.add if self._is_run(node.value) else self._runs.discard)(target.id)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._changed(node.target)
        self.generic_visit(node)

    def _changed(self, target: ast.AST) -> None:
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
            if isinstance(target, ast.Name) and target.id not in self._local and target.id not in self._imported:
                self._add(target, "state", f"{target.id} is a global")

    def visit_Global(self, node: ast.Global) -> None:
        self._add(node, "state", f"{', '.join(node.names)} is a global")


class _Unloaded:
    """A name that a function imports from a module that is not loaded yet."""

    def __init__(self, name: str) -> None:
        self.name = name


def _code_of(known: object, written: str) -> Code | Literal[""]:
    """Return why the object is unfit; '' if it is fit. `written` is how the source names it."""
    if known is os.environ or known is os.environb:
        return "outside"
    if isinstance(known, types.ModuleType):
        return ""  # naming a module does nothing; what is used of it is looked at
    return next((_UNFIT[name] for each in _names_of(known, written) for name in _prefixes(each) if name in _UNFIT), "")


def _names_of(known: object, written: str) -> Iterator[str]:
    """Yield the full names of an object: as defined, and as written."""
    if isinstance(known, _Unloaded):
        yield known.name
        return
    on = getattr(known, "__self__", None)
    if isinstance(on, type):  # a class method, such as datetime.now
        yield from (f"{base.__module__}.{base.__qualname__}.{getattr(known, '__name__', '')}" for base in on.__mro__)
    elif on is not None and not isinstance(on, types.ModuleType):  # a method of a module's own object: random.random
        yield type(on).__module__
    module = getattr(known, "__module__", None)
    if isinstance(module, str):
        yield f"{module}.{getattr(known, '__qualname__', '')}"
    if known is sys.argv or known is sys.stdin:
        yield written


def _prefixes(name: str) -> Iterator[str]:
    """Yield the name and each module and class around it, the longest first."""
    while name:
        yield name
        name = name.rpartition(".")[0]
