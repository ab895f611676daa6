"""Stores that a test opened are closed after it: newer Pythons warn of connections that nobody closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from workpacket.runtime.stores.sqlite.access import Access


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    opened: list[Access] = []
    really_open = Access._open

    def opening(access: Access, now: int, accept_rollback: bool) -> None:
        really_open(access, now, accept_rollback)
        opened.append(access)

    with pytest.MonkeyPatch.context() as patch:  # one of its own, which no test undoes
        patch.setattr(Access, "_open", opening)
        yield
    for access in opened:
        access.close()
