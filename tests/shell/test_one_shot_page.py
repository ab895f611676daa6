"""The page that is served once: to whom, at which address, and for how long."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from workpacket.problem import WorkpacketError
from workpacket.shell import one_shot_page as module
from workpacket.shell.one_shot_page import OneShotPage, Shown, Told, one_shot_page

PAGE = Shown("<p>the page</p>", "default-src 'none'")


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@pytest.fixture
def page() -> Iterator[OneShotPage]:
    with one_shot_page(free_port()) as served:
        served.show(PAGE)
        yield served


class Reply:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.text = response.read().decode()
        self.headers = dict(response.getheaders())


def ask(page: OneShotPage, method: str, path: str, body: bytes | None = None, address: str = "127.0.0.1",
        **headers: str) -> Reply:  # fmt: skip
    connection = http.client.HTTPConnection(address, page.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in ({"Host": f"localhost:{page.port}"} | headers).items():
            if value != "-":
                connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def path_of(page: OneShotPage) -> str:
    return page.address.removeprefix(page.origin)


def honest(page: OneShotPage) -> dict[str, str]:
    return {"Origin": page.origin, "Content_Type": "application/json", "X_Page": page.secret}


def in_background(act: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []
    threading.Thread(target=lambda: found.append(act()), daemon=True).start()
    return found


def told(found: list[Any]) -> Any:
    end = time.monotonic() + 10
    while not found and time.monotonic() < end:
        time.sleep(0.005)
    return found[0]


def test_the_page_is_shown_once_with_headers_that_keep_others_out(page: OneShotPage) -> None:
    first, second = ask(page, "GET", path_of(page)), ask(page, "GET", path_of(page))
    assert (first.status, first.text) == (200, PAGE.html)
    assert first.headers["Content-Security-Policy"] == PAGE.policy
    for name, value in (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ):
        assert first.headers[name] == value
    assert second.status == 404
    assert "already been shown" in second.text
    assert "Server" not in first.headers


@pytest.mark.parametrize("path", ["/", "/x", "/favicon.ico", "/answer", "{path}/", "{path}?", "{path}x", "//"])
def test_nothing_is_at_another_address(page: OneShotPage, path: str) -> None:
    assert ask(page, "GET", path.replace("{path}", path_of(page))).status == 404
    assert ask(page, "GET", path_of(page)).status == 200


@pytest.mark.parametrize("host", ["-", "localhost", "127.0.0.1:{port}", "rebound.example:{port}", "LOCALHOST:{port}"])
def test_another_name_of_this_machine_shows_nothing(page: OneShotPage, host: str) -> None:
    assert ask(page, "GET", path_of(page), Host=host.replace("{port}", str(page.port))).status == 404
    assert ask(page, "GET", path_of(page)).status == 200


def test_both_addresses_of_this_machine_are_served(page: OneShotPage) -> None:
    if not module.exists(socket.AF_INET6):
        pytest.skip("this machine has no IPv6")
    assert ask(page, "GET", "/", address="::1").status == 404
    assert ask(page, "GET", path_of(page), address="::1").status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"X_Page": "-"},
        {"X_Page": "x" * 43},
        {"Origin": "-"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "https://shop.example"},
        {"Host": "rebound.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "-"},
        {"Content_Type": "text/plain"},
    ],
)
def test_an_answer_from_elsewhere_is_not_taken(page: OneShotPage, changes: dict[str, str]) -> None:
    assert ask(page, "POST", "/answer", b"{}", **(honest(page) | changes)).status == 403
    with pytest.raises(WorkpacketError, match="no answer within 0 seconds"):
        page.wait(lambda _: (None, Told("", good=True)), 0.05)


@pytest.mark.parametrize("body", [b"", b"{", b'{"a":1,"a":2}', b"\xff", b" " * 70_000])
def test_an_answer_that_is_not_json_is_not_taken(page: OneShotPage, body: bytes) -> None:
    assert ask(page, "POST", "/answer", body, **honest(page)).status == 403


def test_an_answer_at_another_address_is_not_taken(page: OneShotPage) -> None:
    assert ask(page, "POST", "/other", b"{}", **honest(page)).status == 403


@pytest.mark.parametrize("length", ["x", "-1", "9999999", "+2"])
def test_an_answer_of_unknown_length_is_not_taken(page: OneShotPage, length: str) -> None:
    assert ask(page, "POST", "/answer", None, **honest(page), Content_Length=length).status == 403


def test_an_answer_is_judged_while_the_page_waits(page: OneShotPage) -> None:
    reply = in_background(
        lambda: ask(page, "POST", "/answer", b'{"a":1}', **honest(page), Sec_Fetch_Site="same-origin")
    )
    assert page.wait(lambda document: (document, Told("done", good=True)), 10) == {"a": 1}
    assert json.loads(told(reply).text) == {"text": "done", "good": True}
    assert ask(page, "POST", "/answer", b"{}", **honest(page)).status == 403


def test_a_refusal_is_told_to_the_page_too(page: OneShotPage) -> None:
    reply = in_background(lambda: ask(page, "POST", "/answer", b"{}", **honest(page)))

    def judge(_: object) -> tuple[None, Told]:
        raise WorkpacketError("approval_not_given", "nothing was signed")

    with pytest.raises(WorkpacketError, match="nothing was signed"):
        page.wait(judge, 10)
    assert json.loads(told(reply).text) == {"text": "nothing was signed", "good": False}


def test_an_error_of_ours_ends_the_page_too(page: OneShotPage) -> None:
    reply = in_background(lambda: ask(page, "POST", "/answer", b"{}", **honest(page)))
    with pytest.raises(ZeroDivisionError):
        page.wait(lambda _: (1 // 0, Told("", good=True)), 10)
    assert json.loads(told(reply).text)["good"] is False


def test_the_reply_is_delivered_before_the_command_ends() -> None:
    with one_shot_page(free_port()) as page:
        reply = in_background(lambda: ask(page, "POST", "/answer", b"{}", **honest(page)))
        page.wait(lambda _: (None, Told("done", good=True)), 10)
    assert json.loads(told(reply).text)["text"] == "done"


def test_a_port_in_use_is_no_place_for_the_page() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(WorkpacketError) as caught, one_shot_page(port):
            pass
        assert caught.value.code == "page_port_taken"
        assert f"http://localhost:{port}" in caught.value.message


def test_a_port_in_use_for_one_address_only_is_no_place_either() -> None:
    if not module.exists(socket.AF_INET6):
        pytest.skip("this machine has no IPv6")
    with socket.socket(socket.AF_INET6) as other:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        other.bind(("::1", 0))
        other.listen()
        with pytest.raises(WorkpacketError) as caught, one_shot_page(other.getsockname()[1]):
            pass
        assert caught.value.code == "page_port_taken"


def test_the_port_is_free_again_afterwards() -> None:
    port = free_port()
    for _ in range(3):
        with one_shot_page(port) as page:
            page.show(PAGE)
            assert ask(page, "GET", path_of(page)).status == 200


def test_a_machine_without_ipv6_serves_the_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", _no_ipv6(socket.socket))
    assert not module.exists(socket.AF_INET6)
    assert module.exists(socket.AF_INET)


def _no_ipv6(real: type[socket.socket]) -> Callable[..., socket.socket]:
    def opened(family: int = -1, *arguments: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError("Address family not supported by protocol")
        return real(family, *arguments)

    return opened


def test_connections_that_say_nothing_keep_no_page_waiting(page: OneShotPage) -> None:
    silent = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(20)]
    try:
        assert ask(page, "GET", path_of(page)).status == 200
    finally:
        for connection in silent:
            connection.close()


def test_a_connection_that_was_opened_in_advance_ends_with_the_page() -> None:
    with one_shot_page(free_port()) as page:
        early = socket.create_connection(("127.0.0.1", page.port))
        assert ask(page, "GET", "/").status == 404
    early.settimeout(5)
    with early, contextlib.suppress(ConnectionResetError):
        assert early.recv(1) == b""


def test_other_methods_are_not_served(page: OneShotPage) -> None:
    for method in ("PUT", "HEAD", "OPTIONS", "DELETE"):
        assert ask(page, method, path_of(page)).status == 501


def test_each_page_has_secrets_of_its_own() -> None:
    pages = [OneShotPage(1024) for _ in range(3)]
    assert len({page.address for page in pages} | {page.secret for page in pages}) == 6
