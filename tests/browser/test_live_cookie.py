"""What other servers on this machine learn about the board from a browser in which it is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from audit.audited import WORKED, build
from browser.chromium import Page
from browser.test_live import at, until
from live.serving import Server, served


@contextmanager
def other_server(heads: list[str]) -> Iterator[int]:
    """Another program's server; `heads` gets the path and headers of every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heads.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Other</title>")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(build(tmp_path_factory.mktemp("cookie") / "town").root, options=("--write", "--as", "ann")) as running:
        yield running


@pytest.fixture(scope="module")
def entered(board: Server, page: Page) -> Page:
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    page.open(board.address)
    return page


def test_another_server_gets_neither_the_cookie_nor_the_address(entered: Page, board: Server) -> None:
    """Opened by the person, opened by a link on a page of the board, and asked for by its own script."""
    heads: list[str] = []
    with other_server(heads) as port:
        for path in ("/", "/0/", "/static/live.js", f"/0/packet/{WORKED}"):
            entered.open(f"http://localhost:{port}{path}")
        entered.open(at(board, "/0/"))
        entered.ask(f"const a = document.createElement('a'); a.href = 'http://localhost:{port}/linked';"
                    "document.body.append(a); a.click()")  # fmt: skip
        until(entered, f"location.port === '{port}' && document.readyState === 'complete'")
        entered.ask("fetch('/0/').then(answer => answer.text())")
    assert any("/linked" in head for head in heads)
    for head in heads:
        assert f"workpacket-{board.port}" not in head, head
        assert not board.prefix or board.prefix not in head, head
    entered.open(at(board, "/0/"))
    assert entered.ask("document.querySelectorAll('.card').length") == 4, "the board is still open"


def test_a_cookie_that_another_server_planted_does_not_lock_the_owner_out(entered: Page, board: Server) -> None:
    with other_server([]) as port:
        entered.open(f"http://localhost:{port}/")
        entered.ask(f"document.cookie = 'workpacket-{board.port}=evil; path=/'")
        entered.open(at(board, "/0/"))
        assert entered.ask("document.querySelectorAll('.card').length") == 4
        entered.open(f"http://localhost:{port}/")
        entered.ask(f"document.cookie = 'workpacket-{board.port}=; path=/; max-age=0'")


def test_a_link_of_an_earlier_server_leads_to_the_same_page_of_this_one(entered: Page, board: Server) -> None:
    """In a browser in which the board is open."""
    entered.open(at(board, "/0/"))
    for earlier in ("", "/0123456789abcdef"):
        entered.call("Page.navigate", url=f"http://localhost:{board.port}{earlier}/0/?at=HEAD#content")
        until(entered, "Boolean(document.querySelector('.past'))")
        assert entered.ask("location.href") == at(board, "/0/?at=HEAD#content")
    entered.call("Page.navigate", url=f"http://localhost:{board.port}/0123456789abcdef/nowhere")
    until(entered, "document.querySelector('h1')?.textContent === 'Not found'")


def test_what_an_earlier_page_of_this_port_left_in_the_browser_leads_nowhere_else(entered: Page, board: Server) -> None:
    """The storage of a port is that of every program that ever used the port."""
    entered.open(at(board, "/0/"))
    for planted in ("//evil.example", "javascript:window.harmed=1", "/0123456789abcdef/../..//evil.example", ""):
        entered.ask(f"Object.keys(localStorage).forEach(key => localStorage[key] = {planted!r})")
        entered.requests.clear()
        entered.open(f"http://localhost:{board.port}/0/")
        assert entered.ask("window.harmed") is None
        assert entered.ask("document.querySelector('h1').textContent") == "The board is not open in this browser"
        assert all(f"//localhost:{board.port}/" in asked for asked in entered.requests), entered.requests
    entered.open(at(board, "/0/"))
    assert entered.ask("document.querySelectorAll('.card').length") == 4
