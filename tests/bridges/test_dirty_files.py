"""Checkpoints as they lie about in real repositories: odd bytes, odd YAML, odd values. Read whole, or refused by place.

Each way of being dirty is tried on a role file and on a batch checkpoint, and seen by every command that reads them:
`check` names it, and no command takes half of it over.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bridges.roles import FILE, checkpoint
from git.scratch import commit, make_repository
from workpacket.cli.main import main

TASKS = """\
tasks:
  - {id: T001, content: Add the model, status: completed, files: [src/a.py]}
  - {id: T002, content: Add the door, status: pending, files: [src/b.py]}
"""
BATCH = """\
checkpoint:
  spec_name: auth
  spec_path: ./specs/active/auth
  branch: main
  timestamp: 2026-01-22T14:30:00Z
  last_batch: 1
  last_commit: a1b2c3d4
  tasks:
    completed:
      - T001
    in_progress: []
    pending:
      - T002
  next_batch:
    number: 2
    tasks: [T002]
    parallel: false
  deferred_issues: []
"""
BATCH_FILE = "specs/active/auth/checkpoint.yaml"
Make = Callable[[str], bytes]


class Dirt(NamedTuple):
    """`found` is what `check` says of it, '' for nothing; `read` whether the other commands go on with the file."""

    make: Make
    found: str
    read: bool = True


def replaced(old: str, new: str) -> Make:
    def make(text: str) -> bytes:
        assert old in text
        return text.replace(old, new).encode()

    return make


def added(data: bytes) -> Make:
    return lambda text: text.encode() + data


OF_BOTH = {
    "crlf": (lambda text: text.replace("\n", "\r\n").encode(), "line_ends"),
    "cr": (lambda text: text.replace("\n", "\r").encode(), "line_ends"),
    "mark": (lambda text: b"\xef\xbb\xbf" + text.encode(), "byte_order_mark"),
    "no-line-end": (lambda text: text.rstrip("\n").encode(), "no_final_newline"),
    "blank-lines": (added(b"\n\n\n"), "blank_lines_at_end"),
}
ROLES: dict[str, Dirt] = {
    **{name: Dirt(make, found) for name, (make, found) in OF_BOTH.items()},
    "utf-16": Dirt(lambda text: text.encode("utf-16"), "not_utf8", read=False),
    "latin-1": Dirt(added("größe\n".encode("latin-1")), "not_utf8", read=False),
    "huge": Dirt(added(b"x" * 10_000_000), "limit_size", read=False),
    "unclosed": Dirt(replaced("---\n\n##", "\n##"), "front_matter_unclosed", read=False),
    "cut-off": Dirt(lambda text: text.encode()[: len(text) // 2], "front_matter_unclosed", read=False),
    "key-twice": Dirt(replaced("team:", "team: x\nteam:"), "yaml_duplicate_key", read=False),
    "tab": Dirt(replaced('"build"', '"build"\t'), "yaml_tab", read=False),
    "anchor": Dirt(replaced('team: "build"', "team: &t build"), "yaml_anchor", read=False),
    "tag": Dirt(replaced('team: "build"', "team: !!str build"), "yaml_tag", read=False),
    "unknown-key": Dirt(replaced("feature:", "mystery: {a: [1, 2.5]}\nfeature:"), ""),
    "unquoted": Dirt(lambda text: text.replace('"', "").encode(), ""),
    "status-unknown": Dirt(replaced("in_progress", "underway"), "role_status_unknown"),
    "phase-foreign": Dirt(replaced('"design"', '"fit-check"'), "role_phase_foreign"),
    "date-only": Dirt(replaced("2026-03-01T09:30:00Z", "2026-03-01"), "date_only"),
    "date-german": Dirt(replaced("2026-03-01T09:30:00Z", "01.03.2026"), "date_malformed"),
    "date-impossible": Dirt(replaced("2026-03-01T09:30:00Z", "2026-02-30T25:61:00Z"), "date_malformed"),
    "number-as-team": Dirt(replaced('"build"', "7"), ""),
}
BATCHES: dict[str, Dirt] = {
    **{name: Dirt(make, found) for name, (make, found) in OF_BOTH.items()},
    "utf-16": Dirt(lambda text: text.encode("utf-16"), "text_not_utf8", read=False),
    "latin-1": Dirt(added("# größe\n".encode("latin-1")), "text_not_utf8", read=False),
    "nul": Dirt(added(b"\0\n"), "yaml_character", read=False),
    "huge": Dirt(added(b"# " + b"x" * 10_000_000), "limit_size", read=False),
    "deep": Dirt(added(b"other: " + b"[" * 5000 + b"]" * 5000 + b"\n"), "limit_depth", read=False),
    "empty": Dirt(lambda text: b"", "field_type", read=False),
    "blank": Dirt(lambda text: b"  \n", "field_type", read=False),
    "list": Dirt(lambda text: b"- a\n", "field_type", read=False),
    "text": Dirt(lambda text: b"hello\n", "field_type", read=False),
    "tabs": Dirt(replaced("  spec_name", "\tspec_name"), "yaml_tab", read=False),
    "odd-indentation": Dirt(replaced("    completed", "   completed"), "yaml_syntax", read=False),
    "wide-indentation": Dirt(replaced("  ", "     "), ""),
    "key-twice": Dirt(replaced("  branch: main", "  branch: main\n  branch: other"), "yaml_duplicate_key", read=False),
    "anchor": Dirt(replaced("branch: main", "branch: &b main"), "yaml_anchor", read=False),
    "tag": Dirt(replaced("branch: main", "branch: !!python/object:os.system main"), "yaml_tag", read=False),
    "two-documents": Dirt(added(b"---\nother: 1\n"), "yaml_several_documents", read=False),
    "unknown-key": Dirt(replaced("  spec_name", "  mystery: {a: [1, 2.5]}\n  spec_name"), ""),
    "wrong-kind": Dirt(replaced("parallel: false", "parallel: no"), "field_type", read=False),
    "sha-of-digits": Dirt(replaced("a1b2c3d4", "12345678"), "integer_looking_sha"),
    "sha-like-a-float": Dirt(replaced("a1b2c3d4", "1234e567"), "integer_looking_sha"),
    "sha-like-an-octal": Dirt(replaced("a1b2c3d4", "01234567"), "integer_looking_sha"),
    "sha-quoted": Dirt(replaced("a1b2c3d4", '"12345678"'), ""),
    "label-2a": Dirt(replaced("number: 2", "number: 2a"), "batch_label_text"),
    "label-1e3": Dirt(replaced("number: 2", "number: 1e3"), "batch_label_text"),
    "ids-as-numbers": Dirt(lambda text: text.replace("T001", "1").replace("T002", "2").encode(), ""),
    "issue-like-a-mapping": Dirt(replaced("issues: []", "issues:\n    - A-1 (medium): it waits"),
                                 "deferred_issue_mapping"),
    "date-only": Dirt(replaced("2026-01-22T14:30:00Z", "2026-01-22"), "date_only"),
    "date-german": Dirt(replaced("2026-01-22T14:30:00Z", "22.01.2026"), "date_malformed"),
    "done-and-pending": Dirt(replaced("      - T002\n", "      - T002\n      - T001\n"), "batch_task_in_two_groups"),
}  # fmt: skip


class Place:
    def __init__(self, root: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.root, self.capture = root, capture
        make_repository(root)
        commit(root, "one", **{"specs/active/auth/tasks.yaml": TASKS})
        (root / FILE).parent.mkdir(parents=True)

    def __call__(self, *words: str) -> tuple[int, Any]:
        self.capture.readouterr()
        with chdir(self.root):
            status = main([*words, "--json"])
        return status, json.loads(self.capture.readouterr().out)

    def found(self, path: str) -> list[tuple[str, int]]:
        return [(one["code"], one["line"]) for one in self("check", path)[1]["findings"]]


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)


@pytest.mark.parametrize("name", ROLES)
def test_a_role_file_is_read_whole_or_refused_by_place(place: Place, name: str) -> None:
    dirt = ROLES[name]
    data = dirt.make(checkpoint())
    (place.root / FILE).write_bytes(data)
    found = place.found(FILE)
    assert dirt.found in [code for code, _ in found] or (dirt.found, found) == ("", [])
    listed = place("runtime", "progress", "list")[1]["data"]
    named = {row["path"] for row in (*listed["roles"], *listed["unread"])}
    assert named == {FILE} or name == "status-unknown"
    assert (listed["unread"] == []) is dirt.read
    status, answer = place("log", "import", "role", "--plan", FILE)
    assert (status == 0) is dirt.read
    assert dirt.read or all(one["line"] > 0 for one in answer["findings"])
    status, _ = place("runtime", "progress", "note", "auth", "backend-eng", "on")
    assert dirt.read or (status != 0 and (place.root / FILE).read_bytes() == data)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("22.01.2026", "2026-01-22"), ("1.2.2026", "2026-02-01"), ("31.02.2026", ""), ("1/2/26", "")],
)
def test_a_date_with_dots_is_told_as_it_is_meant(place: Place, written: str, meant: str) -> None:
    """With strokes nobody can tell, and a day that does not exist is told by an example like any other fault."""
    (place.root / BATCH_FILE).write_bytes(replaced("2026-01-22T14:30:00Z", written)(BATCH))
    (found,) = place("check", BATCH_FILE)[1]["findings"]
    hint = f"write it as {meant}T00:00:00Z" if meant else "write the intended date, in the form 2026-01-31T00:00:00Z"
    assert (found["code"], found["hint"]) == ("date_malformed", hint)


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_checkpoint_is_read_whole_or_refused_by_place(place: Place, name: str) -> None:
    dirt = BATCHES[name]
    data = dirt.make(BATCH)
    (place.root / BATCH_FILE).write_bytes(data)
    found = place.found(BATCH_FILE)
    assert dirt.found in [code for code, _ in found] or (dirt.found, found) == ("", [])
    assert (place("runtime", "batch", "status", "auth")[0] == 0) is dirt.read
    status, answer = place("log", "import", "batch", "--plan", BATCH_FILE)
    assert (status == 0) is dirt.read
    assert dirt.read or all(one["line"] > 0 for one in answer["findings"])
    unfinished = {row["id"]: row for row in place("resume")[1]["data"]["unfinished"]}
    assert unfinished["batch/specs/active/auth"]["blocked_by"] != []
    assert dirt.read or place("runtime", "batch", "begin", "auth")[0] != 0
    assert (place.root / BATCH_FILE).read_bytes() == data
