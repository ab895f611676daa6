"""A server of the live board in a process of its own, and requests as a browser or an attacker sends them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

PATIENCE = 30.0


@dataclass
class Reply:
    status: int
    head: str
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def header(self, name: str) -> str:
        found = re.search(rf"^{re.escape(name)}: (.*?)\r?$", self.head, re.MULTILINE | re.IGNORECASE)
        return found[1] if found else ""


def _is_whole(received: bytes) -> bool:
    """Whether the connection is kept open after this reply, and its body has the length that it says."""
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"^content-length: *([0-9]+)\r?$", head, re.MULTILINE | re.IGNORECASE)
    kept = re.search(rb"^connection: *close", head, re.MULTILINE | re.IGNORECASE) is None
    if b"text/event-stream" in head:
        return b"\r\n\r\n" in received  # its body does not end
    return b"\r\n\r\n" in received and kept and length is not None and len(body) >= int(length[1])


@dataclass
class Browser:
    """What a browser sends: the cookie, and where the request comes from."""

    port: int
    cookie: str = ""
    # The secret part with which every path of the server begins.
    prefix: str = ""

    def raw(self, data: bytes, *, patience: float = PATIENCE) -> Reply:
        with socket.create_connection(("127.0.0.1", self.port), timeout=patience) as connection:
            connection.sendall(data)
            received = b""
            # A connection that stays open is closed by the server only seconds later.
            while not _is_whole(received) and (part := connection.recv(1 << 20)):
                received += part
        head, _, body = received.partition(b"\r\n\r\n")
        return Reply(int(head.split(b" ")[1]), head.decode("latin-1"), body)

    def ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None) -> Reply:
        """`path` is as if the server had no secret part in its paths, or a link of a page."""
        if path.startswith("/") and not path.startswith(("/static/", f"{self.prefix}/")):
            path = f"{self.prefix}{path}"
        return self.ask_outside(method, path, body, headers)

    def ask_outside(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None
    ) -> Reply:
        given: dict[str, str | None] = {"Host": f"localhost:{self.port}", "Connection": "close"}
        if self.cookie:
            given["Cookie"] = self.cookie
        if method == "POST":
            given |= {"Origin": f"http://localhost:{self.port}", "Content-Type": "application/x-www-form-urlencoded"}
        if body:
            given["Content-Length"] = str(len(body))
        given |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value is not None)
        return self.raw(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "surrogateescape") + body)

    def head(self, path: str) -> bytes:
        """A request whose connection stays open."""
        lines = f"GET {self.prefix}{path} HTTP/1.1\r\nHost: localhost:{self.port}\r\nCookie: {self.cookie}"
        return f"{lines}\r\n\r\n".encode()

    def get(self, path: str) -> Reply:
        return self.ask("GET", path)

    def enter(self, token: str) -> Reply:
        reply = self.get(f"/?token={token}")
        self.cookie = reply.header("Set-Cookie").partition(";")[0]
        return reply

    def csrf(self, page: str) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(page).text)
        return found[1] if found else ""

    def act(self, action: str, page: str, **given: str) -> Reply:
        """Send a form of a page, and follow to its result."""
        fields = {"csrf": self.csrf(page), **given}
        reply = self.ask("POST", f"/0/act/{action}", urlencode(fields).encode())
        return self.get(reply.header("Location")) if reply.status == 303 else reply


@dataclass
class Server:
    process: subprocess.Popen[str]
    address: str
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].partition("/")[0])

    @property
    def prefix(self) -> str:
        return self.address.partition("/?")[0].partition(f"localhost:{self.port}")[2]

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]

    def browser(self) -> Browser:
        """A browser that has used the address."""
        made = Browser(self.port, prefix=self.prefix)
        made.enter(self.token)
        assert made.cookie
        return made

    def wait_for_its_commands(self) -> None:
        """Until every process that it began has ended, also after it was killed."""
        end = time.monotonic() + PATIENCE
        while any(group == self.process.pid for group in _groups(but=self.process.pid)):
            assert time.monotonic() < end, "a command of the server does not end"
            time.sleep(0.02)

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit status, and what it said of errors."""
        self.process.send_signal(how)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


def _groups(but: int) -> Iterator[int]:
    """The process groups of all processes but one."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(path.parent.name) != but and fields[0] != "Z":
                yield int(fields[2])


@contextmanager
def served(*roots: Path, options: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    # As the installed script, which does not look for modules in the folder where it is started.
    command = [sys.executable, "-P", "-m", "workpacket", "board", "serve", "--json", *options, "--", *map(str, roots)]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(environment or {})}
    process = subprocess.Popen(
        command,
        cwd=roots[0],
        env=settings,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        told = json.loads(line)["data"]
        yield Server(process, told["address"], told)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
