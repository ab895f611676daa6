"""`mcp` as clients meet it: over HTTP with a token, with progress and cancellation, with a person who must touch."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from cli.commands import Commands
from git.scratch import make_repository
from lifecycle.governed import Quiet
from lifecycle.signed import NAME as SIGNED
from lifecycle.signed import Signed
from lifecycle.test_touch import begin, touching
from workpacket.cli import mcp_server
from workpacket.report.approval_text import Asked, TouchPage

pytest_plugins = ("lifecycle.conftest",)
TOKEN = "t" * 40
SLOW = "python3 src/wait.py"


class Web(NamedTuple):
    root: Path
    url: str
    port: int

    def post(self, headers: dict[str, str]) -> int:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        known = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        answer = httpx2.post(self.url, json=body, headers={**known, **headers})
        return int(answer.status_code)


def environment() -> dict[str, str]:
    return {**os.environ, "WORKPACKET_ACTOR": "ann", "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def root(commands: Commands) -> Path:
    assert commands("init", "--dialect", "plain").status == 0
    return commands.root


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One server for all tests that only ask it: to start one takes longer than any of them."""
    root = tmp_path_factory.mktemp("web")
    make_repository(root)
    Quiet(root, None).done("init", "--dialect", "plain")
    command = [sys.executable, "-m", "workpacket", "mcp", "--http", "0"]
    settings = {**environment(), "WORKPACKET_MCP_TOKEN": TOKEN}
    with subprocess.Popen(command, cwd=root, env=settings, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        port = int(re.findall(r":([0-9]+)/mcp", line)[0])
        yield Web(root, f"http://127.0.0.1:{port}/mcp", port)
        process.terminate()


def test_over_http_the_tools_are_the_same(web: Web) -> None:
    async def play(mode: Any) -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
            Client(streamable_http_client(web.url, http_client=http), mode=mode) as client,
        ):
            assert len((await client.list_tools()).tools) == 8
            told = await client.call_tool("next", {})
            assert told.structured_content is not None
            assert told.structured_content["command"] == "next"

    for mode in ("auto", "legacy"):
        asyncio.run(play(mode))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:1"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "null"}, 403),
    ],
)
def test_over_http_a_request_without_token_or_from_elsewhere_is_refused(
    web: Web, headers: dict[str, str], status: int
) -> None:
    assert web.post(headers) == status


def test_over_http_a_token_that_can_be_guessed_is_refused(root: Path) -> None:
    command = [sys.executable, "-m", "workpacket", "mcp", "--http", "0"]
    settings = {**environment(), "WORKPACKET_MCP_TOKEN": "short"}
    done = subprocess.run(command, cwd=root, env=settings, capture_output=True, text=True, check=False)
    assert (done.returncode, "shorter than 32" in done.stderr) == (2, True)


@pytest.mark.parametrize("port", ["x", "-1", "65536", "8 "])
def test_a_port_that_is_none_is_refused(commands: Commands, port: str) -> None:
    assert "requires a port" in commands("mcp", f"--http={port}").err


def test_over_http_a_port_that_is_taken_is_named(web: Web) -> None:
    command = [sys.executable, "-m", "workpacket", "mcp", "--http", str(web.port)]
    done = subprocess.run(command, cwd=web.root, env=environment(), capture_output=True, text=True, check=False)
    assert "(port_taken)" in done.stderr


# --- progress and cancellation ---


@pytest.fixture
def slow(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> str:
    """A packet in progress whose proof takes half a minute."""
    monkeypatch.setenv("WORKPACKET_ACTOR", "ann")
    assert commands("init", "--dialect", "plain").status == 0
    told = ("--criterion", "It waits.", "--prove", SLOW, "--scope", "src/", "--requirement", "It waits.")
    assert commands("new", "Wait", *told, "--refinement", "It waits in the proof.").status == 0
    git = ("git", "-C", str(commands.root))
    for words in (("add", "-A"), ("commit", "-qm", "x")):
        subprocess.run([*git, *words], check=True)
    assert commands("start", "WP-1-Wait-v1").status == 0
    (commands.root / "src").mkdir()
    (commands.root / "src/wait.py").write_text("import time\ntime.sleep(30)\n", "utf-8")
    for words in (("add", "-A"), ("commit", "-qm", "y")):
        subprocess.run([*git, *words], check=True)
    return "WP-1-Wait-v1"


def waiting() -> int:
    """Return how many proofs are running."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                count += (entry / "cmdline").read_bytes().split(b"\0")[1:2] == [b"src/wait.py"]
    return count


def test_a_long_call_reports_progress_and_ends_what_it_started_when_it_is_cancelled(
    slow: str, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "workpacket", "mcp"], cwd=str(commands.root), env=environment()
    )
    before = waiting()
    reports: list[str | None] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        assert (progress > 0, total) == (True, None)
        reports.append(message)

    async def play() -> None:
        async with Client(parameters) as client:
            task = asyncio.create_task(client.call_tool("done", {"id": slow}, progress_callback=report))
            until = time.monotonic() + 60
            while (not reports or waiting() <= before) and time.monotonic() < until:
                await asyncio.sleep(0.2)
            assert waiting() > before
            task.cancel()
            while waiting() > before and time.monotonic() < until:
                await asyncio.sleep(0.2)
            assert waiting() == before
            shown = await client.call_tool("show", {"id": slow})
            assert shown.structured_content is not None
            assert shown.structured_content["data"]["lane"] == "IN_PROGRESS"

    asyncio.run(play())
    assert "done has been running for 2 seconds" in reports
    assert commands("log", "verify").status == 0


# --- a person who must touch ---


class Page(NamedTuple):
    """What the key needs to know of a page."""

    origin: str


def browser(url: str, answer: Callable[..., object]) -> None:
    """Open the page, and answer it as its script does."""
    origin = url.rpartition("/")[0]
    with urllib.request.urlopen(url) as reply:
        html = reply.read().decode()
    asked = json.loads(re.findall(r'id="asked">(.*?)</script>', html)[0])
    page = TouchPage("", "", "", "", Asked(**{name: asked[name] for name in Asked._fields if name in asked}))
    document = answer(Page(origin), page)
    headers = {"Content-Type": "application/json", "X-Page": asked["page"], "Origin": origin}
    request = urllib.request.Request(f"{origin}/answer", json.dumps(document).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        assert json.loads(reply.read())["good"]


def on_pages(mode: Any, root: Path, story: Callable[[Any], Awaitable[None]], touch: Any) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "workpacket", "mcp"], cwd=str(root), env=environment()
    )

    async def play() -> None:
        async with Client(parameters, mode=mode, elicitation_callback=touch) as client:
            await story(client)

    asyncio.run(play())


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("person")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_where_only_an_approval_is_missing_a_person_is_shown_the_page(signed: Signed, home: Path, mode: str) -> None:
    key = begin(signed, home)
    asked: list[types.ElicitRequestURLParams] = []

    async def touch(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        # As a client does, which says that the person agreed to open the page, and not that they have touched.
        asyncio.get_running_loop().run_in_executor(None, browser, params.url, touching(key))
        return types.ElicitResult(action="accept")

    async def story(client: Any) -> None:
        started = await client.call_tool("start", {"id": SIGNED})
        assert not started.is_error, started.content[0].text
        assert started.structured_content["data"]["holder"] == "ann"

    on_pages(mode, signed.governed.root, story, touch)
    assert [one.url.startswith("http://localhost:") for one in asked] == [True]
    assert SIGNED in asked[0].message


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_person_who_declines_has_approved_nothing(signed: Signed, home: Path, mode: str) -> None:
    begin(signed, home)

    async def decline(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def story(client: Any) -> None:
        started = await client.call_tool("start", {"id": SIGNED})
        assert started.is_error
        assert "approval_missing" in started.content[0].text

    on_pages(mode, signed.governed.root, story, decline)
    assert not [path for path in signed.governed.files() if path.startswith(".GOV/attestations/")]


def test_a_client_that_shows_no_pages_is_refused_with_the_command(signed: Signed, home: Path) -> None:
    begin(signed, home)
    answer = asyncio.run(mcp_server.AgentServer((), ()).call("start", {"id": SIGNED}))
    assert "workpacket approve" in answer.content[0].text  # type: ignore[union-attr]


def test_a_client_that_never_answers_leaves_one_page(signed: Signed, home: Path) -> None:
    begin(signed, home)
    capabilities = SimpleNamespace(elicitation=SimpleNamespace(url=object()))
    context: Any = SimpleNamespace(
        protocol_version="2026-07-28", session=SimpleNamespace(client_capabilities=capabilities)
    )

    async def play() -> None:
        server = mcp_server.AgentServer((), ())
        params = types.CallToolRequestParams(name="start", arguments={"id": SIGNED})
        pages = []
        for _ in range(4):
            answer = await server.call_tool(context, params)
            assert isinstance(answer, types.InputRequiredResult)
            pages += [touch.process for touch in server._touches.values()]
            assert [page.returncode is None for page in pages].count(True) == 1
        await server.close()
        assert all(page.returncode is not None for page in pages)

    asyncio.run(play())
