"""A kind of document is complete: it has places, a reader, a schema and rules can see it."""

from __future__ import annotations

import importlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from architecture.source_tree import ROOT
from workpacket.documents.document import Document
from workpacket.documents.places import PLACES, ROOTS, kind_of
from workpacket.documents.reading import KINDS, DocumentKind
from workpacket.shell.checking.examining import examine_bytes, load_findings

BY_NAME = {kind.name: kind for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_a_reader_of_its_name(kind: DocumentKind) -> None:
    module = importlib.import_module(f"workpacket.documents.{kind.module or kind.name}")
    reader = getattr(module, kind.reader)
    assert issubclass(reader, Document)
    assert reader.kind == kind.name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_a_schema_with_examples(kind: DocumentKind) -> None:
    schema = json.loads((ROOT / "schemas" / f"{kind.name}.schema.json").read_bytes())
    assert schema["title"]
    assert schema["description"]
    assert schema["examples"]


def test_every_place_is_of_a_known_kind_and_every_kind_has_a_place() -> None:
    assert {kind for _, kind in PLACES} == set(BY_NAME)


def test_every_place_lies_in_a_folder_that_is_searched() -> None:
    for pattern, _ in PLACES:
        assert any(pattern.startswith(f"{root}/") for root in ROOTS), pattern


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".GOV/task_packets/WP-1-A-v1.md", "packet"),
        (".GOV/task_packets/WP-1-A-v1/packet.md", "packet"),
        (".GOV/task_packets/WP-1-A-v1/refinement.md", "refinement"),
        (".GOV/task_packets/stubs/WP-1-A-v1.md", "stub"),
        (".GOV/task_packets/stubs/README.md", None),
        (".GOV/task_packets/.md", None),
        (".GOV/task_packets/stubs/deeper/WP-1-A-v1.md", None),
        ("kitty-specs/012-x/tasks/WP03-parser.md", "work_package"),
        ("kitty-specs/012-x/tasks/README.md", None),
        ("docs/progress/x-architect.md", "role_progress"),
        ("docs/progress/_template.md", None),
        ("specs/active/auth/checkpoint.yaml", "batch_checkpoint"),
        ("specs/done/auth/checkpoint.yaml", None),
        ("README.md", None),
        ("", None),
    ],
)
def test_a_path_says_what_it_holds(path: str, kind: str | None) -> None:
    assert kind_of(path) == kind


@given(st.text("/.abWP-*", max_size=40))
def test_any_path_has_one_kind_or_none(path: str) -> None:
    assert kind_of(path) in {None, *BY_NAME}


# A progress file without front matter is a note of somebody's, and a policy may leave everything as it is.
MAY_BE_EMPTY = {"policy", "role_progress"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_empty_file_of_a_kind_that_has_a_form_does_not_pass(kind: DocumentKind) -> None:
    findings = load_findings("x", examine_bytes("x", kind.name, b"").findings)
    assert bool(findings) is (kind.name not in MAY_BE_EMPTY)
