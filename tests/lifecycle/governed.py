"""A governed repository for one test: real git, commands run inside the test process, a clock that the test turns."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec

import pytest

from git.plain_commits import refresh
from git.scratch import all_files, commit_all, git, make_repository
from softkeys import shared_key
from workpacket.cli.main import main
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event, read_log
from workpacket.model.canonical import Json
from workpacket.model.events import Actor
from workpacket.model.plan import Moment
from workpacket.shell import actor
from workpacket.shell.governing import proof_process
from workpacket.shell.governing.proof_process import Ended

SPECIFICATION = """# Specification

## 1 Main body

### 1.1 Greeting
The program greets its user by name.

## 2 Roadmap
Later it will sing.
"""
GATE = """
[approvals.gates.activation]
roles = ["approver"]
threshold = 1
separation = []
legacy_tokens = "accepted although anyone can type them"
"""
TOKENS_COUNT = f"""
[approvals]
repository = "example/greeter"

[approvals.roles]
approver = ["ada@example.org"]

[approvals.gates.policy]
roles = ["approver"]
threshold = 1
separation = []
{GATE}"""
QA = """
[lifecycle.lanes.QA]
after = "IN_REVIEW"
before = "MERGE_PENDING"
section = "Quality Assurance"
means = "testers try it on the staging machine"
"""
STAGING = """
[lifecycle.lanes.STAGING]
after = "MERGE_PENDING"
before = "VALIDATED"
"""
ANCHOR_LINE, ROADMAP_LINE = 6, 9


@dataclass
class Clock:
    """Each look at it is a second later."""

    now: datetime = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
    count: int = 0

    def __call__(self) -> Moment:
        self.count += 1
        self.now += timedelta(seconds=1)
        tx = f"0190a5de-ac96-774b-bcce-{self.count:012x}"
        return Moment(self.now.strftime("%Y-%m-%dT%H:%M:%SZ"), tx, f"{self.count:032x}")

    def turn(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def next(self) -> str:
        """The line that says what to do next."""
        lines = [line for line in (self.out + self.err).splitlines() if line.startswith("next: ")]
        assert len(lines) == 1, self
        return lines[0].removeprefix("next: ")

    @property
    def codes(self) -> list[str]:
        return re.findall(r"\(([a-z_]+)\)$", self.err, re.MULTILINE)


class After(NamedTuple):
    """A repository after a step, and the time of its clock."""

    files: dict[str, bytes]
    now: datetime
    looks: int


# What a step made of a repository. Most tests begin with the same ones, and a copy takes a tenth of the time.
_AFTER: dict[object, After] = {}
_INDEX = ".git/index"
_ASKED_OF_THE_ENVIRONMENT = ("GIT_", "WORKPACKET_", "CI")


def staged(index: bytes) -> list[bytes]:
    """The entries of an index, without what they say of the files on this disk."""
    if index[4:8] != b"\0\0\0\2":
        return [index]  # of another version, which few tests have
    entries, at = [], 12
    for _ in range(int.from_bytes(index[8:12], "big")):
        end = index.index(b"\0", at + 62)
        entries.append(index[at + 24 : at + 28] + index[at + 40 : end])
        at += (end - at) // 8 * 8 + 8
    return entries


def digest_of(files: Mapping[str, bytes]) -> bytes:
    found = hashlib.sha256()
    for path, data in sorted(files.items()):
        read = b"".join(staged(data)) if path == _INDEX else data
        found.update(f"{path}\0{len(read)}\0".encode() + read)
    return found.digest()


def is_asked(name: str) -> bool:
    return name.startswith(_ASKED_OF_THE_ENVIRONMENT)


def settings(root: str) -> tuple[str, ...]:
    """What is in this person's settings, event keys above all, where they are not below the repository."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    if not home or home.startswith(root):
        return ()
    return tuple(sorted(f"{folder}/{name}".removeprefix(home) for folder, _, names in os.walk(home) for name in names))


@dataclass
class Governed:
    """A repository, the clock, and the commands run in it."""

    root: Path
    capture: pytest.CaptureFixture[str] | None
    clock: Clock = field(default_factory=Clock)

    def __call__(self, *words: str) -> Result:
        assert self.capture is not None
        self.capture.readouterr()
        with self.dated():
            status = main(list(words))
        return Result(status, *self.capture.readouterr())

    @contextlib.contextmanager
    def dated(self) -> Iterator[None]:
        """The commits of a command have the time of this test's clock: every run makes the same ones."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
                patch.setenv(name, self.now)
            yield

    def json(self, *words: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self(*words, "--json").out)
        return value

    def done(self, *words: str) -> Result:
        """A command that is expected to succeed."""
        result = self(*words)
        assert result.status == 0, result
        return result

    def refused(self, *words: str) -> list[str]:
        """The codes for which a gate refuses the command."""
        before = self.files()
        result = self(*words)
        assert result.status == 3, result
        assert self.files() == before
        return result.codes

    def read(self, path: str) -> str:
        return (self.root / path).read_text("utf-8")

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert old in text, (path, old)
        self.write(path, text.replace(old, new))

    def commit(self, message: str = "work") -> None:
        commit_all(self.root, message, self.now)

    def git(self, *arguments: str) -> str:
        """At the time of this test's clock: when something came onto the base is part of what is judged."""
        return git(self.root, *arguments, date=self.now)

    @property
    def now(self) -> str:
        return f"{self.clock.now:%Y-%m-%dT%H:%M:%SZ}"

    def files(self) -> dict[str, bytes]:
        """Everything but git's own folder, sorted by path."""
        return dict(sorted(all_files(self.root, of_git=False).items()))

    def state(self, name: str) -> PacketState:
        folder = self.root / ".GOV" / "log" / name
        return fold(read_log(name, {path.name: path.read_bytes() for path in folder.iterdir()}))

    # --- steps that many tests begin with ---

    def begin(self, policy: str = TOKENS_COUNT) -> None:
        self.once(self.begin_by_commands, policy)

    def once(self, step: Callable[..., None], *words: Hashable) -> None:
        """Done once for each state of the repository before it, and copied for all other tests."""
        here = str(self.root)
        asked = [(name, text.replace(here, "")) for name, text in os.environ.items() if is_asked(name)]
        files = all_files(self.root)
        name = (step.__module__, step.__qualname__, words)
        before = (name, self.clock.now, self.clock.count, tuple(sorted(asked)), settings(here), digest_of(files))
        after = _AFTER.get(before)
        if after is None:
            step(*words)
            made = all_files(self.root)
            if not any(here.encode() in data for data in made.values()):  # or else it can't be copied
                _AFTER[before] = After(made, self.clock.now, self.clock.count)
            return
        for path in files.keys() - after.files.keys():
            (self.root / path).unlink()
        for path, data in after.files.items():
            if files.get(path) != data:
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.root / path).unlink(missing_ok=True)  # git makes its objects read-only
                (self.root / path).write_bytes(data)
        self.clock.now, self.clock.count = after.now, after.looks
        if not refresh(self.root):
            self.git("update-index", "-q", "--refresh")

    def begin_by_commands(self, policy: str = TOKENS_COUNT) -> None:
        self.done("init")
        self.write(".GOV/spec/SPEC_v1.md", SPECIFICATION)
        written = self.read(".GOV/policy/policy.toml")
        kept = written.partition("[coverage]")[0] if "[coverage]" in policy else written
        self.write(".GOV/policy/policy.toml", kept + policy)
        self.write(".GOV/policy/allowed_signers", shared_key("ssh-ed25519").line("ada@example.org") + "\n")
        self.commit("Governance")

    def stub(self, name: str, *, depends: str = "") -> None:
        self.done("new", name, "--what", "Greet the user", "--why", "People like it", "--roadmap", "SPEC_v1 2")
        path = f".GOV/task_packets/stubs/{name}.md"
        self.replace(path, "- ROADMAP_POINTER:", "- RISK_TIER: LOW\n- ROADMAP_POINTER:")
        self.replace(path, "- IN_SCOPE:\n  - TODO", "- IN_SCOPE:\n  - `src/`\n  - The greeting itself.")
        self.replace(path, "(DRAFT)\n- TODO", "(DRAFT)\n- The name is printed.\n- It ends with a line feed.")
        if depends:
            self.replace(path, "BLOCKERS (DRAFT)\n- None known.", f"BLOCKERS (DRAFT)\n- {depends}")

    def refine(self, name: str, line: int = ANCHOR_LINE) -> None:
        self.done("refine", name)
        path = f".GOV/refinements/{name}.md"
        text = self.read(path)
        words = SPECIFICATION.splitlines()[line - 1]
        text = text.replace("SPEC_ANCHOR: <fill in>", f"SPEC_ANCHOR: SPEC_v1.md line {line}")
        for key, value in (("START_LINE", str(line)), ("END_LINE", str(line)), ("TOKEN", words.split()[0])):
            text = text.replace(f"CONTEXT_{key}: <fill in>", f"CONTEXT_{key}: {value}")
        text = text.replace("  <fill in>", f"  {words}").replace("VERDICT: <fill in>", "VERDICT: PASS")
        text = text.replace("[ ] PASS", "[x] PASS")
        text = text.replace("_FOUND: <fill in>", "_FOUND: NO").replace("_NEEDED: <fill in>", "_NEEDED: NO")
        self.write(path, re.sub("<fill in[^>]*>", "Nothing of that kind.", text))

    def sign(self, name: str, user: str = "ann") -> None:
        path = f".GOV/refinements/{name}.md"
        self.clock.turn(minutes=6)
        self.replace(path, "USER_REVIEW_STATUS: PENDING", "USER_REVIEW_STATUS: APPROVED")
        self.replace(path, "USER_SIGNATURE: <pending>", f"USER_SIGNATURE: {user}{self.clock.now:%d%m%Y%H%M}")
        evidence = f"USER_APPROVAL_EVIDENCE: APPROVE REFINEMENT {name}"
        self.replace(path, "USER_APPROVAL_EVIDENCE: <pending>", evidence)

    def activate(self, name: str, *, depends: str = "") -> None:
        self.once(self.activate_by_commands, name, depends)

    def activate_by_commands(self, name: str, depends: str) -> None:
        self.stub(name, depends=depends)
        self.refine(name)
        self.done("refine", name, "--present")
        self.sign(name)
        self.done("create-task-packet", name)
        path = f".GOV/task_packets/{name}.md"
        self.replace(path, "TERMS: TODO", "TERMS: x")

    def work(self, name: str, *, coder: str = "coder") -> None:
        """Claimed and committed on its branch, which stays checked out."""
        self.once(self.work_by_commands, name, coder)

    def work_by_commands(self, name: str, coder: str) -> None:
        self.done("packet", "prepare", name, "--for", coder)
        self.done("claim", name, "--as", coder)
        self.commit("claimed")
        self.git("switch", "--quiet", f"wp/{name}")
        self.git("merge", "--quiet", "main")
        self.write("src/greet.py", f"print('{name}')\n")
        self.commit("Greet")


P = ParamSpec("P")


def remembered(step: Callable[P, None]) -> Callable[P, None]:
    """A step that many tests begin with, its first argument the repository, done as `Governed.once` does it."""

    @wraps(step)
    def once(*words: P.args, **named: P.kwargs) -> None:
        @wraps(step)
        def now(*_: object) -> None:
            step(*words, **named)

        governed, *others = words
        assert isinstance(governed, Governed)
        governed.once(now, *others, *named.items())

    return once


class Quiet(Governed):
    """Governed, for fixtures that live longer than one test: what a command says is kept here, not by pytest."""

    def __call__(self, *words: str) -> Result:
        out, err = io.BytesIO(), io.StringIO()
        text = io.TextIOWrapper(out, "utf-8", write_through=True)  # `contract --canonical` writes bytes
        told = contextlib.redirect_stdout(text), contextlib.redirect_stderr(err)
        with contextlib.chdir(self.root), told[0], told[1], self.dated():
            status = main(list(words))
        return Result(status, out.getvalue().decode(), err.getvalue())


class Now(Clock):
    """The time of this machine, which the commands of another program read too."""

    def __call__(self) -> Moment:
        self.now = datetime.now(UTC)
        return super().__call__()


@dataclass
class Installed(Governed):
    """Governed, with the commands of an installed wheel, in the folder that WORKPACKET_PROGRAMS names."""

    clock: Clock = field(default_factory=Now)

    def __call__(self, *words: str) -> Result:
        line = [str(Path(os.environ["WORKPACKET_PROGRAMS"]) / "workpacket"), *words]
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(line, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    def once(self, step: Callable[..., None], *words: Hashable) -> None:
        """Each time: what an earlier test made is as old as that test."""
        step(*words)


def forge(
    governed: Governed, name: str, kind: str, data: Mapping[str, Json], attest: Sequence[str] = (), by: str = "mallory"
) -> None:
    """An event written by hand, well formed and rightly named."""
    state = governed.state(name)
    at = f"{governed.clock.now:%Y-%m-%dT%H:%M:%SZ}"
    writer = EventWriter(Actor(by, "agent"), at, "0190a5de-ac96-774b-bcce-00000000ffff", "x")
    heads = [event for event in state.history if event.id in state.heads]
    event = next_event(writer, name, NewLogEvent(kind, data, attest=attest), after=heads)
    governed.write(event.path, event.encode().decode())


def govern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str] | None) -> Governed:
    """An empty repository, with this test's clock and identity."""
    make_repository(tmp_path)
    for name in ("CI", "WORKPACKET_ACTOR", "WORKPACKET_ACTOR_KIND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".git" / "test-config"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".git" / "settings"))
    with (tmp_path / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write("[user]\n\tname = ann\n\temail = ann@example.org\n")
    monkeypatch.chdir(tmp_path)
    installed = "WORKPACKET_PROGRAMS" in os.environ
    governed = Installed(tmp_path, capture) if installed else Governed(tmp_path, capture)
    monkeypatch.setattr(actor, "read_clock", governed.clock)
    monkeypatch.setattr(proof_process, "Ended", _ended)
    return governed


def _ended(code: int, output: bytes, length: int, limit: str, milliseconds: int) -> Ended:
    """How a proof ended. Events say how long it took, so a short one always takes the same time."""
    return Ended(code, output, length, limit, milliseconds if milliseconds >= 250 else 7)
