"""The list of runs: a store keeps the lines, and each is used only while the log of its run ends as it did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from workpacket.runtime import RunBlocked, Runtime
from workpacket.runtime import catalog as catalog_module
from workpacket.runtime.catalog import RunLine
from workpacket.runtime.stores.contract import LINES
from workpacket.runtime.stores.sqlite.store import SQLiteStore


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A store that keeps the lines of even two runs."""
    monkeypatch.setattr(catalog_module, "FEW", 1)
    with Runtime.open(tmp_path / "runs.db") as opened:
        for key in ("one", "two", "three"):
            with opened.run("nightly", key=key) as run:
                run.step("load", lambda: 1)
        yield opened


def states(runtime: Runtime) -> dict[str, tuple[str, str]]:
    return {line.id.partition("@")[2]: (line.liveness, line.attention) for line in runtime.runs()}


def derived(runtime: Runtime) -> tuple[RunLine, ...]:
    """The lines as they are without any that were kept."""
    store = runtime.store
    assert isinstance(store, SQLiteStore)
    store.keep_derived(LINES, b"[]")
    return runtime.runs()


def block(runtime: Runtime, key: str) -> None:
    with pytest.raises(RunBlocked), runtime.run("nightly", key=key) as run:
        run.confirm("go on?")


def test_lines_that_were_kept_are_those_that_the_log_gives(runtime: Runtime) -> None:
    block(runtime, "four")
    first = runtime.runs()
    assert isinstance(runtime.store, SQLiteStore)
    assert runtime.store.derived(LINES) is not None, "nothing was kept, so this test tests nothing"
    assert runtime.runs() == first == derived(runtime)


def test_kept_lines_are_read_and_not_derived(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = runtime.runs()
    for reads_the_log in ("read", "latest", "newest", "entries"):
        monkeypatch.setattr(runtime.store, reads_the_log, None)
    assert runtime.runs() == expected


def test_a_run_that_changed_after_it_was_listed_is_listed_as_it_is_now(runtime: Runtime) -> None:
    block(runtime, "four")
    assert states(runtime)["four"] == ("stopped", "needs_confirmation")
    runtime.cancel("nightly@four", "no longer needed")
    assert states(runtime)["four"] == ("cancelled", "run_cancelled")
    block(runtime, "five")
    assert states(runtime)["five"] == ("stopped", "needs_confirmation")
    assert runtime.runs() == derived(runtime)


def test_a_run_that_is_being_worked_on_is_live_whatever_was_kept(runtime: Runtime) -> None:
    block(runtime, "four")
    runtime.runs()
    run_id = "nightly@four"
    lease = runtime.store.acquire(run_id, "another machine", 60)
    assert {line.id: line.holder for line in runtime.runs()}[run_id] == "another machine"
    runtime.store.release(lease)
    assert {line.id: line.holder for line in runtime.runs()}[run_id] == ""


def test_a_prefix_lists_the_same_lines(runtime: Runtime) -> None:
    everything = runtime.runs()
    assert runtime.runs("nightly@t") == tuple(line for line in everything if line.id.startswith("nightly@t"))
    with runtime.run("weekly", key="one"), runtime.run("weekly", key="two"):
        pass
    runtime.runs("weekly")
    assert runtime.runs() == derived(runtime)


def test_damaged_lines_are_not_used(runtime: Runtime) -> None:
    expected = runtime.runs()
    assert isinstance(runtime.store, SQLiteStore)
    with runtime.store.access.writing as db:
        db.execute("UPDATE derived SET content = replace(content, 'completed', 'cancelled')")
    assert runtime.store.derived(LINES) is None
    assert runtime.runs() == expected


def test_a_damaged_log_is_noticed_when_its_line_is_derived_again(runtime: Runtime) -> None:
    runtime.runs()
    store = runtime.store
    assert isinstance(store, SQLiteStore)
    with store.access.writing as db:
        db.execute("DROP TRIGGER events_stay_as_they_are")
        db.execute("UPDATE events SET data = replace(data, 'steps', 'stops') WHERE type = 'run.completed'")
    assert {line.attention for line in derived(runtime)} == {"log_damaged"}
    assert store.derived(LINES) == b"[]", "the line of a damaged log was kept"


def test_the_name_of_a_pruned_run_is_not_kept(runtime: Runtime, tmp_path: Path) -> None:
    runtime.runs()
    assert runtime.prune(2**62) == ("nightly@one", "nightly@three", "nightly@two")
    assert runtime.runs() == ()
    with closing(SQLiteStore(tmp_path / "runs.db")) as store:
        assert store.derived(LINES) is None


def test_a_store_that_cannot_be_written_is_listed_without_keeping_anything(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = derived(runtime)

    def full(*_: object) -> None:
        raise RunBlocked("no space left", code="disk_full")

    monkeypatch.setattr(SQLiteStore, "keep_derived", full)
    assert runtime.runs() == expected


def test_rebuilding_the_index_forgets_what_was_derived(runtime: Runtime) -> None:
    expected = runtime.runs()
    assert isinstance(runtime.store, SQLiteStore)
    runtime.store.rebuild_index()
    assert runtime.store.derived(LINES) is None
    assert runtime.runs() == expected
