"""`mcp --http`: the server over streamable HTTP, for one account on this machine.

It listens on the loopback address only. Every request needs the token, which pages on other sites cannot know, and must
have this address as its host and, if it has an origin, as its origin (DNS rebinding).
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from typing import Final

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from workpacket.cli.mcp_server import AgentServer
from workpacket.model import exits
from workpacket.problem import WorkpacketError

VARIABLE: Final = "WORKPACKET_MCP_TOKEN"
_HOST: Final = "127.0.0.1"
_SHORTEST: Final = 32


class TokenRequired:
    """Refuse every request without the token, before anything else reads the request."""

    def __init__(self, application: ASGIApp, token: str) -> None:
        self._application = application
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = Headers(scope=scope).getlist("authorization")
            if len(given) != 1 or not hmac.compare_digest(given[0].encode("latin-1"), self._expected):
                refused = PlainTextResponse(
                    "the token is missing or incorrect\n", 401, headers={"WWW-Authenticate": "Bearer"}
                )
                await refused(scope, receive, send)
                return
        await self._application(scope, receive, send)


def application(agents: AgentServer, token: str, port: int) -> ASGIApp:
    hosts = [f"{host}:{port}" for host in (_HOST, "localhost")]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    return TokenRequired(agents.server().streamable_http_app(transport_security=security), token)


def serve_http(actor: Sequence[str], commit: Sequence[str], port: int) -> int:
    """Serve until the process is interrupted."""
    token = os.environ.pop(VARIABLE, "")  # the commands that are run need not know it
    if token and len(token) < _SHORTEST:
        message = f"{VARIABLE} is shorter than {_SHORTEST} characters"
        raise WorkpacketError("invalid_value", message, hint=f"unset {VARIABLE} to have a token generated and printed")
    try:
        listening = socket.create_server((_HOST, port))
    except OSError as error:
        hint = "choose a different port, or none: workpacket mcp --http 0"
        raise WorkpacketError("port_taken", f"port {port} cannot be used: {error.strerror}", hint=hint) from error
    port = listening.getsockname()[1]
    print(f"serving http://{_HOST}:{port}/mcp; press Ctrl-C to stop", file=sys.stderr)
    if not token:
        token = secrets.token_urlsafe(32)
        print(f"every request must have this header: Authorization: Bearer {token}", file=sys.stderr, flush=True)
    agents = AgentServer(actor, commit)
    settings = uvicorn.Config(application(agents, token, port), log_level="warning", access_log=False)

    async def run() -> None:
        try:
            await uvicorn.Server(settings).serve(sockets=[listening])
        finally:
            with anyio.CancelScope(shield=True):
                await agents.close()

    anyio.run(run)
    return exits.OK
