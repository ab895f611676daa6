"""A page to ask a person in their browser: it is served once, on this machine only, and accepts one answer.

What the page defends against, and how: - pages on other sites: the address contains a token that they cannot know, Host
and Origin must be exactly those of this page, and an answer must repeat a second secret, which is only in the page; -
foreign names that point to this machine (DNS rebinding): their Host is refused; - a second use of the address, from a
history or a list of processes: the page is shown once; - browsers and other programs that connect and send nothing:
each connection has its own thread and ten seconds.

The answer is judged in the thread that asked, while the browser waits for the result. Programs running under the same
account can do everything that the browser can: see docs/security.md.
"""

from __future__ import annotations

import hmac
import json
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import ClassVar, NamedTuple, TypeVar

from workpacket.approvals.fields import load_json
from workpacket.approvals.webauthn import LOCAL, local_origin
from workpacket.problem import WorkpacketError
from workpacket.value import Value

# How long to wait for a person.
PATIENCE = 600.0
# How long to wait for a connection, and how much of an answer to read.
_SILENCE = 10.0
_LARGEST_ANSWER = 64 * 1024
ADDRESSES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))

T = TypeVar("T")


class Shown(Value):
    """The page and its content security policy."""

    html: str
    policy: str


class Told(NamedTuple):
    """What the page shows at the end."""

    text: str
    good: bool


class _Posted:
    """An answer on its way to the thread that asked, and the reply on its way back."""

    def __init__(self, document: object) -> None:
        self.document = document
        self.reply = Told("the command exited before it processed the answer", good=False)
        self.replied = threading.Event()


class OneShotPage:
    """The page at `address`; its answer must repeat `secret`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.origin = local_origin(port)
        self.secret = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._shown: Shown | None = None
        self._answered = False
        self._posted: queue.Queue[_Posted] = queue.Queue()

    @property
    def address(self) -> str:
        return f"{self.origin}/{self._token}"

    def show(self, shown: Shown) -> None:
        self._shown = shown

    def take(self, path: str) -> Shown | None:
        """Return the page for this path, but only once."""
        if not hmac.compare_digest(path.encode(), f"/{self._token}".encode()):
            return None
        with self._lock:
            shown, self._shown = self._shown, None
        return shown

    def accept(self, secret: str, document: object) -> _Posted | None:
        """Return the first answer that repeats the secret."""
        if not hmac.compare_digest(secret.encode("utf-8", "surrogatepass"), self.secret.encode()):
            return None
        with self._lock:
            if self._answered:
                return None
            self._answered = True
        posted = _Posted(document)
        self._posted.put(posted)
        return posted

    def wait(self, judge: Callable[[object], tuple[T, Told]], patience: float = PATIENCE) -> T:
        """Return the result of `judge` for the answer. If it raises an error, the page shows the error, too."""
        try:
            posted = self._posted.get(timeout=patience)
        except queue.Empty:
            what = f"there was no answer within {round(patience)} seconds; nothing was signed"
            raise WorkpacketError("approval_not_given", what, hint="run the command again") from None
        try:
            judged, posted.reply = judge(posted.document)
        except WorkpacketError as error:
            posted.reply = Told(error.message, good=False)
            raise
        finally:
            posted.replied.set()
        return judged


@contextmanager
def one_shot_page(port: int) -> Iterator[OneShotPage]:
    """Serve the page until the `with` block ends; a reply that is being sent is still delivered."""
    page = OneShotPage(port)
    with ExitStack() as stack:
        servers: list[_PageServer] = []
        for family, address in ADDRESSES:
            if exists(family):
                servers.append(_bound(family, address, page))
                stack.callback(servers[-1].server_close)
        for server in servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.shutdown)
        stack.callback(_let_replies_go, servers)
        yield page


def _let_replies_go(servers: list[_PageServer]) -> None:
    # The browser must get the last page before the server ends, but may never ask for the rest of it.
    end = time.monotonic() + 1.0
    while any(server.replying for server in servers) and time.monotonic() < end:
        time.sleep(0.01)


def exists(family: socket.AddressFamily) -> bool:
    """Whether this machine has this address. Without IPv6, browsers do not try the IPv6 address either."""
    if family is socket.AF_INET:
        return True
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.bind(("::1", 0))
    except OSError:
        return False
    return True


def _bound(family: socket.AddressFamily, address: str, page: OneShotPage) -> _PageServer:
    try:
        return _PageServer(family, address, page)
    except OSError as error:
        raise WorkpacketError(
            "page_port_taken",
            f"{page.origin} is in use by another program, and no other port can be used: {error.strerror}",
            hint="stop the program that uses the port, or approve in a terminal, without --browser",
        ) from error


class _PageServer(ThreadingHTTPServer):
    daemon_threads = True
    # On Windows, this option would let two programs listen on one port.
    allow_reuse_address = os.name != "nt"

    def __init__(self, family: socket.AddressFamily, address: str, page: OneShotPage) -> None:
        self.address_family = family
        self.page = page
        self.replying = 0
        self._connected: set[socket.socket] = set()
        super().__init__((address, page.port), _Handler)

    def server_bind(self) -> None:
        if self.address_family is socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # Not the method of HTTPServer, which asks the network for the name of the address.
        TCPServer.server_bind(self)

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        self._connected.add(connection)
        return connection, address

    def close_request(self, request: object) -> None:
        self._connected = {each for each in self._connected if each is not request}
        super().close_request(request)  # type: ignore[arg-type]  # a TCP server has sockets

    def server_close(self) -> None:
        """Also close the connections that browsers open in advance, so that those connections do not reach the next
        page."""
        super().server_close()
        for connection in tuple(self._connected):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a browser that closes a connection: that does not concern the person at the terminal."""


class _Handler(BaseHTTPRequestHandler):
    server: _PageServer
    timeout = _SILENCE
    protocol_version = "HTTP/1.1"
    _HEADERS: ClassVar = {
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Connection": "close",
    }

    def do_GET(self) -> None:
        shown = self.server.page.take(self.path) if self._is_ours() else None
        if shown is None:
            self._send(
                404, "text/plain", "There is no page here, or it has already been shown. Run the command again.\n"
            )
            return
        self._send(200, "text/html", shown.html, {"Content-Security-Policy": shown.policy})

    def do_POST(self) -> None:
        posted = self._accepted()
        if posted is None:
            self._send(403, "text/plain", "This answer was not accepted.\n")
            return
        self.server.replying += 1
        try:
            posted.replied.wait(_SILENCE)
            reply = json.dumps({"text": posted.reply.text, "good": posted.reply.good})
            self._send(200, "application/json", reply)
        finally:
            self.server.replying -= 1

    def _accepted(self) -> _Posted | None:
        """Return the answer in this request, if there is one."""
        headers, page = self.headers, self.server.page
        length = headers.get("Content-Length", "")
        fits = length.isascii() and length.isdigit() and len(length) <= 6 and int(length) <= _LARGEST_ANSWER
        if not (self._is_ours() and self.path == "/answer" and fits):
            return None
        if headers.get_all("Origin") != [page.origin] or headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return None
        if headers.get("Content-Type") != "application/json":
            return None
        try:
            document = load_json(self.rfile.read(int(length)))
        except WorkpacketError:
            return None
        return page.accept(headers.get("X-Page", ""), document)

    def _is_ours(self) -> bool:
        return self.headers.get_all("Host") == [f"{LOCAL}:{self.server.page.port}"]

    def _send(self, status: int, kind: str, text: str, more: dict[str, str] | None = None) -> None:
        data = text.encode("utf-8", "backslashreplace")
        self.send_response_only(status)
        for name, value in {**self._HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name that its caller uses
        """Print nothing: the terminal is for the person, not for requests."""
