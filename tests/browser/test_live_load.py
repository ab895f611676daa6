"""The live board under load, asked what no page asks, and killed: many connections at once, silent ones, readers that
do not read.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.audited import STUCK, WORKED, build
from live.running import with_runs
from live.serving import Browser, Server, served
from workpacket.cli.live_actions import ACTS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(build(tmp_path_factory.mktemp("load") / "town").root, options=("--write", "--as", "ann")) as running:
        yield running
        assert running.end() == (0, "")


@pytest.fixture(scope="module")
def browser(server: Server) -> Browser:
    return server.browser()


def ended(connection: socket.socket) -> bool:
    connection.settimeout(60)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_thousand_connections_that_say_nothing_do_not_stop_it(server: Server, browser: Browser) -> None:
    silent = []
    try:
        for number in range(1000):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            connection.sendall(b"GET /0/ HTTP/1.1\r\nHost: localh" if number % 2 else b"")
            silent.append(connection)
        began = time.monotonic()
        assert browser.get("/0/").status == 200
        assert time.monotonic() - began < 10
        assert all(ended(connection) for connection in silent)
    finally:
        for connection in silent:
            connection.close()
    assert browser.get("/0/").status == 200


def test_a_reader_that_does_not_read_is_left_behind(server: Server, browser: Browser) -> None:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(browser.head("/0/") * 40)
    began = time.monotonic()
    assert browser.get("/0/").status == 200
    assert time.monotonic() - began < 10
    connection.close()


def test_many_streams_at_once_and_their_end(server: Server, browser: Browser) -> None:
    replies: list[int] = []

    def listen() -> None:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(browser.head("/0/changes"))
            received = b""
            while b"\ndata: " not in received:
                received += connection.recv(4096)
            replies.append(int(received.split(b" ")[1]))

    threads = [threading.Thread(target=listen) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert replies == [200] * 50


ACTIONS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("note", WORKED, {"text": "half a note"}),
    ("block", WORKED, {"reason": "no wind", "waits-for": "wind"}),
    ("unblock", STUCK, {}),
    ("release", WORKED, {"reason": "later"}),
    ("renew", WORKED, {}),
    ("claim", STUCK, {"branch": f"wp/{STUCK}"}),
)


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.15, 0.3])
@pytest.mark.parametrize(("action", "name", "fields"), ACTIONS, ids=[action for action, _, _ in ACTIONS])
def test_a_server_that_is_killed_during_an_action_loses_nothing(
    action: str, name: str, fields: dict[str, str], delay: float, tmp_path: Path
) -> None:
    """The command that it began is completed or undone; nothing is half done, and the next server goes on."""
    town = build(tmp_path / "town")
    if action == "claim":
        town.done("packet", "unblock", STUCK)
        town.commit("unblocked")
    before = len(town.events(name))
    with served(town.root, options=("--write", "--as", "coder")) as running:
        first = running.browser()
        form = {"csrf": first.csrf(f"/0/packet/{name}"), "id": name, **fields}
        asking = threading.Thread(target=ask_and_forget, args=(first, action, urlencode(form).encode()))
        asking.start()
        time.sleep(delay)
        running.process.kill()
        asking.join(30)
    with served(town.root, options=("--write", "--as", "coder")) as again:
        second = again.browser()
        note = second.act("note", f"/0/packet/{name}", id=name, text="after the crash")
        assert "Done" in note.text
        running.wait_for_its_commands()  # the one that the killed server began may be the later one
        added = [event.type for event in town.events(name)[before:]]
        assert "noted" in added
        assert len(added) <= 2
        assert again.end() == (0, "")
    verified = town("log", "verify", name)
    assert verified.status == 0, verified.out


RUN_ACTIONS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("cancel", "/0/run/import@00000001", {"id": "import@00000001", "reason": "enough"}),
    ("answer", "/0/run/ask@00000001", {"id": "ask@00000001", "answer": "yes"}),
    ("fork", "/0/run/import@00000001", {"id": "import@00000001", "once": "again"}),
    ("verify", "/0/run/import@00000001", {"id": "import@00000001"}),
    ("settle", "/0/runs", {}),
)


@pytest.mark.parametrize("delay", [0.0, 0.2])
@pytest.mark.parametrize(("action", "page", "fields"), RUN_ACTIONS, ids=[action for action, _, _ in RUN_ACTIONS])
def test_a_server_that_is_killed_during_an_action_on_a_run_loses_nothing(
    action: str, page: str, fields: dict[str, str], delay: float, tmp_path: Path
) -> None:
    """Every record is whole, and the next server does the action, or finds it done."""
    town = build(tmp_path / "town")
    with_runs(town.root, WORKED)
    with served(town.root, options=("--write", "--as", "coder")) as running:
        first = running.browser()
        form = {**fields, **asked_for(first, page, action)}
        asking = threading.Thread(target=ask_and_forget, args=(first, action, urlencode(form).encode()))
        asking.start()
        time.sleep(delay)
        running.process.kill()
        asking.join(30)
        running.wait_for_its_commands()
    with served(town.root, options=("--write", "--as", "coder")) as again:
        second = again.browser()
        if f"/act/{action}" in second.get(page).text:
            form = {**fields, **asked_for(second, page, action)}
            reply = second.ask("POST", f"/0/act/{action}", urlencode(form).encode())
            told = second.get(reply.header("Location")).text
            assert 'class="good"' in told or "already" in told or "workpacket" in told, told
        assert again.end() == (0, "")
    verified = town("runtime", "runs", "verify")
    assert verified.status == 0, verified.out


def asked_for(browser: Browser, page: str, action: str) -> dict[str, str]:
    """The fields that the form of an action has already, with the first of each choice."""
    text = browser.get(page).text
    form = next((part for part in text.split("<form ") if f"/act/{action}" in part.partition(">")[0]), "")
    form = form.partition("</form>")[0]
    given = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
    return given | dict(re.findall(r'<select id="[^"]*" name="(at)"[^>]*><option value="([^"]*)"', form))


def ask_and_forget(browser: Browser, action: str, body: bytes) -> None:
    with contextlib.suppress(OSError, IndexError, ValueError):
        browser.ask("POST", f"/0/act/{action}", body)


LINK = re.compile(r'(?:href|src|action|data-load)="(/[^"]*)"')
ROUTES = (
    "/",
    "/0/",
    "/0/packet/{}",
    "/0/packet/{}/why",
    "/0/packet/{}/trace",
    "/0/history",
    "/0/trace",
    "/0/waiting",
    "/0/runs",
    "/0/run/{}",
    "/0/result/{}",
    "/static/{}",
    "/{}/",
)
QUERIES = ("q", "group", "at", "more", "about", "all", "token", "x")
FIELDS = ("id", "verdict", "reason", "report", "answer", "question", "confirm", "as")
TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [WORKED, STUCK, "HEAD", "HEAD~1", "main:README.md", ":/x", "@{-1}", "^", "..", "-1", "done:30", "0"]
    ),
)
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def test_every_link_of_every_page_leads_somewhere(browser: Browser) -> None:
    waiting, seen = [f"{browser.prefix}/0/"], set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen or path.endswith("/changes"):
            continue
        seen.add(path)
        reply = browser.get(path.partition("#")[0].replace("&amp;", "&"))
        assert reply.status in (200, 405), path  # actions are not links
        if "text/html" in reply.header("Content-Type") and not path.endswith("/audit"):
            links = LINK.findall(reply.text)
            waiting += [link for link in links if link != f"{browser.prefix}/" and not link.startswith("//")]
    assert len(seen) > 12


@SLOW
@given(st.sampled_from(ROUTES), TEXT, st.dictionaries(st.sampled_from(QUERIES), TEXT, max_size=3))
def test_no_address_is_an_error_of_the_server(browser: Browser, route: str, name: str, query: dict[str, str]) -> None:
    words = urlencode({key: value.encode("utf-8", "replace") for key, value in query.items()})
    path = route.format(quote(name.encode("utf-8", "replace"), safe=""))
    reply = browser.get(f"{path}?{words}")
    assert reply.status < 500, (path, words, reply.text[-600:])
    assert "Traceback" not in reply.text


@SLOW
@given(
    st.sampled_from(sorted({*ACTS, "approve"} - {"note", "block", "unblock", "start", "claim", "renew", "done"})),
    st.dictionaries(
        st.sampled_from(("id", "verdict", "reason", "report", "answer", "question", "confirm", "as")), TEXT, max_size=5
    ),
)
def test_no_form_is_an_error_of_the_server(browser: Browser, action: str, fields: dict[str, str]) -> None:
    """Only with fields that cannot make an action possible."""
    form = {**fields, "id": fields.get("id", "") + "?", "csrf": browser.csrf(f"/0/packet/{WORKED}")}
    body = urlencode({key: value.encode("utf-8", "replace") for key, value in form.items()}).encode()
    reply = browser.ask("POST", f"/0/act/{action}", body)
    assert reply.status in (303, 400, 403, 404), reply.text[-600:]
