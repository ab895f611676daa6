"""Rows about `check`, `list`, the lifecycle and start-up, with their floors and peers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.governed_trees import commit, git, write_governed
from bench.peer_trees import backlog_tasks, doorstop_items, json_of_stubs
from bench.peers import BACKLOG, CHECK_JSONSCHEMA, DOORSTOP, RUMDL, SPEC_KITTY, Peer
from bench.rows import Row, Sampler, command, program, within_a_process
from bench.sides import ROOT, Side
from bench.signed_logs import write_signed_logs
from bench.timing import PATIENCE
from bench.trees import write_tree
from bench.waiting import NAME as WAITING
from bench.waiting import write_waiting

HASH_ALL = "import hashlib,pathlib\nfor p in pathlib.Path('.GOV').rglob('*.md'): hashlib.sha256(p.read_bytes())"
PYTHON = "python"
SMALL, LARGE = 448, 10_000


def rows() -> Iterator[Row]:
    yield from start_up()
    yield from one_file()
    yield from whole_tree(SMALL, repeats=5, cold="15x", floor=PYTHON)
    yield from whole_tree(LARGE, repeats=3, cold="13x", floor=f"hash-{LARGE}")
    yield from peers_on(LARGE)
    yield from reports()
    yield from lists()
    yield from shown()
    for count, cold, move in ((100, 250, 6), (1000, 300, 6), (LARGE, 900, 8)):
        yield from looks(count, cold)
        yield guarding(count, 60)
        yield claim(count, move)
        yield signed_claim(count, move)
    yield from signing(100)
    yield from refusals()
    yield Row("verify-10000-events", within_a_process("bench.in_process", "events", "10000"), "1000", PYTHON, repeats=3)
    yield signed_log("log-verify-10000-signed", 10_000, "2000 CPU", repeats=3)
    yield signed_log("log-verify-200000-signed", 200_000, "22000", repeats=1)
    yield signed_log("log-verify-200000-signed-memory", 200_000, "400 MB", repeats=1)
    yield Row("verify-7-events", within_a_process("bench.in_process", "events", "7"), "10", PYTHON)


def start_up() -> Iterator[Row]:
    here = _scratch
    yield Row(PYTHON, program(lambda side: [side.python, "-c", "pass"], within=here), kind="floor", repeats=15)
    for option in ("version", "help"):
        yield Row(option, command(f"--{option}", within=here), "30", PYTHON, repeats=15)
    yield Row("git-version", program(lambda _: ["git", "--version"], within=here), kind="floor", repeats=15)
    yield peer("doorstop-version", DOORSTOP, "--version", within=here, repeats=3)
    yield peer("spec-kitty-version", SPEC_KITTY, "--version", within=here, repeats=3)


def one_file() -> Iterator[Row]:
    yield Row("one-unchanged-file", _check_one(), "3x", PYTHON, repeats=15)
    yield Row("one-edited-file", _check_one(before=_edit), "4.5x", PYTHON, repeats=15)
    yield Row("one-file-without-cache", _check_one("--no-cache"), "4.5x", PYTHON, repeats=15)


def whole_tree(packets: int, *, repeats: int, cold: str, floor: str) -> Iterator[Row]:
    tree = _tree(packets)
    hash_all = program(lambda side: [side.python, "-c", HASH_ALL], within=tree)
    yield Row(f"hash-{packets}", hash_all, kind="floor", repeats=repeats)
    yield Row(f"check-{packets}-cold", command("check", within=tree, before=forget), cold, floor, repeats=repeats)
    yield Row(f"check-{packets}-warm", command("check", within=tree), "150", floor, repeats=repeats * 3)


def peers_on(packets: int) -> Iterator[Row]:
    tree, floor = _tree(packets), f"hash-{packets}"
    words = ("check", *RUMDL.options, ".GOV")
    yield peer(f"rumdl-{packets}", RUMDL, *words, within=tree, statuses=(0, 1), floor=floor, repeats=3)

    def stubs(side: Side) -> Sampler:
        source, schema = tree(side), ROOT / "schemas" / "stub.schema.json"
        files = side.made(f"json-{packets}", lambda folder: json_of_stubs(source, folder, schema))
        words = ["--schemafile", str(side.scratch / f"json-{packets}" / "schema.json"), *files]
        return peer("", CHECK_JSONSCHEMA, *words, within=_scratch).prepare(side)

    # Half of the packets are stubs.
    yield Row(f"check-jsonschema-{packets}", stubs, floor=floor, kind="peer", repeats=1)
    items = _peer_tree(f"doorstop-{packets}", lambda folder: doorstop_items(folder, packets))
    yield peer(f"doorstop-{packets}", DOORSTOP, within=items, statuses=(0, 1), floor=floor, repeats=1)


def reports() -> Iterator[Row]:
    """Render a page about many items: ours with logs and the whole audit, doorstop's with one line per item."""

    def adopted(packets: int) -> Callable[[Side], Path]:
        def make(side: Side, root: Path) -> Path:
            write_tree(root, packets)
            git(root, "init", "--quiet")
            side.run([side.workpacket, "adopt", "--as", "bench"], root)
            commit(root)
            wait_until_at_rest(root)
            return root

        return lambda side: side.made(f"audited-{packets}", lambda root: make(side, root))

    def page(packets: int) -> Callable[[Side], Sampler]:
        return command("audit", "--out", "../audit.html", within=adopted(packets), statuses=(0, 1))

    yield Row("audit-1000", page(1000), "700", PYTHON, repeats=5)
    yield Row(f"audit-{LARGE}", page(LARGE), "7000", PYTHON, repeats=1)
    yield Row(f"audit-{LARGE}-memory", page(LARGE), "400 MB", PYTHON, repeats=1)
    items = _peer_tree("doorstop-1000", lambda folder: doorstop_items(folder, 1000))
    words = ("publish", "all", "../published")
    yield peer("doorstop-publish-1000", DOORSTOP, *words, within=items, statuses=(0, 1), repeats=1)


def lists() -> Iterator[Row]:
    for count in (100, 1000, LARGE):
        yield Row(f"list-{count}", command("list", within=_tree(count)), "8x", PYTHON)
    tasks = _peer_tree("backlog-1000", lambda folder: backlog_tasks(folder, 1000))
    yield peer("backlog-list-1000", BACKLOG, "task", "list", "--plain", within=tasks, repeats=3)


def shown() -> Iterator[Row]:
    """Show light packets: one whose work is submitted, and one in progress, on its branch."""

    def within(side: Side) -> Path:
        return side.made("shown", lambda root: _write_shown(side, root))

    for name, title in (("submitted", "First"), ("in-progress", "Second")):
        yield Row(f"show-{name}-warm", command("show", f"WP-1-{title}-v1", within=within), "25 CPU", PYTHON, repeats=15)


def _write_shown(side: Side, root: Path) -> Path:
    def do(*words: str) -> None:
        side.run([side.workpacket, *words], root)

    root.mkdir()
    (root / "README.md").write_text("Parts\n", encoding="utf-8")
    commit(root)
    do("init", "--form", "light", "--commit")
    for title in ("First", "Second"):
        said = ("--criterion", "It is there.", "--refinement", "It is a file.", "--requirement", f"{title} is there.")
        do("new", title, *said, "--scope", "src/", "--prove", f"python3 -c 'open(\"src/{title}\")'")
        commit(root)
        do("start", f"WP-1-{title}-v1")
        (root / "src").mkdir(exist_ok=True)
        (root / "src" / title).write_text(f"{title}\n", encoding="utf-8")
        commit(root)
        if title == "First":
            do("done", f"WP-1-{title}-v1", "--commit")
            git(root, "checkout", "--quiet", "main")
            git(root, "merge", "--quiet", "--no-edit", f"wp/WP-1-{title}-v1")
    wait_until_at_rest(root)
    return root


def looks(count: int, cold: int) -> Iterator[Row]:
    """Measure answers about all packets, in a repository where every packet has a log."""
    within = _governed(count)
    for name, words in (("board-show", ("board", "show")), ("next", ("next",))):
        yield Row(f"{name}-{count}-cold", command(*words, within=within, before=forget), f"{cold}", PYTHON, repeats=3)
        yield Row(f"{name}-{count}-warm", command(*words, within=within), "8x", PYTHON)
    # No answer is cached, so every question is a new one.
    yield Row(f"search-{count}-warm", command("search", "giraffe", within=within), "100 CPU", PYTHON)


def guarding(count: int, target: int) -> Row:
    """Have a write refused that no packet covers, as an agent's hook does, where the policy asks for a packet."""

    def within(side: Side) -> Path:
        return side.made(f"guarded-{count}", lambda root: _write_guarded(root, count))

    refused = command("guard", "outside/of/all.py", "--as", "agent", within=within, statuses=(3,))
    return Row(f"guard-{count}-warm", refused, f"{target} CPU", PYTHON, repeats=15, must=count <= 1000)


def _write_guarded(root: Path, count: int) -> Path:
    policy = root / ".GOV/policy/policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text('[coverage]\nmode = "required"\n', "utf-8")
    write_governed(root, count)
    wait_until_at_rest(root)
    return root


def claim(count: int, target: int) -> Row:
    """Claim and release one packet repeatedly, on a branch that is not the target of the work."""
    return Row(f"claim-{count}", _claiming(count, "claimed", lambda _: ()), f"{target}x", PYTHON)


def signed_claim(count: int, target: int) -> Row:
    """The same, with an event that is signed."""
    return Row(f"claim-{count}-signed", _claiming(count, "claimed-signed", _with_event_key), f"{target}x", PYTHON)


def signed_log(name: str, events: int, target: str, *, repeats: int) -> Row:
    """Every event of a log is signed, and nothing about it is cached."""

    def within(side: Side) -> Path:
        return side.made(f"signed-{events}", lambda root: write_signed_logs(root, events))

    verify = command("log", "verify", "--signatures", within=within, before=forget)
    return Row(name, verify, target, PYTHON, repeats=repeats)


def signing(count: int) -> Iterator[Row]:
    """Measure what signing takes beyond the unsigned claim."""
    unsigned, cold = f"claim-{count}", f"claim-{count}-uncached"
    signed = _claiming(count, "claimed-signed", _with_event_key)
    yield Row(f"claim-{count}-signing", signed, "12 CPU more", unsigned, repeats=15)
    yield Row(cold, _claiming(count, "claimed", lambda _: (), cold=True), "8x", PYTHON, repeats=15)
    signed_cold = _claiming(count, "claimed-signed", _with_event_key, cold=True)
    yield Row(f"{cold}-signing", signed_cold, "35 CPU more", cold, repeats=15)


def _with_event_key(side: Side) -> tuple[str, ...]:
    key = side.scratch / "event-key"
    if not key.exists():
        side.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], side.scratch)
    return ("env", f"WORKPACKET_EVENT_KEY={key}")


def _claiming(
    count: int, tree: str, prefix: Callable[[Side], tuple[str, ...]], *, cold: bool = False
) -> Callable[[Side], Sampler]:
    within = _governed(count, tree)

    def prepare(side: Side) -> Sampler:
        name = min(path.stem for path in (within(side) / ".GOV/task_packets").glob("WP-*.md"))

        def release(side: Side, root: Path) -> None:
            side.run([side.workpacket, "release", name, "--reason", "measured"], root, statuses=range(256))
            if cold:
                forget(side, root)

        return program(lambda side: [*prefix(side), side.workpacket, "claim", name], within=within, before=release)(
            side
        )

    return prepare


def refusals() -> Iterator[Row]:
    """Measure refused activations, which people wait for most often."""

    def without_refinement(side: Side) -> Sampler:
        root = _governed(100)(side)
        stub = min(path.stem for path in (root / ".GOV/task_packets/stubs").glob("WP-*.md"))
        return command("create-task-packet", stub, within=lambda _: root, statuses=(3,))(side)

    def waiting(side: Side) -> Path:
        def make(root: Path) -> Path:
            write_waiting(side.workpacket, root)
            wait_until_at_rest(root)
            return root

        return side.made("waiting", make)

    yield Row("refused-without-refinement", without_refinement, "6x", PYTHON, repeats=15)
    pinned = command("create-task-packet", WAITING, within=waiting, statuses=(3,))
    yield Row("refused-with-pinned-spec", pinned, "6x", PYTHON, repeats=15)


def peer(
    name: str,
    tool: Peer,
    *words: str,
    within: Callable[[Side], Path],
    statuses: tuple[int, ...] = (0,),
    floor: str = "",
    repeats: int = 9,
) -> Row:
    def prepare(side: Side) -> Sampler:
        line = [str(tool.installed()), *words]
        sampler = program(lambda _: line, within=within, before=lambda *_: None, statuses=statuses, patience=PATIENCE)
        return sampler(side)

    return Row(name, prepare, floor=floor, kind="peer", repeats=repeats)


def wait_until_at_rest(repository: Path) -> None:
    """Wait until files count as unchanged, two seconds after their last change: ctime cannot be set."""
    newest = max(path.lstat().st_ctime for path in repository.rglob("*"))
    # The clock of the file system decides, and it may differ from that of the machine.
    probe = repository.with_name(f"{repository.name}.probe")
    probe.touch()
    now = probe.stat().st_ctime
    probe.unlink()
    time.sleep(max(0.0, newest + 2.5 - now))


def _check_one(*options: str, before: Callable[[Side, Path], object] | None = None) -> Callable[[Side], Sampler]:
    # Repeated edits get a separate tree, because recently changed files are read differently.
    within = _tree(SMALL, "edited" if before else "tree")

    def prepare(side: Side) -> Sampler:
        name = str(_a_stub(within(side)).relative_to(within(side)))
        return command("check", *options, name, within=within, before=before)(side)

    return prepare


def _edit(_side: Side, root: Path) -> None:
    stub = _a_stub(root)
    stub.write_text(stub.read_text(encoding="utf-8").replace("\n## ", "\n\n## ", 1), encoding="utf-8")


def _a_stub(root: Path) -> Path:
    return min((root / ".GOV/task_packets/stubs").glob("*.md"))


def forget(_side: Side, root: Path) -> None:
    """Return the caches of the package in this repository."""
    shutil.rmtree(root / ".git/workpacket", ignore_errors=True)


def _scratch(side: Side) -> Path:
    return side.scratch


def _tree(packets: int, name: str = "tree") -> Callable[[Side], Path]:
    """Make documents without a log, as in a repository before `adopt`."""

    def make(root: Path) -> Path:
        write_tree(root, packets)
        git(root, "init", "--quiet")
        wait_until_at_rest(root)
        return root

    return lambda side: side.made(f"{name}-{packets}", make)


def _governed(packets: int, name: str = "governed") -> Callable[[Side], Path]:
    def make(root: Path) -> Path:
        write_governed(root, packets)
        git(root, "checkout", "--quiet", "-b", "work")
        wait_until_at_rest(root)
        return root

    return lambda side: side.made(f"{name}-{packets}", make)


def _peer_tree(name: str, make: Callable[[Path], object]) -> Callable[[Side], Path]:
    def made(folder: Path) -> Path:
        make(folder)
        return folder

    return lambda side: side.made(name, made)
