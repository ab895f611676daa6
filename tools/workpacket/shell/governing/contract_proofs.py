"""Proofs that the contract requires: its tests are run at the commit, and again at the base with the tests of the
commit copied over it.

The test paths are copied over the base, with everything else that affects how tests are run: settings of runners, and
plugins loaded from the repository. Code that fakes a result with the work then also fakes it at the base, which shows
that the work was not needed. Results are read from a report that our probe or the runner writes, never from printed
text.
"""

from __future__ import annotations

import copy
import glob
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from workpacket.evidence.comparison import (
    ANSWERS,
    NO_CONTROLS,
    Additions,
    AskedProof,
    Controls,
    FileAdditions,
    ProofJudgement,
    Side,
    additions,
    emptied,
    judge,
)
from workpacket.evidence.runners import (
    PROBE,
    Obstacle,
    TestReport,
    as_watched,
    by_exit_code,
    instrumented,
    is_trivial,
    junit_files,
    read_cargo,
    read_go,
    read_jest,
    read_junit,
    read_probe,
    started,
)
from workpacket.git.objects import ChangedPath, added_lines, changed_paths, object_names, read_objects
from workpacket.git.repository import Repository
from workpacket.lifecycle.contract import Demand
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.lifecycle.scope import outside
from workpacket.model.canonical import Json
from workpacket.model.event_types import OUTCOMES
from workpacket.problem import Problem
from workpacket.shell.governing.evidence import (
    Cleaner,
    ProofPlace,
    ProofTree,
    give,
    lay_over,
    make_tree,
    pose_as,
    prepare,
    put,
    scratch_folder,
)
from workpacket.shell.governing.proof_process import Account, Ended, end_of, keep_output, proof_words, run_limited
from workpacket.shell.work_done import is_own
from workpacket.value import NOTHING, Value, replace

# Files that control how tests are run, wherever they are. They prove nothing, so they are the same on both sides.
RUNNER_FILES: Final = (
    "**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/pyproject.toml", "**/tox.ini", "**/setup.cfg",
    "**/noxfile.py", "**/sitecustomize.py", "**/usercustomize.py", "**/*.pth", "**/package.json", "**/jest.config.*",
    "**/vitest.config.*", "**/babel.config.*", "**/Cargo.toml", "**/.cargo/config*", "**/phpunit.xml*", "**/Makefile",
    "**/makefile", "**/GNUmakefile", "**/justfile", "**/.justfile", "**/Taskfile.y*ml", "**/.coveragerc",
)  # fmt: skip
_SITE: Final = f"import {PROBE}.child\n\n{PROBE}.child.begin(__import__('os').path.dirname(__file__))\n"
# A program of the change writes these files, so their size has to be bounded.
_MOST_REPORT: Final = 64 * 1024 * 1024
# Do not follow a link, and do not wait for the other end of a pipe.
_PLAIN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# They enter an event, which everyone keeps for ever.
_MOST_IDS: Final = 50
_LONGEST_ID: Final = 300
_SIGNALS: Final = range(129, 160)  # the exit codes with which a shell reports that a signal ended a program


def asked_of(demand: Demand) -> AskedProof:
    return AskedProof(demand.command, demand.tests, demand.paths, demand.exempt)


class ContractProof(Value):
    """One proof. `row` is its row in the event, if nothing is wrong with the proof."""

    criterion: str
    judged: ProofJudgement
    row: Mapping[str, Json]


class _Run(Value):
    """The run of one command in one tree."""

    side: Side
    length: int = 0
    milliseconds: int = 0
    output: str = ""


class ContractProver:
    """Proves criteria at one commit against one base."""

    def __init__(
        self,
        repository: Repository,
        policy: EvidencePolicy,
        cleaner: Cleaner,
        environment: Mapping[str, str],
        *,
        base: str,
        commit: str,
        account: Account | None = None,
    ) -> None:
        """Prepare proofs. `account` runs the programs, if it is not the caller's account."""
        self._account = account
        self._repository = repository
        self._policy = policy
        self._cleaner = cleaner
        self._environment = policy.environment(environment)
        self._base = base
        self._commit = commit
        self._changed = [change for change in changed_paths(repository, base, commit) if not is_own(change.path)]

    def prove(self, asked: Sequence[tuple[str, AskedProof]]) -> list[ContractProof]:
        """Prove the criteria. Each command is run once per tree, however many criteria it proves."""
        faults = {demand.command: self._fault_of(demand.command) for _, demand in asked if demand.command}
        commands = [command for command, fault in faults.items() if fault is None]
        compared = {demand.command for _, demand in asked if demand.exempt is None}
        patterns = [*self._policy.proof_paths, *(path for _, demand in asked for path in _own_paths(demand))]
        added = self._additions(patterns)
        here: dict[str, _Run] = {}
        base: dict[str, _Run] = {}
        controls: dict[str, Controls] = {}
        with scratch_folder(shared=self._account is not None) as folder:
            probe, stage = _ProbeCopy(folder, str(self._repository.root), added, self._account), ProofPlace(folder)
            tree = self._tree(stage, "work", self._commit, ()) if commands else None
            if tree is not None:
                here = {command: self._tried(command, tree, probe) for command in commands}
            asking = [command for command in commands if command in compared and not here[command].side.fault]
            if asking and tree is not None:
                plugins = {path for command in asking for path in here[command].side.report.plugins}
                over = self._laid_over(patterns, plugins)
                base_tree = self._tree(stage, "base", self._base, over)
                base = {command: self._run(command, base_tree, probe) for command in asking}
                controls = self._controls(asked, here, base, added, probe, stage, tree)
        return [
            self._proof(criterion, demand, faults.get(demand.command), here, base, added, controls)
            for criterion, demand in asked
        ]

    def _controls(
        self,
        asked: Sequence[tuple[str, AskedProof]],
        here: Mapping[str, _Run],
        base: Mapping[str, _Run],
        added: Additions,
        probe: _ProbeCopy,
        stage: ProofPlace,
        tree: ProofTree,
    ) -> dict[str, Controls]:
        """Rerun the needed tests of each command, with new functions emptied and with the work unchanged. Only a runner
        that reports to our probe can run selected tests.
        """
        needed: dict[str, set[str]] = {}
        for _, demand in asked:
            if demand.command in base and here[demand.command].side.report.runner in {"pytest", "unittest"}:
                found = judge(demand, here[demand.command].side, base[demand.command].side, added)
                needed.setdefault(demand.command, set()).update(found.needed if not found.faults else ())
        controls: dict[str, Controls] = {}
        for command, names in needed.items():
            if names:
                sides = self._emptied(command, here, names, probe, stage, added)
                stage.enter("work")
                again = self._run(command, tree, probe.limited_to(names))
                if any(ran is None or ran.status != "passed" for ran in map(again.side.report.tests.get, names)):
                    again = self._tried(command, tree, probe)  # a test may need the ones before it
                controls[command] = Controls(again.side, sides)
        return controls

    def _emptied(
        self,
        command: str,
        here: Mapping[str, _Run],
        needed: Iterable[str],
        probe: _ProbeCopy,
        stage: ProofPlace,
        added: Additions,
    ) -> tuple[Side, ...]:
        """Return the results of tests that name a new function, with that function emptied; () if all of them then
        fail.
        """
        report = here[command].side.report
        meant = {name: mentions for name in needed if (mentions := report.tests[name].mentions)}
        sides: list[Side] = []
        for answer in ANSWERS if meant else ():
            named = {each for mentions in meant.values() for each in mentions}
            texts = {file.path: text for file in added.python if (text := emptied(file, named, answer)) is not None}
            tree = self._tree(stage, stage.fresh(), self._commit, (), texts)
            run = self._run(command, tree, probe.limited_to(meant))
            sides.append(run.side)
            passed = {name for name, ran in run.side.report.tests.items() if ran.status == "passed"}
            if not passed & {*meant}:
                return ()
        return tuple(sides)

    def succeeded(self, commands: Sequence[str]) -> dict[str, bool]:
        """Return whether each command exits with 0 in a fresh tree at the commit, for criteria whose proof the contract
        leaves open.
        """
        if not commands:
            return {}
        with scratch_folder(shared=self._account is not None) as folder:
            probe = _ProbeCopy(folder, str(self._repository.root), Additions(), self._account)
            tree = self._tree(ProofPlace(folder), "work", self._commit, ())
            runs = {command: self._run(command, tree, probe).side for command in commands}
        return {command: side.exit_code == 0 and not side.fault for command, side in runs.items()}

    def _tree(
        self, stage: ProofPlace, name: str, commit: str, over: Sequence[ChangedPath], texts: Mapping[str, str] = NOTHING
    ) -> ProofTree:
        stage.enter(name)
        tree = make_tree(self._repository, stage.root, commit)
        lay_over(tree, self._commit, over)
        if commit != self._commit:
            pose_as(tree, self._commit)
        put(tree, texts)
        give(tree.root, self._account)
        prepare(tree, self._policy, self._environment, self._account)
        return tree

    def _laid_over(self, patterns: Sequence[str], plugins: Iterable[str]) -> list[ChangedPath]:
        wanted = [*patterns, *RUNNER_FILES]
        left = set(outside((change.path for change in self._changed), wanted)) - {*plugins}
        return [change for change in self._changed if change.path not in left]

    def _additions(self, patterns: Sequence[str]) -> Additions:
        tests = {change.path for change in self._changed} - {
            *outside((change.path for change in self._changed), [*patterns, *RUNNER_FILES])
        }
        changed = [change for change in self._changed if change.letter != "D"]
        paths = [change.path for change in changed if change.path not in tests]
        lines = added_lines(self._repository, self._base, self._commit, *paths) if paths else {}
        before = read_objects(self._repository, [f"{self._base}:{path}" for path in paths])
        present = read_objects(self._repository, [f"{self._commit}:{path}" for path in paths if path.endswith(".py")])
        files = []
        for path in paths:
            text = before.get(f"{self._base}:{path}")
            files.append(
                FileAdditions(
                    path,
                    lines.get(path, {}),
                    text.decode("utf-8", "replace") if text is not None else None,
                    present.get(f"{self._commit}:{path}", b"").decode("utf-8", "replace"),
                )
            )
        new = [file.path for file in files if file.before is None]
        above = {path[:at] for path in new for at, mark in enumerate(path) if mark == "/"}
        there = object_names(self._repository, [f"{self._base}:{folder}" for folder in sorted(above)])
        return additions(files, (folder for folder in above if f"{self._base}:{folder}" not in there))

    def _fault_of(self, command: str) -> Problem | None:
        """Return why a command must not be run at all."""
        words = proof_words(command)
        if is_trivial(words):
            return Problem("proof_trivial", f"{command} proves nothing: it does not depend on the work")
        program = words[started(words).at] if started(words).at < len(words) else words[0]
        found = self._in_tree(program)
        # A program that comes with the change could report anything.
        if found and any(change.path == found for change in self._changed):
            return Problem("proof_program_changed", f"{program} is {found}, which the change itself adds")
        return None

    def _in_tree(self, program: str) -> str:
        """Return the path within the repository of a program that is found by its name; '' if it is outside the
        repository."""
        if "/" in program:
            return ""
        # PATH may name a folder of the repository, such as `node_modules/.bin`.
        root = os.path.realpath(str(self._repository.root))
        for entry in self._environment.get("PATH", "").split(os.pathsep):
            place = os.path.join(root, entry, program)
            if os.path.isfile(place) and os.access(place, os.X_OK):
                path = os.path.relpath(os.path.realpath(place), root)
                return "" if path.startswith("..") else path.replace(os.sep, "/")
        return ""

    def _tried(self, command: str, tree: ProofTree, probe: _ProbeCopy) -> _Run:
        """Run the command, and run it again if a test failed: a test that fails only sometimes says nothing about the
        work.
        """
        run = self._run(command, tree, probe)
        failed = any(ran.status in {"failed", "error"} for ran in run.side.report.tests.values())
        return (
            self._run(command, tree, probe)
            if failed and run.side.exit_code and run.side.report.runner != "exit code"
            else run
        )

    def _run(self, command: str, tree: ProofTree, probe: _ProbeCopy) -> _Run:
        words = proof_words(command)
        out, environment = probe.prepare(tree.root, self._environment, "" if started(words).runner else command)
        files = _Reports(tree.root, [*junit_files(words), *self._policy.reports])
        # A report that is there already, committed by the change or left by another run, is not one of this run.
        files.remove()
        jest = os.path.join(out, "jest.json")
        told = instrumented(words, probe.folder, jest)
        try:
            ended = run_limited(
                told,
                tree.root,
                environment,
                seconds=self._policy.timeout_seconds,
                most_output=self._policy.output_bytes,
                account=self._account,
            )
        except (ValueError, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            return _Run(Side(TestReport(""), fault=f"could not be started: {why}"))
        output = ended.output.decode("utf-8", "replace")
        report = self._report(command, words, ended, output, (tree.root, out), files)
        fault = _fault(ended, self._policy.timeout_seconds)
        if not fault and report.unfinished:
            fault = "was stopped before its runner could report the results of all tests"
        side = Side(report, ended.exit_code, fault, end_of(output))
        return _Run(side, ended.length, ended.milliseconds, output)

    def _report(
        self,
        command: str,
        words: Sequence[str],
        ended: Ended,
        output: str,
        places: tuple[str, str],
        files: _Reports,
    ) -> TestReport:
        root, out = places
        runner = started(words).runner
        rows = "".join(_texts(glob.glob(os.path.join(glob.escape(out), "*.jsonl"))))
        report = read_probe(rows)
        if report is None and runner == "jest":
            report = read_jest("".join(_texts([os.path.join(out, "jest.json")])), root)
        elif report is None and runner in {"go", "cargo"}:
            report = read_go(output) if runner == "go" else read_cargo(output)
        elif report is None and runner:
            report = TestReport(runner)
        elif report is None and (found := files.read()):
            report = as_watched(read_junit(found), rows)
        if report is None:
            return as_watched(by_exit_code(command, ended.exit_code, end_of(output)), rows)
        # A runner that failed without any test failed before it found one, for example when it imported the tests.
        if not report.tests and not report.obstacles and ended.exit_code != 0:
            return replace(report, obstacles=(Obstacle("", end_of(output)),))
        return report

    def _proof(
        self,
        criterion: str,
        demand: AskedProof,
        fault: Problem | None,
        here: Mapping[str, _Run],
        base: Mapping[str, _Run],
        added: Additions,
        controls: Mapping[str, Controls],
    ) -> ContractProof:
        exempt: dict[str, Json] = {"exempt": demand.exempt} if demand.exempt is not None else {}
        if fault is not None:
            return ContractProof(criterion, ProofJudgement((fault,), {}, ""), {})
        if not demand.command:
            row: dict[str, Json] = {"criterion": criterion, "result": "met", **exempt, "commit": self._commit}
            return ContractProof(criterion, ProofJudgement((), {}, ""), row)
        run = here[demand.command]
        then = base[demand.command].side if demand.command in base else None
        judged = judge(
            demand, run.side, then if demand.exempt is None else None, added, controls.get(demand.command, NO_CONTROLS)
        )
        if judged.faults:
            return ContractProof(criterion, judged, {})
        text = self._cleaner.clean_text(run.output)
        digest = hashlib.sha256(text.encode()).hexdigest()
        keep_output(self._repository, digest, text)
        row = {
            "criterion": criterion,
            "result": "met",
            "command": demand.command,
            "commit": self._commit,
            "exit_code": run.side.exit_code,
            "log_length": run.length,
            "milliseconds": run.milliseconds,
            "log_sha256": digest,
            **exempt,
            **self._tests_row(judged, compared=then is not None),
        }
        return ContractProof(criterion, judged, row)

    def _tests_row(self, judged: ProofJudgement, *, compared: bool) -> dict[str, Json]:
        """Return ids, outcomes and digests, but never a test's output. An id that contains a secret is not recorded
        verbatim.
        """
        ids: list[Json] = [self._cleaner.clean_text(name)[:_LONGEST_ID] for name in judged.needed[:_MOST_IDS]]
        listed = "".join(f"{name}\t{each}\n" for name, each in sorted(judged.tests.items()))
        row: dict[str, Json] = {
            "runner": judged.runner,
            "needed": ids,
            "outcomes": {which: count for which in OUTCOMES if (count := judged.count(which))},
            "tests_sha256": hashlib.sha256(listed.encode("utf-8", "replace")).hexdigest(),
        }
        row |= {"base": self._base} if compared else {}
        return row | ({"execution": judged.execution} if judged.execution else {})


def _own_paths(demand: AskedProof) -> list[str]:
    """Return the paths of the tests listed in the contract."""
    files = [test.partition("::")[0] for test in demand.tests]
    return [*demand.paths, *(path for path in files if "/" in path or path.endswith((".py", ".js", ".ts")))]


def _fault(ended: Ended, seconds: float) -> str:
    if ended.limit == "time":
        return f"was stopped after {seconds} s, its time limit"
    if ended.exit_code in {126, 127}:
        return f"exited with {ended.exit_code}: its program was not found, or cannot be executed"
    if ended.exit_code < 0 or ended.exit_code in _SIGNALS:
        return f"was terminated by signal {(-ended.exit_code if ended.exit_code < 0 else ended.exit_code - 128)}"
    return ""


def _texts(places: Iterable[str]) -> list[str]:
    """Return the text of plain files only: a program in the change could put a link or a pipe in place of a report."""
    left, found = _MOST_REPORT, []
    for place in sorted(places):
        try:
            descriptor = os.open(place, os.O_RDONLY | _PLAIN)
        except OSError:
            continue
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            continue
        with open(descriptor, "rb") as file:
            found.append(file.read(left).decode("utf-8", "replace"))
        left -= len(found[-1])
    return found


class _Reports:
    """The JUnit XML files that a run wrote in a tree, except those that already existed."""

    def __init__(self, root: str, patterns: Sequence[str]) -> None:
        self._root = root
        self._patterns = [each for each in patterns if not os.path.isabs(each) and ".." not in each.split("/")]

    def _places(self) -> list[str]:
        found: set[str] = set()
        for pattern in self._patterns:
            found |= {*glob.glob(os.path.join(glob.escape(self._root), pattern), recursive=True)}
        return sorted(place for place in found if os.path.isfile(place) and self._is_inside(place))

    def _is_inside(self, place: str) -> bool:
        """Whether the path contains no link: a program in the change could have made one that leads out of the tree."""
        return os.path.realpath(place) == os.path.join(os.path.realpath(self._root), os.path.relpath(place, self._root))

    def remove(self) -> None:
        for place in self._places():
            os.unlink(place)

    def read(self) -> list[bytes]:
        return [text.encode() for text in _texts(self._places())]


class _ProbeCopy:
    """A copy of the probe, and the folders in which the probe of each run writes."""

    def __init__(self, folder: str, original: str, added: Additions, account: Account | None) -> None:
        self._account = account
        self.folder = os.path.join(folder, "probe")
        self._original = os.path.realpath(original)
        self._added = added
        self._only: Sequence[str] | None = None
        source = os.path.join(os.path.dirname(__file__), "probe")
        shutil.copytree(source, os.path.join(self.folder, PROBE), ignore=shutil.ignore_patterns("__pycache__"))
        with open(os.path.join(self.folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(_SITE)

    def limited_to(self, names: Iterable[str]) -> _ProbeCopy:
        """Return the probe, limited to these tests."""
        limited = copy.copy(self)
        limited._only = sorted(names)
        return limited

    def prepare(self, root: str, environment: Mapping[str, str], alone: str) -> tuple[str, dict[str, str]]:
        """Prepare a run. `alone` is a command whose programs are watched themselves, because it has no known runner.
        All runs use the same folders, which are initially empty.
        """
        out = os.path.join(os.path.dirname(self.folder), "run")
        shutil.rmtree(out, ignore_errors=True)
        temporary = os.path.join(out, "tmp")
        os.makedirs(temporary)
        place = os.path.join(out, "configuration.json")
        told = {
            "root": root,
            "original": self._original,
            "out": out,
            "lines": {path: list(lines) for path, lines in self._added.lines.items()},
            "data": sorted(self._added.data),
            "new": sorted(self._added.functions),
            "only": self._only,
        }
        with open(place, "w", encoding="utf-8") as file:
            json.dump(told, file)
        paths = [self.folder, *filter(None, [environment.get("PYTHONPATH", "")])]
        options = [f"-p {PROBE}.for_pytest", *filter(None, [environment.get("PYTEST_ADDOPTS", "")])]
        more = {
            "WORKPACKET_PROBE": place,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTEST_ADDOPTS": " ".join(options),
            **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary),
            **({"WORKPACKET_PROBE_TEST": alone} if alone else {}),
            **({"HOME": temporary} if self._account is not None else {}),
        }
        give(out, self._account)
        return out, {**environment, **more}
