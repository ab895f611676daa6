"""The trial with peers: the scripted agent brings twenty tasks from "to do" to "done", in the words of each peer.

`python -m bench.trial_peers backlog shell` types Backlog.md's commands, `... tools` calls its server; `beads` likewise.
The agent reads what the peer tells it to read, and types what it tells it to type. A person writes the tasks, which is
not counted, as in `bench.trial`. Prints the figures as one JSON object.

What the trial of workpacket asks for beyond that has no equivalent: nothing is refused, so that none of the faults of
trial_packets.jsonl is noticed, no proof is run, and no one judges.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from bench.peers import BACKLOG, BEADS, Peer
from bench.timing import NotMeasured
from bench.trial import REASON, WAYS, read_packets
from bench.trial_agent import tokens

# For each part of a packet's way, what a peer has for it; "" if it has no equivalent.
EQUIVALENTS: Final = {
    "backlog": {
        "what to do first": "instructions overview", "what is ready": "task list", "the task": "task view",
        "start": "task edit --status", "done": "task edit --check-ac, --status", "approval": "", "proof is run": "",
        "scope": "", "lost lease": "", "verdict by another": "", "refusal with a way out": "",
    },
    "beads": {
        "what to do first": "prime", "what is ready": "ready", "the task": "show", "start": "update --claim",
        "done": "close", "approval": "", "proof is run": "", "scope": "", "lost lease": "", "verdict by another": "",
        "refusal with a way out": "",
    },
}  # fmt: skip


class Interface(Protocol):
    """How an agent reaches a peer. Each call is one step; it returns what the agent reads."""

    def __call__(self, *words: str) -> str: ...


def in_shell(program: Path, folder: Path) -> Interface:
    def type_(*words: str) -> str:
        done = subprocess.run(
            [str(program), *words], cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if done.returncode:
            raise NotMeasured(f"{program.name} {' '.join(words)}: exit status {done.returncode}: {done.stdout[-300:]}")
        return done.stdout

    return type_


class Session:
    """What an agent types and reads for one task."""

    def __init__(self, call: Callable[..., str]) -> None:
        self._call = call
        self.steps = 0
        self.read = 0

    def __call__(self, *words: Any, **given: Any) -> str:
        self.steps += 1
        return self.hear(self._call(*words, **given))

    def hear(self, text: str) -> str:
        self.read += tokens(text)
        return text


def work(folder: Path, task: str) -> None:
    """Do what every coder does, in one step: write the file, and commit it."""
    (folder / f"{task}.py").write_text("def answer():\n    return 1\n", "utf-8")
    for words in (("add", "--all"), ("commit", "--quiet", "--message", "Work")):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


# --- Backlog.md ---


def backlog_tasks(type_: Interface, names: Sequence[str]) -> list[str]:
    type_("init", "trial", "--defaults")
    made = [type_("task", "create", name, "--desc", "Answer", "--ac", REASON, "--plain") for name in names]
    return [re.findall(r"^Task (TASK-[0-9]+) ", text, re.MULTILINE)[0] for text in made]


def backlog_in_shell(session: Session, folder: Path, task: str) -> str:
    session("instructions", "overview")
    session("task", "list", "--status", "To Do", "--plain")
    session("instructions", "task-execution")
    session("task", "view", task, "--plain")
    session("task", "edit", task, "--status", "In Progress", "-a", "@coder", "--plan", "1. Write it", "--plain")
    work(folder, task)
    session.steps += 1
    session("instructions", "task-finalization")
    session("task", "edit", task, "--check-ac", "1", "--final-summary", REASON, "--plain")
    return session("task", "edit", task, "--status", "Done", "--plain")


def backlog_with_tools(session: Session, folder: Path, task: str) -> str:
    session("get_backlog_instructions")
    session("task_list", status="To Do")
    session("get_backlog_instructions", instruction="task-execution")
    session("task_view", id=task)
    session("task_edit", id=task, status="In Progress", assignee=["@coder"], planSet="1. Write it")
    work(folder, task)
    session.steps += 1
    session("get_backlog_instructions", instruction="task-finalization")
    session("task_edit", id=task, acceptanceCriteriaCheck=[1], finalSummary=REASON)
    return session("task_edit", id=task, status="Done")


# --- beads: as its pages say; its program could not be installed where this was written, so this was never run ---


def beads_tasks(type_: Interface, names: Sequence[str]) -> list[str]:
    type_("init", "--quiet")
    made = [type_("create", name, "--description", "Answer", "--acceptance", REASON, "--json") for name in names]
    return [str(json.loads(text)["id"]) for text in made]


def beads_in_shell(session: Session, folder: Path, task: str) -> str:
    session("prime")
    session("ready")
    session("show", task)
    session("update", task, "--claim")
    work(folder, task)
    session.steps += 1
    session("close", task, "--reason", REASON)
    return session("show", task)


class Play:
    """What a peer is played with. Its server, if it has one that is tried, takes these words to start."""

    def __init__(
        self,
        peer: Peer,
        plan: Callable[[Interface, Sequence[str]], list[str]],
        shell: Callable[[Session, Path, str], str],
        tools: Callable[[Session, Path, str], str] | None,
        server: Sequence[str],
        done: str,
    ) -> None:
        self.peer, self.plan, self.shell, self.tools, self.server, self.done = peer, plan, shell, tools, server, done


PLAYS: Final = {
    "backlog": Play(BACKLOG, backlog_tasks, backlog_in_shell, backlog_with_tools, ("mcp", "start"), "Done"),
    "beads": Play(BEADS, beads_tasks, beads_in_shell, None, (), "closed"),
}


def with_tools(play: Play, folder: Path, tasks: Sequence[str]) -> list[Session]:
    """Play each task in a session of its own, in which the agent reads the list of tools, as agents do."""
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters

    if play.tools is None:
        raise NotMeasured(f"{play.peer.name} has no server here")
    program = play.peer.installed()
    sessions = []
    for task in tasks:
        server = StdioServerParameters(command=str(program), args=list(play.server), cwd=folder)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:

            def call(name: str, client: Any = client, portal: Any = portal, **given: Any) -> str:
                result = portal.call(client.call_tool, name, given)
                text = "".join(part.text for part in result.content)
                if result.is_error:
                    raise NotMeasured(f"{name}: {text[-300:]}")
                return text

            session = Session(call)
            listed = portal.call(client.list_tools).tools
            session.hear(f"{client.instructions}\n")
            session.hear("".join(f"{tool.name}: {tool.description} {tool.input_schema}\n" for tool in listed))
            _expect(play, task, play.tools(session, folder, task))
            sessions.append(session)
    return sessions


def typed(play: Play, folder: Path, tasks: Sequence[str]) -> list[Session]:
    sessions = []
    for task in tasks:
        session = Session(in_shell(play.peer.installed(), folder))
        _expect(play, task, play.shell(session, folder, task))
        sessions.append(session)
    return sessions


def _expect(play: Play, task: str, text: str) -> None:
    if play.done.casefold() not in text.casefold():
        raise NotMeasured(f"{task} is not {play.done}: {text[-300:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("bench.trial_peers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peer", choices=PLAYS)
    parser.add_argument("way", choices=WAYS)
    options = parser.parse_args(arguments)
    play = PLAYS[options.peer]
    packets = read_packets()
    try:
        with tempfile.TemporaryDirectory(prefix="workpacket-trial-") as name:
            folder = Path(name)
            for words in (
                ("init", "--quiet", "--initial-branch=main"),
                ("config", "user.name", "coder"),
                ("config", "user.email", "coder@example.org"),
                ("commit", "--quiet", "--allow-empty", "--message", "Begin"),
            ):
                subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
            tasks = play.plan(in_shell(play.peer.installed(), folder), [packet.id for packet in packets])
            sessions = (with_tools if options.way == "tools" else typed)(play, folder, tasks)
    except NotMeasured as error:
        print(error, file=sys.stderr)
        return 1
    read = [session.read for session in sessions]
    missing = [part for part, equivalent in EQUIVALENTS[options.peer].items() if not equivalent]
    print(f"no equivalent: {', '.join(missing)}", file=sys.stderr)
    figures = {
        "packets": len(sessions),
        "steps": sum(session.steps for session in sessions),
        "tokens": max(read),
        "mean_tokens": sum(read) / len(read),
        "no_equivalent": len(missing),
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
