"""The live board under load: many connections at once, silent ones, and readers that do not read."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from audit.audited import build
from live.serving import Browser, Server, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(build(tmp_path_factory.mktemp("load") / "town").root) as running:
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
    asked = f"GET /0/ HTTP/1.1\r\nHost: localhost:{server.port}\r\nCookie: {browser.cookie}\r\n\r\n".encode()
    connection.sendall(asked * 40)
    began = time.monotonic()
    assert browser.get("/0/").status == 200
    assert time.monotonic() - began < 10
    connection.close()


def test_many_streams_at_once_and_their_end(server: Server, browser: Browser) -> None:
    replies: list[int] = []

    def listen() -> None:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            head = f"GET /0/changes HTTP/1.1\r\nHost: localhost:{server.port}\r\nCookie: {browser.cookie}\r\n\r\n"
            connection.sendall(head.encode())
            received = b""
            while b"data:" not in received:
                received += connection.recv(4096)
            replies.append(int(received.split(b" ")[1]))

    threads = [threading.Thread(target=listen) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert replies == [200] * 50
