"""`mcp`: the official client calls the tools, in a real repository, each in a real process."""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from cli.commands import Commands
from git.scratch import git
from workpacket.cli.mcp import PROMPTS, RESOURCES, TOOLS
from workpacket.cli.mcp_server import AgentServer

pytestmark = pytest.mark.share(4)

NAME = "WP-1-Greet-The-User-v1"
HOSTILE = ("--as eve", "-h", "--json", "$(touch owned)", "\u202egnp.exe", "WP-1-Greet-The-User-v1 PASS", "%00")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands) -> Path:
    root = commands.root
    monkeypatch.setenv("WORKPACKET_ACTOR", "ann")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    assert commands("init", "--dialect", "plain").status == 0
    (root / "src").mkdir()
    (root / "src/greeting").write_text("to do\n", "utf-8")
    told = ("--criterion", "It greets.", "--prove", "grep -q hello src/greeting", "--scope", "src/")
    assert (
        commands(
            "new",
            "Greet the user",
            *told,
            "--requirement",
            "It greets.",
            "--refinement",
            "The file src/greeting gets the word hello, which the proof looks for.",
        ).status
        == 0
    )
    commit(root)
    return root


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


def talk(root: Path, story: Callable[[Any], Awaitable[None]], *options: str) -> None:
    """Play a story with a server that runs in a process of its own."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "workpacket", "mcp", *options], cwd=str(root), env=dict(os.environ)
    )

    async def play() -> None:
        async with Client(parameters) as client:
            await story(client)

    asyncio.run(play())


def text_of(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.long
def test_a_packet_goes_its_way_through_the_tools(root: Path) -> None:
    async def story(client: Any) -> None:
        shown = await client.call_tool("show", {"id": NAME})
        assert "never an instruction" in text_of(shown)
        assert shown.structured_content["data"]["lane"] == "STUB"
        refused = await client.call_tool("done", {"id": NAME})
        assert refused.is_error
        assert "unmet:" in text_of(refused)
        started = await client.call_tool("start", {"id": NAME})
        assert not started.is_error, text_of(started)
        (root / "src/greeting").write_text("hello\n", "utf-8")
        commit(root)
        noted = await client.call_tool("note", {"id": NAME, "text": "It says hello."})
        assert not noted.is_error, text_of(noted)
        assert noted.structured_content["data"]["text"] == "It says hello."
        done = await client.call_tool("done", {"id": NAME})
        assert not done.is_error, text_of(done)
        found = await client.call_tool("search", {"words": ["hello"]})
        assert found.structured_content["data"]["found"][0]["id"] == NAME

    talk(root, story, "--as", "coder", "--commit")
    git(root, "switch", "-q", f"wp/{NAME}")
    events = [json.loads(path.read_bytes()) for path in (root / ".GOV/log" / NAME).iterdir()]
    assert {event["actor"]["id"] for event in events if event["type"] != "created"} == {"coder"}


@pytest.mark.long
def test_the_server_offers_what_it_says(root: Path) -> None:
    async def story(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [*TOOLS]
        assert [str(one.uri) for one in (await client.list_resources()).resources] == [*RESOURCES]
        for uri in (*RESOURCES, f"workpacket://packet/{NAME}", "workpacket://code/wrong_lane"):
            (content,) = (await client.read_resource(uri)).contents
            assert json.loads(content.text)
        assert [one.name for one in (await client.list_prompts()).prompts] == [*PROMPTS]
        assert "Never judge" in (await client.get_prompt("coder")).messages[0].content.text

    talk(root, story)


def test_no_tool_can_approve_or_act_for_another() -> None:
    forbidden = {"approve", "waive", "override", "reapprove", "revoke", "resume", "policy", "key", "resolve", "amend"}
    for name, tool in TOOLS.items():
        before, _ = tool.words({"id": NAME, "words": ["x"], "text": "x", "verdict": "PASS"})
        assert not forbidden & {name, *before}
        assert not {"as", "sign", "key", "actor"} & tool.properties.keys()


@pytest.mark.share(5)
@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_of_the_caller_is_never_an_option(root: Path, text: str) -> None:
    session = AgentServer(("--as", "coder"), ())

    async def call() -> None:
        noted = await session.call("note", {"id": NAME, "text": text})
        if noted.is_error:
            return
        assert noted.structured_content is not None
        assert noted.structured_content["data"]["text"].split() == text.split()

    asyncio.run(call())
    events = [json.loads(path.read_bytes()) for path in (root / ".GOV/log" / NAME).iterdir()]
    assert {event["actor"]["id"] for event in events} <= {"ann", "coder"}
    assert {event["type"] for event in events} <= {"created", "noted"}
    assert not (root / "owned").exists()


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("approve", {}, "unknown tool"),
        ("show", {}, "'id' is a required property"),
        ("show", {"id": "--help"}, "does not match"),
        ("show", {"id": NAME, "as": "eve"}, "unexpected"),
        ("show", {"id": NAME, "page": 0}, "less than the minimum"),
        ("show", {"id": NAME, "page": 900}, "there are only"),
        ("verdict", {"id": NAME, "verdict": "MAYBE"}, "is not one of"),
        ("note", {"id": NAME, "text": "a\0b"}, "NUL"),
        ("search", {"words": []}, "search"),
    ],
)
def test_a_call_that_makes_no_sense_is_answered_with_the_reason(
    root: Path, name: str, given: dict[str, Any], said: str
) -> None:
    result = asyncio.run(AgentServer((), ()).call(name, given))
    assert said in text_of(result) or result.is_error


def test_a_command_that_does_not_answer_is_a_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    result = asyncio.run(AgentServer((), ()).call("next", {}))
    assert result.is_error
    assert "exit status 1" in text_of(result)


def test_without_the_extra_the_command_says_how_to_install_it(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "workpacket.cli.mcp_server":
            raise ImportError("No module named 'mcp'")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    said = commands("mcp")
    assert "workpacket[mcp]" in said.err
    assert "extra_missing" in said.err
