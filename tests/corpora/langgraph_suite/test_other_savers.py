"""Threads that LangGraph's own savers wrote, taken over: the same contents, and the same next answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from langgraph_saver.other_savers import THREADS, answers, contents, converse
from langgraph_saver.worlds import SETTINGS, on
from postgres.conftest import server, url  # noqa: F401  # the server of the tests of PostgreSQL is used here too
from workpacket.runtime.langgraph.taken_over import taken_over, threads_at
from workpacket.runtime.stores.contract import contents_of
from workpacket.runtime.stores.sqlite.store import SQLiteStore


@pytest.fixture(params=["sqlite", "postgres"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    """Where the other saver stores its threads, and the saver."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            SqliteSaver = import_module("langgraph.checkpoint.sqlite").SqliteSaver

            where = str(tmp_path / "checkpoints.sqlite")
            yield where, stack.enter_context(SqliteSaver.from_conn_string(where))
        else:
            PostgresSaver = import_module("langgraph.checkpoint.postgres").PostgresSaver

            where = request.getfixturevalue("server").url()
            saver = stack.enter_context(PostgresSaver.from_conn_string(where))
            saver.setup()
            yield where, saver


def test_threads_of_other_savers_are_taken_over_as_they_were(other: tuple[str, Any], tmp_path: Path) -> None:
    where, saver = other
    converse(saver)
    store = SQLiteStore(tmp_path / "runs.db")
    with threads_at(where) as source:
        found = [*taken_over(source, store, SETTINGS)]
    assert [(one.thread, one.fault) for one in found] == [(thread, None) for thread in sorted(THREADS)]
    for thread in THREADS:
        expected = contents(saver, thread)
        assert len(expected) >= 7
        assert contents(on(store), thread) == expected
        assert answers(on(store), thread) == answers(saver, thread)
    assert contents_of(store) == []
    store.close()
