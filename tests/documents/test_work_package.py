"""Work packages: every field with its place, and what the text says of dependencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.test_cases import findings_of
from workpacket.documents.work_package import WorkPackage, stated_dependencies
from workpacket.text.markdown import read_blocks
from workpacket.text.source import Source

PATH = "kitty-specs/012-parser/tasks/WP07-reader.md"
TEXT = """---
work_package_id: WP07
title: 012
lane: "for_review"
dependencies:
- WP01
- 013-writer--WP02
subtasks: [T001, T002 writer]
owned_files: ["src/**"]
shell_pid: 0042
history:
- at: '2026-03-01'
  actor: mara
- a sentence
tags: [1, two]
custom: {kept: true}
---

# WP07

### T001: Reader

- [x] T002 writes

## Definition of Done Checklist

- [ ] Tests pass
  - [x] also the slow ones

Depends on WP01.
"""


def read(text: str, path: str = PATH) -> WorkPackage:
    return WorkPackage(Source.from_bytes(path, text.encode()))


def test_every_field_is_read_with_its_place() -> None:
    package = read(TEXT)

    assert package.faults == ()
    assert package.own_id == package.file_id == "WP07"
    assert str(package.title) == "012"
    assert str(package.lane) == "for_review"
    assert [str(text) for text in package.dependencies] == ["WP01", "013-writer--WP02"]
    assert [str(text) for text in package.subtask_ids] == ["T001", "T002"]
    assert [str(text) for text in package.owned_files] == ["src/**"]
    assert package.place(package.dependencies[1]) == (7, 3)
    assert package.place(package.subtask_ids[1]) == (8, 18)
    assert [item.ticked for item in package.done_items()] == [False, True]


def test_text_stays_text_and_unknown_fields_stay_what_they_are() -> None:
    package = read(TEXT)
    values = {key: node.plain() for key in ("shell_pid", "tags", "custom") if (node := package.at(key)) is not None}

    assert values == {"shell_pid": "0042", "tags": ["1", "two"], "custom": {"kept": True}}


def test_a_summary_names_packages_by_mission() -> None:
    summary = read(TEXT).summary()

    assert summary["id"] == "012-parser--WP07"
    assert summary["lanes"] == ["IN_REVIEW"]
    assert summary["depends"] == [("012-parser--WP01", 6, 3), ("013-writer--WP02", 7, 3)]


def test_without_an_id_the_file_name_says_it() -> None:
    assert read("---\ntitle: x\n---\n").own_id == "WP07"


def test_a_key_given_twice_names_both_lines() -> None:
    package = read("---\nwork_package_id: WP07\nlane: done\nlane: planned\n---\n")

    assert package.root is None
    assert [(fault.code, fault.message) for fault in package.faults] == [
        ("yaml_duplicate_key", "the key 'lane' occurs on line 3 and again on line 4")
    ]


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ('"[]"', []),
        ("''", []),
        ("WP01", ["WP01"]),
        ("'WP01, WP02'", ["WP01", "WP02"]),
        ("\"['WP01','WP02']\"", ["WP01", "WP02"]),
    ],
)
def test_dependencies_written_as_text_are_read(written: str, ids: list[str]) -> None:
    package = read(f"---\nwork_package_id: WP07\ndependencies: {written}\n---\n")

    assert [str(text) for text in package.dependencies] == ids
    assert [package.source.text[text.start : text.end] for text in package.dependencies] == ids


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spec-kitty implement WP07 --base WP05", [("WP05", "command")]),
        ("`spec-kitty agent action implement WP07 --agent x --base=WP05`", [("WP05", "command")]),
        ("```bash\nspec-kitty implement WP07 --base WP05\n```", [("WP05", "command")]),
        ("spec-kitty implement WP08 --base WP05", []),
        ("This WP depends on WP01, WP02 and WP03.", [("WP01", "sentence"), ("WP02", "sentence"), ("WP03", "sentence")]),
        ("First. Depends on **WP01** (models, `a`) + WP02 (b).", [("WP01", "sentence"), ("WP02", "sentence")]),
        ("Chain: this WP depends only on its predecessor WP06.", [("WP06", "sentence")]),
        ("Ready (depends on WP01/WP02).", [("WP01", "sentence"), ("WP02", "sentence")]),
        ("This WP depends\non WP01.", [("WP01", "sentence")]),
        ("> Depends on WP01-WP03.", [("WP01", "sentence"), ("WP02", "sentence"), ("WP03", "sentence")]),
        ("**Depends on**: 013-writer--WP02", [("013-writer--WP02", "sentence")]),
        ("WP07 depends on WP01.", [("WP01", "sentence")]),
        ("**Dependencies: none.** More.", [("", "none")]),
        ("- Dependencies: WP01", [("WP01", "sentence")]),
        ("### Dependencies\n\n- WP01 (models)\n- none of WP02", [("WP01", "sentence"), ("", "none")]),
        ("WP08 depends on WP01.", []),
        ("T002 depends on WP01.", []),
        ("The reader depends on WP01.", []),
        ("Who depends on WP01?", []),
        ("It depends on the weather. WP01 is done.", []),
        ("Depends on WP01x and WP.", []),
        ("A dependency on WP01 is hard.", []),
        ("```\nDepends on WP01\n```", []),
    ],
)
def test_what_the_text_says_of_dependencies(text: str, said: list[tuple[str, str]]) -> None:
    source = Source("x.md", text)
    blocks = read_blocks(source)

    assert isinstance(blocks, list)
    assert [(stated.id, stated.way) for stated in stated_dependencies(source, blocks, "WP07")] == said


@pytest.mark.parametrize("piece", ["(", "*", " ", "depends on ", "WP01, ", "implement WP07 --base ", "Dependencies: "])
def test_no_text_takes_long(piece: str) -> None:
    source = Source("x.md", "Depends on WP01 " + piece * 20_000)
    blocks = read_blocks(source)

    assert isinstance(blocks, list)
    assert len(stated_dependencies(source, blocks, "WP07")) >= 1


def test_a_number_without_end_is_no_number(tmp_path: Path) -> None:
    folder = tmp_path / "kitty-specs/012-parser/tasks"
    folder.mkdir(parents=True)
    front = f"---\nwork_package_id: WP01\ntitle: x\ndependencies: [WP{'9' * 5000}]\n---\n"
    (folder / "WP01-a.md").write_text(front, "utf-8")

    assert {finding.code for finding in findings_of(tmp_path)} == {"field_value", "package_dependency_unknown"}
