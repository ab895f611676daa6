"""Makes the same amount of work in the formats of the peers."""

from __future__ import annotations

import json
from pathlib import Path

from bench.peers import BACKLOG, DOORSTOP
from bench.timing import run
from workpacket.documents.stub import Stub
from workpacket.text.source import Source


def json_of_stubs(tree: Path, target: Path, schema: Path) -> list[str]:
    """Write every stub of `tree` as the JSON that our schema validates, for a generic schema checker."""
    target.mkdir(parents=True, exist_ok=True)
    names = []
    for path in sorted((tree / ".GOV/task_packets/stubs").glob("*.md")):
        root = Stub(Source.from_bytes(path.name, path.read_bytes())).root
        assert root is not None
        name = target / f"{path.stem}.json"
        name.write_text(json.dumps(root.plain()), encoding="utf-8")
        names.append(str(name))
    (target / "schema.json").write_bytes(schema.read_bytes())
    return names


def doorstop_items(target: Path, count: int) -> None:
    """Make a doorstop document with `count` items, formatted as by doorstop."""
    target.mkdir(parents=True, exist_ok=True)
    run(["git", "init", "--quiet", "."], target)
    document = target / "req"
    run([str(DOORSTOP.installed()), "create", "REQ", str(document)], target)
    for number in range(1, count + 1):
        item = (
            "active: true\nderived: false\nheader: ''\nlevel: 1.0\nlinks: []\nnormative: true\nref: ''\n"
            f"reviewed: null\ntext: |\n  Requirement {number} keeps every byte that it reads.\n"
        )
        (document / f"REQ{number:03d}.yml").write_text(item, encoding="utf-8")


def backlog_tasks(target: Path, count: int) -> None:
    """Make a Backlog.md project with `count` tasks."""
    target.mkdir(parents=True, exist_ok=True)
    run(["git", "init", "--quiet", "."], target)
    run([str(BACKLOG.installed()), "init", "bench", "--defaults"], target)
    tasks = target / "backlog" / "tasks"
    tasks.mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        text = (
            f"---\nid: task-{number}\ntitle: Task {number}\nstatus: To Do\nassignee: []\n"
            "created_date: '2026-03-01'\nlabels: []\ndependencies: []\n---\n\n## Description\n\nKeep every byte.\n"
        )
        (tasks / f"task-{number} - Task-{number}.md").write_text(text, encoding="utf-8")
