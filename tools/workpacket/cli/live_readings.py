"""What the pages of `serve` show, read from one repository, and what can be done on them.

Reading is done by one thread for all repositories: a command finds its repository from the current folder, and a
process has only one current folder. The answers of commands are what `--json` prints; they are kept until the
repository changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from workpacket.approvals.policy import FIRST_OF, Trusted
from workpacket.audit.overview import Point, board_history, lane_order
from workpacket.audit.packet_row import moves_of
from workpacket.cli.live_actions import LEASE_ENDS, NEEDS_APPROVAL, waiting_forms
from workpacket.cli.main import main
from workpacket.cli.open_store import open_runtime
from workpacket.cli.overview import card_note, leases_ending, waiting_packets, with_runs
from workpacket.cli.read_only import listed_facts
from workpacket.cli.show import runs_of, task_of
from workpacket.cli.workspace import open_workspace
from workpacket.git.objects import list_tree, read_objects
from workpacket.git.repository import Repository, commit_of, find_repository
from workpacket.git.run import run_git
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_logs
from workpacket.lifecycle.authorship import signatures_in, signatures_shown
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE
from workpacket.lifecycle.glance import Glance, glance_at
from workpacket.model import exits
from workpacket.model.event_types import FORKED
from workpacket.model.ids import is_packet_id
from workpacket.model.lanes import LaneTable
from workpacket.model.layout import LOG_FOLDER
from workpacket.model.plan import Moment
from workpacket.problem import WorkpacketError
from workpacket.report.live_overview import EndingLease, Happened, LogCommit, PersonNeeded, UnmergedFile
from workpacket.report.live_packet import Lines
from workpacket.report.live_page import Detail, LiveCard, Site, Wanted, board_page, chosen
from workpacket.report.runs import PacketRun, mark
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.stores.place import store_path, store_url
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.keys import find_key, touch_key_path
from workpacket.shell.watch import SETTLED, SPACED, Watched

# So many answers of commands are kept for each repository, and so long, because some depend on the time.
_KEPT: Final = 300
_FRESH: Final = 20.0
_SOON: Final = 24  # hours in which the end of a lease is near
_PACKETS: Final = 100  # the packets with the latest events
_EVENTS: Final = 200
_DRAWN: Final = 500  # with more packets, their lanes over time are in the audit only: all logs must be read for them
_FINDINGS: Final = 50
_AROUND: Final = 2  # the lines before and after a finding
# How often to ask a server of runs for changes, in seconds, while a page is open.
_ASKED: Final = 2.0
_DONE: Final = frozenset({"proved", "not applicable"})

T = TypeVar("T")


class Board:
    """All cards of a repository as they are now, or as they were at a commit. The details that documents add to a card
    are read only when the card is shown.
    """

    def __init__(self, facts: Facts, cards: list[LiveCard], *, past: bool = False) -> None:
        self.lanes: LaneTable = facts.policy.lanes
        self.cards = cards
        self.facts = facts
        self._past = past
        self._details: dict[str, Detail] = {}

    def detail(self, card: LiveCard) -> Detail:
        if card.id not in self._details:
            self._details[card.id] = Detail() if self._past else self._read_detail(card)
        return self._details[card.id]

    def _read_detail(self, card: LiveCard) -> Detail:
        packet = self.facts.packets[card.id]
        lane = self.lanes.lane(card.lane)
        if lane is None or not lane.unfinished:
            return Detail()
        try:
            task = task_of(packet) if card.lane != "STUB" else None
            needed = packet.dependencies() if lane.waits else ()
        except (WorkpacketError, OSError):
            return Detail()  # `check` says what is wrong with the document
        done = self.facts.policy.satisfied_by
        waits = tuple(name for name in needed if self._lane_of(name) not in done)
        criteria = task.criteria if task is not None else ()
        return Detail(waits, sum(one.state in _DONE for one in criteria), len(criteria))

    def _lane_of(self, name: str) -> str:
        """Return the lane of a packet, or of the latest revision of a base id."""
        if name in self.facts.packets:
            return self.facts.lane_of(name)
        revisions = sorted(
            (one.id.revision or 1, one.lane) for one in self.facts.packets.values() if one.id.base == name
        )
        return revisions[-1][1] if revisions else ""


class Served:
    """One repository that is served. Its `version` increases with every change."""

    def __init__(self, root: str, reader: ThreadPoolExecutor) -> None:
        self.repository: Repository = find_repository(Path(root))
        self.root = str(self.repository.root)
        self.name = os.path.basename(self.root)
        self.version = 1
        self.changed = asyncio.Event()
        self._reader = reader
        # Nothing on this disk changes with the runs on a server: it is asked while a page is open.
        self._has_server = bool(store_url())
        self.listeners = 0
        self._asked_at, self._heads = 0.0, ""
        store = "" if self._has_server else str(store_path(self.repository.root))
        self._watched = Watched(self.repository, (store, f"{store}-wal") if store else ())
        self._seen = ""
        self._board: tuple[int, float, Board] | None = None
        self._earlier: tuple[str, Board] | None = None
        self._answers: dict[tuple[str, ...], tuple[int, float, dict[str, Any]]] = {}
        self._looking = asyncio.Lock()

    async def watch(self) -> None:
        """Watch for changes until cancelled: regularly, and at once when the system tells of one."""
        told = asyncio.Event()
        notices, loop = self._watched.notices, asyncio.get_running_loop()
        if notices.descriptor >= 0:
            loop.add_reader(notices.descriptor, lambda: told.set() if self._watched.hear() else None)
        try:
            while True:
                await self.look()
                await asyncio.sleep(SPACED)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._watched.pause):
                        await told.wait()
                        await asyncio.sleep(SETTLED)
                told.clear()
        finally:
            if notices.descriptor >= 0:
                loop.remove_reader(notices.descriptor)
            notices.close()

    async def look(self) -> None:
        async with self._looking:
            seen = await asyncio.to_thread(self._watched.look)
            if self._has_server and self.listeners and time.monotonic() - self._asked_at > _ASKED:
                self._asked_at = time.monotonic()
                self._heads = await self.read(_heads)
            seen += self._heads
            if self._seen and seen != self._seen:
                self.version += 1
                before, self.changed = self.changed, asyncio.Event()
                before.set()
            self._seen = seen

    # ---- what is shown ----

    async def read(self, work: Callable[[], T]) -> T:
        """Run a function in the reading thread, in the folder of this repository."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, partial(self._here, work))

    def _here(self, work: Callable[[], T]) -> T:
        os.chdir(self.root)
        return work()

    async def board(self, site: Site, wanted: Wanted) -> str:
        def render() -> str:
            board = self._past(wanted.at) if wanted.at else self._now()
            columns = chosen(board.cards, wanted, board.lanes)
            return board_page(site, columns, wanted, len(board.cards), board.detail)

        return await self.read(render)

    async def lanes(self) -> tuple[dict[str, str], LaneTable]:
        """Return the lane of each packet, and the lanes that exist."""

        def lanes() -> tuple[dict[str, str], LaneTable]:
            board = self._now()
            return {card.id: card.lane for card in board.cards}, board.lanes

        return await self.read(lanes)

    async def needs(self, me: str) -> tuple[list[PersonNeeded], list[EndingLease], list[UnmergedFile]]:
        """Return what is waiting for a person, and whether it is for someone other than `me`."""
        return await self.read(lambda: self._needs(me))

    def _needs(self, me: str) -> tuple[list[PersonNeeded], list[EndingLease], list[UnmergedFile]]:
        facts = self._now().facts
        titles = {name: packet.glance.title or "" for name, packet in facts.packets.items()}
        my_gates = gates_of_my_keys(self.repository, facts.moment)
        listed, waiting = list(waiting_packets(facts)), []
        asked = [one.id for one in listed if one.need == NEEDS_APPROVAL][:_JUDGED]
        approved = {
            name: {"need": "approved, not yet activated", "detail": f"`workpacket why {name}` says what is missing"}
            for name in _approved(self.repository, facts.moment, asked)
        }
        for one in (each._replace(**approved.get(each.id, {})) for each in listed):
            lane = facts.lane_of(one.id)
            others = bool(me) and one.by == me
            if one.need == NEEDS_APPROVAL and my_gates is not None:
                others = ACTIVATION_GATE not in my_gates
            forms = () if others else waiting_forms(one.need, one.id, lane, facts.policy.lanes)
            waiting.append(PersonNeeded(one.id, titles[one.id], one.need, one.since, one.detail, others, forms))
        leases = []
        for name, holder, at in leases_ending(facts, _SOON):
            others = bool(me) and holder != me
            leases.append(
                EndingLease(
                    name,
                    titles[name],
                    holder,
                    at,
                    others,
                    () if others else waiting_forms(LEASE_ENDS, name, "", facts.policy.lanes),
                )
            )
        return waiting, leases, list(_conflicts(self.repository))

    async def history(self) -> tuple[list[Happened], list[Point], Sequence[str], list[LogCommit]]:
        """Return the latest events of all packets, the lanes over time, and the commits that changed the logs last."""
        return await self.read(self._history)

    def _history(self) -> tuple[list[Happened], list[Point], Sequence[str], list[LogCommit]]:
        board = self._now()
        packets = sorted(board.facts.packets.values(), key=lambda one: one.glance.last, reverse=True)[:_PACKETS]
        events = [
            Happened(event.at, packet.id.text, packet.glance.title or "", event.type, event.lane_from or "",
                     event.lane_to or "", event.actor.id, bool(event.sig))
            for packet in packets for event in packet.log.events
        ]  # fmt: skip
        events.sort(key=lambda one: one.at)
        events.reverse()
        every = board.facts.packets.values()
        moves = [move for packet in every for move in moves_of(packet)] if len(every) <= _DRAWN else []
        order = lane_order(moves, board.lanes) if len(every) <= _DRAWN else ()
        points = board_history(moves, order)
        return events[:_EVENTS], points, order, list(_log_commits(self.repository))

    async def threads(self) -> list[dict[str, Any]]:
        """Return the LangGraph threads of the store. One whose name begins with a packet's id belongs to it."""
        return await self.read(_threads)

    async def found_in(self, paths: Sequence[str]) -> tuple[list[dict[str, Any]], list[Lines]]:
        """Return what `check` finds in some files, and the lines around each finding."""
        existing = [path for path in paths if os.path.isfile(os.path.join(self.root, path))]
        answer = await self.answer("check", "--", *existing) if existing else {"findings": []}
        found = answer["findings"][:_FINDINGS]
        return found, [_excerpt(self.root, str(one.get("path", "")), int(one.get("line") or 0)) for one in found]

    async def answer(self, *words: str, fresh: bool = False) -> dict[str, Any]:
        """Return the JSON answer of a read-only command."""
        kept = None if fresh else self._answers.get(words)
        if kept is None or kept[0] != self.version or time.monotonic() - kept[1] > _FRESH:
            version, at = self.version, time.monotonic()
            if len(self._answers) >= _KEPT:
                self._answers.clear()
            kept = version, at, await self.read(lambda: _answer(words))
            self._answers[words] = kept
        return kept[2]

    async def text(self, *words: str) -> str:
        return await self.read(lambda: _captured(words)[1])

    def _now(self) -> Board:
        version, at = self.version, time.monotonic()
        if self._board is None or self._board[0] != version or at - self._board[1] > _FRESH:
            with closing(open_workspace().open_cache()) as cache:
                facts = listed_facts(self.repository, cache)
            runs = runs_of(with_runs(facts), facts.policy.temporal_ui)
            glances = {name: packet.glance for name, packet in facts.packets.items()}
            self._board = version, at, Board(facts, list(_cards(facts, glances, runs)))
        return self._board[2]

    def _past(self, at: str) -> Board:
        commit = commit_of(self.repository, at)
        if self._earlier is not None and self._earlier[0] == commit:
            return self._earlier[1]
        entries = list_tree(self.repository, commit, LOG_FOLDER)
        contents = read_objects(self.repository, [entry.object_id for entry in entries])
        logs, _ = read_logs({entry.path: contents[entry.object_id] for entry in entries})
        glances = {name: glance_at(log, fold(log)) for name, log in logs.items() if name.startswith("WP-")}
        facts = self._now().facts
        self._earlier = commit, Board(facts, list(_cards(facts, glances, {}, past=True)), past=True)
        return self._earlier[1]


def _cards(
    facts: Facts, glances: Mapping[str, Glance], runs: Mapping[str, tuple[PacketRun, ...]], *, past: bool = False
) -> Iterator[LiveCard]:
    signed = facts.policy.actors.present
    for name, glance in glances.items():
        packet = None if past else facts.packets[name]
        lane = glance.lane if packet is None else packet.lane
        known = facts.policy.lanes.lane(lane)
        lease = glance.lease
        # Also after the lease has ended, which the card says: it is the person to ask.
        holder = lease.holder if lease is not None and lane == "IN_PROGRESS" else ""
        its = runs.get(name, ())
        needs = (
            "moved independently on two branches" if lane == FORKED else known.waits_for if known is not None else ""
        )
        if lane == "STUB" and glance.presented:
            needs = "needs an approval"
        yield LiveCard(
            id=name,
            base=name.rpartition("-v")[0] or name,
            lane=lane or "no log",
            title=glance.title or "",
            holder=holder,
            claimed=bool(holder) and not (signed and glance.lease_signed),
            signatures=_signatures(glance, packet, facts),
            until=(lease.expires_at or "") if lease is not None and holder else "",
            reason="" if lane == "IN_PROGRESS" else card_note(glance, signed=signed),
            needs="" if lane == "BLOCKED" else needs,
            risk=(glance.risk or "").partition(" ")[0],
            last=glance.last,
            runs=mark(its),
            pages=tuple((run.run, run.page) for run in its if run.page),
            trouble=any(run.state != "live" for run in its),
        )


def _signatures(glance: Glance, packet: PacketFacts | None, facts: Facts) -> str:
    """Return the word for the signatures of a packet; '' if the policy names no actors, so that all are unsigned."""
    if not facts.policy.actors.present:
        return ""
    verified = packet is not None and packet.verified
    return signatures_shown(signatures_in(glance, facts.policy.actors, verified=verified))


# So many packets, those that wait longest, are looked at for approvals that are not in the log yet.
_JUDGED: Final = 100


def _approved(repository: Repository, moment: Moment, names: Sequence[str]) -> frozenset[str]:
    """Return those packets whose activation gate is open: they need no further approval."""
    try:
        with open_approvals(repository, None, moment) as approvals:
            return frozenset(name for name in names if approvals.verdict(name, ACTIVATION_GATE).met)
    except WorkpacketError:
        return frozenset()


def gates_of_my_keys(repository: Repository, moment: Moment) -> frozenset[str] | None:
    """Return the gates that a key of this account may open; None if that cannot be known."""
    own = set()
    for path in ("", str(touch_key_path())):
        with suppress(WorkpacketError):
            own.add(find_key(path).public.blob)
    try:
        with open_approvals(repository, None, moment) as approvals:
            trusted = approvals.trusted
    except WorkpacketError:
        return None
    if not isinstance(trusted, Trusted):
        return None
    names = {signer.principal for blob in own - set(trusted.revoked) if (signer := trusted.signers.by_key.get(blob))}
    policy = trusted.policy
    return frozenset(
        gate
        for gate in (*policy.gates, *FIRST_OF)
        if (rules := policy.rules_of(gate)) and any(policy.holds(name, role) for name in names for role in rules.roles)
    )


_MERGING: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


def _conflicts(repository: Repository) -> Iterator[UnmergedFile]:
    if not any(os.path.exists(os.path.join(repository.git_dir, name)) for name in _MERGING):
        return
    answer = run_git(repository.root, "diff", "--name-only", "-z", "--diff-filter=U", check=False)
    yield from (UnmergedFile(path, "git could not merge it") for path in sorted(set(answer.text.split("\0")) - {""}))


def _log_commits(repository: Repository) -> Iterator[LogCommit]:
    answer = run_git(
        repository.root, "log", "-n", "30", "-z", "--format=%H%x09%cI%x09%s", "--", LOG_FOLDER, check=False
    )
    for line in answer.text.split("\0"):
        if line.count("\t") >= 2:
            yield LogCommit(*line.split("\t", 2))


def _threads() -> list[dict[str, Any]]:
    with open_runtime() as runtime:
        heads = runtime.store.heads(THREADS)
    found = []
    for head in heads:
        packet = unquote(head.stream.removeprefix(THREADS)).partition("/")[0]
        found.append({"run": head.stream, "version": head.version, "packet": packet if is_packet_id(packet) else ""})
    return found


def _heads() -> str:
    """Return a text that changes with every event of a run; '' if the server of the runs does not answer."""
    with suppress(WorkpacketError, OSError), open_runtime() as runtime:
        return blake2b(repr([(head.stream, head.version) for head in runtime.store.heads()]).encode()).hexdigest()
    return ""


def _excerpt(root: str, path: str, line: int) -> Lines:
    try:
        text = Path(root, path).read_text("utf-8", "replace") if path and line else ""
    except OSError:
        text = ""
    first = max(line - _AROUND, 1)
    return Lines(first, text.splitlines()[first - 1 : line + _AROUND])


# No module is imported from the folder of a repository: its files are what people send each other.
PYTHON: Final = (sys.executable, "-P")

# ---- commands, in this process -----------------------------------------------------------------------------------


def _captured(words: tuple[str, ...]) -> tuple[int, str, str]:
    """Run a read-only command; return its exit status, output and notes. No other thread prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*words])
    return status, out.getvalue(), err.getvalue()


def _answer(words: tuple[str, ...]) -> dict[str, Any]:
    at = words.index("--") if "--" in words else len(words)
    status, out, err = _captured((*words[:at], "--json", *words[at:]))
    return answered(out, err, status)


def answered(out: str, err: str, status: int) -> dict[str, Any]:
    """Return the JSON answer of a command, or an answer that says how the command failed."""
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        said = err.strip() or f"exit status {status}"
        hint = "run it again: an interrupted command is first completed or undone"
        problem = {"code": "internal_error", "message": said[-500:], "hint": hint}
        return {"ok": False, "exit_code": status or exits.INTERNAL, "findings": [problem], "data": {}}
    return answer


# A process that has imported what commands need, and runs one when it is told which. Half of the time of a short
# command is spent on importing. The process ends with the server, even if the server is killed.
_READY: Final = """
import json, os, sys
from workpacket.cli.main import console, load
for name in sys.argv.pop().split(","):
    load(name)
line = sys.stdin.readline()
if line:
    folder, *sys.argv[1:] = json.loads(line)
    os.chdir(folder)
    console()
"""


class Commands:
    """Runs commands that write, each in its own process, as if typed here. `ready`: names of commands for which a
    process is kept ready.
    """

    def __init__(self, actor: str, ready: Sequence[str] = ()) -> None:
        self._actor, self._names = actor, ",".join(ready)
        self._ready: asyncio.subprocess.Process | None = None
        self._preparing = asyncio.Lock()

    async def prepare(self) -> None:
        """Start the process that runs the next command."""
        async with self._preparing:
            if self._names and self._ready is None:
                self._ready = await self._started()

    async def _started(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *PYTHON, "-c", _READY, self._names, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def stop(self) -> None:
        """End the process that no command needs any more."""
        process, self._ready, self._names = self._ready, None, ""
        if process is not None:
            await process.communicate(b"")

    async def run(self, root: str, before: list[str], after: list[str], *, acting: bool) -> dict[str, Any]:
        """Run a command to completion, even if no page is still waiting for the answer."""
        own = ["--as", self._actor] if self._actor and acting else []
        words = [*before, *own, "--json", "--", *after]
        process, self._ready = self._ready, None
        if process is None or process.returncode is not None:
            process = await asyncio.create_subprocess_exec(
                *PYTHON, "-m", "workpacket", *words, cwd=root,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            out, err = await process.communicate()
        else:
            out, err = await process.communicate(f"{json.dumps([root, *words])}\n".encode())
        return answered(out.decode(errors="replace"), err.decode(errors="replace"), process.returncode or 0)

    async def audit(self, root: str) -> bytes:
        """Return the audit page, the same one that `audit --out` writes."""
        with tempfile.TemporaryDirectory(prefix="workpacket-audit-") as folder:
            path = os.path.join(folder, "audit.html")
            process = await asyncio.create_subprocess_exec(
                *PYTHON, "-m", "workpacket", "audit", "--out", path, cwd=root,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            _, err = await process.communicate()
            try:
                return await asyncio.to_thread(Path(path).read_bytes)
            except FileNotFoundError:
                raise WorkpacketError("internal_error", err.decode(errors="replace").strip()[-500:]) from None
