"""The test runner that a command starts, the options that make it report, and commands that prove nothing."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.value import Value

Runner = Literal["pytest", "unittest", "go", "cargo", "jest", ""]

PROBE: Final = "workpacket_probe"
# They change nothing, and test nothing that work could change, except whether a file exists.
_TRIVIAL: Final = frozenset({
    "true", "false", ":", "echo", "printf", "test", "[", "[[", "ls", "stat", "cat", "head", "tail", "wc", "file",
    "exit", "sleep", "pwd", "cd", "date", "which", "type", "command", "touch", "mkdir", "cp", "mv", "rm", "yes", "seq",
    "env", "uname", "whoami", "hostname", "basename", "dirname", "realpath", "readlink", "set", "export", "wait", "tee",
})  # fmt: skip
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox"})
# Programs that start another one, with the number of their own words before it.
_STARTERS: Final = {"env": 0, "nohup": 0, "nice": 0, "time": 0, "exec": 0, "command": 0, "timeout": 1, "stdbuf": 0}
_WITH_RUN: Final = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "rye"})
_TAKE_A_WORD: Final = frozenset({"-n", "-u", "-s", "-k", "-C", "-S"})
_ASSIGNMENT: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON: Final = lazy_pattern(r"(?:python|pypy)[0-9.]*(?:\.exe)?\Z")
_SAYS_ONLY: Final = frozenset({"--version", "-V", "--help", "-h"})
# The options with which a command names the file of its JUnit report, as the next word or after `=`.
_JUNIT_OPTIONS: Final = frozenset({
    "--junitxml", "--junit-xml", "--output-junit", "--log-junit", "--junitfile", "--junit", "--junit-output",
    "--xunit-file",
})  # fmt: skip
# The option of a shell that precedes its script, possibly joined to others: `-ec`.
_SCRIPT: Final = lazy_pattern(r"-[a-zA-Z]*c\Z")
_OPERATORS: Final = frozenset({";", "&&", "||", "|", "&"})


class Started(Value):
    """The program that does the work, and its place in the words of the command."""

    runner: Runner
    at: int


def started(words: Sequence[str]) -> Started:
    """Return the program that a command finally starts, after programs such as `env` that only start another one."""
    at = _first(words)
    name = posixpath.basename(words[at]) if at < len(words) else ""
    rest = words[at + 1 :]
    if _PYTHON.match(name):
        return _python(words, at)
    if name in {"pytest", "py.test"}:
        return Started("pytest", at)
    if name == "coverage" and rest[:1] == ["run"]:
        return _python(words, at + 1)
    if name in {"go", "cargo"} and "test" in rest:
        return Started("go" if name == "go" else "cargo", at + 1 + rest.index("test"))
    if name == "jest" or (name in {"npx", "pnpx", "bunx"} and "jest" in rest):
        return Started("jest", at if name == "jest" else at + 1 + rest.index("jest"))
    return Started("", at)


def _python(words: Sequence[str], at: int) -> Started:
    for index in range(at + 1, len(words) - 1):
        if words[index] == "-m" and words[index + 1] in {"pytest", "py.test"}:
            return Started("pytest", index + 1)
        if words[index] == "-m" and words[index + 1] == "unittest":
            return Started("unittest", index + 1)
        if words[index] in {"-c", "-m"} and words[index + 1] != "coverage":
            break
    return Started("", at)


def _first(words: Sequence[str]) -> int:
    """Return the index of the first program that does more than start another one."""
    at = 0
    while at < len(words):
        name = posixpath.basename(words[at])
        if name in _WITH_RUN and words[at + 1 : at + 2] == ["run"]:
            at += 2
        elif name in _STARTERS and at + 1 < len(words):
            at = _past_own(words, at + 1) + _STARTERS[name]
        else:
            return at
    return at


def _past_own(words: Sequence[str], at: int) -> int:
    while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.match(words[at])):
        at += 2 if words[at] in _TAKE_A_WORD else 1
    return at


def instrumented(words: Sequence[str], probe: str, report: str) -> list[str]:
    """Return the same command with reporting enabled. `probe` is the folder of our probe, `report` the file that jest
    writes.
    """
    found = started(words)
    told = [re.sub(r"(?<!\w)PYTHONPATH=", f"PYTHONPATH={probe}:", word) for word in words]
    told = [re.sub(r"\APYTEST_ADDOPTS=", f"PYTEST_ADDOPTS=-p {PROBE}.for_pytest ", word) for word in told]
    if found.runner == "unittest":
        told[found.at] = PROBE
    elif found.runner == "go" and "-json" not in told:
        told.insert(found.at + 1, "-json")
    elif found.runner == "jest":
        told += ["--json", f"--outputFile={report}"]
    return told


def junit_files(words: Sequence[str]) -> list[str]:
    """Return the JUnit report files that the command itself names, including those inside `sh -c`."""
    found = []
    for each in _simple_commands(words):
        for index, word in enumerate(each):
            option, equals, value = word.partition("=")
            if option in _JUNIT_OPTIONS and equals:
                found.append(value)
            elif option in _JUNIT_OPTIONS and index + 1 < len(each):
                found.append(each[index + 1])
    return found


def is_trivial(words: Sequence[str]) -> bool:
    """Whether the command could never fail because work is missing, or only tests whether a file exists."""
    return all(_does_nothing(each) for each in _simple_commands(words))


def _does_nothing(words: Sequence[str]) -> bool:
    at = _first(words)
    name = posixpath.basename(words[at]) if at < len(words) else "true"
    if name in _TRIVIAL:
        return True
    rest = words[at + 1 :]
    if any(word in _SAYS_ONLY for word in rest[:1]):
        return True
    return bool(_PYTHON.match(name)) and rest[:1] == ["-c"] and rest[1:2] in ([""], ["pass"])


def _simple_commands(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the command, or the commands that `sh -c` would run, as far as its words and operators show."""
    at = _first(words)
    shell = at < len(words) and posixpath.basename(words[at]) in _SHELLS
    told = next((place for place in range(at + 1, len(words)) if _SCRIPT.match(words[place])), 0) if shell else 0
    if told:
        yield from _of_script("".join(words[told + 1 : told + 2]))
        return
    yield list(words)


def _of_script(script: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(script.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = script.split()
    found: list[str] = []
    for token in tokens:
        if token in _OPERATORS:
            yield from ([found] if found else ())
            found = []
        elif found or not _ASSIGNMENT.match(token):
            found.append(token)
    yield from ([found] if found else ())
