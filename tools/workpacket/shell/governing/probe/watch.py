"""Watch which added lines of a change a test executes, which changed files it reads, and which programs it starts.

Importing a module executes its top-level lines for every test, so these lines count only for a test that enters a
function of that file or mentions a name that they bind. `def` and `class` lines prove nothing: a mock that replaces a
function executes its `def` as well.
"""

from __future__ import annotations

import ast
import dis
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any

CONFIGURATION = "WORKPACKET_PROBE"
TEST = "WORKPACKET_PROBE_TEST"
RUNNING = "WORKPACKET_PROBE_RUNNING"
BEFORE: list[Watch] = []
_FUNCTION = 1  # the flag CO_OPTIMIZED: neither a module nor a class
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_STARTS = {"subprocess.Popen": 1, "os.system": 0, "os.posix_spawn": 1, "os.spawn": 2, "os.exec": 1}
_BLOCKS = ("body", "orelse", "finalbody")
_MOST_STARTED = 20


class _File:
    """The additions to a source file: lines inside functions, functions whose header is new, top-level lines and the
    names that these bind.
    """

    def __init__(self, path: str, place: str, wanted: Iterable[int]) -> None:
        self.path = path
        self.place = place
        self.inner: set[int] = set()
        self.heads: set[int] = set()
        self.outer: set[int] = set()
        self.binds: set[str] = set()
        self.loaded = False
        self._wanted = set(wanted)
        try:
            with open(place, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            self.inner = set(self._wanted)
            return
        self._visit(tree.body, inside=False, owner="")

    def _visit(self, body: list[Any], inside: bool, owner: str) -> None:
        for node in body:
            blocks = list(_blocks(node))
            first = _first_line(node)
            last = min(map(_first_line, (block[0] for block in blocks))) - 1 if blocks else node.end_lineno
            new = any(line in self._wanted for line in range(first, max(first, last) + 1))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.heads |= set(range(first, last + 1)) if new else set()
                self._visit(node.body, True, "")
            elif isinstance(node, ast.ClassDef):
                self._visit(node.body, inside, owner or node.name)
            else:
                if new:
                    self._take(node, set(range(first, max(first, last) + 1)), inside, owner)
                for block in blocks:
                    self._visit(block, inside, owner)

    def _take(self, node: Any, lines: set[int], inside: bool, owner: str) -> None:
        says_nothing = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if inside:
            self.inner |= set() if says_nothing else lines
        elif not says_nothing and not isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
            self.outer |= lines
            self.binds |= {owner} if owner else set()
            self.binds |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}

    def is_loaded(self) -> bool:
        self.loaded = self.loaded or any(_file_of(module) == self.place for module in list(sys.modules.values()))
        return self.loaded


def _blocks(node: Any) -> Iterator[list[Any]]:
    """Yield the lists of statements nested in a statement."""
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block
    for other in [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
        yield other.body


def _first_line(node: Any) -> int:
    first: int = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return first


def _file_of(module: ModuleType | None) -> str:
    try:
        name = getattr(module, "__file__", None)
    except Exception:  # a module may be anything that someone put into sys.modules
        return ""
    return os.path.realpath(name) if isinstance(name, str) else ""


class Watch:
    """Watches one process of a proof. `test` is the running test, '' between tests."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.root: str = configuration["root"]
        self.test = ""
        # Whether this process is not a runner, so that programs that it starts must be reported immediately.
        self.alone = False
        # The tests to which a run is limited, None for all.
        self.only: frozenset[str] | None = None
        self.started: list[str] = []
        self._out: str = configuration["out"]
        self._lines: dict[str, list[int]] = configuration["lines"]
        self._data = {os.path.join(self.root, path): path for path in configuration["data"]}
        self._new = frozenset(configuration.get("new", ()))
        self._names = {os.path.basename(path) for path in configuration["data"]}
        self._files: dict[str, _File | None] = {}
        self._wanted = {os.path.join(self.root, path): path for path in self._lines}
        # The code of the test itself: whether it was entered, and whether an assertion in it ended its last call.
        self._own: CodeType | None = None
        self._entered_own = False
        self._raised = ""
        self._touched = False
        self._early = ""
        self._traced = False
        self._profiled = False
        self._hooked = False

    def say(self, **row: Any) -> None:
        """Append a complete line to the file, so that the line survives whatever happens to this process next."""
        line = json.dumps(row) + "\n"
        place = os.path.join(self._out, f"{os.getpid()}.jsonl")
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)

    def relative(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self.root).replace(os.sep, "/")

    def listen(self) -> None:
        """Start recording which files are read and which programs are started."""
        if not self._hooked:
            self._hooked = True
            sys.addaudithook(self._heard)

    def begin(self, test: str, own: CodeType | None = None) -> None:
        self.test, self.started, self._touched = test, [], False
        self._own, self._entered_own, self._raised = own, False, ""
        os.environ[TEST] = test
        if not self._lines and own is None:
            return
        if sys.gettrace() is None:
            self._traced = True
            threading.settrace(self._trace)
            sys.settrace(self._trace)
        elif (
            sys.getprofile() is None
        ):  # another tracer, such as coverage, is active; calls of whole functions can still be seen
            self._profiled = True
            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def forgiven(self) -> str:
        """Return why a test that is reported as passed did not really pass: hooks may run something else, or ignore its
        assertions.
        """
        if self._own is None or not (self._traced or self._profiled):
            return ""
        if not self._entered_own:
            return "it is reported as passed, but its own code was not run"
        return f"it is reported as passed, but its own code failed with {self._raised}" if self._raised else ""

    def end(self, mentioned: Iterable[str] = ()) -> None:
        """Finish a test. `mentioned` are the names in its code."""
        if self._traced:
            sys.settrace(None)
            threading.settrace(None)
        if self._profiled:
            sys.setprofile(None)
            threading.setprofile(None)
        self._traced = self._profiled = False
        if not self._touched:
            self._credit(set(mentioned))
        self.test = ""
        os.environ.pop(TEST, None)

    def _credit(self, mentioned: set[str]) -> None:
        if self._early:
            self.touch(self._early)
            return
        for place in self._wanted:
            file = self._file(place)
            if file is not None and file.binds & mentioned and file.is_loaded():
                self.touch(file.path)
                return

    def credit_loaded(self) -> None:
        """At the end of a standalone program, credit it with the top-level lines that it loaded."""
        for place in self._wanted:
            file = self._file(place)
            if self.test and file is not None and file.outer and file.is_loaded():
                self.touch(file.path)

    def mentions(self, names: Iterable[str]) -> list[str]:
        """Return the functions and classes added by the change that the code mentions."""
        return sorted(self._new.intersection(names))

    def touch(self, what: str) -> None:
        if not self._touched:
            self._touched = True
            self.say(kind="touched", test=self.test, what=what)

    def _file(self, name: str) -> _File | None:
        """Return the changed file that the code comes from; None if it comes from another file."""
        if name not in self._files:
            place = os.path.realpath(name)
            path = self._wanted.get(place)
            self._files[name] = _File(path, place, self._lines[path]) if path is not None else None
        return self._files[name]

    def _trace(self, frame: FrameType, _: str, __: Any) -> Any:
        if not self.test:
            return None
        if frame.f_code is self._own:
            return self._enter_own()
        file = None if self._touched else self._entered(frame)
        if file is None:
            return None
        lines = file.inner if frame.f_code.co_flags & _FUNCTION else file.inner | file.outer

        def local(inner: FrameType, what: str, _: Any) -> Any:
            if self._touched:
                return None
            if what == "line" and inner.f_lineno in lines:
                self.touch(f"{file.path}:{inner.f_lineno}")
            return local

        return local

    def _enter_own(self) -> Any:
        """Follow a call of the test itself: record the last exception that propagated out of it."""
        self._entered_own, self._raised = True, ""
        left = ""

        def local(_: FrameType, what: str, told: Any) -> Any:
            nonlocal left
            if what == "exception":
                left = told[0].__name__ if issubclass(told[0], AssertionError) or told[0].__name__ == "Failed" else ""
            elif what == "return":
                self._raised = left
            else:
                left = ""
            return local

        return local

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is self._own:
            self._entered_own = True
        if event != "call" or self._touched or not self.test:
            return
        file = self._entered(frame)
        if file is not None and any(line in file.inner for _, line in dis.findlinestarts(frame.f_code)):
            self.touch(f"{file.path}:{frame.f_code.co_firstlineno}")

    def _entered(self, frame: FrameType) -> _File | None:
        """Return the changed file that contains a called function or a program being run."""
        code = frame.f_code
        file = self._file(code.co_filename)
        if file is None:
            return None
        if not code.co_flags & _FUNCTION:
            return file if frame.f_globals.get("__name__") == "__main__" and code.co_name == "<module>" else None
        outside = frame.f_back
        if code.co_name in _COMPREHENSIONS and outside is not None and not outside.f_code.co_flags & _FUNCTION:
            return None
        if code.co_firstlineno in file.heads or file.outer:
            self.touch(f"{file.path}:{code.co_firstlineno}")
        return file

    def _heard(self, event: str, arguments: Any) -> None:
        if event == "open":
            self._opened(arguments[0])
        elif event in _STARTS and self.test and len(self.started) < _MOST_STARTED:
            words = arguments[_STARTS[event]]
            listed = [words] if isinstance(words, (str, bytes, os.PathLike)) else list(words or ())
            self.started.append(" ".join(os.fsdecode(word) for word in listed)[:500])
            if self.alone:
                self.say(kind="started", test=self.test, words=self.started[-1])

    def _opened(self, name: Any) -> None:
        if not isinstance(name, (str, bytes)) or os.path.basename(os.fsdecode(name)) not in self._names:
            return
        path = self._data.get(os.path.realpath(os.fsdecode(name)))
        if path is not None and self.test:
            self.touch(path)
        elif path is not None:
            self._early = path


def names_in(code: CodeType | None) -> set[str]:
    """Return the names that a code object mentions, including nested code."""
    if code is None:
        return set()
    within = (each for each in code.co_consts if isinstance(each, CodeType))
    words = (each for each in code.co_consts if isinstance(each, str) and each.isidentifier())
    return set(code.co_names).union(words, *(names_in(each) for each in within))


def code_of(function: Any) -> CodeType | None:
    """Return the code of a test without its decorators."""
    seen = 0
    while hasattr(function, "__wrapped__") and seen < 20:
        function, seen = function.__wrapped__, seen + 1
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def configuration() -> dict[str, Any] | None:
    place = os.environ.get(CONFIGURATION)
    if not place:
        return None
    try:
        with open(place, encoding="utf-8") as file:
            value: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return None
    return value


def begin_runner(runner: str, *, worker: bool = False) -> Watch | None:
    """Return the watch for a runner; None in a runner that was started by a test, because its tests prove nothing."""
    found = configuration()
    if found is None or (os.environ.get(RUNNING) and not worker):
        return None
    os.environ[RUNNING] = str(os.getpid())
    os.environ.pop(TEST, None)
    if BEFORE:  # this process was mistaken for a standalone program
        BEFORE.pop().end()
    watch = Watch(found)
    watch.only = None if found.get("only") is None else frozenset(found["only"])
    watch.listen()
    watch.say(kind="start", runner=runner, main=not worker)
    return watch
