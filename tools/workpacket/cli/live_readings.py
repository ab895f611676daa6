"""What the pages of `serve` show, read from one repository, and what can be done on them.

Reading is done by one thread for all repositories: a command finds its repository from the current folder, and a
process has only one current folder. The answers of commands are what `--json` prints; they are kept until the
repository changes.

Each action is a command, with the fields of its form. A page never judges whether an action is allowed: the command
does, and its refusal is shown.
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
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from workpacket.cli.main import main
from workpacket.cli.overview import card_note, leases_ending, waiting_packets, with_runs
from workpacket.cli.read_only import listed_facts
from workpacket.cli.show import runs_of, task_of
from workpacket.cli.workspace import open_workspace
from workpacket.git.objects import list_tree, read_objects
from workpacket.git.repository import Repository, commit_of, find_repository
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_logs
from workpacket.lifecycle.authorship import signatures_in, signatures_shown
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.glance import Glance, glance_at
from workpacket.lifecycle.transitions import leaving
from workpacket.model import exits
from workpacket.model.event_types import FORKED
from workpacket.model.ids import is_packet_id
from workpacket.model.lanes import LaneTable
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.report.live_page import Detail, Form, FormField, LiveCard, Site, Wanted, board_page, chosen
from workpacket.report.runs import PacketRun, mark
from workpacket.runtime.stores.place import store_path, store_url
from workpacket.shell.watch import SETTLED, SPACED, Watched

# So many answers of commands are kept for each repository, and so long, because some depend on the time.
_KEPT: Final = 300
_FRESH: Final = 20.0
_SOON: Final = 24  # hours in which the end of a lease is near
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
        # A server of runs is asked when a page is: nothing on this disk changes with them.
        store = "" if store_url() else str(store_path(self.repository.root))
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

    async def needs(self, me: str) -> dict[str, Any]:
        """Return what `report waiting` says, with titles, and whether each item waits for someone other than `me`."""

        def needs() -> dict[str, Any]:
            facts = self._now().facts
            titles = {name: packet.glance.title or "" for name, packet in facts.packets.items()}
            waiting = [
                {"id": one.id, "title": titles[one.id], "for": one.need, "since": one.since, "detail": one.detail,
                 "others": bool(me) and one.by == me}
                for one in waiting_packets(facts)
            ]  # fmt: skip
            leases = [
                {"id": name, "title": titles[name], "holder": holder, "ends": at, "others": bool(me) and holder != me}
                for name, holder, at in leases_ending(facts, _SOON)
            ]
            return {"waiting": waiting, "leases": leases}

        return await self.read(needs)

    async def answer(self, *words: str) -> dict[str, Any]:
        """Return the JSON answer of a read-only command."""
        kept = self._answers.get(words)
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
            runs = runs_of(with_runs(facts))
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
            trouble=any(run.state != "live" for run in its),
        )


def _signatures(glance: Glance, packet: PacketFacts | None, facts: Facts) -> str:
    """Return the word for the signatures of a packet; '' if the policy names no actors, so that all are unsigned."""
    if not facts.policy.actors.present:
        return ""
    verified = packet is not None and packet.verified
    return signatures_shown(signatures_in(glance, facts.policy.actors, verified=verified))


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


class Commands:
    """Runs commands that write, each in its own process, as if typed here."""

    def __init__(self, actor: str) -> None:
        self._actor = actor

    async def run(self, root: str, before: list[str], after: list[str], *, acting: bool) -> dict[str, Any]:
        """Run a command to completion, even if no page is still waiting for the answer."""
        own = ["--as", self._actor] if self._actor and acting else []
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "workpacket", *before, *own, "--json", "--", *after, cwd=root,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        return answered(out.decode(errors="replace"), err.decode(errors="replace"), process.returncode or 0)

    async def audit(self, root: str) -> bytes:
        """Return the audit page, the same one that `audit --out` writes."""
        with tempfile.TemporaryDirectory(prefix="workpacket-audit-") as folder:
            path = os.path.join(folder, "audit.html")
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "workpacket", "audit", "--out", path, cwd=root,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            _, err = await process.communicate()
            try:
                return await asyncio.to_thread(Path(path).read_bytes)
            except FileNotFoundError:
                raise WorkpacketError("internal_error", err.decode(errors="replace").strip()[-500:]) from None


_LONGEST: Final = 10_000
Given = Mapping[str, str]
Words = tuple[list[str], list[str]]


class Act(NamedTuple):
    """One action. `words` yields the command line: the words before `--` and the words after it. `acting`: the command
    takes an actor's name.
    """

    title: str
    says: str
    typed: str
    fields: Sequence[FormField]
    words: Callable[[Given], Words]
    acting: bool = True
    about: str = "packet"


_REASON: Final = FormField("reason", "Reason", required=True)
_VERDICTS: Final = ("PASS", "CHANGES", "FAIL", "OUTDATED_ONLY")


def _options(given: Given, *names: str) -> list[str]:
    return [f"--{name}={given[name]}" for name in names if given.get(name)]


def _proofs(given: Given) -> list[str]:
    return [f"--prove={line.strip()}" for line in given.get("prove", "").splitlines() if line.strip()]


def _one(command: str, *options: str) -> Callable[[Given], Words]:
    return lambda given: ([*command.split(), *_options(given, *options)], [given["id"]])


ACTS: Final[Mapping[str, Act]] = {
    "start": Act("Start", "Claims the packet and creates its branch.", "start {id}", (), _one("start")),
    "claim": Act(
        "Claim", "The packet is yours until the lease expires.", "claim {id}",
        (FormField("branch", "Branch for the work", help="if none has been prepared"),), _one("claim", "branch"),
    ),
    "renew": Act(
        "Renew the lease", "", "claim {id} --renew", (), lambda given: (["claim", "--renew"], [given["id"]])
    ),
    "done": Act(
        "Prove and submit", "Runs the proofs on the commit that is checked out.", "done {id}",
        (FormField("prove", "More proofs", lines=True, help="one per line: N=COMMAND or N=PATH:LINE"),),
        lambda given: (["done", *_proofs(given)], [given["id"]]),
    ),
    "verdict": Act(
        "Judge", "You cannot judge your own work.", "verdict {id} VERDICT",
        (
            FormField("verdict", "Verdict", required=True, choices=_VERDICTS),
            FormField("report", "Report", help="a file in the repository"),
            FormField("reference", "Location of the requested changes"),
            FormField("reason", "Reason", help="for a light packet, instead of a report"),
        ),
        lambda given: (["verdict", *_options(given, "report", "reference", "reason")], [given["id"], given["verdict"]]),
    ),
    "release": Act(
        "Release", "Someone else can then claim it.", "packet release {id} --reason TEXT", (_REASON,),
        _one("packet release", "reason"),
    ),
    "block": Act(
        "Block", "", "packet block {id} --reason TEXT --waits-for TEXT",
        (_REASON, FormField("waits-for", "What would unblock it", required=True)),
        _one("packet block", "reason", "waits-for"),
    ),
    "unblock": Act(
        "Unblock", "The work continues where it stopped.", "packet unblock {id}", (FormField("reason", "Reason"),),
        _one("packet unblock", "reason"),
    ),
    "note": Act(
        "Add a note", "Adds a note to the log, without moving the packet.", "packet note {id} TEXT",
        (FormField("text", "Note", required=True, lines=True),),
        lambda given: (["packet", "note"], [given["id"], given["text"]]),
    ),
    "cancel": Act(
        "Cancel the run", "The run stops at its next step boundary and can be resumed.", "runtime cancel {id}",
        (FormField("reason", "Reason"),), _one("runtime cancel", "reason"), acting=False, about="run",
    ),
    "answer": Act(
        "Answer", "", "resume {id} QUESTION", (FormField("answer", "Answer", required=True),),
        lambda given: (
            ["resume", f"--{given['answer']}", *_options(given, "confirm")], [given["id"], given["question"]]
        ),
        acting=False,
        about="run",
    ),
}  # fmt: skip
# An approval is a touch: its page is that of `approve --browser`.
APPROVE: Final = Act(
    "Approve by touch", "Opens the page where you read the contract and touch your key.",
    "approve {id} --browser", (), _one("approve --browser"),
)  # fmt: skip
_ANSWERS: Final = ("yes", "no", "retry", "mark-done", "compensate")
_RENEWS: Final = "IN_PROGRESS"


def packet_forms(name: str, lane: str, light: bool, lanes: LaneTable) -> Iterator[Form]:
    """Yield the actions that may be possible in a lane."""
    moves = {"done" if row.command == "submit" else row.command for row in leaving(lane, lanes)}
    if lane == "STUB":
        yield _form("approve", APPROVE, name)
    if lane == "READY_FOR_DEV" or (lane == "STUB" and light):
        yield _form("start", ACTS["start"], name)
    if lane == _RENEWS:
        yield _form("renew", ACTS["renew"], name)
    for action, act in ACTS.items():
        if act.about == "packet" and (action in moves or action == "note"):
            yield _form(action, act, name)


def run_forms(shown: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]) -> Iterator[Form]:
    name = str(shown.get("run", ""))
    for one in questions:
        choices = [each for each in one.get("answers", ()) if each in _ANSWERS]
        fields = (
            FormField("question", "", fixed=str(one.get("id", ""))),
            FormField("confirm", "", fixed=str(one.get("digest", ""))),
            FormField("answer", "Answer", required=True, choices=choices),
        )
        title = f"Answer: {one.get('question', '')}"[:200]
        form = _form("answer", ACTS["answer"], name, fields)
        yield form._replace(title=title, command=f"workpacket resume {name} {one.get('id', '')} --ANSWER")
    if shown.get("state") in {"live", "interrupted", "stopped"}:
        yield _form("cancel", ACTS["cancel"], name)


def _form(action: str, act: Act, name: str, fields: Sequence[FormField] = ()) -> Form:
    own = FormField("id", "", fixed=name)
    return Form(action, act.title, act.says, f"workpacket {act.typed.format(id=name)}", (own, *(fields or act.fields)))


def faults(act: Act, given: Given, runs: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the fields of a form, before a command is run. `runs` are the existing ids."""
    known = {"id", *(field.name for field in act.fields)} | ({"question", "confirm"} if act.about == "run" else set())
    yield from (f"the form has no field {name!r}" for name in sorted(given.keys() - known))
    name = given.get("id", "")
    if act.about == "packet" and not is_packet_id(name):
        yield "the id is not a packet id"
    if act.about == "run" and name not in runs:
        yield "there is no such run"
    for field in act.fields:
        value = given.get(field.name, "")
        if field.required and not value.strip():
            yield f"{field.label}: a value is needed"
        if field.choices and value not in field.choices:
            yield f"{field.label}: expected one of {', '.join(field.choices)}"
    if "answer" in given and given["answer"] not in _ANSWERS:
        yield "the answer is not one of the choices"
    for key, value in given.items():
        if "\0" in value or "\ufffd" in value or len(value) > _LONGEST:
            yield f"a value must be a string of at most {_LONGEST} characters"
        if key in {"question", "id"} and value.startswith("-"):
            yield "the value is not a valid id"
