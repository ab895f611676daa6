"""The server of `mcp` against texts and calls that want more than they may: 200 texts of a list, and 10,000 calls."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from git.scratch import git
from proof.share import bounded, share
from workpacket.cli.mcp import TOOLS
from workpacket.cli.mcp_server import AgentServer

LIST = Path(__file__).parents[2] / "corpora/agents/hostile_texts.jsonl"
TEXTS = [json.loads(line) for line in LIST.read_text("utf-8").splitlines()]
NAME, OTHER = "WP-1-Quoted-v1", "WP-1-Other-v1"
# Each part of the calls has a repository of its own, so that parts run side by side and their logs stay short.
PARTS = 4 if bounded() else 100
CALLS = 15 if bounded() else 100
SEED = 23


class World:
    def __init__(self, root: Path) -> None:
        self.root = root

    def type(self, *words: str) -> None:
        command = [sys.executable, "-m", "workpacket", *words]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    def commit(self, message: str) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", message)

    def state(self) -> dict[str, bytes]:
        """Everything that is in the work tree, and where the branches are."""
        files = {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and path.relative_to(self.root).parts[0] != ".git"
        }
        return files | {"refs": git(self.root, "for-each-ref").encode()}


def created(root: Path) -> World:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    world = World(root)
    world.type("init", "--dialect", "plain")
    (root / "src").mkdir()
    (root / "src/greeting").write_text("to do\n", "utf-8")
    for title in ("Quoted", "Other"):
        told = ("--criterion", "It greets.", "--prove", "grep -q hello src/greeting", "--scope", "src/")
        world.type("new", title, *told, "--requirement", f"{title} greets.", "--refinement", "It gets the word hello.")
    world.commit("begun")
    return world


@pytest.fixture(autouse=True)
def _ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPACKET_ACTOR", "ann")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKPACKET_ACTOR", "ann")
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        yield created(tmp_path_factory.mktemp("hostile") / "project")


def text_of(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("case", share(TEXTS), ids=lambda case: case["id"])
def test_a_hostile_text_makes_no_tool_do_more_than_its_arguments_say(
    case: dict[str, Any], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root)
    document = world.root / f".GOV/task_packets/{NAME}.md"
    honest = document.read_text("utf-8")
    server = AgentServer(("--as", "coder"), ())
    before = world.state()

    async def note() -> Any:
        return await server.call("note", {"id": NAME, "text": case["text"]})

    noted = asyncio.run(note())
    assert noted.is_error is (case["expect"] == "refused"), text_of(noted)
    after = world.state()
    new = [path for path in after if after[path] != before.get(path)]
    assert not before.keys() - after.keys()
    assert len(new) == (not noted.is_error)
    for path in new:
        event = json.loads(after[path])
        assert path.startswith(f".GOV/log/{NAME}/")
        assert (event["type"], event["actor"]["id"]) == ("noted", "coder")
        assert event["data"]["text"].split() == case["text"].split()

    # Now it is in a document, where whoever can push may write it, and in the log.
    text = case["text"].replace("\0", "")
    document.write_text(honest.replace("It gets the word hello.", f"It gets the word {text}"), "utf-8", newline="")
    before = world.state()

    async def look() -> list[Any]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("show", {"id": NAME}), ("why", {"id": NAME}), ("next", {}), ("search", {"words": ["word"]}),
        ]  # fmt: skip
        return [await server.call(name, given) for name, given in calls]

    try:
        for result in asyncio.run(look()):
            assert "Traceback" not in text_of(result)
            assert "internal_error" not in text_of(result)
        assert world.state() == before
    finally:
        document.write_text(honest, "utf-8", newline="")


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls_leave_no_invalid_state(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = SEED + part if part % 2 else random.randrange(2**32)  # every second part is fresh
    dice = random.Random(seed)
    world = created(tmp_path / "project")
    monkeypatch.chdir(world.root)
    texts = [case["text"] for case in dice.sample(TEXTS, 20)]

    def given(name: str) -> dict[str, Any]:
        wrong = (7, None, ["x"], {}, "", "x", -1, *texts)
        right: dict[str, Any] = {
            "id": dice.choice((NAME, NAME, OTHER, "WP-1-Missing-v1")),
            "text": dice.choice(texts),
            "words": [dice.choice((*texts, "greets"))],
            "verdict": dice.choice(("PASS", "FAIL", "CHANGES", "OUTDATED_ONLY")),
            "prove": ["1=true"],
            "report": dice.choice((*texts, "src/greeting")),
            "reference": dice.choice(texts),
            "reason": dice.choice(texts),
            "page": dice.choice((1, 2, 999)),
        }
        known = TOOLS[name].properties if name in TOOLS else right
        wanted = {key: right[key] for key in known if dice.random() < 0.85}
        if dice.random() < 0.2:
            wanted[dice.choice([*right, "as", "sign"])] = dice.choice(wrong)
        return wanted

    async def play() -> None:
        servers = [AgentServer(("--as", name), dice.choice(((), ("--commit",)))) for name in ("coder", "judge")]
        for _ in range(CALLS):
            if dice.random() < 0.1:
                (world.root / "src/greeting").write_text(dice.choice(("hello\n", "to do\n")), "utf-8")
            if dice.random() < 0.2:
                git(world.root, "add", "-A")
                git(world.root, "commit", "-qm", "work", "--allow-empty")
            name = dice.choice([*TOOLS, *TOOLS, "approve", ""])
            result = await dice.choice(servers).call(name, given(name))
            assert "Traceback" not in text_of(result), seed
            assert "internal_error" not in text_of(result), (seed, text_of(result))

    asyncio.run(play())
    world.type("log", "verify")
    for name in (NAME, OTHER):
        for path in (world.root / f".GOV/log/{name}").iterdir():
            event = json.loads(path.read_bytes())
            assert event["actor"]["id"] in {"ann", "coder", "judge"}, seed
            assert event["type"] not in {"waived", "amended", "superseded"}, seed
            assert not event.get("attest"), seed
