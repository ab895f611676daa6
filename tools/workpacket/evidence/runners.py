"""The test runner that a command starts, the options that make it report, its report, and commands that prove nothing.

| runner | read from | |---|---| | pytest, unittest | lines of JSON that our probe writes (`shell/governing/probe`) | |
go test | the lines of JSON of `go test -json`, between which the compiler prints other text | | cargo test | what it
prints:
`test NAME ... ok` | | jest | the file of `jest --json --outputFile` | | anything else | JUnit XML files, or else its
exit code alone |

A truncated report or unrelated text can only result in fewer tests, never in more. Tests that were skipped, and tests
that were expected to fail, are listed but prove nothing.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.value import NOTHING, Value, replace

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
    """The program that does the work, and its position among the words of the command."""

    runner: Runner
    at: int


def started(words: Sequence[str]) -> Started:
    """Return the program that a command ultimately runs, skipping wrappers such as `env`."""
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
    """Return the index of the first program that does more than start another program."""
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
    """Return the same command with reporting enabled. `probe` is the folder of our probe, and `report` is the file that
    jest writes.
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
    """Return the JUnit report files that the command itself specifies, including those inside `sh -c`."""
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
    """Whether the command could never fail because of missing work, or only tests whether a file exists."""
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
    """Yield the command or, for `sh -c`, the commands that the words and operators of its script reveal."""
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


Status = Literal["passed", "failed", "skipped", "error"]

EXIT_CODE: Final = "exit code"


class Ran(Value):
    """One test. `error` is a failure outside the test itself, in its setup.

    `path` is its file, relative to the top of the repository; '' if the runner does not report it. `touched` is a line
    or file of the change that it executed or read, `started` are the programs that it started, and `mentions` are the
    functions and classes of the change that its code names.
    """

    status: Status
    path: str = ""
    message: str = ""
    touched: str = ""
    started: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()


class Obstacle(Value):
    """An error that kept tests from running: those whose id or path begins with `where`, or all tests if `where` is
    ''."""

    where: str
    message: str


class TestReport(Value):
    """The report of one run. `plugins` are files in the repository that changed how the runner works. `measured`:
    whether the lines that the tests execute were recorded. `unfinished`: a runner began, but was stopped before it had
    reported everything.
    """

    __test__ = False

    runner: str
    tests: Mapping[str, Ran] = NOTHING
    obstacles: tuple[Obstacle, ...] = ()
    plugins: tuple[str, ...] = ()
    measured: bool = False
    unfinished: bool = False


def by_exit_code(command: str, exit_code: int, output: str) -> TestReport:
    """Return a report with the command as its only test."""
    status: Status = "passed" if exit_code == 0 else "failed"
    return TestReport(EXIT_CODE, {command: Ran(status, message=output)})


def as_watched(report: TestReport, text: str) -> TestReport:
    """Return the report with what was observed in the repository's programs: each test is credited with the programs
    that it started.
    """
    rows = list(_json_lines(text))
    if not any(row.get("kind") == "process" for row in rows):
        return report
    touched = next((str(row.get("what")) for row in rows if row.get("kind") == "touched"), "")
    started = tuple(str(row.get("words")) for row in rows if row.get("kind") == "started")
    tests = {name: replace(ran, touched=touched, started=started) for name, ran in report.tests.items()}
    return replace(report, tests=tests, measured=True)


def read_probe(text: str) -> TestReport | None:
    """Parse the report of our probe; None if no runner with the probe was started."""
    rows = [row for row in _json_lines(text) if isinstance(row.get("kind"), str)]
    runners = [str(row.get("runner")) for row in rows if row["kind"] == "start"]
    if not runners:
        return None
    tests: dict[str, Ran] = {}
    touched = {str(row.get("test")): str(row.get("what")) for row in rows if row["kind"] == "touched"}
    for row in rows:
        name = str(row.get("id"))
        if row["kind"] == "test" and row.get("status") in {"passed", "failed", "skipped", "error"}:
            started = tuple(map(str, row.get("started", ())))
            path, message = str(row.get("path", "")), str(row.get("message", ""))
            mentions = tuple(map(str, row.get("mentions", ())))
            ran = Ran(row["status"], path, message, touched.get(name, ""), started, mentions)
            # A report with two results for one test does not come from its runner.
            twice = name in tests and tests[name].status != ran.status
            tests[name] = Ran("failed", path, "it was reported twice, with different outcomes") if twice else ran
    obstacles = [
        Obstacle(str(row.get("where", "")), str(row.get("message", ""))) for row in rows if row["kind"] == "error"
    ]
    plugins = {str(row.get("path")) for row in rows if row["kind"] == "plugin"}
    begun, ended = (sum(row["kind"] == kind and bool(row.get("main")) for row in rows) for kind in ("start", "end"))
    return TestReport(
        runners[0], tests, tuple(obstacles), tuple(sorted(plugins)), measured=True, unfinished=ended < begun
    )


def _json_lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            value = json.loads(line) if line.startswith("{") else None
        except ValueError:  # the last line of a killed process is incomplete
            continue
        if isinstance(value, dict):
            yield value


_GO_STATUS: Final[Mapping[str, Status]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def read_go(text: str) -> TestReport:
    """Parse the report of go test. A test is listed along with its subtests."""
    tests: dict[str, Ran] = {}
    said: dict[str, str] = {}
    build: list[str] = []
    for line in text.splitlines():
        row = next(_json_lines(line), None)
        if row is None:
            build.append(line)
            continue
        name = f"{row.get('Package', '')}.{row['Test']}" if row.get("Test") else ""
        action, output = str(row.get("Action")), str(row.get("Output", ""))
        if action == "build-output" or (action == "output" and not name):
            build.append(output.rstrip("\n"))
        elif action == "output":
            said[name] = said.get(name, "") + output
        elif name and action in _GO_STATUS:
            tests[name] = Ran(_GO_STATUS[action], message=said.get(name, ""))
    whole = "\n".join(build)
    return TestReport("go", tests, (Obstacle("", whole),) if "FAIL" in whole or not tests else ())


_CARGO_TEST: Final = lazy_pattern(
    r"^test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<how>ok|FAILED|ignored)", re.MULTILINE
)
_CARGO_PASSED: Final = lazy_pattern(r"^test result: \w+\. (\d+) passed", re.MULTILINE)
_CARGO_FILE: Final = lazy_pattern(r"^\s+Running (?:unittests )?(?P<path>\S+) \(", re.MULTILINE)
_CARGO_STATUS: Final[Mapping[str, Status]] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def read_cargo(text: str) -> TestReport:
    """Parse the output of cargo test. Doc tests are named after their file and line, so their names change when lines
    move."""
    files = [(match.start(), match["path"]) for match in _CARGO_FILE.finditer(text)]
    tests = {}
    for match in _CARGO_TEST.finditer(text):
        path = next((path for start, path in reversed(files) if start < match.start()), "")
        name = f"{path}::{match['name']}" if path else match["name"]
        said = text.partition(f"---- {match['name']} stdout ----\n")[2].partition("\n\n")[0]
        tests[name] = Ran(_CARGO_STATUS[match["how"]], path, said)
    counted = [int(count) for count in _CARGO_PASSED.findall(text)]
    if counted and sum(ran.status == "passed" for ran in tests.values()) > sum(counted):
        # Tests may print what looks like a result.
        return TestReport("cargo", obstacles=(Obstacle("", "it lists more passed tests than its summary counts"),))
    broken = "error: could not compile" in text or not tests
    return TestReport("cargo", tests, (Obstacle("", text),) if broken else ())


_JEST_STATUS: Final[Mapping[str, Status]] = {"passed": "passed", "failed": "failed"}


def read_jest(text: str, root: str) -> TestReport:
    """Parse the report of jest. `root` is the folder where jest was run; absolute paths are made relative to it."""
    whole = next(_json_lines(text.strip()), {})
    tests, obstacles = {}, []
    for suite in _dicts(whole.get("testResults")):
        path = _below(str(suite.get("name", "")), root)
        for row in _dicts(suite.get("assertionResults")):
            said = row.get("failureMessages")
            message = "\n".join(map(str, said)) if isinstance(said, list) else ""
            tests[f"{path}::{row.get('fullName')}"] = Ran(
                _JEST_STATUS.get(str(row.get("status")), "skipped"), path, message
            )
        if suite.get("status") == "failed" and not suite.get("assertionResults"):
            obstacles.append(Obstacle(path, str(suite.get("message", ""))))
    return TestReport("jest", tests, tuple(obstacles))


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _below(path: str, root: str) -> str:
    path = path.replace("\\", "/")
    return posixpath.normpath(path.removeprefix(root.replace("\\", "/").rstrip("/") + "/"))


# The elements of a test case that mean that it did not pass; the first one counts.
_JUNIT: Final[tuple[tuple[str, Status], ...]] = (("error", "error"), ("failure", "failed"), ("skipped", "skipped"))


def read_junit(files: Iterable[bytes]) -> TestReport:
    """Parse JUnit XML. A test case that is listed more than once counts as passed only if it passed every time."""
    tests: dict[str, Ran] = {}
    for data in files:
        for case in _test_cases(data):
            said = case.get("classname", "")
            name = f"{said}::{case.get('name', '')}" if said else case.get("name", "")
            ran = _junit_case(case)
            if name not in tests or tests[name].status == "passed":
                tests[name] = ran
    return TestReport("junit", tests)


def _junit_case(case: Any) -> Ran:
    for tag, status in _JUNIT:
        found = next((child for child in case if child.tag.rpartition("}")[2] == tag), None)
        if found is not None:
            message = "\n".join(filter(None, (found.get("type"), found.get("message"), found.text)))
            return Ran(status, case.get("file", ""), message)
    return Ran("passed", case.get("file", ""))


def _test_cases(data: bytes) -> list[Any]:
    """Return the elements; none if the data is not XML, or declares its own document type, which could refer to other
    files."""
    from xml.etree import ElementTree as ET

    if b"<!DOCTYPE" in data:
        return []
    try:
        # A report of the change's own runner, without a document type: nothing in it can be expanded.
        root = ET.fromstring(data)  # noqa: S314
    except (ET.ParseError, ValueError, LookupError):
        return []
    return [element for element in root.iter() if element.tag.rpartition("}")[2] == "testcase"]
