"""Keys and receipts of effects on PostgreSQL: the same tests as on the other stores."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from postgres.clocked import ClockedPostgres
from postgres.server import Server
from runtime.test_effect_receipts import *  # noqa: F403  # all of them
from runtime.worlds import World

pytestmark = pytest.mark.share(7)

_NUMBERS = count(1)


@pytest.fixture  # type: ignore[no-redef]  # in the place of the other stores
def world(server: Server) -> Iterator[World]:
    world = World()
    url = server.url(workpacket_schema="receipts", workpacket_project=f"p{next(_NUMBERS)}")
    world.store = ClockedPostgres(url, world.clock)
    yield world
    world.store.close()
