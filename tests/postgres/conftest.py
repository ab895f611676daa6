"""One server for all tests of one process; with xdist, of one worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from postgres.server import Server, programs

_NUMBERS = count(1)


@contextmanager
def running_server() -> Iterator[Server]:
    """A server of one's own, which may be stopped."""
    if programs() is None:
        pytest.skip("there is no PostgreSQL on this machine and no wheel that brings it")
    server = Server()
    try:
        server.start()
        yield server
    finally:
        server.remove()


_shared: list[Server] = []


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Each folder whose conftest.py imports this has a fixture of its own: the first one starts the server."""
    if _shared:
        yield _shared[0]
        return
    with running_server() as running:
        _shared.append(running)
        yield running
        _shared.clear()


@pytest.fixture
def url(server: Server) -> str:
    """A project of its own in the schema that all tests share."""
    return server.url(workpacket_project=f"p{next(_NUMBERS)}")


@pytest.fixture
def schema_url(server: Server) -> str:
    """A schema of its own, not yet made."""
    return server.url(workpacket_schema=f"s{next(_NUMBERS)}")
