"""The schemas and `check` accept the same documents: real ones, and real ones with one value changed.

An editor does not read a document as `check` does: in YAML it sees numbers and booleans where labels are text here. So
files of YAML are also validated as an editor reads them, against the twins that editors get.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator, Draft202012Validator
from referencing import Registry, Resource

from architecture.source_tree import ROOT
from workpacket.documents.document import Document, read_document
from workpacket.documents.structured import FrontMatterDocument, read_front_matter
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.shell.tree import find_documents
from workpacket.text.source import Source

FROM_SCHEMAS = {"field_elsewhere", "field_missing", "field_type", "field_unknown", "field_value"}
# A missing section has a rule of its own, which names the place for it; for an older form, the schema names none.
SECTIONS = {"section_missing", "packet_section_missing", "heading_hidden"}
# A value of every type but one: a decimal is text to `check` everywhere, and a number to editors, also in fields that
# may not be integers; a schema that allowed it there would allow integers as well.
VALUES: tuple[Any, ...] = (5, True, None, "x", "", [], {}, ["x"], [1], {"a": 1})
OF_A_KIND = 1


class _CoreLoader(yaml.SafeLoader):
    """Reads YAML as editors do: by the core schema of YAML 1.2, in which `no` and `2026-03-01` are text."""


_CoreLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+\Z", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", "-+.0123456789"),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def as_editors_read(text: str) -> Any:
    return yaml.load(text, _CoreLoader)


@cache
def validator(name: str, *, twin: bool = False) -> Any:
    folder = ROOT / "schemas" / "draft-07" if twin else ROOT / "schemas"
    shared = json.loads((folder / "common.schema.json").read_bytes())
    registry: Registry[Any] = Registry().with_resource(shared["$id"], Resource.from_contents(shared))
    schema = json.loads((folder / f"{name}.schema.json").read_bytes())
    return (Draft7Validator if twin else Draft202012Validator)(schema, registry=registry)


def documents(root: Path) -> Iterator[tuple[str, Document]]:
    for found in find_documents(str(root)):
        yield found.kind, read_document(found.kind, Source.from_bytes(found.path, (root / found.path).read_bytes()))


def yaml_of(document: Document) -> tuple[str, str, str]:
    """The text before the YAML of a file, the YAML, and the text after it; all are empty if it has none."""
    text = document.source.text
    if document.path.endswith(".yaml"):
        return "", text, ""
    if isinstance(document, FrontMatterDocument) and document.has_front_matter:
        front = read_front_matter(document.source)
        return text[: front.start], text[front.start : front.end], text[front.end :]
    return "", "", ""


def codes(path: str, kind: str, text: str) -> set[str]:
    return {finding.code for finding in load_findings(path, examine_bytes(path, kind, text.encode()).findings)}


def test_the_schema_of_a_kind_and_check_accept_the_same_documents(laid_out: Path) -> None:
    compared = 0
    for kind, document in documents(laid_out):
        if document.root is None:
            continue
        compared += 1
        accepted = validator(document.schema).is_valid(document.root.plain())
        found = codes(document.path, kind, document.source.text)
        if accepted:
            assert found.isdisjoint(FROM_SCHEMAS), document.path
        else:
            assert found & (FROM_SCHEMAS | SECTIONS), document.path
        assert validator(document.schema, twin=True).is_valid(document.root.plain()) is accepted, document.path
    assert compared


def test_an_editor_accepts_the_real_yaml_that_check_accepts(laid_out: Path) -> None:
    compared = 0
    for kind, document in documents(laid_out):
        _, written, _ = yaml_of(document)
        if not written or document.root is None:
            continue
        compared += 1
        accepted = validator(document.schema, twin=True).is_valid(as_editors_read(written))
        found = codes(document.path, kind, document.source.text)
        assert accepted is found.isdisjoint(FROM_SCHEMAS), document.path
    assert compared


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, child in entries:
        yield from places(child, (*path, key))


def changed(value: Any, path: tuple[str | int, ...], new: Any) -> str:
    holder = copy = deepcopy(value)
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = new
    return yaml.safe_dump(copy, sort_keys=False, allow_unicode=True)


KINDS_IN_YAML = [
    *("batch_checkpoint", "batch_tasks", "batch_dependencies", "batch_validation"),
    *("role_progress", "work_package"),
]


@cache
def shortest(root: Path, kind: str) -> list[Document]:
    """A few documents of this kind with YAML, each of which takes long."""
    files = [found for found in find_documents(str(root)) if found.kind == kind]
    sources = sorted((Source.from_bytes(one.path, (root / one.path).read_bytes()) for one in files), key=length)
    read = (read_document(kind, source) for source in sources)
    return [*islice((document for document in read if yaml_of(document)[1]), OF_A_KIND)]


def length(source: Source) -> int:
    return len(source.text)


# Of the ten values for each place, `just test` tries another one with each kind.
@pytest.mark.share(11)
@pytest.mark.parametrize("kind", KINDS_IN_YAML)
@pytest.mark.parametrize("new", VALUES, ids=repr)
def test_an_editor_and_check_agree_about_every_value_that_is_changed(laid_out: Path, kind: str, new: object) -> None:
    read = shortest(laid_out, kind)
    differences = []
    for document in read:
        before, written, after = yaml_of(document)
        value = as_editors_read(written)
        for path in places(value):
            text = changed(value, path, new)
            accepted = validator(document.schema, twin=True).is_valid(as_editors_read(text))
            found = codes(document.path, kind, before + "\n" * bool(before) + text + after)
            if accepted is not found.isdisjoint(FROM_SCHEMAS):
                differences.append((path, new, "editor accepts" if accepted else "check accepts"))
    assert read
    assert differences == []
