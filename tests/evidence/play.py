"""Makes the repository of a case: see README.md."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from git.scratch import git, make_repository
from ledger.stories import Story
from workpacket.documents.policy import PolicyDocument
from workpacket.git.repository import Repository
from workpacket.lifecycle.change_checks import SubmittedWork, submission_faults
from workpacket.lifecycle.contract import Demand, is_complete
from workpacket.lifecycle.policy import EvidencePolicy, evidence_policy
from workpacket.lifecycle.proofs import folded
from workpacket.model.events import LogEvent
from workpacket.shell.governing.contract_proofs import ContractProver, asked_of
from workpacket.shell.governing.proof_process import Account
from workpacket.text.source import Source

HERE: Final = Path(__file__).parent
HOLLOW: Final = HERE / "hollow.jsonl"
HONEST: Final = HERE / "honest.jsonl"
# Written later by somebody who looked for the gaps: hollow and honest.
ADVERSARY: Final = HERE / "adversary.jsonl"
GREETER: Final = {
    "src/greet.py": 'def hello(name):\n    return "Hello " + name\n',
    "tests/test_hello.py": (
        "from src.greet import hello\n\n\ndef test_hello():\n    assert hello('Ann').startswith('Hello Ann')\n"
    ),
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
}
# What a packet of a case may change, unless the case says otherwise.
SCOPE: Final = ("src/", "lib/", "bin/", "*.py", "*.xml", "*.ini", "*.md", "*.go", "go.mod", "*.toml")


# Plugins for pytest that happen to be installed here take most of the time of a case, and none uses them.
BARE: Final = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"


@dataclass(frozen=True)
class Case:
    id: str
    title: str
    work: dict[str, str | None]
    proofs: list[dict[str, Any]]
    expect: str
    codes: list[str] = field(default_factory=list)
    base: dict[str, str | None] = field(default_factory=dict)
    executable: list[str] = field(default_factory=list)
    policy: str = ""
    scope: list[str] = field(default_factory=lambda: list(SCOPE))
    programs: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    stray: dict[str, Any] | None = None

    @property
    def criteria(self) -> list[str]:
        return [str(proof["criterion"]) for proof in self.proofs]


def read_cases(path: Path) -> list[Case]:
    return [Case(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


@dataclass(frozen=True)
class Scene:
    """A repository whose work tree is at the commit of the work."""

    repository: Repository
    base: str
    commit: str
    environment: dict[str, str]


def needs_plugins(case: Case) -> bool:
    """Whether a command asks for processes, which a plugin gives; loading plugins takes most of the time of others."""
    return any(" -n " in proof["command"] for proof in case.proofs)


def scene(case: Case, folder: Path) -> Scene:
    root, programs = folder / "repository", folder / "programs"
    repository = make_repository(root)
    base = _commit(root, {**GREETER, **case.base}, [], "base")
    commit = _commit(root, case.work, case.executable, "work")
    programs.mkdir()
    for name, text in case.programs.items():
        (programs / name).write_text(text, "utf-8")
        (programs / name).chmod(0o755)
    first = [*case.path, str(programs), str(Path(sys.executable).parent)]
    environment = {
        "PATH": os.pathsep.join([*first, os.environ["PATH"]]),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **({} if needs_plugins(case) else {BARE: "1"}),
    }
    return Scene(repository, base, commit, environment)


def _commit(root: Path, files: dict[str, str | None], executable: list[str], message: str) -> str:
    for name, text in files.items():
        path = root / name
        if text is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(0o755 if name in executable else 0o644)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(root, "rev-parse", "HEAD")


class _Clean:
    """Takes nothing out."""

    longest = 100

    def clean_text(self, text: str) -> str:
        return text


def policy_of(case: Case) -> EvidencePolicy:
    text = f'v = 1\n[evidence]\ntests = "required"\ntimeout_seconds = 120\n{case.policy}\n'
    if "timeout_seconds" in case.policy:
        text = text.replace("timeout_seconds = 120\n", "")
    if "env =" not in case.policy:
        text += f'env = ["{BARE}"]\n'
    return evidence_policy(PolicyDocument(Source(".GOV/policy/policy.toml", text)).root)


def clean() -> _Clean:
    return _Clean()


def demands_of_case(case: Case) -> list[Demand]:
    return [_demand(proof) for proof in case.proofs]


def faults_as(case: Case, folder: Path, account: Account | None) -> list[str]:
    """What is said against a case whose commands another account runs."""
    made = scene(case, folder)
    prover = ContractProver(
        made.repository,
        policy_of(case),
        _Clean(),
        made.environment,
        base=made.base,
        commit=made.commit,
        account=account,
    )
    proved = prover.prove([(each.criterion, asked_of(each)) for each in demands_of_case(case)])
    return [fault.message for one in proved for fault in one.judged.faults]


def judged(case: Case, folder: Path) -> list[tuple[str, str]]:
    """What is said against a submission with these proofs, where it is submitted and where it is judged again: the code
    and the words of each fault."""
    made = scene(case, folder)
    prover = ContractProver(
        made.repository, policy_of(case), _Clean(), made.environment, base=made.base, commit=made.commit
    )
    demands = {folded(each.criterion): each for each in map(_demand, case.proofs)}
    complete = [each for each in demands.values() if is_complete(each)]
    proved = prover.prove([(each.criterion, asked_of(each)) for each in complete])
    found = [(fault.code, fault.message) for one in proved for fault in one.judged.faults]
    if found:
        return found
    rows = [dict(one.row) for one in proved] + ([case.stray] if case.stray else [])
    work = SubmittedWork(case.criteria, ["`src/`"], [], same=frozenset({made.commit}), demands=demands, required=True)
    return [(fault.code, fault.message) for fault in submission_faults(_submitted(made.commit, rows), work)]


def _demand(proof: dict[str, Any]) -> Demand:
    tests, paths = (tuple(proof.get(key, ())) for key in ("tests", "paths"))
    return Demand(proof["criterion"], proof["command"], tests, paths, proof.get("exempt"))


def _submitted(commit: str, rows: list[dict[str, Any]]) -> LogEvent:
    story = Story()
    story.tell("created", "activated", "claimed")
    bare: dict[str, Any] = {"criterion": "-", "result": "met"}
    return story.add("submitted", commit=commit, evidence=rows or [bare])


def shown(case: Case, faults: list[tuple[str, str]]) -> str:
    return f"{case.id} ({case.title}): expected {case.expect} {case.codes}, but {faults or 'nothing was said'}"


def is_as_expected(case: Case, faults: list[tuple[str, str]]) -> bool:
    if case.expect == "accepted":
        return not faults
    return bool({code for code, _ in faults} & set(case.codes))
