"""Sidecars: read strictly, whatever else is in them kept."""

from __future__ import annotations

import json

import pytest

from workpacket.documents.commit_sidecar import CommitSidecar
from workpacket.text.source import Source

SHA = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
FIELDS = {
    "schema_version": 1,
    "sha": SHA,
    "run_id": "1",
    "milestone_index": 2,
    "milestone_title": "Reader",
    "patch": "x",
}


def read(text: str) -> CommitSidecar:
    return CommitSidecar(Source(f".runr/checkpoints/{SHA}.json", text))


def test_every_field_is_read_and_unknown_ones_are_kept() -> None:
    sidecar = read(json.dumps(FIELDS, indent=2))

    assert (sidecar.schema_version, sidecar.milestone_index) == (1, 2)
    assert str(sidecar.sha) == sidecar.stem == SHA
    assert sidecar.place(sidecar.run_id) == (4, 13)
    assert sidecar.root is not None
    assert sidecar.root.plain() == FIELDS


@pytest.mark.parametrize("value", ["true", '"1.0.0"', "null", "1.5"])
def test_what_is_no_whole_number_is_no_version(value: str) -> None:
    assert read(f'{{"schema_version": {value}}}').schema_version is None


def test_a_torn_file_is_refused_whole() -> None:
    sidecar = read('{"schema_version": 1, "sha": "4b8')

    assert sidecar.root is None
    assert [fault.code for fault in sidecar.faults] == ["json_syntax"]
