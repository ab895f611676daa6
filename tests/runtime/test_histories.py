"""Every history that a version ever recorded is still read, verifies, and means what it meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.histories import HISTORIES, refused, summary
from runtime.worlds import World
from workpacket.runtime.records.events import KINDS
from workpacket.runtime.records.state import fold
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine
from workpacket.runtime.stores.transfer import export_lines, import_lines

FOLDER = Path(__file__).parents[1] / "corpora" / "histories"
NEWEST = max(FOLDER.iterdir(), key=lambda folder: int(folder.name))
RECORDED = sorted(FOLDER.glob("*/*.jsonl"))


def test_each_kind_of_history_was_recorded() -> None:
    assert {path.stem for path in RECORDED} >= {history.__name__ for history in HISTORIES}


def test_the_histories_hold_records_of_every_kind() -> None:
    types = {json.loads(line).get("type") for path in RECORDED for line in path.read_text("utf-8").splitlines()}
    assert set(KINDS) - types == set()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_history_means_what_it_meant(path: Path, tmp_path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    expected = json.loads(path.with_suffix(".expected.json").read_text("utf-8"))
    memory, sqlite = MemoryStore(), SQLiteStore(tmp_path / "runs.db")
    for store in (memory, sqlite):
        stream = import_lines(store, lines)
        found = summary(fold(store.read(stream)))
        assert {name: found[name] for name in expected} == expected  # a summary may have grown since
        assert list(export_lines(store, stream)) == lines
    assert examine(sqlite) == ()


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_a_history_is_made_again_to_the_byte(history: Callable[[World], str]) -> None:
    """If not, records have another form now: what was recorded is kept under another name, and this one made anew."""
    world = World()
    stream = history(world)
    recorded = NEWEST / f"{history.__name__}.jsonl"
    assert [*export_lines(world.store, stream)] == recorded.read_text("utf-8").splitlines()
    expected = json.loads(recorded.with_suffix(".expected.json").read_text("utf-8"))
    assert summary(world.runtime.state(stream)) == expected


def test_the_same_life_makes_the_same_bytes() -> None:
    lives = []
    for _ in range(2):
        world = World()
        stream = refused(world)
        lives.append(list(export_lines(world.store, stream)))
    assert lives[0] == lives[1]
