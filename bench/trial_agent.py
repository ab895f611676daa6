"""The scripted agent of the trial. It has no model: it reads answers literally, and types what they say.

It knows its trade, which is to write files and commit them, and it has a sheet with the values for the placeholders in
a command, such as a reason. Everything else has to be in the answers: if one names nothing that the agent can do or
ask for, that is a dead end, a defect of the message.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self

# An agent that has typed more than this for one packet runs in circles.
MOST_STEPS: Final = 40


def tokens(text: str) -> int:
    import bpe_openai  # type: ignore[import-untyped]

    return len(bpe_openai.get_encoding("cl100k_base").encode(text))


class DeadEnd(Exception):
    """An answer after which the agent knows nothing more to do."""


@dataclass(frozen=True)
class Answer:
    """What an agent has read, and the commands that it names, in order."""

    text: str
    ok: bool
    named: Sequence[str]


class Channel(Protocol):
    """How an agent runs commands of workpacket: in a shell, or as tools."""

    def type(self, words: Sequence[str]) -> Answer | None:
        """Run a command; None if this channel does not offer it, or if it was killed."""

    def close(self) -> None: ...


class Shell:
    """The command line."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment

    def type(self, words: Sequence[str]) -> Answer | None:
        done = subprocess.run(
            [sys.executable, "-m", "workpacket", *words], cwd=self._folder, env=self._environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if done.returncode == -signal.SIGKILL:
            return None
        return Answer(done.stdout, done.returncode == 0, named_in_text(done.stdout))

    def close(self) -> None:
        pass


class Tools:
    """The server of `workpacket mcp`, with the official client."""

    def __init__(self, folder: Path, environment: Mapping[str, str], name: str) -> None:
        from anyio.from_thread import start_blocking_portal
        from mcp import Client, StdioServerParameters

        arguments = ["-m", "workpacket", "mcp", "--as", name]
        server = StdioServerParameters(command=sys.executable, args=arguments, cwd=folder, env=dict(environment))
        self._opened = start_blocking_portal()
        self._portal = self._opened.__enter__()
        self._connection = self._portal.wrap_async_context_manager(Client(server))
        self._client: Any = self._connection.__enter__()
        listed = self._portal.call(self._client.list_tools)
        self.introduction = f"{self._client.instructions}\n" + "".join(
            f"{tool.name}: {tool.description} {tool.input_schema}\n" for tool in listed.tools
        )

    def type(self, words: Sequence[str]) -> Answer | None:
        call = as_call(words)
        if call is None:
            return None
        name, given = call
        text, page = "", 1
        while True:
            result = self._portal.call(self._client.call_tool, name, {**given, "page": page})
            read = result.content[0].text
            text += read
            page += 1
            if f"page={page}" not in read:
                return Answer(text, not result.is_error, named_in_data(text))

    def close(self) -> None:
        self._connection.__exit__(None, None, None)
        self._opened.__exit__(None, None, None)


def as_call(words: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """Return the tool and the arguments for a command line; None if there is no such tool."""
    name, *rest = words[1:] if words[0] == "packet" else words
    name = {"claim": "start", "submit": "done"}.get(name, name)
    options = {word[2:]: rest[at + 1] for at, word in enumerate(rest[:-1]) if word.startswith("--")}
    plain = [word for at, word in enumerate(rest) if not word.startswith("--") and rest[at - 1][:2] != "--"]
    if options.keys() - {"report", "reason", "reference"}:
        return None
    match name, plain:
        case "next", []:
            return name, {}
        case "show" | "why" | "start" | "done", [packet]:
            return name, {"id": packet}
        case "note", [packet, text]:
            return name, {"id": packet, "text": text}
        case "verdict", [packet, verdict]:
            return name, {"id": packet, "verdict": verdict, **options}
        case _:
            return None


def named_in_text(text: str) -> list[str]:
    """Return the commands that an answer of the command line names: after `->` or, without any, after `next:`."""
    hints = re.findall(r"^ +-> (.*)$", text, re.MULTILINE)
    return list(dict.fromkeys(hints or re.findall(r"^ *(?:next|help): (.*)$", text, re.MULTILINE)))


def named_in_data(text: str) -> list[str]:
    """Return the commands that an answer of a tool names: of the conditions or, without any, the next one."""
    hints = re.findall(r"^ +(?:- )?(?:command|hint): (?!\")(.*)$", text, re.MULTILINE)
    return list(dict.fromkeys(hints or re.findall(r"^next: (?!\")(.*)$", text, re.MULTILINE)))


@dataclass
class Agent:
    """`crafts` is what the agent can do without a command: each phrase of an answer, and what it does then. `sheet` has
    its value for each placeholder. `ask` tells a person a command that is theirs to type; it returns whether they did
    it, or will do it later.
    """

    name: str
    folder: Path
    environment: Mapping[str, str]
    channel: Channel
    crafts: Mapping[str, Callable[[], None]]
    sheet: Mapping[str, str]
    ask: Callable[[str], str]
    steps: int = 0
    read: int = 0
    asked: int = 0
    conflict: bool = False
    heard: list[str] = field(default_factory=list)
    dying: Callable[[Sequence[str]], AbstractContextManager[object]] = lambda _: nullcontext()

    def __enter__(self) -> Self:
        self.hear(getattr(self.channel, "introduction", ""))
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def hear(self, text: str) -> None:
        self.read += tokens(text)
        self.heard.append(text)

    def prime(self) -> str:
        """Read what the hook of a session prints, in both ways of working."""
        answer = Shell(self.folder, self.environment).type(["prime"])
        assert answer is not None
        self.steps += 1
        self.hear(answer.text)
        return answer.text

    def pursue(self, packet: str, command: str) -> str:
        """Type a command, and what the answers name, until the next step belongs to someone else; return that step."""
        while True:
            answer = self.type(command)
            if answer is None:
                command = self.first_command(packet)
                continue
            conflict = self.conflict
            later = self.follow(answer)
            if later:
                return later
            command = self.first_command(packet) if conflict != self.conflict else self._after or command

    def first_command(self, packet: str) -> str:
        """Return the command that `prime` names for a packet, else the one that shows what is missing."""
        text = self.prime()
        found = re.search(rf"^- {re.escape(packet)}: (workpacket (?!why).*)$", text, re.MULTILINE)
        held = re.search(
            rf"^- {re.escape(packet)}, .*?\n  (?:next: |before `)(workpacket [^`\n]*)", text, re.MULTILINE | re.DOTALL
        )
        told = re.search(r"^- `(workpacket start) WP_ID`", text, re.MULTILINE)
        assert told is not None
        return found[1] if found else held[1] if held else f"{told[1]} {packet}"

    def type(self, command: str) -> Answer | None:
        words = [self.sheet.get(word, word) for word in shlex.split(command)][1:]
        if any(re.search(r"\b(TEXT|FILE|COMMAND|PATH|REASON|NAME|N)\b", word) for word in words):
            raise DeadEnd(f"no value for a placeholder: {command}")
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise DeadEnd(f"{MOST_STEPS} steps, and still: {command}")
        self.heard.append(f"$ {command}")
        with self.dying(words):
            answer = self.channel.type(words)
        if answer is not None:
            self.hear(answer.text)
        return answer

    _after: str = ""

    def follow(self, answer: Answer) -> str:
        """Do what an answer names; return the step that belongs to someone else. `_after` is the command to continue
        with."""
        self._after = ""
        if not answer.named:
            raise DeadEnd(f"no next step in: {answer.text[-400:]}")
        for hint in answer.named:
            for step in hint.split(", then: "):
                later = self._do(step.strip())
                if later:
                    return later
        return ""

    def _do(self, step: str) -> str:
        instead = re.search(r"\(if that conflicts, first: (.*)\)", step)
        if instead and self.conflict:
            self.conflict = False
            return self._command(instead[1])
        for way in re.split(r",? or: ", step):
            if way.startswith("workpacket "):
                return self._command(way)
            if way.startswith("git "):
                return self._git(way)
            if way.startswith("merge "):
                return way
            if way.startswith(("ask ", "have ")):
                self.asked += 1
                return self.ask(way.partition(": ")[2])
            craft = next((do for phrase, do in self.crafts.items() if way.startswith(phrase)), None)
            if craft is not None:
                self.steps += 1
                craft()
                return ""
        raise DeadEnd(f"nobody can do this: {step}")

    def _command(self, line: str) -> str:
        """Keep the commands that move this packet for later, ask for those of a person, and run the others."""
        words = shlex.split(line)[1:]
        if words[0] == "verdict" and self.name != "rex":
            return line
        if words[0] in {"start", "claim", "done", "submit", "verdict"}:
            self._after = line
            return ""
        if words[0] in {"approve", "key", "policy"}:
            self.asked += 1
            return self.ask(line)
        answer = self.type(line)
        if answer is None:
            self.asked += 1
            return self.ask(line)
        if not answer.ok:
            self._after = line
        return ""

    def _git(self, line: str) -> str:
        if line.startswith("git merge") and "on main" in line:
            return line
        self.steps += 1
        done = subprocess.run(
            ["sh", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        self.hear(f"$ {line}\n{done.stdout}{done.stderr}")
        if done.returncode:
            raise DeadEnd(f"{line}: {done.stderr[-300:]}")
        return ""
