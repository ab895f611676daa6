"""What lists say is the same whether it was cached or not, and only what changed is read again."""

from __future__ import annotations

import copy
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from ledger.stories import Story
from workpacket.ledger.log import Log, read_log
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.shell import cache as cache_module
from workpacket.shell import kept_logs
from workpacket.shell.cache import NO_CACHE, Cache, CachedOutput, RestsOn
from workpacket.shell.governed_files import LOG_STATE, find_governed
from workpacket.shell.kept_logs import glances

AT_REST_NS = 20_000_000
Elsewhere = Mapping[str, Mapping[str, str]]
_KINDS = ("noted", "claimed", "released", "blocked", "amended", "run.linked", "waived", "submitted", "abandoned")


class Tree:
    """A repository with only logs, and the stories in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder, self.name = root / ".git", ""
        self.stories: dict[str, Story] = {}
        self.chance = random.Random(5)
        for number in range(6):
            self.add_packet(f"WP-1-P{number}-v1")

    def add_packet(self, name: str) -> None:
        self.stories[name] = Story(name)
        self.stories[name].tell("created", "activated")
        self.write(name)

    def write(self, name: str) -> None:
        folder = self.root / LOG_FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in self.stories[name].files().items():
            if not (folder / file).exists():
                (folder / file).write_bytes(data)

    def any_file(self) -> Path:
        return self.chance.choice(sorted(path for path in (self.root / LOG_FOLDER).rglob("*.json")))

    def recomputed(self) -> object:
        return self._said(NO_CACHE)

    def linked(self, name: str) -> Tree:
        """Return a work tree with the same files and the same cache."""
        other = Tree(self.root.with_name(name))
        shutil.rmtree(other.root)
        shutil.copytree(self.root, other.root)
        other.stories = {name: Story.__new__(Story) for name in self.stories}
        for packet, story in self.stories.items():
            vars(other.stories[packet]).update(copy.deepcopy(vars(story)))
        other.folder, other.name = self.folder, name
        return other

    def cached(self) -> object:
        cache = Cache(str(self.folder), "test", tree=self.name)
        try:
            return self._said(cache)
        finally:
            cache.close()

    def _said(self, cache: Cache) -> object:
        try:
            return glances(find_governed(str(self.root)), cache)
        except WorkpacketError as error:  # such as a folder among the events
            return error.code, error.path

    def rest(self) -> None:
        time.sleep(AT_REST_NS * 2e-9)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(cache_module, "RACY_NS", AT_REST_NS)
    return Tree(tmp_path)


def _append(tree: Tree) -> None:
    name = tree.chance.choice(sorted(tree.stories))
    tree.stories[name].add(tree.chance.choice(_KINDS))
    (tree.root / LOG_FOLDER / name).mkdir(exist_ok=True)
    tree.write(name)


def _edit_in_place(tree: Tree) -> None:
    """The names, the size and the time of the last change are as before."""
    path = tree.any_file()
    before = path.stat()
    data = path.read_bytes()
    path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _remove(tree: Tree) -> None:
    tree.any_file().unlink()


def _add_a_foreign_file(tree: Tree) -> None:
    (tree.any_file().parent / f"note-{tree.chance.random()}.txt").write_text("x")


def _edit_below(tree: Tree) -> None:
    folder = tree.any_file().parent / "below"
    folder.mkdir(exist_ok=True)
    (folder / f"{'a' * 64}.json").write_text(str(tree.chance.random()))


def _swap_two(tree: Tree) -> None:
    one, two = tree.any_file(), tree.any_file()
    aside = tree.root / "aside"
    one.rename(aside)
    if two != one:
        two.rename(one)
    aside.rename(two)


def _add_packet(tree: Tree) -> None:
    tree.add_packet(f"WP-1-New{tree.chance.randrange(10**6)}-v1")


def _lose_a_log(tree: Tree) -> None:
    folder = tree.any_file().parent
    folder.rename(tree.root / f"lost-{tree.chance.random()}")


CHANGES: tuple[Callable[[Tree], None], ...] = (
    _append, _edit_in_place, _remove, _add_a_foreign_file, _edit_below, _swap_two, _add_packet, _lose_a_log,
)  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_what_was_cached_is_what_would_be_computed(tree: Tree, change: Callable[[Tree], None]) -> None:
    for _ in range(4):
        tree.rest()
        assert tree.cached() == tree.recomputed()
        change(tree)
        assert tree.cached() == tree.recomputed()
        tree.chance.choice(CHANGES)(tree)
        assert tree.cached() == tree.recomputed()


def test_only_the_packets_that_changed_are_read_again(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    computed = kept_logs._computed

    def counted(root: str, names: Sequence[str], elsewhere: Elsewhere) -> Iterator[tuple[str, str, str]]:
        read.extend(names)
        return computed(root, names, elsewhere)

    monkeypatch.setattr(kept_logs, "_computed", counted)
    tree.rest()
    tree.cached()
    assert len(read) == 6
    tree.cached()
    assert len(read) == 6
    tree.stories["WP-1-P3-v1"].add("noted")
    tree.write("WP-1-P3-v1")
    tree.cached()
    assert read[6:] == ["WP-1-P3-v1"]


@pytest.fixture
def folded(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packets whose logs were decoded, in this process."""
    found: list[str] = []

    def noted(name: str, files: Mapping[str, bytes]) -> Log:
        found.append(name)
        return read_log(name, files)

    monkeypatch.setattr(kept_logs, "MANY", 0)
    monkeypatch.setattr(kept_logs, "read_log", noted)
    return found


@pytest.mark.share(5)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_work_trees_share_what_is_known(tree: Tree, folded: list[str], change: Callable[[Tree], None]) -> None:
    tree.rest()
    tree.cached()
    known = len(folded)
    other = tree.linked("other")
    other.rest()

    found = other.cached()
    assert len(folded) == known
    assert found == tree.cached() == tree.recomputed()
    for _ in range(3):
        change(other)
        assert other.cached() == other.recomputed()
        tree.chance.choice(CHANGES)(tree)
        other.rest()
        assert tree.cached() == tree.recomputed()
        assert other.cached() == other.recomputed()


def test_a_log_that_was_changed_in_place_is_not_taken_for_the_one_it_was(tree: Tree, folded: list[str]) -> None:
    tree.rest()
    tree.cached()
    other = tree.linked("other")
    path = other.any_file()
    path.write_bytes(path.read_bytes().replace(b"WP-1", b"WP-2"))
    other.rest()
    folded.clear()

    assert other.cached() == other.recomputed()
    assert folded[0] == path.parent.name


_TWO_LOOKS = """
import sys
from workpacket.shell import cache
from workpacket.shell.cache import Cache, LogState
kept = Cache(sys.argv[1] + "/.git", "test")
alone = LogState(sys.argv[1], kept)
cache._WORTH_A_FORK = 1
forked = LogState(sys.argv[1], kept)
assert (forked.stamp, forked.newest, list(forked.folders)) == (alone.stamp, alone.newest, list(alone.folders))
kept.close()
cache._look = lambda top, names, known, look=cache._look: look(top, names, known) if len(names) != 3 else 1 / 0
try:
    LogState(sys.argv[1], cache.NO_CACHE)
except ZeroDivisionError:
    print("the same")
"""


def test_two_processes_see_what_one_sees(tree: Tree) -> None:
    """In a program of its own, because a copy is made only of a process with one thread."""
    said = subprocess.run(
        [sys.executable, "-c", _TWO_LOOKS, str(tree.root)], capture_output=True, text=True, check=False
    )
    assert said.stdout == "the same\n", said.stderr


def test_a_log_that_was_just_written_is_not_cached_yet(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "RACY_NS", 3_600 * 10**9)
    tree.cached()
    cache = Cache(str(tree.root / ".git"), "test")
    assert not cache.recall("glance", sorted(tree.stories))
    cache.close()


def test_two_processes_say_what_one_says(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree.recomputed()
    monkeypatch.setattr(kept_logs, "_WORTH_A_PROCESS", 1)
    monkeypatch.setattr(kept_logs, "_BATCH", 2)
    assert tree.recomputed() == before


@pytest.mark.share(5)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_output_that_rests_on_the_log_is_not_shown_after_a_change(tree: Tree, change: Callable[[Tree], None]) -> None:
    for _ in range(3):
        tree.rest()
        _shown(tree).keep(0, "text", RestsOn((LOG_STATE,)))
        assert _shown(tree).recall() == (0, "text")
        change(tree)
        assert _shown(tree).recall() is None


def _shown(tree: Tree) -> CachedOutput:
    """The output of a new process, which looks at the log again."""
    return CachedOutput(Cache(str(tree.root / ".git"), "test"), str(tree.root), [], ("next",))
