"""What two runs of the same tests prove: one with the work, and one at the base with the tests of the work copied over
it.

| with the work | at the base | it is | |---|---|---| | passed | failed, or could not run because something that the
change adds is missing | `needed` | | passed | passed | `kept` | | passed | anything else, or missing |
`could_not_run`: it proves nothing either way | | failed | passed | `broken` | | failed | anything else | `failing` |
| skipped | | `skipped` |

A criterion is proved by a needed test that is seen to execute part of the change, or, if the contract exempts it, by
tests that still pass. No test may fail.

Two controls follow, only for the needed tests. When the new functions that it names are emptied, a test must fail;
otherwise it is `kept`, because it says nothing about them. With the work, it must pass a second time.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from workpacket.evidence.runners import EXIT_CODE, Ran, TestReport
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.value import Value

Comparison = Literal["needed", "kept", "could_not_run", "broken", "failing", "skipped"]
Execution = Literal["measured", "not measured"]

_SHOWN: Final = 3


class AskedProof(Value):
    """The proof that the contract requires for a criterion; `exempt` is why no needed test has to prove it, or None if
    one must.
    """

    command: str
    tests: Sequence[str] = ()
    paths: Sequence[str] = ()
    exempt: str | None = None


class Side(Value):
    """One run. `fault` says why it could not run at all, or '' if it did. `output` is the end of its output."""

    report: TestReport
    exit_code: int = 0
    fault: str = ""
    output: str = ""


class Controls(Value):
    """Further runs of the needed tests: `again` is run with the work, and `emptied` with its new functions emptied."""

    again: Side | None = None
    emptied: tuple[Side, ...] = ()


NO_CONTROLS: Final = Controls()


class ProofJudgement(Value):
    """The judgement of a proof. Messages in `faults` are printed after `DONE_MEANS 1: `. `tests` are the tests that the
    criterion is about. `execution` is '' if no test had to be watched.
    """

    faults: tuple[Problem, ...]
    tests: Mapping[str, Comparison]
    runner: str
    execution: Execution | Literal[""] = ""

    def count(self, which: str) -> int:
        return sum(1 for each in self.tests.values() if each == which)

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, each in self.tests.items() if each == "needed"))


def judge(
    asked: AskedProof, here: Side, base: Side | None, added: Additions, controls: Controls = NO_CONTROLS
) -> ProofJudgement:
    """Judge the two runs. `base` is None for an exempt criterion, which needs no comparison."""
    runner = here.report.runner
    if here.fault:
        return ProofJudgement((Problem("proof_not_run", f"{asked.command} {here.fault}"),), {}, runner)
    chosen = {name: ran for name, ran in here.report.tests.items() if _is_asked(name, ran, asked)}
    compared = {name: _compared(name, ran, base, asked, added) for name, ran in chosen.items()}
    faults = tuple(_faults_here(asked, here, chosen))
    if faults or asked.exempt is not None or base is None:
        return ProofJudgement(faults, compared, runner)
    compared |= {
        name: "kept" for name, each in compared.items() if each == "needed" and _is_indifferent(name, controls)
    }
    needed = {name: chosen[name] for name, each in compared.items() if each == "needed"}
    fault = _controlled(needed, chosen, controls)
    if fault is not None:
        return ProofJudgement((fault,), compared, runner)
    if not needed:
        return ProofJudgement((_none_needed(compared, base),), compared, runner)
    execution = _execution(needed, here.report, added)
    if execution is None:
        what = f"{_some(needed)} would fail without the change, but executes none of the changed lines"
        return ProofJudgement((Problem("change_not_executed", what),), compared, runner)
    return ProofJudgement((), compared, runner, execution)


def _is_indifferent(name: str, controls: Controls) -> bool:
    """Whether the test passes no matter what the new functions return."""
    runs = [side.report.tests.get(name) for side in controls.emptied]
    return bool(runs) and all(ran is not None and ran.status == "passed" for ran in runs)


def _controlled(needed: Mapping[str, Ran], chosen: Mapping[str, Ran], controls: Controls) -> Problem | None:
    """Return a problem if the controls show that no test is needed after all."""
    indifferent = [name for name in chosen if _is_indifferent(name, controls)]
    if indifferent and not needed:
        meant = sorted({each for name in indifferent for each in chosen[name].mentions})
        return Problem("proof_not_needed", f"{_some(indifferent)} passes whatever {_some(meant)} returns")
    again = controls.again.report.tests if controls.again is not None else needed
    once = [name for name in needed if name not in again or again[name].status != "passed"]
    return Problem("test_failed", f"{_some(once)} passed, but failed when run again") if once else None


def _is_asked(name: str, ran: Ran, asked: AskedProof) -> bool:
    if asked.tests:
        return any(is_named(name, test) for test in asked.tests)
    return not asked.paths or any(_lies_at(ran, path) for path in asked.paths)


def is_named(name: str, test: str) -> bool:
    """Whether the contract specifies this test: by its id, with or without parameters, or by a file, class or package
    that contains it. The bare name of a test matches it in any package or file.
    """
    if name == test or name.startswith((f"{test}::", f"{test}[", f"{test}.", f"{test}/")):
        return True
    if "/" in test or "::" in test:
        return False
    return name.endswith((f"::{test}", f".{test}")) and not name.partition("::")[0].endswith(".py")


def _lies_at(ran: Ran, path: str) -> bool:
    """Whether the test is in this path. A test with no known file is assumed to be in it."""
    path = path.rstrip("/").removeprefix("./")
    return not ran.path or ran.path == path or ran.path.startswith(f"{path}/")


def _faults_here(asked: AskedProof, here: Side, chosen: Mapping[str, Ran]) -> Iterator[Problem]:
    """Yield what is wrong with the run that includes the work, regardless of the run at the base."""
    report = here.report
    if asked.tests and report.runner == EXIT_CODE:
        what = f"{asked.command} does not report its tests, so it is unknown whether {_some(asked.tests)} ran"
        yield Problem("no_test_executed", what)
        return
    failing = [name for name, ran in report.tests.items() if ran.status in {"failed", "error"}]
    if failing:
        said = _last_line(report.tests[failing[0]].message)
        yield Problem("test_failed", f"{_some(failing)} failed" + (f", saying {said!r}" if said else ""))
        return
    if not any(ran.status == "passed" for ran in report.tests.values()):
        skipped = f"; {len(report.tests)} were skipped" if report.tests else ""
        yield Problem("no_test_executed", f"{asked.command} executed no test{skipped}")
        return
    for test in asked.tests:
        if not any(is_named(name, test) and ran.status == "passed" for name, ran in chosen.items()):
            how = "was skipped" if any(is_named(name, test) for name in chosen) else "did not run"
            yield Problem("test_not_run", f"{test} {how}")
    if not asked.tests and not any(ran.status == "passed" for ran in chosen.values()):
        yield Problem("test_not_run", f"no test in {', '.join(asked.paths)} ran")
    if here.exit_code != 0:
        yield Problem("test_failed", f"{asked.command} ended with {here.exit_code}")


def _compared(name: str, ran: Ran, base: Side | None, asked: AskedProof, added: Additions) -> Comparison:
    then = base.report.tests.get(name) if base is not None and not base.fault else None
    if ran.status == "skipped":
        return "skipped"
    if ran.status != "passed":
        return "broken" if then is not None and then.status == "passed" else "failing"
    if base is None or (then is not None and then.status == "passed"):
        return "kept"  # an exempt criterion needs no comparison
    return "needed" if _fails_there(name, ran, then, base, asked, added) else "could_not_run"


def _fails_there(name: str, ran: Ran, then: Ran | None, base: Side, asked: AskedProof, added: Additions) -> bool:
    """Whether a test that passes here did not pass at the base because the change was missing."""
    if base.fault:
        return False
    if then is None:
        why = "\n".join(each.message for each in base.report.obstacles if _hides(each.where, name, ran))
        return names_addition(why, added)
    if then.status == "failed" and not says_missing(then.message):
        return True
    # Without a report, a command's own errors look like those of the programs that it calls.
    beside = asked.command.split() if base.report.runner == EXIT_CODE else ()
    return then.status != "skipped" and names_addition(then.message, added, beside)


def _hides(where: str, name: str, ran: Ran) -> bool:
    """Whether the file or module that could not be loaded contains the test. unittest gives a module's name, and may
    leave out its package.
    """
    if not where or name.startswith((f"{where}::", f"{where}.", f"{where}/")) or where == ran.path:
        return True
    return "/" not in where and f".{where}." in f".{name}"


def _none_needed(compared: Mapping[str, Comparison], base: Side) -> Problem:
    kept = [name for name, each in compared.items() if each == "kept"]
    lost = [name for name, each in compared.items() if each == "could_not_run"]
    if not lost:
        return Problem("proof_not_needed", f"{_some(kept)} also passes without the change")
    said = (
        base.fault or next((_last_line(each.message) for each in base.report.obstacles), "") or _last_line(base.output)
    )
    what = f"{_some(lost)} could not run at the base" + (f", which says {said!r}" if said else "")
    return Problem("base_not_run", what)


def _execution(needed: Mapping[str, Ran], report: TestReport, added: Additions) -> Execution | None:
    """Return whether execution was measured; None if a watched test could have executed the change, but did not."""
    if not report.measured or not added.measurable:
        return "not measured"
    if any(ran.touched for ran in needed.values()):
        return "measured"
    # Code that runs in a separate program is not always watched; then the program must at least be part of the change.
    words = (word for ran in needed.values() for command in ran.started for word in command.split())
    return "not measured" if any(added.names(word) for word in words) else None


def _some(names: Sequence[str] | Mapping[str, object]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"{', '.join(listed[:_SHOWN])}{more}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


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
    """Everything that a change adds. `words` are new in their file; `paths` are new files and folders. `lines` are the
    added lines of Python; `data` are the changed files that programs only read; `other` are the source files that
    cannot be watched; `python` are the changed Python files.
    """

    words: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    lines: Mapping[str, Sequence[int]] = {}
    data: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    python: tuple[PythonFile, ...] = ()

    @property
    def functions(self) -> frozenset[str]:
        """Return the names that a test can use to refer to a new function."""
        return frozenset(name for file in self.python for name in new_names(file))

    @property
    def measurable(self) -> bool:
        """Whether a test that needs the change must be seen to touch it, because its files can be watched."""
        return bool(self.lines) or bool(self.data and not self.other)

    def names(self, path: str) -> bool:
        """Whether a word in a command is one of the changed files."""
        name = posixpath.basename(path)
        return any(posixpath.basename(each) == name for each in {*self.lines, *self.data, *self.other})


def additions(files: Sequence[FileAdditions], folders: Iterable[str] = ()) -> Additions:
    """Return the additions in a change. `folders` are the new folders."""
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
    """Whether a name refers to this file or folder: `greet.it`, `../src/greet`, `/tmp/x/src/greet.py`."""
    stem = posixpath.splitext(path)[0].removesuffix("/__init__").removesuffix("/index").removesuffix("/mod")
    asked = name if "/" in name or name == path else name.replace("::", "/").replace(".", "/")
    asked = re.sub(r"\A(?:\.{0,2}/)+", "", asked)
    asked = re.sub(r":\d+\Z", "", asked)
    return any(whole == asked or whole.endswith(f"/{asked}") or asked.endswith(f"/{whole}") for whole in (path, stem))


_Function = ast.FunctionDef | ast.AsyncFunctionDef
# The replacements of a body, one after the other.
ANSWERS: Final = ("object()", "None")


class PythonFile(Value):
    """A changed Python file, and its text at the base, or '' for a new file."""

    path: str
    text: str
    before: str = ""


def new_names(file: PythonFile) -> frozenset[str]:
    """Return the names that a test can use to refer to a new function: the function's own name, and its class's."""
    found = (name for _, names in _new(file) for name in names)
    return frozenset(found)


def emptied(file: PythonFile, names: Collection[str], answer: str) -> str | None:
    """Return the text after emptying the new functions to which these names refer; None if there are none."""
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
