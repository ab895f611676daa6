"""`search` says the same from its index as without one, whatever has changed in between."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cli.commands import STUB, Commands
from workpacket.cli import search
from workpacket.cli.search import WordIndex
from workpacket.documents.document import stem_of
from workpacket.shell.cache import NO_CACHE, RACY_NS, Cache
from workpacket.shell.checking import examine_file
from workpacket.shell.tree import find_documents

STUBS = ".GOV/task_packets/stubs"
PACKETS = ".GOV/task_packets"
LOG = ".GOV/log"
WORDS = [
    "parser",
    "Lexer.",
    "gira\u00dfe",
    "(window)",
    "WINDOW",
    "a`b`",
    "\u212aelvin",
    "e-mail",
    "x" * 300,
    "--",
    "-e",
]


Found = tuple[list[tuple[int, str, str]], list[str]]


def from_index(root: Path, cache: Cache, *words: str) -> Found:
    index = WordIndex(str(root), cache)
    matches = sorted(index.matches([word.casefold() for word in words]), key=lambda match: match.rank)
    return [(match.rank[0], match.owner, match.kind) for match in matches], sorted(map(search._path_of, index.unread))


def from_files(root: Path, *words: str) -> Found:
    """The same, by reading every line of every file."""
    work: list[tuple[str, str, str]] = []
    lines: dict[str, list[str]] = {}
    unread: list[str] = []
    for found in find_documents(str(root), (PACKETS, ".GOV/refinements")):
        owner = stem_of(found.path)
        if found.kind in ("stub", "packet"):
            result = examine_file(str(root), found.path, found.kind) if not found.problem else None
            if result is None or not result.summary:
                unread.append(found.path)
                continue
            says = json.loads(result.summary)
            owner = " ".join(says["id"].split())
            work.append((owner, found.kind, says["title"]))
            lines.setdefault(owner, []).extend([owner, says["title"]])
        if found.kind in ("stub", "packet", "refinement") and not found.problem:
            lines.setdefault(owner, []).extend((root / found.path).read_text("utf-8", "replace").splitlines())
    for path in (root / LOG).glob("*/*"):
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            event = json.loads(path.read_text("utf-8", "replace"))
            lines.setdefault(path.parent.name, []).append(
                f"{event['at'][:10]} {event['type']} by {event['actor']['id']}"
            )
            lines[path.parent.name] += texts_in(event["data"])
    wanted = [word.casefold() for word in words]
    matches = []
    for owner, kind, title in work:
        if kind == "stub" and any(each[:2] == (owner, "packet") for each in work):
            continue
        if all(any(word in line.casefold() for line in lines[owner]) for word in wanted):
            name, both = owner.casefold(), f"{owner}\n{title}".casefold()
            rank = 0 if all(word in name for word in wanted) else 1 if all(word in both for word in wanted) else 2
            matches.append((rank, owner, kind))
    return sorted(matches), sorted(unread)


def texts_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inside for text in texts_in(one)]


class World:
    """Documents and logs that change at random."""

    def __init__(self, commands: Commands, seed: int) -> None:
        self.commands, self.chance = commands, random.Random(seed)
        self.ids = [f"WP-1-Thing-{number}-v1" for number in range(6)]

    def text(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 5)))

    def stub(self) -> None:
        name = self.chance.choice(self.ids)
        self.commands.write(f"{STUBS}/{name}.md", STUB.replace("WP-1-Parser", name[:-3]).replace("Hand", self.text()))

    def renamed_id(self) -> None:
        name, other = self.chance.sample(self.ids, 2)
        self.commands.write(f"{STUBS}/{name}.md", STUB.replace("WP-1-Parser", other[:-3]))

    def light(self) -> None:
        name = self.chance.choice(self.ids)
        text = f"# {self.text()}\n\n## WHAT\n{self.text()}\n\n## WHY\nIt helps.\n\n## SCOPE\n- FORM: light\n"
        self.commands.write(f"{PACKETS}/{name}.md", text)

    def refinement(self) -> None:
        name = self.chance.choice(self.ids)
        place = self.chance.choice([f".GOV/refinements/{name}.md", f"{PACKETS}/{name}/refinement.md"])
        self.commands.write(place, f"# Refinement\n{self.text()}\n")

    def event(self) -> None:
        name = self.chance.choice(self.ids)
        data = {"text": self.text(), "list": [self.text(), {"deep": self.text()}, 3, None]}
        event = {"at": "2026-03-01T00:00:00Z", "type": "noted", "actor": {"id": "ann"}, "data": data}
        self.commands.write(f"{LOG}/{name}/{self.chance.getrandbits(256):064x}.json", json.dumps(event))

    def broken_event(self) -> None:
        text = self.chance.choice(
            [
                b"",
                b"[]",
                b"\xff\xfe",
                b'{"at": 3}',
                b"[" * 100_000,
                b'{"at": []}',
                b'{"at": "x", "type": "y", "actor": {"id": "\\ud800"}, "data": {}}',
            ]
        )
        self.commands.write(f"{LOG}/{self.chance.choice(self.ids)}/{self.chance.getrandbits(256):064x}.json", text)

    def unreadable(self) -> None:
        path = self.commands.root / f"{PACKETS}/{self.chance.choice(self.ids)}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to("elsewhere.md")

    def odd_name(self) -> None:
        self.commands.write(f"{PACKETS}/WP\n\t1-\u00e4{self.chance.randint(1, 2)}.md", self.text())

    def removed(self) -> None:
        files = [path for path in sorted((self.commands.root / ".GOV").rglob("*")) if not path.is_dir()]
        if files:
            self.chance.choice(files).unlink()

    def folder_removed(self) -> None:
        shutil.rmtree(self.commands.root / LOG / self.chance.choice(self.ids), ignore_errors=True)

    def moved(self) -> None:
        logs = self.commands.root / LOG
        one, other = self.chance.sample(self.ids, 2)
        if (logs / one).is_dir() and not (logs / other).exists():
            (logs / one).rename(logs / other)

    def policy(self) -> None:
        lanes = '[lanes.QA]\nafter = "IN_PROGRESS"\n' if self.chance.random() < 0.5 else ""
        self.commands.write(".GOV/policy/policy.toml", f"[check]\n{lanes}")

    def moves(self) -> list[Callable[[], None]]:
        often = [self.stub, self.light, self.refinement, self.event]
        return [*often, *often, self.renamed_id, self.broken_event, self.unreadable, self.odd_name, self.removed,
                self.removed, self.folder_removed, self.moved, self.policy]  # fmt: skip


@pytest.fixture(params=[-(10**18), RACY_NS], ids=["at rest", "just written"])
def settled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether files count as settled at once: then the index has everything, otherwise nothing."""
    monkeypatch.setattr(search, "RACY_NS", request.param)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.usefixtures("settled")
def test_an_index_finds_what_reading_everything_finds(commands: Commands, tmp_path: Path, seed: int) -> None:
    world = World(commands, seed)
    cache = Cache(str(tmp_path / "cache"), "test")
    for _ in range(25):
        for _ in range(world.chance.randint(0, 3)):
            world.chance.choice(world.moves())()
        words = [
            word[world.chance.randint(0, 1) :] or word
            for word in world.chance.sample(WORDS, world.chance.randint(1, 2))
        ]
        expected = from_files(commands.root, *words)
        assert from_index(commands.root, cache, *words) == expected, words
        assert from_index(commands.root, NO_CACHE, *words) == expected, words
    assert cache.is_open


def test_what_has_not_changed_is_not_read_again(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "RACY_NS", -(10**18))
    world = World(commands, 1)
    for move in [world.stub, world.light, world.refinement, world.event]:
        move()
    cache = Cache(str(tmp_path / "cache"), "test")
    first = from_index(commands.root, cache, "e")
    read: list[str] = []
    text = search._text

    def noted(root: str, path: str) -> str:
        read.append(path)
        return text(root, path)

    monkeypatch.setattr(search, "_text", noted)
    assert from_index(commands.root, cache, "e") == first
    assert read == []
    world.refinement()
    from_index(commands.root, cache, "e")
    assert len(read) == 1


def test_two_work_trees_with_one_cache_keep_their_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "RACY_NS", -(10**18))
    cache = Cache(str(tmp_path / "cache"), "test")
    for name in ("one", "one\t2", "two"):
        path = tmp_path / name / STUBS / "WP-1-Parser-v1.md"
        path.parent.mkdir(parents=True)
        path.write_text(STUB.replace("Hand", name.split()[-1] + "words"), encoding="utf-8")
    for _ in range(2):
        assert from_index(tmp_path / "one", cache, "onewords")[0]
        assert from_index(tmp_path / "one\t2", cache, "2words")[0]
        assert not from_index(tmp_path / "two", cache, "onewords")[0]


def test_the_index_is_exact_about_tokens() -> None:
    assert search._tokens("Parser parser. (parser) e-mail mail") == "parser. (parser) e-mail mail"
