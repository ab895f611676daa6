"""`mcp`: the official client calls the tools, in a real repository, each in a real process."""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters

from cli.commands import Commands
from git.scratch import git
from workpacket.cli.mcp import PROMPTS, RESOURCES, TOOLS, output_schema
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


def test_a_module_in_the_repository_is_not_imported(root: Path) -> None:
    (root / "json.py").write_text("open('owned', 'w').close()\nraise ImportError\n", "utf-8")
    shown = asyncio.run(AgentServer((), ()).call("show", {"id": NAME}))
    assert not shown.is_error
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


# --- what the answers look like ---


@pytest.mark.long
def test_every_answer_of_a_tool_fits_the_schema_that_the_tool_lists(root: Path) -> None:
    async def story(client: Any) -> None:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        assert "common.schema.json" not in json.dumps(schemas)  # a client fetches nothing
        (root / "src/greeting").write_text("hello\n", "utf-8")
        calls: list[tuple[str, dict[str, Any], bool]] = [
            ("next", {}, True), ("show", {"id": NAME}, True), ("why", {"id": NAME}, True),
            ("search", {"words": ["hello"]}, True), ("start", {"id": "WP-1-Missing-v1"}, False),
            ("done", {"id": NAME}, False), ("start", {"id": NAME}, True), ("show", {"id": NAME}, True),
            ("note", {"id": NAME, "text": "Begun."}, True), ("done", {"id": NAME}, False),
            ("verdict", {"id": NAME, "verdict": "PASS"}, False), ("why", {"id": NAME}, True),
        ]  # fmt: skip
        for name, given, good in calls:
            result = await client.call_tool(name, given)
            assert result.is_error is not good, text_of(result)
            Draft202012Validator(schemas[name]).validate(result.structured_content)
        commit(root)
        for name, given in (("done", {"id": NAME}), ("show", {"id": NAME}), ("verdict", {"id": NAME, "verdict": "X"})):
            result = await client.call_tool(name, given)
            if result.structured_content is not None:
                Draft202012Validator(schemas[name]).validate(result.structured_content)

    talk(root, story, "--as", "coder")


@pytest.mark.parametrize("name", TOOLS)
def test_the_schema_of_an_answer_is_strict(name: str) -> None:
    schema = output_schema(name)
    Draft202012Validator.check_schema(schema)
    made = {"ok": True, "exit_code": 0, "findings": [], "data": {"invented": 1}}
    assert list(Draft202012Validator(schema).iter_errors(made))


def test_ids_headings_and_codes_are_completed_and_a_section_of_the_specification_is_read(root: Path) -> None:
    async def story(client: Any) -> None:
        async def completed(uri: str, name: str, value: str) -> list[str]:
            found = await client.complete(
                types.ResourceTemplateReference(uri=uri), argument={"name": name, "value": value}
            )
            return list(found.completion.values)

        assert await completed("workpacket://packet/{id}", "id", "wp-1-gr") == [NAME]
        assert await completed("workpacket://anchor/{heading}", "heading", "") == ["Greet the user"]
        assert "wrong_lane" in await completed("workpacket://code/{code}", "code", "wrong")
        (section,) = (await client.read_resource("workpacket://anchor/Greet%20the%20user")).contents
        read = json.loads(section.text)
        assert "It greets." in read["sections"][0]["text"]
        assert read["rests"][0]["packet"] == NAME

    talk(root, story)


# --- several callers at once, and callers that go away ---


def test_every_command_knows_for_whom_it_runs(root: Path) -> None:
    answer = asyncio.run(AgentServer(("--as", "coder"), ()).run(["prime"], ()))
    assert answer["data"]["actor"] == "coder"


@pytest.mark.long
def test_of_ten_calls_at_once_one_starts_the_packet(root: Path) -> None:
    async def play() -> list[Any]:
        server = AgentServer(("--as", "coder"), ("--commit",))
        return await asyncio.gather(*(server.call("start", {"id": NAME}) for _ in range(10)))

    results = asyncio.run(play())
    assert all("internal_error" not in text_of(result) for result in results)
    assert any(not result.is_error for result in results)
    claims = [json.loads(path.read_bytes()) for path in (root / ".GOV/log" / NAME).iterdir()]
    assert [event["type"] for event in claims].count("claimed") == 1


@pytest.mark.long
def test_when_the_client_is_gone_nothing_goes_on_running(root: Path) -> None:
    async def start(client: Any) -> None:
        started = await client.call_tool("start", {"id": NAME})
        assert not started.is_error, text_of(started)

    talk(root, start, "--commit")
    mark = root / "running"
    (root / "src/greeting").write_text("hello\n", "utf-8")
    commit(root)
    program = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    (root / "wait.py").write_text(program, "utf-8")
    command = [sys.executable, "-m", "workpacket", "mcp"]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        given = {"name": "done", "arguments": {"id": NAME, "prove": [f"1={sys.executable} {root / 'wait.py'}"]}}
        for message in (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": given},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        until = time.monotonic() + 30
        while not mark.exists() and time.monotonic() < until:
            time.sleep(0.1)
        process.stdin.close()
        process.wait(30)
    if mark.exists():
        proof = Path("/proc") / mark.read_text("utf-8")
        while proof.exists() and time.monotonic() < until + 10:
            time.sleep(0.1)
        assert not proof.exists()
