"""A hub, eight clones and a forge, in which a story is played; commands run inside this process.

After each landing the forge judges what it made, in a work tree of the hub's main, against the main before. A red one
does not land: its author has to mend it with the commands that messages name. Whatever cannot be explained by what the
story did is a fault of the product: a red landing, a conflict in a file that no two people changed, a packet that no
command moves.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from git.scratch import copy_of, git, make_repository
from lifecycle.governed import TOKENS_COUNT, Clock, Quiet, Result
from lifecycle.landings import name_of
from lifecycle.signed import GATES, VICTOR, Signed
from simulation.story import CRLF, PARTS, WRONG_CLOCK, Step, Story, shortened
from workpacket.git.repository import commit_at, find_repository
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import read_log
from workpacket.model.plan import Moment
from workpacket.shell import actor

SPECIFICATION: Final = "# Specification\n\n## 1 Main body\n\n{}\n## 2 Roadmap\n\nLater.\n"
SECTIONS: Final = "\n".join(f"### Part {part}\n\nPart {part} is there.\n" for part in range(1, PARTS + 1))
COVERED: Final = '\n[coverage]\nmode = "required"\n'
BOARD: Final = ".GOV/roles_shared/TASK_BOARD.md"
_PLACES: Final = ("refs/heads/", "refs/remotes/", "")
# Work on a packet in one of these lanes belongs to no one, and may not land.
NOT_WORKED: Final = {"STUB", "READY_FOR_DEV", "BLOCKED", "ABANDONED", "SUPERSEDED"}
LANES: Final = ("IN_PROGRESS", "IN_REVIEW", "READY_FOR_DEV", "BLOCKED", "MERGE_PENDING", "ABANDONED")
# What a packet that two people moved at once may be refused for, where their documents contradict each other too.
FORKED: Final = {
    "fork",
    "move",
    "lane",
    "held",
    "claim",
    "approv",
    "contract",
    "event",
    "log",
    "board",
    "registry",
    "status",
}
ENDS: Final = {"VALIDATED", "ABANDONED", "SUPERSEDED", "OUTDATED_ONLY"}
CLOSER: Final = 8
PATIENCE: Final = 14  # moves that it may take to bring a packet to its end


class Fault(AssertionError):
    """The product did something that the story does not explain."""


@dataclass
class Watch(Clock):
    """The time of whoever looks: the clock of one person is wrong."""

    off: float = 0

    def __call__(self) -> Moment:
        self.count += 1
        self.now += timedelta(seconds=1)
        tx = f"0190a5de-ac96-774b-bcce-{self.count:012x}"
        return Moment((self.now + timedelta(seconds=self.off)).strftime("%Y-%m-%dT%H:%M:%SZ"), tx, f"{self.count:032x}")


class Templates:
    """For each form of packets, a hub with governance in it and a clone, made once and copied for each story."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, Clock] = {}

    def make(self, form: str) -> Clock:
        if form not in self._made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_CONFIG_HOME", str(self.folder / form / "settings"))
                self._made[form] = self._make(form, self.folder / form, patch)
        return self._made[form]

    def _make(self, form: str, folder: Path, patch: pytest.MonkeyPatch) -> Clock:
        source = folder / "source"
        make_repository(source)
        with (source / ".git/config").open("a", encoding="utf-8") as config:
            config.write("[user]\n\tname = ann\n\temail = ann@example.org\n[gc]\n\tauto = 0\n")
        governed = Quiet(source, None, Clock())
        patch.setattr(actor, "read_clock", governed.clock)
        patch.chdir(source)
        if form == "light":
            governed.done("init")
            governed.commit("Governance")
        elif form == "signed":
            Signed(governed, folder / "home").begin(gates=GATES | {"amendment": "approver"}, more=COVERED)
        else:
            board = '\n[board]\ncommit = "branch"\n' if form == "branch" else ""
            governed.begin(policy=f"{TOKENS_COUNT}{board}")
        if form in ("light", "signed"):
            governed.write(".GOV/spec/SPEC_v1.md", SPECIFICATION.format(SECTIONS))
        else:
            for part in range(1, PARTS + 1):
                governed.activate_by_commands(name_of(part), "")
        governed.commit("Ready")
        git(folder, "clone", "--quiet", "--bare", str(source), str(folder / "hub.git"))
        git(folder, "clone", "--quiet", str(folder / "hub.git"), str(folder / "clone"))
        return governed.clock


@dataclass
class Person:
    """Someone with a clone. After a rebase, the next push replaces the branch."""

    team: Team
    number: int
    root: Path
    rebased: bool = False
    fetched: int = 0

    @property
    def name(self) -> str:
        return f"p{self.number}"

    def run(self, *words: str) -> Result:
        self.team.clock.off = self.team.story.wrong_by if self.number == WRONG_CLOCK else 0
        try:
            result = Quiet(self.root, None, self.team.clock)(*words)
        finally:
            self.team.clock.off = 0
        said = [line for line in (result.err or result.out).splitlines() if line.strip()]
        told = " | ".join(said[:3] if result.status else said[-1:])
        self.team.note(f"{self.name}$ workpacket {' '.join(words)} -> {result.status} {told}")
        if result.status == 9 or "Traceback" in result.err:
            raise Fault(f"internal error: workpacket {' '.join(words)}: {result.err}")
        return result

    def git(self, *words: str, check: bool = True) -> str:
        self.team.note(f"{self.name}$ git {' '.join(words)}")
        return git(self.root, *words, check=check, date=self.team.date)

    def commit(self, message: str) -> None:
        """Everything, if there is something."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message, check=False)

    def lead(self, *words: str) -> Result:
        """A command, tried again after each of the commands that its refusal names."""
        result = self.run(*words)
        for _ in range(3):
            hints = re.findall(
                r"^ *-> (git fetch [^\n;]+|workpacket packet prepare [^\n;]+)$", result.err, re.MULTILINE
            )
            if result.status == 0 or not hints:
                break
            for hint in hints:
                program, *rest = hint.split()
                self.git(*rest, check=False) if program == "git" else self.run(*rest)
            result = self.run(*words)
        return result

    def fetch_submitted(self, part: int) -> None:
        """After a squash, the commit to judge is in no branch; forges hand it out by its id, as the message says."""
        state = self.state(part)
        said = (
            [event.text("commit") for event in state.history if event.type == "submitted"] if state is not None else []
        )
        commit = said[-1] if said else None
        if commit and git(self.root, "cat-file", "-t", commit, check=False) != "commit":
            self.git("fetch", "--quiet", "origin", commit)

    def take_back(self) -> None:
        self.git("checkout", "--quiet", "HEAD", "--", ".")
        self.git("clean", "--quiet", "-fd")

    def state(self, part: int) -> PacketState | None:
        """The packet as the log of this clone has it."""
        there = (self.root / ".GOV/log" / name_of(part)).is_dir()
        return Quiet(self.root, None, self.team.clock).state(name_of(part)) if there else None

    def at(self, ref: str) -> str:
        """The commit of a reference, '' if there is none; read without starting git."""
        return commit_at(find_repository(self.root, {}), ref) or ""

    def fetch(self) -> None:
        if self.fetched != self.team.pushes:
            self.git("fetch", "--quiet", "--prune")
            self.fetched = self.team.pushes

    def enter(self, part: int, *, stale: bool = False) -> bool:
        """Check out the branch of a packet; False if there is none."""
        branch = f"wp/{name_of(part)}"
        here, there = f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"
        if not stale:
            self.fetch()
        if self.at(here):
            self.switch(branch)
            if stale:
                return True
            if self.at(there):
                self.merge(there)
            elif self.at(here) in self.team.gone:
                self.git("switch", "--quiet", "-C", branch, "--no-track", "origin/main")
            else:
                self.merge("origin/main")
            return True
        if self.at(there):
            self.git("switch", "--quiet", "--create", branch, there)
            return True
        if not self.team.of_packet(self.team.events(self.root, "origin/main"), part):
            return False
        self.git("switch", "--quiet", "--create", branch, "--no-track", "origin/main")
        return True

    def switch(self, branch: str) -> None:
        if (self.root / ".git/HEAD").read_text() != f"ref: refs/heads/{branch}\n":
            self.git("switch", "--quiet", branch)

    def merge(self, ref: str) -> None:
        before = self.at("HEAD")
        self.team.forked |= self.team.on_both_sides(self.root, before, ref)
        if self.at(ref if ref.startswith("refs/") else f"refs/remotes/{ref}") == before:
            return
        self.git("merge", "--quiet", "--no-edit", ref, check=False)
        if (self.root / ".git/MERGE_HEAD").exists():
            self.settle(before, ref)
            self.git("commit", "--quiet", "--no-edit")

    def settle(self, ours: str, theirs: str) -> None:
        """Settle a conflict by `board sync`; only where both sides changed the same packet may a person have to."""
        self.run("board", "sync", "--as", self.name)
        left = [path for path in self.git("diff", "--name-only", "--diff-filter=U").split() if self.marked(path)]
        both = self.team.on_both_sides(self.root, ours, theirs)
        for path in left:
            if path.startswith(".GOV/") and not any(name in path for name in both):
                raise Fault(f"conflict that board sync leaves: {path}; on both sides: {sorted(both)}")
            self.git("checkout", "--theirs", "--", path)
        self.git("add", "--all")

    def marked(self, path: str) -> bool:
        return (self.root / path).exists() and b"<<<<<<< " in (self.root / path).read_bytes()

    def push(self) -> None:
        branch = (self.root / ".git/HEAD").read_text().strip().removeprefix("ref: refs/heads/")
        there = f"refs/remotes/origin/{branch}"
        if not branch.startswith("wp/") or self.at(there) == self.at("HEAD"):
            return
        for _ in range(3):
            self.git("push", "--quiet", "origin", f"{'+' if self.rebased else ''}HEAD:refs/heads/{branch}", check=False)
            self.team.pushes += 1
            if self.at(there) == self.at("HEAD"):
                break
            self.fetch()
            self.merge(there)


class Team:
    """The hub, the forge and the people of one story."""

    def __init__(self, folder: Path, templates: Templates, story: Story) -> None:
        folder.mkdir()
        self.story = story
        self.folder = folder
        self.made = templates.folder / story.form
        began = templates.make(story.form)
        self.clock = Watch(began.now + timedelta(hours=1), began.count)
        self.told: list[str] = []
        self.edited: set[str] = set()
        self.forked: set[str] = set()
        self.gone: set[str] = set()
        self.landed = self.refused = self.reds = 0
        self.pushes = 1
        self._events: dict[str, set[str]] = {}
        copy_of(self.made / "hub.git", folder / "hub.git")
        git(folder / "hub.git", "config", "uploadpack.allowAnySHA1InWant", "true")
        git(folder / "hub.git", "worktree", "add", "--quiet", str(folder / "forge"), "main")
        self.forge = Person(self, -1, folder / "forge")
        self._people: dict[int, Person] = {}

    @property
    def date(self) -> str:
        return f"{self.clock.now:%Y-%m-%dT%H:%M:%SZ}"

    def note(self, line: str) -> None:
        self.told.append(line)

    def person(self, number: int) -> Person:
        if number not in self._people:
            root = self.folder / f"p{number}"
            copy_of(self.made / "clone", root)
            config = root / ".git/config"
            text = config.read_text().replace(str(self.made / "hub.git"), str(self.folder / "hub.git"))
            text += f"[user]\n\tname = p{number}\n\temail = p{number}@example.org\n[gc]\n\tauto = 0\n"
            text += "[core]\n\tautocrlf = true\n" if number == CRLF else ""
            config.write_text(text)
            self._people[number] = Person(self, number, root)
            if number == CRLF:
                for path in git(root, "ls-files").splitlines():
                    (root / path).unlink()
                git(root, "checkout", "--quiet", "--force", "HEAD")
            git(root, "update-index", "-q", "--refresh", check=False)
        return self._people[number]

    # --- what the logs of two commits have ---

    def events(self, root: Path, commit: str) -> set[str]:
        repository = find_repository(root, {})
        found = next((at for at in (commit_at(repository, f"{place}{commit}") for place in _PLACES) if at), commit)
        if found not in self._events:
            self._events[found] = set(git(root, "ls-tree", "-r", "--name-only", found, "--", ".GOV/log").splitlines())
        return self._events[found]

    @staticmethod
    def of_packet(events: set[str], part: int) -> set[str]:
        return {path for path in events if path.startswith(f".GOV/log/{name_of(part)}/")}

    def on_both_sides(self, root: Path, ours: str, theirs: str) -> set[str]:
        """The packets of which each side has an event that the other has not."""
        mine, other = self.events(root, ours), self.events(root, theirs)
        return {path.split("/")[2] for path in mine - other} & {path.split("/")[2] for path in other - mine}

    # --- the story ---

    def play(self) -> None:
        for step in self.story.steps:
            self.note(f"--- {step}")
            self.clock.turn(minutes=11)
            getattr(self, f"_{step.does}")(self.person(step.who), step)

        for part in sorted({step.part for step in self.story.steps}):
            if self.knows(part):
                self.note(f"--- the end of {part}")
                self._end(self.person(CLOSER), part)
        if self.forge.run("check").status:
            raise Fault("at the end, check is red")

    def _end(self, person: Person, part: int) -> None:
        """Bring a packet to its end by commands, in a fresh clone."""
        name = name_of(part)
        for _ in range(PATIENCE):
            self.clock.turn(minutes=11)
            if not person.enter(part):
                return
            person.merge("origin/main")
            if name in self.forked or f"wp/{name}" in self.edited:
                self.mend(person, part)
            person.push()
            before = person.at("HEAD"), self.forge.at("HEAD")
            state = person.state(part)
            lane = state.lane if state is not None else "STUB"
            holder = state.lease.holder if state is not None and state.lease is not None else person.name
            if lane in ENDS or (lane == "MERGE_PENDING" and self.story.form in ("light", "signed")):
                pending = person.git("diff", "--name-only", "origin/main", "HEAD")
                if pending and self.land(person, part, "squash"):
                    continue
                if pending:
                    raise Fault(f"stuck: {name} in {lane} does not land")
                shown = self.forge.run("show", name).out
                if any(f"is {end}" in shown for end in ENDS):
                    return
                if not self._reopened(person, name, holder):
                    raise Fault(f"stuck: {name} has landed in {lane}, but: {shown.splitlines()[0]}")
                continue
            self._move(person, part, lane, holder)
            person.push()
            if before == (person.at("HEAD"), self.forge.at("HEAD")):
                raise Fault(f"stuck: {name} in {lane}, held by {holder}: {self.told[-6:]}")
        raise Fault(f"stuck: {name} did not come to its end")

    def _reopened(self, person: Person, name: str, holder: str) -> bool:
        """What landed is not what was judged, because somebody settled a conflict: the message says to reopen it."""
        if "(landed_otherwise)" not in person.run("packet", "merged", name).err:
            return False
        reason = ("--reason", "It landed otherwise", "--as", holder)
        reopened = person.run("packet", "reopen", name, *reason).status == 0
        person.commit("Reopened")
        return reopened

    def _move(self, person: Person, part: int, lane: str, holder: str) -> None:
        step, name, light = Step(person.number, "", part), name_of(part), self.story.form in ("light", "signed")
        if lane == "STUB":
            self.approve(person, "activation", part)
            person.lead("start", name)
            person.commit("Started")
        elif lane == "READY_FOR_DEV":
            self._claim(person, step)
        elif lane == "BLOCKED":
            self._unblock(person, step)
        elif lane == "IN_PROGRESS":
            self._work(person, step)
            words = ("done",) if light else ("submit",)
            person.lead(*words, name, "--prove", "all=true", "--as", holder)
            person.commit("Done")
        elif lane == "IN_REVIEW":
            self._verdict(person, step)
        else:
            self.land(person, part, "merge")
            self._record(person, step)

    def _branch(self, step: Step) -> str:
        return f"wp/{name_of(step.part)}"

    def _new(self, person: Person, step: Step) -> None:
        if self.story.form in ("full", "branch") or self.knows(step.part):
            return
        person.fetch()
        person.git("switch", "--quiet", "--create", self._branch(step), "--no-track", "origin/main")
        made = person.run(
            "new", f"Part {step.part}", "--form", "light", "--criterion", f"Part {step.part} is there.",
            "--scope", f"src/part_{step.part}.txt", "--anchor", f"Part {step.part}",
            "--refinement", f"Part {step.part} is a file of its own.",
        )  # fmt: skip
        if made.status:
            raise Fault(f"new: {made}")
        self.approve(person, "activation", step.part)
        person.commit(f"Part {step.part}")
        person.push()

    def knows(self, part: int) -> bool:
        hub = self.folder / "forge"
        there = commit_at(find_repository(self.folder / "forge", {}), f"refs/heads/wp/{name_of(part)}")
        return bool(there or self.of_packet(self.events(hub, "main"), part))

    def approve(self, person: Person, gate: str, part: int, who: str = "", **terms: str) -> None:
        if self.story.form != "signed":
            return
        signed = Signed(Quiet(person.root, None, self.clock), self.made / "home")
        with suppress_refusal(self, f"{gate} of {part}"):
            signed.approve(gate, **({"who": who} if who else {}), name=name_of(part), **terms)

    def _command(self, person: Person, step: Step, *words: str) -> Result | None:
        if not person.enter(step.part, stale=step.stale):
            return None
        result = person.lead(*words)
        person.commit(" ".join(words[:2]))
        return result

    def _start(self, person: Person, step: Step) -> None:
        if self.story.form in ("full", "branch"):
            self._claim(person, step)
            return
        if person.enter(step.part, stale=step.stale):
            person.run("start", name_of(step.part))
            person.commit("Started")

    def _claim(self, person: Person, step: Step) -> None:
        self._command(person, step, "claim", name_of(step.part), "--branch", self._branch(step))

    def _work(self, person: Person, step: Step) -> None:
        if person.enter(step.part, stale=step.stale) and self.in_progress(person, step.part):
            path = person.root / f"src/part_{step.part}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"part {step.part} by {person.name} at {self.date}\n")
            person.commit(f"Work on {step.part}")

    def in_progress(self, person: Person, part: int) -> bool:
        """Nobody works on what somebody else holds, as far as they know; the last one works for everybody."""
        state = person.state(part)
        if state is None or state.lane != "IN_PROGRESS":
            return False
        return person.number == CLOSER or state.lease is None or state.lease.holder == person.name

    def _done(self, person: Person, step: Step) -> None:
        if self.story.form in ("full", "branch"):
            self._command(person, step, "submit", name_of(step.part), "--prove", "all=true")
        else:
            self._command(person, step, "done", name_of(step.part), "--prove", "all=true")

    def _judge(self, person: Person, step: Step, verdict: str) -> None:
        if not person.enter(step.part, stale=step.stale):
            return
        words = ["verdict", name_of(step.part), verdict, "--as", "victor"]
        path = f"docs/reports/part_{step.part}.md"
        (person.root / path).parent.mkdir(parents=True, exist_ok=True)
        (person.root / path).write_text(f"{verdict} at {self.date}\n")
        words += ["--report", path]
        if verdict == "CHANGES":
            words += ["--reference", f"{path}#1"]
        person.fetch_submitted(step.part)
        self.approve(person, "verdict", step.part, VICTOR, verdict=verdict)
        if person.lead(*words).status:
            person.take_back()
        person.commit(f"Judged {step.part}")

    def _verdict(self, person: Person, step: Step) -> None:
        self._judge(person, step, "PASS")

    def _changes(self, person: Person, step: Step) -> None:
        self._judge(person, step, "CHANGES")

    def _push(self, person: Person, step: Step) -> None:
        if person.enter(step.part, stale=step.stale):
            person.push()

    def _block(self, person: Person, step: Step) -> None:
        self._command(person, step, "packet", "block", name_of(step.part), "--reason", "No data", "--waits-for", "data")

    def _unblock(self, person: Person, step: Step) -> None:
        self._command(person, step, "packet", "unblock", name_of(step.part), "--reason", "The data are there")

    def _release(self, person: Person, step: Step) -> None:
        self._command(person, step, "packet", "release", name_of(step.part), "--reason", "Holiday")

    def _handover(self, person: Person, step: Step) -> None:
        to = f"p{(step.who + 1) % 6}"
        self._command(person, step, "packet", "handover", name_of(step.part), "--to", to, "--reason", "Holiday")

    def _note(self, person: Person, step: Step) -> None:
        self._command(person, step, "packet", "note", name_of(step.part), f"Noted at {self.date}.")

    def _reopen(self, person: Person, step: Step) -> None:
        self._command(person, step, "packet", "reopen", name_of(step.part), "--reason", "It broke the build")

    def _abandon(self, person: Person, step: Step) -> None:
        self._command(person, step, "packet", "abandon", name_of(step.part), "--reason", "Nobody needs it")

    def _record(self, person: Person, step: Step) -> None:
        if person.enter(step.part, stale=step.stale):
            person.run("packet", "merged", name_of(step.part))
            person.commit("Recorded")
            person.push()

    def _amend(self, person: Person, step: Step) -> None:
        document = person.root / f".GOV/task_packets/{name_of(step.part)}.md"
        old, new = f"`src/part_{step.part}.txt`", f"`src/part_{step.part}.txt`, `docs/part_{step.part}.md`"
        if self.story.form not in ("light", "signed") or not person.enter(step.part, stale=step.stale):
            return
        if not document.exists() or new in document.read_text():
            return
        document.write_bytes(document.read_bytes().replace(old.encode(), new.encode()))
        self.approve(person, "amendment", step.part)
        if person.run("packet", "amend", name_of(step.part), "--reason", "The manual belongs to it").status:
            person.take_back()
        person.commit("Amended")

    def _revise(self, person: Person, step: Step) -> None:
        name = name_of(step.part)
        if not person.enter(step.part, stale=step.stale):
            return
        later = name.replace("-v1", "-v2")
        said = ("--why", "It was not enough", "--roadmap", "SPEC_v1 2 Roadmap")
        if person.run("new", "--next", name.removesuffix("-v1"), "--from", name, *said).status == 0:
            person.run("packet", "supersede", name, "--by", later, "--reason", "It is planned again")
            person.commit("Revised")

    def _edit_board(self, person: Person, step: Step) -> None:
        board = person.root / BOARD
        if person.enter(step.part, stale=step.stale) and board.exists():
            text = board.read_bytes()
            entry = re.search(rb"\*\*\[%s\]\*\*.*" % name_of(step.part).encode(), text)
            board.write_bytes(text.replace(entry.group(), b"") if entry else text + b"\nEdited by hand.\n")
            person.commit("Board")
            self.edited.add(self._branch(step))

    def _revert(self, person: Person, step: Step) -> None:
        """Someone takes back what was landed last, on a branch of their own, and finds that it may not land so."""
        person.fetch()
        person.git("switch", "--quiet", "--create", f"revert-{len(self.told)}", "--no-track", "origin/main")
        before = self.events(person.root, "HEAD")
        parents = person.git("rev-list", "--parents", "-1", "HEAD").split()
        person.git("revert", "--no-edit", *(("-m", "1") if len(parents) > 2 else ()), "HEAD", check=False)
        if before == self.events(person.root, "HEAD"):
            return
        result = person.run("check", "--base", "origin/main")
        if result.status == 0 and "landing_reverted" in result.out:
            return
        if result.status == 0:
            raise Fault(f"a revert of events is green: {result.out}")
        if person.run("log", "recover", "--write").status:
            raise Fault("log recover does not bring back what was reverted")
        person.run("board", "sync", "--as", person.name)
        person.commit("Brought back")
        if self.events(person.root, "HEAD") != before:
            raise Fault("log recover brought back something else")

    def _pull(self, person: Person, step: Step) -> None:
        if person.enter(step.part):
            person.merge("origin/main")

    def _rebase(self, person: Person, step: Step) -> None:
        if not person.enter(step.part):
            return
        person.git("rebase", "--quiet", "origin/main", check=False)
        for _ in range(20):
            if not (person.root / ".git/rebase-merge").exists():
                break
            person.settle("ORIG_HEAD", "origin/main")
            person.git("-c", "core.editor=true", "rebase", "--continue", check=False)
        person.rebased = True
        person.push()
        person.rebased = False

    def _wait(self, person: Person, step: Step) -> None:
        self.clock.turn(hours=80)

    def _kill(self, person: Person, step: Step) -> None:
        """A command that is killed at some moment: the next one has to cope with what it left."""
        if not person.enter(step.part, stale=step.stale):
            return
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_REAL, random.Random(f"{self.story.seed} {step}").uniform(0.005, 0.15))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            with suppress(BaseException):
                person.run("packet", "note", name_of(step.part), "Killed.")
            os._exit(0)
        os.waitpid(child, 0)
        self.note("(a command was killed)")
        recovered = person.run("log", "recover")
        if recovered.status:
            person.run("log", "recover", "--forward")
        person.commit("What was killed")

    # --- the forge ---

    def _land(self, person: Person, step: Step) -> None:
        self.land(person, step.part, step.how)

    def land(self, person: Person, part: int, how: str) -> bool:
        """Land the branch of a packet; if it may not land as it is, its author brings it up to date, once."""
        branch = f"wp/{name_of(part)}"
        if not commit_at(find_repository(self.folder / "forge", {}), f"refs/heads/{branch}"):
            return False
        for attempt in (1, 2, 3):
            explained = self.explained(branch)
            codes = self.candidate(branch, how)
            if not codes:
                self.landed += 1
                self.pushes += 1
                return True
            self.reds += 1
            self.note(f"forge: {branch} by {how} does not land: {sorted(codes)}; explained: {sorted(explained)}")
            if codes == {"conflict"} and how == "rebase" and attempt == 2:
                how = "squash"  # a branch with merged conflicts cannot be rebased, as on any forge
            elif codes == {"conflict"} and attempt == 3:
                raise Fault(f"{branch} conflicts although main was merged into it")
            unexplained = {
                code for code in codes - {"conflict"} if not any(re.search(each, code) for each in explained)
            }
            if unexplained:
                raise Fault(f"red landing that nobody is at fault for: {branch} by {how}: {sorted(unexplained)}")
            if "event_ahead" in codes:
                self.clock.turn(seconds=max(0, self.story.wrong_by))
            if person.enter(part):
                person.merge("origin/main")
                self.mend(person, part)
                person.push()
        self.refused += 1
        return False

    def explained(self, branch: str) -> set[str]:
        """The codes for which this branch may be refused, by what people did to it."""
        hub = self.folder / "forge"
        found = set()
        name = branch.removeprefix("wp/")
        if self.on_both_sides(hub, "main", branch) or name in self.forked:
            found |= FORKED
        if git(hub, "diff", "--name-only", f"main...{branch}", "--", "src"):
            found |= {"change_uncovered"} if self.lane_at(branch) in NOT_WORKED else set()
        if branch in self.edited:
            found |= {"board", "registry", "drift", "status"}
        if self.story.wrong_by:
            new = self.events(hub, branch) - self.events(hub, "main")
            limit = (self.clock.now + timedelta(seconds=300)).strftime("%Y-%m-%dT%H:%M:%SZ")
            ahead = any(f'"at":"{limit}"' < at for path in new for at in self._times(hub, branch, path))
            found |= {"event_ahead"} if ahead else set()
        return found

    def lane_at(self, branch: str) -> str:
        name, hub = branch.removeprefix("wp/"), self.folder / "forge"
        paths = [path for path in self.events(hub, branch) if path.split("/")[2] == name]
        read = {Path(path).name: git(hub, "show", f"{branch}:{path}").encode() + b"\n" for path in paths}
        return fold(read_log(name, read)).lane

    def _times(self, hub: Path, branch: str, path: str) -> Sequence[str]:
        return re.findall(r'"at":"[^"]+"', git(hub, "show", f"{branch}:{path}"))

    def candidate(self, branch: str, how: str) -> set[str]:
        """Make what the forge would land, and keep it if it is green; the codes for which it is not."""
        forge = self.forge
        before = forge.at("HEAD")
        if how == "rebase":
            forge.git("switch", "--quiet", "--detach", branch)
            forge.git("rebase", "--quiet", "main", check=False)
            if (self.folder / "hub.git/worktrees/forge/rebase-merge").exists():
                forge.git("rebase", "--abort")
                forge.git("switch", "--quiet", "main")
                return {"conflict"}
            head = forge.at("HEAD")
            forge.git("switch", "--quiet", "main")
            forge.git("merge", "--quiet", "--ff-only", head)
        else:
            forge.git(
                "merge", "--quiet", "--no-edit", "--squash" if how == "squash" else "--no-ff", branch, check=False
            )
            if forge.git("diff", "--name-only", "--diff-filter=U"):
                forge.git("reset", "--quiet", "--hard", before)
                return {"conflict"}
            if how == "squash":
                forge.commit(f"{branch} (squashed)")
        if forge.at("HEAD") == before:
            return set()
        result = forge.run("check", "--base", before)
        if result.status == 0:
            if how != "merge":
                self.gone.add(forge.at(f"refs/heads/{branch}"))
                forge.git("branch", "--quiet", "-D", branch)
            return set()
        forge.git("reset", "--quiet", "--hard", before)
        self.note(result.out)
        return _codes(result) or {"?"}

    def mend(self, person: Person, part: int) -> None:
        """What the messages of `check --base` say."""
        for _ in range(6):
            result = person.run("check", "--base", "origin/main")
            if result.status == 0:
                return
            codes = _codes(result)
            self.note(f"{person.name} has to mend {sorted(codes)}: {result.out}")
            if not self._mended(person, part, codes):
                return

    def _mended(self, person: Person, part: int, codes: set[str]) -> bool:
        if "packet_forked" in codes:
            state = person.state(part)
            lanes = dict.fromkeys((*(["IN_REVIEW", "IN_PROGRESS"] if state is None else [state.lane]), *LANES))
            words = ("packet", "resolve", name_of(part), "--reason", "We agreed", "--as", "victor", "--lane")
            if not any(person.run(*words, lane).status == 0 for lane in lanes):
                raise Fault(f"stuck: a fork of {name_of(part)} that no lane settles")
            person.commit("Settled")
            return True
        if "change_uncovered" in codes and self.lane_at(f"wp/{name_of(part)}") in {"ABANDONED", "SUPERSEDED"}:
            # The way out that the message names for work that nobody continues.
            for path in person.git("diff", "--name-only", "origin/main", "--", "src").split():
                person.git("rm", "--quiet", "--force", path, check=False)
                person.git("checkout", "--quiet", "origin/main", "--", path, check=False)
        if "log_event_missing" in codes:
            person.run("log", "recover", "--write")
        if "move_beside_base" in codes:
            person.git("restore", "--source=origin/main", "--staged", "--worktree", f".GOV/log/{name_of(part)}")
            self.forked.discard(name_of(part))
        person.run("board", "sync", "--as", person.name)
        person.commit("Mended")
        return True


def _codes(result: Result) -> set[str]:
    return set(re.findall(r"^ +\S+ +error +([a-z_0-9]+)", result.out, re.MULTILINE))


@contextmanager
def suppress_refusal(team: Team, what: str) -> Iterator[None]:
    """An approval that cannot be given, because there is nothing to approve, is not given."""
    from workpacket.problem import WorkpacketError

    try:
        yield
    except WorkpacketError as error:
        team.note(f"not approved: {what}: {error}")


@dataclass
class Outcome:
    """What became of a story. `fault` is empty if nothing was wrong."""

    story: Story
    fault: str
    told: Sequence[str]
    landed: int = 0
    reds: int = 0

    def __str__(self) -> str:
        return "\n".join((f"{self.story}", *self.told, f"FAULT: {self.fault}"))


class Stage:
    """Where stories are played, each in a folder of its own, which is removed afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.templates = Templates(folder / "templates")
        self._count = 0

    def play(self, story: Story) -> Outcome:
        self._count += 1
        place = self.folder / f"story-{self._count}"
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith(("GIT_", "WORKPACKET_", "CI", "SSH_"))]:
                patch.delenv(name)
            patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
            patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
            patch.setenv("HOME", str(self.folder))
            patch.setenv("XDG_CONFIG_HOME", str(place / "settings"))
            team = Team(place, self.templates, story)
            patch.setattr(actor, "read_clock", team.clock)
            try:
                team.play()
                fault = ""
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            finally:
                shutil.rmtree(place, ignore_errors=True)
        return Outcome(story, fault, team.told, team.landed, team.reds)

    def shortest(self, outcome: Outcome) -> Outcome:
        """The same fault by fewer steps."""
        kind = _kind(outcome.fault)
        return self.play(shortened(outcome.story, lambda story: _kind(self.play(story).fault) == kind))


def _kind(fault: str) -> str:
    """The fault without what differs from story to story."""
    return re.sub(r"WP-\S+|[0-9a-f]{7,}|\[.*", "", fault)[:100]
