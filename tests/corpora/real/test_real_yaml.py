"""The YAML of real documents: all of it loads, and every value, list and mapping in it can be edited."""

from __future__ import annotations

from collections.abc import Iterator

from corpora.real.real_files import corpus
from text.reading import PARSERS, outline, parsed_by, paths
from workpacket.documents.structured import read_front_matter
from workpacket.text.source import Source
from workpacket.text.yaml_edit import YamlText, append_item, insert_key, remove_item, set_scalar, yaml_text

EDITED_PLACES = 12


def texts() -> Iterator[YamlText]:
    """The YAML files, and the front matter of Markdown files."""
    for path in sorted(corpus().rglob("*")):
        source = Source.from_bytes(path.name, path.read_bytes()) if path.suffix in (".md", ".yaml") else None
        if source is not None and path.suffix == ".yaml":
            yield yaml_text(source)
        elif source is not None and source.text.startswith("---\n"):
            found = read_front_matter(source)
            assert found.loaded.root is not None, (path, found.loaded.faults)
            yield yaml_text(source, start=found.start, end=found.end)


def test_both_parsers_read_them_alike() -> None:
    read = []
    for parser in PARSERS:
        with parsed_by(parser):
            read.append([outline(text.root) for text in texts()])
    assert len(read[0]) > 100
    assert read[0] == read[1]


def test_all_that_is_in_them_can_be_edited() -> None:
    """That only the intended thing changes, each edit proves by itself."""
    for text in texts():
        places = list(paths(text.root))
        for path, node in places[:: 1 + len(places) // EDITED_PLACES]:
            if isinstance(node.value, dict):
                assert insert_key(text, path, "a new key", ["with: a", {"value": None}])
            elif isinstance(node.value, list):
                assert append_item(text, path, {"id": "T-1", "files": []})
            else:
                assert set_scalar(text, path, 'a new: "value"')
                assert set_scalar(text, path, node.value) == ()
            if path and isinstance(path[-1], int):
                assert remove_item(text, path)
