"""What is asked of all packets: the same from documents and from summaries, and never what was true before a change."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.governed import Governed
from workpacket.cli import read_only
from workpacket.git.repository import find_repository
from workpacket.model.layout import LOG_FOLDER
from workpacket.shell import cache as cache_module
from workpacket.shell import checking, kept_logs
from workpacket.shell.cache import Cache

NAMES = tuple(f"WP-1-P{number}-v1" for number in range(4))
STUBS = ".GOV/task_packets/stubs"
AT_REST_NS = 20_000_000


def _begin(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAMES[0], depends=f"Needs {NAMES[1]}, after {NAMES[0]} itself.")
    governed.stub(NAMES[1], depends=f"{NAMES[3]} and WP-1-Unknown-v2 (WP07)")
    governed.stub(NAMES[2], depends=f"{NAMES[2]} and {NAMES[3]}")
    governed.activate(NAMES[3])
    # A stub that calls itself something else, and so waits for the one that it is named after.
    governed.replace(f"{STUBS}/{NAMES[2]}.md", f"- WP_ID: {NAMES[2]}", "- WP_ID: WP-1-Else-v1")


def test_summaries_say_what_the_documents_say(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    _begin(governed)
    repository = find_repository(governed.root)
    cache = Cache(str(repository.common_dir), "test")
    read = read_only.listed_facts(repository, cache, documents=True)
    whole = read_only.all_facts(repository)
    monkeypatch.setattr(kept_logs, "MANY", 0)
    told = read_only.listed_facts(repository, cache, documents=True)
    cache.close()
    for name in NAMES:
        assert read.packets[name].stub_says is None
        assert list(told.packets[name].dependencies()) == list(whole.packets[name].dependencies())
        assert list(told.packets[name].dependencies()) == list(read.packets[name].dependencies())
        assert told.packets[name].risk == read.packets[name].risk
    assert told.packets[NAMES[0]].stub_says is not None
    assert list(told.packets[NAMES[0]].dependencies()) == [NAMES[1]]


def _an_event(governed: Governed, chance: random.Random) -> Path:
    return chance.choice(sorted((governed.root / LOG_FOLDER).glob("*/*")))


def _edited_in_place(path: Path, old: bytes, new: bytes) -> None:
    """The size stays, and the time of the last change is set back."""
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _forge_an_event(governed: Governed, chance: random.Random) -> None:
    _edited_in_place(_an_event(governed, chance), b"2026", b"2027")


def _lose_an_event(governed: Governed, chance: random.Random) -> None:
    _an_event(governed, chance).unlink()


def _add_a_foreign_file(governed: Governed, chance: random.Random) -> None:
    (_an_event(governed, chance).parent / "note.txt").write_text("x")


def _change_what_a_stub_needs(governed: Governed, chance: random.Random) -> None:
    _edited_in_place(governed.root / STUBS / f"{NAMES[0]}.md", NAMES[1].encode(), NAMES[2].encode())


def _move_on(governed: Governed, chance: random.Random) -> None:
    governed("packet", "abandon", chance.choice(NAMES), "--reason", "chance")


def _lose_a_log(governed: Governed, chance: random.Random) -> None:
    folder = _an_event(governed, chance).parent
    folder.rename(governed.root / ".git" / f"lost-{chance.random()}")


CHANGES: tuple[Callable[[Governed, random.Random], None], ...] = (
    _move_on, _change_what_a_stub_needs, _forge_an_event, _add_a_foreign_file, _lose_an_event, _lose_a_log,
)  # fmt: skip


def _cold(governed: Governed, *words: str) -> str:
    """The answer of one who remembers nothing; what is remembered lies aside meanwhile."""
    cache, aside = governed.root / ".git/workpacket/cache", governed.root / ".git/aside"
    cache.rename(aside)
    answer = governed(*words).out
    for left in cache.iterdir():
        left.unlink()
    cache.rmdir()
    aside.rename(cache)
    return answer


@pytest.mark.parametrize("words", [("board", "show"), ("next",), ("status",)], ids=" ".join)
def test_what_is_shown_again_is_never_stale(
    governed: Governed, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    for module in (cache_module, checking):
        monkeypatch.setattr(module, "RACY_NS", AT_REST_NS)
    monkeypatch.setattr(kept_logs, "MANY", 0)
    _begin(governed)
    chance = random.Random(11)
    for change in (*CHANGES, *chance.sample(CHANGES[:5], 3)):
        time.sleep(AT_REST_NS * 2e-9)
        before = governed(*words).out
        with monkeypatch.context() as patch:
            patch.setattr(read_only, "gather", _must_not_be_asked)
            assert governed(*words).out == before
        change(governed, chance)
        assert governed(*words).out == _cold(governed, *words), change.__name__


def _must_not_be_asked(*about: object) -> None:
    raise AssertionError("the answer is remembered")
