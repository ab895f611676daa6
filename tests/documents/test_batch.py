"""The files of a batch scope: text stays text, every form is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft7Validator
from referencing import Registry, Resource

from architecture.source_tree import ROOT
from workpacket.documents.batch import (
    CHECKPOINT_KEYS,
    BatchCheckpoint,
    BatchDependencies,
    BatchTasks,
    BatchValidation,
    Task,
    is_checkpoint_text,
)
from workpacket.text.source import Source


def checkpoint(body: str) -> BatchCheckpoint:
    return BatchCheckpoint(Source("specs/active/a/checkpoint.yaml", f"checkpoint:\n{body}"))


def tasks(text: str) -> BatchTasks:
    return BatchTasks(Source("specs/active/a/tasks.yaml", text))


def dependencies(text: str) -> BatchDependencies:
    return BatchDependencies(Source("specs/active/a/dependencies.yaml", text))


@pytest.mark.parametrize("sha", ["0123456", "12345678", "8631e21", "'12345678'", "a123456"])
def test_a_commit_id_is_the_characters_that_stand_there(sha: str) -> None:
    assert str(checkpoint(f"  last_commit: {sha}\n").last_commit) == sha.strip("'")


@pytest.mark.parametrize("label", ["2", "2a", "007", "true", "1e3"])
def test_a_label_is_text(label: str) -> None:
    document = checkpoint(f"  last_batch: {label}\n  next_batch: {{number: {label}, tasks: []}}\n")

    assert [str(text) for text in document.labels()] == [label, label]


@pytest.mark.parametrize("field", ["scope_name", "branch", "timestamp", "last_batch"])
@pytest.mark.parametrize("written", ["5", "1.5", "true"])
def test_an_editor_accepts_a_text_that_yaml_reads_as_a_number(field: str, written: str) -> None:
    document = checkpoint(f"  {field}: {written}\n")
    (example,) = json.loads((ROOT / "schemas" / "batch_checkpoint.schema.json").read_bytes())["examples"]
    editor = validator_of_editors("batch_checkpoint")

    assert document.root is not None
    assert document.root.plain() == {"checkpoint": {field: written}}
    for value, accepted in ((written, True), (json.loads(written), True), ([written], False)):
        changed = {**example, "checkpoint": {**example["checkpoint"], field: value}}
        assert editor.is_valid(changed) is accepted


def test_the_areas_of_a_scan_are_judged_alike_whatever_their_names() -> None:
    text = "scope: 7\nambiguity_scan: {scope: 5, behavior: 5}\n"
    document = BatchValidation(Source("specs/active/a/validation.yaml", text))

    assert document.root is not None
    assert document.root.plain() == {"scope": "7", "ambiguity_scan": {"scope": 5, "behavior": 5}}


def validator_of_editors(kind: str) -> Draft7Validator:
    folder = ROOT / "schemas" / "draft-07"
    shared = json.loads((folder / "common.schema.json").read_bytes())
    registry: Registry[Any] = Registry().with_resource(shared["$id"], Resource.from_contents(shared))
    return Draft7Validator(json.loads((folder / f"{kind}.schema.json").read_bytes()), registry=registry)


def test_groups_of_every_form_are_read() -> None:
    document = checkpoint(
        "  tasks:\n"
        "    done: [1, T2]\n"
        "    in_progress: []\n"
        "    pending:\n"
        "      - id: T3\n"
        "        name: Writer\n"
        "      - T4: Tests\n"
        "    deferred_external:\n"
        "      tasks: [T5]\n"
        "      reason: another repository\n"
        "    later: null\n"
    )
    groups = {name: [str(entry.id) for entry in entries] for name, entries in document.groups.items()}

    assert groups == {
        "done": ["1", "T2"],
        "in_progress": [],
        "pending": ["T3", "T4"],
        "deferred_external": ["T5"],
        "later": [],
    }
    assert document.place(document.groups["pending"][1].id) == (8, 9)


def test_the_next_batch_with_its_files() -> None:
    document = checkpoint(
        "  next_batch:\n    tasks: [{id: T1, file: a.py}, {id: T2, files: [b.py, c.py]}]\n    parallel: true\n"
    )

    assert [(str(e.id), [str(f) for f in e.files]) for e in document.next_tasks] == [
        ("T1", ["a.py"]),
        ("T2", ["b.py", "c.py"]),
    ]
    assert document.is_parallel


def test_no_next_batch_is_none() -> None:
    assert checkpoint("  next_batch: null\n").next_tasks == ()


def test_an_invalid_file_is_refused_with_its_line_and_never_half_read() -> None:
    document = checkpoint("  branch: b\n  tasks: [T1\n  last_batch: 1\n")

    assert document.root is None
    assert document.groups == {}
    assert [fault.code for fault in document.faults] == ["yaml_syntax"]


def test_tasks_know_their_phase_and_their_state_in_one_spelling() -> None:
    document = tasks(
        "tasks:\n"
        "  - {id: 1, status: In-Progress, depends_on: 2, files: a.py}\n"
        "  - {id: 2, content: x}\n"
        "phases:\n"
        "  - {name: One, task_ids: [2]}\n"
        "  - {id: two, tasks: [1]}\n"
    )

    assert document.tasks() == [
        Task("1", "in_progress", ("2",), ("a.py",), "two"),
        Task("2", "pending", (), (), "One"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "edges:\n  T2: [T1]\n  T3: T1\n",
        "nodes:\n  T2: {depends_on: [T1]}\n  T3: {depends_on: T1, phase: 1}\n",
        "tasks:\n  T2: {depends_on: [T1], blocks: [T9]}\n  T3: {depends_on: [T1]}\n",
        "phases:\n  - {id: a, tasks: [{id: T2, depends_on: [T1]}]}\n  - {id: b, tasks: [{id: T3, depends_on: [T1]}]}\n",
    ],
)
def test_dependencies_of_every_form_are_read(text: str) -> None:
    found = [(str(one), str(other)) for one, other in dependencies(text).dependencies]

    assert found == [("T2", "T1"), ("T3", "T1")]


def test_pairs_do_not_say_which_one_waits() -> None:
    document = dependencies("edges:\n  - {from: 1, to: [2, 3]}\n")

    assert document.dependencies == []
    assert [(str(one), str(other)) for one, other in document.loose_dependencies] == [("1", "2"), ("1", "3")]


def test_what_a_phase_waits_for_is_no_dependency_of_its_tasks() -> None:
    document = dependencies("phases:\n  - {id: a, tasks: [T1]}\n  - {id: b, tasks: [T2], depends_on: [a]}\n")

    assert document.dependencies == []
    assert document.phase_of == {"T1": "a", "T2": "b"}


def test_the_keys_of_a_checkpoint_are_those_of_its_schema() -> None:
    schema = json.loads((ROOT / "schemas" / "batch_checkpoint.schema.json").read_text("utf-8"))
    assert set(schema["properties"]["checkpoint"]["properties"]) == CHECKPOINT_KEYS


def test_below_a_key_that_nobody_knows_values_are_what_yaml_says_they_are() -> None:
    assert not is_checkpoint_text(("checkpoint", "ours", "last_commit"))
    assert not is_checkpoint_text(("ours", "last_commit"))
    assert is_checkpoint_text(("checkpoint", "last_commit"))
