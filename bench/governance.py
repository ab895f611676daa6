"""`check`, `list` and the start of the command, beside their peers and floors."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.governed_trees import git, long_history, write_governed
from bench.peer_trees import backlog_tasks, doorstop_items, json_of_stubs
from bench.peers import BACKLOG, CHECK_JSONSCHEMA, DOORSTOP, RUMDL, SPEC_KITTY
from bench.results import Row, row
from bench.timing import CommandFailed, Timing, measure
from bench.trees import write_tree
from bench.waiting import write_waiting
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_log

HASH_ALL = "import hashlib,pathlib\nfor p in pathlib.Path('.GOV').rglob('*.md'): hashlib.sha256(p.read_bytes())"


def rows(scratch: Path, *, large: int) -> Iterator[Row]:
    """All measurements. `large` is the number of packets of the large tree."""
    workpacket = shutil.which("workpacket")
    if workpacket is None:
        raise SystemExit("workpacket is not installed here; run `python3 tools/just.py bench`")
    yield from start_up(workpacket, scratch)
    small = scratch / "small"
    write_tree(small, 448)
    at_rest(small)
    yield from one_file(workpacket, small)
    yield from whole_tree(workpacket, small, "450 files", repeats=5)
    big = scratch / "large"
    write_tree(big, large)
    at_rest(big)
    yield from whole_tree(workpacket, big, f"{large} packets", repeats=3)
    yield from peers_on(big, scratch, large)
    yield from reports(workpacket, scratch)
    yield from lists(workpacket, scratch, big, large)
    yield from lifecycle(workpacket, scratch, large)


def start_up(workpacket: str, scratch: Path) -> Iterator[Row]:
    scratch.mkdir(parents=True, exist_ok=True)
    yield row(
        "start", "python -c pass", lambda: measure([sys.executable, "-c", "pass"], scratch, repeats=15), floor=True
    )
    yield row(
        "start", "workpacket --version", lambda: measure([workpacket, "--version"], scratch, repeats=15), target=30
    )
    yield row("start", "workpacket --help", lambda: measure([workpacket, "--help"], scratch, repeats=15), target=30)
    yield row("start", "git --version", lambda: measure(["git", "--version"], scratch, repeats=15))
    yield row(
        "start", "doorstop --version", lambda: measure([str(DOORSTOP.installed()), "--version"], scratch, repeats=3)
    )
    yield row(
        "start", "spec-kitty --version", lambda: measure([str(SPEC_KITTY.installed()), "--version"], scratch, repeats=3)
    )


def one_file(workpacket: str, tree: Path) -> Iterator[Row]:
    path = next((tree / ".GOV/task_packets/stubs").glob("*.md"))
    name = str(path.relative_to(tree))
    measure([workpacket, "check", name], tree, repeats=1)
    yield row(
        "one file", "unchanged", lambda: measure([workpacket, "check", name], tree, repeats=15), target="3x python"
    )

    def edited() -> None:
        path.write_text(path.read_text(encoding="utf-8").replace("\n## ", "\n\n## ", 1), encoding="utf-8")

    yield row("one file", "just edited", lambda: _each(edited, [workpacket, "check", name], tree), target="150 CPU")


def whole_tree(workpacket: str, tree: Path, size: str, *, repeats: int) -> Iterator[Row]:
    cold, warm = ("600", "150") if size.startswith("450") else ("5000", "150")
    check = [workpacket, "check"]

    def forget() -> None:
        shutil.rmtree(tree / ".git/workpacket", ignore_errors=True)

    yield row(size, "check, cold", lambda: _each(forget, check, tree, repeats=repeats), target=cold)
    yield row(size, "check, warm", lambda: measure(check, tree, repeats=repeats * 3), target=warm)
    hash_all = [sys.executable, "-c", HASH_ALL]
    yield row(size, "read and sha256 (floor)", lambda: measure(hash_all, tree, repeats=repeats), floor=True)


def peers_on(tree: Path, scratch: Path, size: int) -> Iterator[Row]:
    name = f"{size} packets"
    rumdl = lambda: measure([str(RUMDL.installed()), "check", "--no-cache", ".GOV"], tree, repeats=2, statuses=(0, 1))  # noqa: E731
    yield row(name, "rumdl check (generic Markdown)", rumdl)

    def judged() -> object:
        schema = Path(__file__).parent.parent / "schemas" / "stub.schema.json"
        files = json_of_stubs(tree, scratch / "json", schema)
        program = [str(CHECK_JSONSCHEMA.installed()), "--schemafile", str(scratch / "json" / "schema.json")]
        return measure([*program, *files], scratch, repeats=1)

    yield row(name, "check-jsonschema (the stubs, half of them)", judged)

    def doorstop() -> object:
        doorstop_items(scratch / "doorstop", size)
        return measure([str(DOORSTOP.installed())], scratch / "doorstop", repeats=1, statuses=(0, 1))

    yield row(name, "doorstop (items of one line)", doorstop)


def reports(workpacket: str, scratch: Path) -> Iterator[Row]:
    """A page about a thousand items: ours with their logs and the whole audit, doorstop's of items of one line."""
    tree = scratch / "report"
    write_tree(tree, 1000)
    at_rest(tree)
    adopt = [workpacket, "adopt", "--as", "bench"]
    subprocess.run(adopt, cwd=tree, check=True, capture_output=True)
    subprocess.run(["git", "add", "--all"], cwd=tree, check=True)
    names = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    subprocess.run(["git", *names, "commit", "--quiet", "--message", "bench"], cwd=tree, check=True)
    page = [workpacket, "audit", "--out", str(scratch / "audit.html")]
    yield row("1000 packets", "audit as HTML", lambda: measure(page, tree, repeats=5, statuses=(0, 1)), target=1500)

    def doorstop() -> object:
        doorstop_items(scratch / "doorstop-1000", 1000)
        command = [str(DOORSTOP.installed()), "publish", "all", str(scratch / "published")]
        return measure(command, scratch / "doorstop-1000", repeats=1, statuses=(0, 1))

    yield row("1000 packets", "doorstop publish (items of one line)", doorstop)


def lists(workpacket: str, scratch: Path, big: Path, size: int) -> Iterator[Row]:
    command = [workpacket, "list"]
    for count, target in ((100, 40), (1000, 50)):
        tree = scratch / f"list-{count}"
        write_tree(tree, count)
        at_rest(tree)
        measure(command, tree, repeats=1)
        yield row(f"{count} packets", "list, warm", _timed(command, tree), target=target)
    measure(command, big, repeats=1)
    yield row(f"{size} packets", "list, warm", lambda: measure(command, big, repeats=9), target=120)

    def backlog() -> object:
        backlog_tasks(scratch / "backlog", 1000)
        return measure([str(BACKLOG.installed()), "task", "list", "--plain"], scratch / "backlog", repeats=3)

    yield row("1000 packets", "backlog task list", backlog)


def lifecycle(workpacket: str, scratch: Path, large: int) -> Iterator[Row]:
    """Repositories in which every packet has a log: looking at all packets, moving one, and being refused."""
    for count, look, move in ((100, 40, 80), (1000, 50, 80), (large, 120, 120)):
        tree = scratch / f"governed-{count}"
        name = write_governed(tree, count)[0]
        wait_until_at_rest(tree)
        yield from _looks(workpacket, tree, count, look)
        yield from _moves(workpacket, tree, name, count, move)
    stub = next((scratch / "governed-100/.GOV/task_packets/stubs").glob("WP-*.md")).stem
    yield _refused("without a refinement", [workpacket, "create-task-packet", stub], scratch / "governed-100")
    waiting = write_waiting(workpacket, scratch / "waiting")
    wait_until_at_rest(scratch / "waiting")
    command = [workpacket, "create-task-packet", waiting]
    yield _refused("spec pinned, one approval", command, scratch / "waiting")
    yield row("lifecycle", "10,000 events verified (one process)", lambda: _verified(10_000), target=1000)
    yield row("lifecycle", "one packet of 7 events verified", lambda: _verified(7), target=10)


def _refused(why: str, command: list[str], tree: Path) -> Row:
    run = lambda: measure(command, tree, repeats=15, statuses=(3,))  # noqa: E731
    return row("lifecycle", f"create-task-packet refused: {why}", run, target="80 CPU")


def _looks(workpacket: str, tree: Path, count: int, target: int) -> Iterator[Row]:
    group = f"{count} packets"
    for words in (("board", "show"), ("next",)):
        command = [workpacket, *words]
        yield row(group, f"{' '.join(words)}, cold", _timed(command, tree, repeats=1))
        yield row(group, f"{' '.join(words)}, warm", _timed(command, tree), target=target)


def _moves(workpacket: str, tree: Path, name: str, count: int, target: int) -> Iterator[Row]:
    """Claimed and given back again and again, on a branch that is not the target of the work."""
    git(tree, "checkout", "--quiet", "-b", "work")
    claim, release = [workpacket, "claim", name], [workpacket, "release", name, "--reason", "measured"]

    def give_back() -> None:
        subprocess.run(release, cwd=tree, capture_output=True, check=False)

    yield row(f"{count} packets", "claim: one entry moved", lambda: _each(give_back, claim, tree, 5), target=target)


def _verified(count: int) -> Timing:
    """Logs of seven events, read from bytes to state."""
    files = {event.path.rpartition("/")[2]: event.encode() for event in long_history("WP-1-Parser-v1", 7)}
    logs = -(-count // len(files))
    started, cpu = time.perf_counter(), time.process_time()
    for _ in range(logs):
        if not fold(read_log("WP-1-Parser-v1", files)).sound:
            raise CommandFailed("the log was refused")
    wall = (time.perf_counter() - started) * 1e3
    return Timing(wall, wall, (time.process_time() - cpu) * 1e3)


def _timed(command: list[str], tree: Path, repeats: int = 9) -> Callable[[], object]:
    return lambda: measure(command, tree, repeats=repeats)


def _each(before: Callable[[], None], command: list[str], tree: Path, repeats: int = 9) -> object:
    """Runs `before` ahead of every measured run."""
    timings = []
    for _ in range(repeats):
        before()
        timings.append(measure(command, tree, repeats=1, statuses=(0, 1)))
    return sorted(timings, key=lambda timing: timing.wall)[len(timings) // 2]


def at_rest(tree: Path) -> None:
    """Makes a tree a repository whose files were left alone for a while, as most files were."""
    subprocess.run(["git", "init", "--quiet", str(tree)], check=True)
    wait_until_at_rest(tree)


def wait_until_at_rest(tree: Path) -> None:
    """Files count as at rest two seconds after their last change; ctime cannot be set, only waited for."""
    newest = max(path.stat().st_ctime for path in tree.rglob("*"))
    subprocess.run(["sleep", str(max(0.0, newest + 2.5 - _now(tree)))], check=True)


def _now(tree: Path) -> float:
    probe = tree / ".git" / "probe"
    probe.touch()
    now = probe.stat().st_ctime
    probe.unlink()
    return now
