"""The real commands in real processes, killed or refused at every call that changes the disk.

`strace` strikes at the n-th call of a kind; the next command puts right what was left. Bounded, a few calls of each
command are struck, the first and the last among them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from lifecycle.governed import Governed, govern
from lifecycle.world import packet_text
from proof.share import bounded
from workpacket.lifecycle.moves import ASKED

ROOT = Path(__file__).parents[3]
CALLS = (
    "mkdir", "mkdirat", "write", "fsync", "fchmod", "ftruncate", "rename", "renameat", "renameat2", "unlink",
    "unlinkat", "rmdir",
)  # fmt: skip
FIRST, SECOND, THIRD, FOURTH = "WP-1-First-v1", "WP-1-Second-v1", "WP-1-Third-v1", "WP-1-Fourth-v1"
FIFTH, SIXTH, FOUND = "WP-1-Fifth-v1", "WP-1-Sixth-v1", "WP-1-Found-v1"
REPORT = "report.md"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"

# What is typed, and the lane in which the packet is afterwards.
COMMANDS = (
    (("new", FOURTH), FOURTH, "STUB"),
    (("create-task-packet", FIRST), FIRST, "READY_FOR_DEV"),
    (("claim", SECOND, "--branch", "b"), SECOND, "IN_PROGRESS"),
    (("submit", THIRD, "--as", "coder", "--prove", "all=true"), THIRD, "IN_REVIEW"),
    (("verdict", FIFTH, "PASS", "--report", REPORT, "--as", "judge"), FIFTH, "MERGE_PENDING"),
    (("merged", SIXTH), SIXTH, "VALIDATED"),
    (("supersede", SECOND, "--by", FIRST), SECOND, "SUPERSEDED"),
    (("adopt",), FOUND, "READY_FOR_DEV"),
    (("board", "sync"), SECOND, "READY_FOR_DEV"),
)
ERRORS = ("ENOSPC", "EIO", "EACCES")
NAMES = [words[0] for words, _, _ in COMMANDS]

WHOLE = "import sys; from workpacket.cli.main import main; sys.exit(main(sys.argv[1:]))"
# The control: the same command, with files written one after the other and no journal.
NAIVE = """
import os, sys
from workpacket.cli.main import main
from workpacket.shell.transactions.transaction import Transaction
def apply(transaction, plan):
    for change in plan.all_changes():
        os.makedirs(os.path.dirname(change.path), exist_ok=True)
        with open(change.path, "wb") as file:
            file.write(change.new)
    return ()
Transaction.apply = apply
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The template, made by the first test that needs it."""
    return [tmp_path_factory.mktemp("commands")]


@pytest.fixture
def template(
    made: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Governed, Path]:
    """A repository in which each of the commands can succeed, and a folder for copies of it."""
    governed = govern(made[0] / "template", monkeypatch, capsys)
    if not (made[0] / "template" / ".GOV").exists():
        fill(governed)
    governed.clock.turn(days=1)
    return governed, tmp_path


def fill(governed: Governed) -> None:
    governed.begin()
    for name in (SECOND, THIRD, FIFTH, SIXTH):
        governed.activate(name)
    governed.write(REPORT, "Good.\n")
    for name in (SIXTH, FIFTH):
        governed.commit("to begin with")
        governed.work(name)
        governed.done("submit", name, "--as", "coder", "--prove", "all=true")
        if name == SIXTH:
            governed.done("verdict", name, "PASS", "--report", REPORT, "--as", "judge")
        governed.commit("submitted")
        governed.git("switch", "--quiet", "main")
        governed.git("merge", "--quiet", f"wp/{name}")
    governed.stub(FIRST)
    governed.refine(FIRST)
    governed.done("refine", FIRST, "--present")
    governed.sign(FIRST)
    governed.work(THIRD)
    governed.write(f".GOV/task_packets/{FOUND}.md", packet_text(FOUND, "Ready for Dev").decode())


def prepared(governed: Governed, words: Sequence[str]) -> None:
    if words[0] in ASKED:
        governed.git("switch", "--quiet", "main")
    if words == ("board", "sync"):
        for path in (BOARD, f".GOV/task_packets/{SECOND}.md"):
            text = governed.read(path)
            token = f"[{SECOND}]** - [READY_FOR_DEV]"
            governed.write(
                path, text.replace(token, token.replace("READY_FOR_DEV", "FAIL")).replace("for Dev", "to go")
            )


def run(repository: Path, words: Sequence[str], *strace: str, program: str = WHOLE) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tools"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        # What is remembered of the policy is remembered anew in each copy, so that each makes the same calls.
        "XDG_CONFIG_HOME": str(repository / ".git" / "settings"),
    }
    command = [*strace, sys.executable, "-c", program, *words]
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)


def places(repository: Path, words: Sequence[str], log: Path) -> list[tuple[str, int]]:
    """Every call of the command that changes the disk, by its name and number."""
    traced = run(repository, words, "strace", "-o", str(log), "-e", f"trace={','.join(CALLS)}")
    assert traced.returncode == 0, traced
    counted: Counter[str] = Counter()
    found = []
    for line in log.read_text().splitlines():
        match = re.match(r"(\w+)\(", line)
        if match and match[1] in CALLS:
            counted[match[1]] += 1
            found.append((match[1], counted[match[1]]))
    return found


def some(found: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    """All of them; bounded, the first, the last and one between them."""
    return [found[0], found[len(found) // 2], found[-1]] if bounded() else found


def struck(
    repository: Path, words: Sequence[str], call: str, which: int, how: str, program: str = WHOLE
) -> subprocess.CompletedProcess[str]:
    strike = f"inject={call}:{how}:when={which}"
    return run(repository, words, "strace", "-o", os.devnull, "-e", f"trace={call}", "-e", strike, program=program)


def put_right(governed: Governed, copy: Path, monkeypatch: pytest.MonkeyPatch) -> Governed:
    """What the next command makes of it."""
    monkeypatch.chdir(copy)
    found = Governed(copy, governed.capture, governed.clock)
    found.done("board", "sync")
    assert not list((copy / ".git" / "workpacket" / "tx").glob("*"))
    return found


def ending(found: Governed, before: dict[str, bytes], whole: dict[str, bytes], name: str, lane: str) -> str:
    """'before', 'after', or what is mixed. Events differ by time and transaction, so they are judged by the state."""
    if found.files() == before:
        return "before"
    log = Path(found.root / ".GOV" / "log" / name)
    if not log.exists() or found.state(name).lane != lane:
        return f"{name} is not in {lane}, and something has changed"
    if {path for path in found.files() if "/log/" not in path} != {path for path in whole if "/log/" not in path}:
        return "other files than afterwards"
    drawn = "everything agrees with the log" in found.done("board", "sync").out
    return "after" if drawn and found("log", "verify").status == 0 else "the log and what is drawn from it differ"


def undisturbed(
    governed: Governed, folder: Path, words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[str, int]], dict[str, bytes], dict[str, bytes]]:
    """Where the command can be struck, and the files as they are before it and after it."""
    traced = Governed(copy_of(governed, folder / "traced", words), governed.capture, governed.clock)
    where = places(traced.root, words, folder / "trace")
    before = put_right(governed, copy_of(governed, folder / "before", words), monkeypatch).files()
    return where, before, traced.files()


@pytest.mark.parametrize(("words", "name", "lane"), COMMANDS, ids=NAMES)
def test_a_kill_leaves_all_or_nothing(
    template: tuple[Governed, Path],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    name: str,
    lane: str,
) -> None:
    governed, folder = template
    where, synced, whole = undisturbed(governed, folder, words, monkeypatch)
    ends: Counter[str] = Counter()
    for number, (call, which) in enumerate(some(where)):
        copy = copy_of(governed, folder / str(number), words)
        assert struck(copy, words, call, which, "signal=KILL").returncode != 0
        found = ending(put_right(governed, copy, monkeypatch), synced, whole, name, lane)
        assert found in {"before", "after"}, (call, which, found)
        ends[found] += 1
        shutil.rmtree(copy)
    print(words[0], dict(ends))
    # What `board sync` was killed at, `board sync` does again.
    assert set(ends) == ({"before"} if words == ("board", "sync") else {"before", "after"})


@pytest.mark.parametrize(("words", "name", "lane"), COMMANDS, ids=NAMES)
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_said_and_leaves_all_or_nothing(
    template: tuple[Governed, Path],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    name: str,
    lane: str,
    error: str,
) -> None:
    if bounded() and (ERRORS.index(error) - NAMES.index(words[0])) % len(ERRORS):
        return  # bounded, each command meets one of the errors
    governed, folder = template
    where, synced, whole = undisturbed(governed, folder, words, monkeypatch)
    for number, (call, which) in enumerate(where[len(where) // 2 :][:1] if bounded() else where):
        copy = copy_of(governed, folder / str(number), words)
        done = struck(copy, words, call, which, f"error={error}")
        if done.returncode != 0:
            assert re.search(r"\([a-z_]+\)$", done.stderr, re.MULTILINE), (call, which, done)
            assert re.search("^(help|next): ", done.stderr, re.MULTILINE), (call, which, done)
        found = ending(put_right(governed, copy, monkeypatch), synced, whole, name, lane)
        assert found in ({"before", "after"} if done.returncode else {"after", "before"} & {ended(words)}), (
            call,
            which,
        )
        shutil.rmtree(copy)


@pytest.mark.parametrize(("words", "name", "lane"), COMMANDS, ids=NAMES)
def test_a_second_kill_during_recovery_leaves_all_or_nothing(
    template: tuple[Governed, Path],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    name: str,
    lane: str,
) -> None:
    """Killed at the last renaming, when some files are as after it, and again at every call of the recovery."""
    governed, folder = template
    traced = copy_of(governed, folder / "traced", words)
    renamed = [place for place in places(traced, words, folder / "trace") if place[0].startswith("rename")]
    whole = Governed(folder / "traced", governed.capture, governed.clock).files()
    first = copy_of(governed, folder / "first", words)
    assert struck(first, words, *renamed[-1], "signal=KILL").returncode != 0
    where = places(shutil.copytree(first, folder / "again"), ("board", "sync"), folder / "trace")
    for number, (call, which) in enumerate(where[len(where) // 2 :][:1] if bounded() else where):
        copy = shutil.copytree(first, folder / str(number))
        struck(copy, ("board", "sync"), call, which, "signal=KILL")
        found = ending(put_right(governed, copy, monkeypatch), {}, whole, name, lane)
        assert found == "after", (call, which, found)
        shutil.rmtree(copy)


def test_without_a_journal_the_same_proof_fails(
    template: tuple[Governed, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    governed, folder = template
    words, name, lane = COMMANDS[1]
    traced = copy_of(governed, folder / "traced", words)
    log = folder / "trace"
    assert run(traced, words, "strace", "-o", str(log), "-e", "trace=write", program=NAIVE).returncode == 0
    writes = len([line for line in log.read_text().splitlines() if line.startswith("write(")])
    whole = Governed(traced, governed.capture, governed.clock).files()
    ends = set()
    for which in range(2, writes + 1, 3 if bounded() else 1):
        copy = copy_of(governed, folder / str(which), words)
        struck(copy, words, "write", which, "signal=KILL", program=NAIVE)
        ends.add(ending(Governed(copy, governed.capture, governed.clock), governed.files(), whole, name, lane))
        shutil.rmtree(copy)
    assert ends - {"before", "after"}


def copy_of(governed: Governed, folder: Path, words: Sequence[str]) -> Path:
    shutil.copytree(governed.root, folder)
    prepared(Governed(folder, governed.capture, governed.clock), words)
    return folder


def ended(words: Sequence[str]) -> str:
    """Where a command that says it is done has ended. What `board sync` does, it has done before it is compared."""
    return "before" if words == ("board", "sync") else "after"
