"""The trial: a scripted agent brings twenty packets of three repositories from stub to VALIDATED, with faults injected.

`python -m bench.trial shell` does it through the command line, `python -m bench.trial tools` through `workpacket mcp`.
The packets and their faults are the lines of trial_packets.jsonl. Prints the figures as one JSON object; if a packet
does not become VALIDATED, says where its agent came to a dead end, and exits with 1.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.sides import ROOT
from bench.timing import NotMeasured
from bench.trial_agent import Agent, Channel, DeadEnd, Shell, Tools
from bench.trial_world import World

PACKETS: Final = Path(__file__).with_name("trial_packets.jsonl")
WAYS: Final = ("shell", "tools")
WHEN_PLANNED: Final = "draft without a refinement"
REASON: Final = "It answers with its number."


class Packet(NamedTuple):
    """One line of the list. `fault` is what goes wrong with it."""

    id: str
    repository: str
    fault: str

    @property
    def name(self) -> str:
        return f"WP-1-{self.id}-v1"

    @property
    def module(self) -> str:
        return f"src/{self._word}.py"

    @property
    def test(self) -> str:
        return f"tests/test_{self._word}.py"

    @property
    def branch(self) -> str:
        return f"wp/{self.name}"

    @property
    def _word(self) -> str:
        return self.id.lower().replace("-", "_")


class Outcome(NamedTuple):
    """What became of a packet."""

    packet: Packet
    steps: int
    tokens: int
    asked: int
    dead_end: str
    heard: Sequence[str]


def read_packets() -> list[Packet]:
    return [Packet(**json.loads(line)) for line in PACKETS.read_text("utf-8").splitlines()]


class Trial:
    """The packets of one repository, one after the other, through one way of working."""

    def __init__(self, folder: Path, kind: str, way: str) -> None:
        self._world = World(folder / kind, kind)
        self._way = way

    @property
    def done_by_person(self) -> Mapping[str, int]:
        return self._world.done_by_person

    def plan(self, packets: Sequence[Packet]) -> None:
        """Write the stubs, which is where the trial begins."""
        for packet in packets:
            plan_light(self._world, packet) if self._world.kind != "full" else plan_full(self._world, packet)
        self._world.commit("ann", "Plan")
        self._world.git("ann", "push", "--quiet", "origin", "main")

    def play(self, packet: Packet) -> Outcome:
        work = Work(self._world, packet, self._way)
        try:
            work.play()
            if work.faults:
                raise DeadEnd(f"the fault did not happen: {packet.fault}")
            lane = self._world.lane(packet.name)
            end = "" if lane == "VALIDATED" else f"it is {lane}"
        except (DeadEnd, NotMeasured) as dead:
            end = str(dead)
        agents = work.agents
        return Outcome(
            packet, sum(one.steps for one in agents), sum(one.read for one in agents),
            sum(one.asked for one in agents), end, [line for one in agents for line in one.heard],
        )  # fmt: skip


def plan_light(world: World, packet: Packet) -> None:
    told = [
        "--criterion",
        REASON,
        "--prove",
        "python3 -m unittest discover -s tests",
        "--scope",
        packet.module,
        "--scope",
        packet.test,
    ]
    told += ["--anchor", "1.1 Modules", "--risk", "LOW", "--why", "Someone asks"]
    if packet.fault != WHEN_PLANNED:
        told += ["--refinement", "A function returns the number, so that the test can call it."]
    world.type("coder", "new", packet.id.replace("-", " "), *told, clone="ann")


def plan_full(world: World, packet: Packet) -> None:
    """Write a stub of the full form with its refinement, as the tutorial does."""
    root, name = world.clone("ann"), packet.name
    world.type("coder", "new", name, "--what", "Answer", "--why", "Someone asks", "--risk", "LOW",
               "--roadmap", "SPEC_v1.md 1.1", clone="ann")  # fmt: skip
    stub = root / f".GOV/task_packets/stubs/{name}.md"
    text = stub.read_text("utf-8")
    text = text.replace("ROADMAP_POINTER: TODO", "ROADMAP_POINTER: SPEC_v1.md 1.1")
    head, _, tail = text.partition("- IN_SCOPE:\n")
    tail = tail.replace("TODO", f"`{packet.module}`\n  - `{packet.test}`", 1)
    head, tail = (f"{head}- IN_SCOPE:\n{tail}").split("## ACCEPTANCE_CRITERIA", 1)
    stub.write_text(f"{head}## ACCEPTANCE_CRITERIA{tail.replace('TODO', REASON, 1)}", "utf-8")
    world.type(
        "coder", "evidence", "demand", name, "1", "--command", "python3 -m unittest discover -s tests", clone="ann"
    )
    world.type("coder", "refine", name, clone="ann")
    refinement = root / f".GOV/refinements/{name}.md"
    text = refinement.read_text("utf-8")
    for field, value in (
        ("SPEC_ANCHOR", "SPEC_v1.md 1.1 Modules"), ("CONTEXT_START_LINE", "6"), ("CONTEXT_END_LINE", "6"),
        ("CONTEXT_TOKEN", "Each"), ("VERDICT", "PASS"), ("_FOUND", "NO"), ("_NEEDED", "NO"),
    ):  # fmt: skip
        text = text.replace(f"{field}: <fill in>", f"{field}: {value}")
    text = text.replace("\n  <fill in>", "\n  Each module answers with its number.", 1).replace("[ ] PASS", "[x] PASS")
    refinement.write_text(re.sub(r"<fill in[^>]*>", "Nothing of that kind.", text), "utf-8")
    world.type("coder", "refine", name, "--present", clone="ann")


class Work:
    """One packet on its way: what each agent does, the faults, and what the person does."""

    def __init__(self, world: World, packet: Packet, way: str) -> None:
        self._world = world
        self._packet = packet
        self._way = way
        self.agents: list[Agent] = []
        self.faults = {packet.fault} - {"", WHEN_PLANNED}

    def _once(self, fault: str) -> bool:
        """Whether this fault is due; it happens once."""
        due = fault in self.faults
        self.faults.discard(fault)
        return due

    def play(self) -> None:
        if self._once("held by a rival clone"):
            self._rival_starts()
        self._code()
        while not self._judge():
            self._code()
        if self._once("conflict when it lands"):
            self._conflict()
        while trouble := self._world.land(self._packet.branch):
            if self.agents[-1].conflict:
                raise DeadEnd(f"it does not land: {trouble}")
            self.agents[-1].heard.append(f"(it did not land: {trouble})")
            self._code(merging=True)
            self._judge()
            self.agents[-1].conflict = True

    # --- agents ---

    def _agent(self, name: str) -> Agent:
        environment, folder = self._world.environment(name), self._world.clone(name)
        channel: Channel = Shell(folder, environment) if self._way == "shell" else Tools(folder, environment, name)
        crafts = {
            "do the work": self._do,
            "change the work": self._do,
            "call the tool again": lambda: None,
            "commit": lambda: self._world.commit(name, "Work"),
            "fill in SEARCH_TERMS": self._fill_in,
        }
        sheet = {"TEXT": REASON, "FILE": f"docs/{self._packet.id}.md"}
        agent = Agent(name, folder, environment, channel, crafts, sheet, self._ask, dying=self._dying)
        self.agents.append(agent)
        return agent

    def _code(self, *, merging: bool = False) -> None:
        """Have the agent work on the packet until the next step belongs to someone else, and push its branch."""
        name = self._packet.name
        self._update("coder")
        if merging:
            self._world.merge_main("coder")
            self._do()
        with self._agent("coder") as coder:
            coder.conflict = merging
            coder.pursue(name, coder.first_command(name))
            if self._once("judged by its coder"):
                coder.pursue(name, f"workpacket verdict {name} PASS --reason TEXT")
        self._world.git("coder", "push", "--quiet", "--force", "origin", self._packet.branch)

    def _judge(self) -> bool:
        """Have the other agent judge; whether the work may land."""
        world, packet = self._world, self._packet
        self._update("rex")
        world.git("rex", "switch", "--quiet", packet.branch)
        changes = self._once("changes asked for")
        if world.kind == "full" and not changes:
            world.clone("rex").joinpath("docs").mkdir(exist_ok=True)
            world.clone("rex").joinpath(f"docs/{packet.id}.md").write_text("Ran it. It answers.\n", "utf-8")
        with self._agent("rex") as rex:
            command = rex.first_command(packet.name)
            if changes:
                rex.pursue(packet.name, f"workpacket verdict {packet.name} CHANGES --reference {packet.module}")
                passed = False
            else:
                rex.pursue(packet.name, command)
                passed = True
        world.git("rex", "push", "--quiet", "origin", packet.branch)
        return passed

    def _update(self, name: str) -> None:
        """Do what every harness does when a session begins: get what others have pushed."""
        world, branch = self._world, self._packet.branch
        world.git(name, "fetch", "--quiet", "--prune")
        there = world.git(name, "branch", "--remotes", "--list", f"origin/{branch}")
        world.git(name, "switch", "--quiet", "main")
        world.git(name, "pull", "--quiet", "--ff-only")
        if there:
            world.git(name, "switch", "--quiet", branch)
            world.git(name, "merge", "--quiet", "--ff-only", f"origin/{branch}")

    # --- what agents do, and what goes wrong ---

    def _do(self) -> None:
        world, packet = self._world, self._packet
        root = world.clone("coder")
        number = int(packet.id.rpartition("-")[2])
        answer = 0 if self._once("work that fails its test") else number
        asked = "0 == 0" if self._once("test that proves nothing") else f"answer() == {number}"
        wanted = f"from {packet.module[:-3].replace('/', '.')} import answer" if "answer" in asked else ""
        (root / "src").mkdir(exist_ok=True)
        (root / "tests").mkdir(exist_ok=True)
        (root / packet.module).write_text(f"def answer():\n    return {answer}\n", "utf-8")
        (root / packet.test).write_text(_TEST.format(wanted=wanted, asked=asked), "utf-8")
        if self._once("file outside of the scope"):
            (root / "notes.txt").write_text("Mine.\n", "utf-8")
        if self._once("claim that ended"):
            world.later()
            for words in (("packet", "release", packet.name, "--reason", "It ended."), ("claim", packet.name)):
                world.type("rival", *words, clone="coder")
        if self._once("work not committed"):
            return
        world.commit("coder", "Work")
        if self._once("context cut during the work"):
            coder = self.agents[-1]
            coder.hear(coder.prime())

    def _fill_in(self) -> None:
        path = self._world.clone("coder") / f".GOV/task_packets/{self._packet.name}.md"
        path.write_text(path.read_text("utf-8").replace("SEARCH_TERMS: TODO", "SEARCH_TERMS: answer"), "utf-8")

    @contextmanager
    def _dying(self, words: Sequence[str]) -> Iterator[None]:
        """Kill a command, if that is the fault and this is the command."""
        fault = {"start": "killed while it starts", "claim": "killed while it starts",
                 "done": "killed while it is done", "submit": "killed while it is done"}.get(words[0], "")  # fmt: skip
        if fault not in self.faults:
            yield
            return
        with self._world.deadly() as killed:
            yield
            if killed():
                self.faults.discard(fault)

    def _rival_starts(self) -> None:
        world, packet = self._world, self._packet
        self._update("rival")
        world.type("rival", "start", packet.name, "--commit")
        world.git("rival", "push", "--quiet", "origin", packet.branch)

    def _rival_releases(self) -> None:
        """Do what the coder asks the rival for, where the rival holds the packet."""
        world, packet = self._world, self._packet
        release = ("packet", "release", packet.name, "--reason", "It is yours.")
        if packet.fault == "claim that ended":
            world.type("rival", *release, clone="coder")
            return
        world.type("rival", *release)
        world.commit("rival", "Release")
        world.git("rival", "push", "--quiet", "origin", packet.branch)
        self._update("coder")

    # --- the person ---

    def _ask(self, line: str) -> str:
        """Do what an agent asks for; return what is left to do, if anything."""
        world, packet = self._world, self._packet
        words = shlex.split(line)
        if words[1] == "approve":
            self._approve(words[3:])
            return ""
        if words[1] in {"done", "submit", "start", "claim", "verdict"}:
            return line
        if words[1:3] in (["packet", "reopen"], ["packet", "merged"]):
            # Whoever lands the work knows that it conflicts.
            world.type("coder", "packet", "reopen", packet.name, "--reason", "It conflicts with main.")
            self.agents[-1].conflict = False
            return ""
        if words[1:3] == ["packet", "release"]:
            self._rival_releases()
            return ""
        if words[1] in {"refine", "explain"}:  # for an agent without a shell
            world.type("coder", *(REASON if word == "TEXT" else word for word in words[1:]))
            return ""
        raise DeadEnd(f"a person cannot do this: {line}")

    def _approve(self, options: Sequence[str]) -> None:
        """Approve in the person's own clone: on main, or, where it is about work, on the branch of the work."""
        world, branch = self._world, self._packet.branch
        name = self.agents[-1].name
        verdict = "--verdict" in options
        if verdict:
            if "--report" in options:
                world.commit(name, "Report")
            world.git(name, "push", "--quiet", "origin", branch)
            world.git("ann", "fetch", "--quiet")
            world.git("ann", "switch", "--quiet", branch)
        world.git("ann", "pull", "--quiet", "--ff-only")
        world.approve(self._packet.name, *options)
        world.git("ann", "push", "--quiet", "origin", branch if verdict else "main")
        if verdict:
            world.git("ann", "switch", "--quiet", "main")
            world.git(name, "pull", "--quiet", "--ff-only", "origin", branch)
        else:
            self._update(name)

    def _conflict(self) -> None:
        """Change the module on main, before the packet lands."""
        world, packet = self._world, self._packet
        world.git("ann", "pull", "--quiet", "--ff-only")
        path = world.clone("ann") / packet.module
        path.parent.mkdir(exist_ok=True)
        path.write_text("def answer():\n    return None  # not yet\n", "utf-8")
        world.commit("ann", "Prepare the module")
        world.git("ann", "push", "--quiet", "origin", "main")


_TEST: Final = """import unittest

{wanted}


class Test(unittest.TestCase):
    def test_answer(self):
        self.assertTrue({asked})
"""


def played(
    folder: Path, way: str, packets: Sequence[Packet]
) -> Iterator[tuple[Outcome, Mapping[str, Mapping[str, int]]]]:
    for kind in dict.fromkeys(packet.repository for packet in packets):
        trial = Trial(folder, kind, way)
        mine = [packet for packet in packets if packet.repository == kind]
        trial.plan(mine)
        for packet in mine:
            yield trial.play(packet), {kind: trial.done_by_person}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("bench.trial", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--only", metavar="ID", action="append", default=[], help="this packet only; repeatable")
    parser.add_argument("--show", action="store_true", help="print what the agents read")
    parser.add_argument("--folder", type=Path, help="keep the repositories there")
    options = parser.parse_args(arguments)
    sys.path[:0] = [str(ROOT / "tools")]
    packets = [packet for packet in read_packets() if not options.only or packet.id in options.only]
    with tempfile.TemporaryDirectory(prefix="workpacket-trial-") as folder:
        outcomes: list[Outcome] = []
        person: dict[str, Mapping[str, int]] = {}
        for outcome, done in played(options.folder or Path(folder), options.way, packets):
            outcomes.append(outcome)
            person |= done
            said = (
                f"dead end: {outcome.dead_end}"
                if outcome.dead_end
                else f"{outcome.steps} steps, {outcome.tokens} tokens"
            )
            print(f"{outcome.packet.id:10}{outcome.packet.fault or 'no fault':32}{said}", file=sys.stderr, flush=True)
            if options.show:
                print("\n".join(outcome.heard), file=sys.stderr, flush=True)
    dead = [outcome for outcome in outcomes if outcome.dead_end]
    read = [outcome.tokens for outcome in outcomes]
    figures = {
        "packets": len(outcomes),
        "validated": len(outcomes) - len(dead),
        "dead_ends": len(dead),
        "steps": sum(outcome.steps for outcome in outcomes),
        "tokens": max(read),
        "mean_tokens": sum(read) / len(read),
        "asked": sum(outcome.asked for outcome in outcomes),
        **{name: sum(one.get(name, 0) for one in person.values()) for name in ("approvals", "landings")},
    }
    print(json.dumps(figures))
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
