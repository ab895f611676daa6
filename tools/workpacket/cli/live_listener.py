"""How `serve` listens: on loopback, until it is told to stop, closing connections that are slow or silent, and adding
the headers that every answer has.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workpacket.cli.live_server import Live
from workpacket.git.repository import find_repository
from workpacket.problem import WorkpacketError
from workpacket.shell.actor import acting
from workpacket.shell.one_shot_page import ADDRESSES, exists

_BACKLOG: Final = 256
# A connection that asks nothing, and one that does not take its answer, is ended after this many seconds.
_SILENCE: Final = 10.0
_CONNECTIONS: Final = 4096


_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    # Not `no-referrer`: a browser would then send no Origin with a form either.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Listener:
    """Listens from the start, so that its address is already bound when it is announced; `serve` answers until a
    signal."""

    def __init__(self, folders: Sequence[str], port: int, *, write: bool, actor: str) -> None:
        roots = dict.fromkeys(_root(folder) for folder in folders)
        self._sockets = _bound(port)
        self.port: int = self._sockets[0].getsockname()[1]
        name = _actor(next(iter(roots)), actor, needed=write)
        self._live = Live(list(roots), self.port, write=write, actor=actor, name=name)
        self.address = f"http://localhost:{self.port}{self._live.home}/?token={self._live.token()}"
        self.names = [each.name for each in self._live.served]
        self._server: _Server | None = None
        self._is_ending = False

    def __enter__(self) -> Listener:
        # From now on a signal ends the server, even before uvicorn listens for signals. Uvicorn repeats the signal once
        # it has ended; by then there is nothing left to end.
        self._before = {number: signal.signal(number, self._end) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for each in self._sockets:
            each.close()

    def serve(self) -> None:
        _allow_connections()
        asyncio.run(self._serve())

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._is_ending = True
        if self._server is not None:
            self._server.handle_exit(number, frame)

    async def _serve(self) -> None:
        config = uvicorn.Config(
            Guard(self._live.application(), self._live), http="h11", ws="none", lifespan="off", log_config=None,
            log_level="critical", access_log=False, server_header=False,
            proxy_headers=False, timeout_keep_alive=5, limit_concurrency=_CONNECTIONS,
        )  # fmt: skip
        self._server = server = _Server(config, self._live)
        server.should_exit = self._is_ending
        around = [asyncio.create_task(each.watch()) for each in self._live.served]
        around.append(asyncio.create_task(_end_silent(server)))
        around.append(asyncio.create_task(self._live.prepare()))
        try:
            await server.serve(sockets=self._sockets)
        finally:
            for task in around:
                task.cancel()
            await self._live.stop()


class _Server(uvicorn.Server):
    """Tells the streams that the server is shutting down: otherwise they would wait for changes."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self._live, self._loop = live, asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._live.stopping.set)


class Guard:
    """Refuses requests that are not allowed, and adds the headers that every answer has."""

    def __init__(self, inside: ASGIApp, live: Live) -> None:
        self._inside, self._live = inside, live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = list(_with_policy(message["headers"]))
            await send(message)

        refused = self._live.refusal(scope)
        request = Request(scope)
        answer: ASGIApp = self._inside
        if refused is not None:
            answer = Response(f"{refused[1]}\n", refused[0], media_type="text/plain")
        elif not scope["path"].startswith("/static/"):
            path = scope["path"].removeprefix(self._live.home)
            is_inside = len(path) < len(scope["path"]) and path.startswith("/")
            if not is_inside or not (path == "/" or self._live.session(request)):
                answer = self._live.stranger(Request({**scope, "headers": []}))
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await answer(scope, receive, guarded)


def _with_policy(headers: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    own_policy = any(name == b"x-own-policy" for name, _ in headers)
    given = {name for name, _ in headers}
    yield from (pair for pair in headers if pair[0] != b"x-own-policy")
    for name, value in _HEADERS.items():
        key = name.lower().encode()
        if key not in given and not (own_policy and name == "Content-Security-Policy"):
            yield key, value.encode()


async def _end_silent(server: uvicorn.Server) -> None:
    """Close connections that have sent no request, or only part of one, for too long, and those whose client does not
    read."""
    quiet: dict[Any, float] = {}
    stuck: dict[Any, int] = {}
    while True:
        await asyncio.sleep(_SILENCE / 4)
        now = time.monotonic()
        open_now = set(server.server_state.connections)
        quiet = {one: since for one, since in quiet.items() if one in open_now}
        was, stuck = stuck, {}
        for one in open_now:
            transport: Any = getattr(one, "transport", None)
            cycle: Any = getattr(one, "cycle", None)
            if transport is None:
                continue
            left = transport.get_write_buffer_size()
            if left:
                stuck[one] = left
                if was.get(one) != left:
                    quiet.pop(one, None)
            if (cycle is None or cycle.response_complete) or left:
                if now - quiet.setdefault(one, now) > _SILENCE:
                    transport.abort()
            else:
                quiet.pop(one, None)


def _allow_connections() -> None:
    """Allow as many open files as the system permits: some systems begin with 256."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _CONNECTIONS * 2 if hard == resource.RLIM_INFINITY else min(hard, _CONNECTIONS * 2)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _root(folder: str) -> str:
    from pathlib import Path

    if not os.path.isdir(folder):
        raise WorkpacketError("path_not_found", f"{folder} is not a folder", hint="give a repository or a work tree")
    return str(find_repository(Path(folder).resolve()).root)


def _actor(root: str, actor: str, *, needed: bool) -> str:
    """Return who is acting or viewing, which may be unknown."""
    from pathlib import Path

    try:
        return acting(find_repository(Path(root)), actor).id
    except WorkpacketError:
        if needed:
            raise
        return ""


def _bound(port: int) -> list[socket.socket]:
    """Return sockets for all loopback addresses of this machine, on one port, so that no other program can take that
    port on one of them.
    """
    for _ in range(20):
        found: list[socket.socket] = []
        try:
            for family, address in ADDRESSES:
                if exists(family):
                    found.append(socket.create_server(
                        (address, found[0].getsockname()[1] if found else port), family=family, backlog=_BACKLOG
                    ))  # fmt: skip
        except OSError as error:
            for each in found:
                each.close()
            if port or not found:
                hint = "choose a different port, or none: workpacket board serve"
                raise WorkpacketError(
                    "page_port_taken", f"port {port} cannot be used: {error.strerror}", hint=hint
                ) from error
            continue
        return found
    raise WorkpacketError(
        "page_port_taken", "no port is free on all of this machine's addresses", hint="workpacket board serve"
    )
