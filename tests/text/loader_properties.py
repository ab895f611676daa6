"""What must hold for the loaders, the writer and the edits, whatever they are given.

`test_loader_properties` tries each with a hundred cases on every run, `tests/fuzz` with as many as there is time for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import yaml

from text.reading import PARSERS, exactly, outline, parsed_by, paths, source_of
from workpacket.documents.structured import read_front_matter
from workpacket.text.json_strict import load_json
from workpacket.text.source import Loaded, Node, Plain, Scalar, Source, apply_edits
from workpacket.text.toml_strict import load_toml
from workpacket.text.yaml_edit import (
    REMOVED,
    CannotEdit,
    Change,
    Edits,
    YamlText,
    append_item,
    changed_only,
    insert_key,
    remove_item,
    set_scalar,
    yaml_text,
)
from workpacket.text.yaml_strict import inline, load_yaml, write_yaml

LOADERS: dict[str, Callable[[Source], Loaded]] = {
    "yaml": load_yaml,
    "json": load_json,
    "toml": load_toml,
    "front matter": lambda source: read_front_matter(source).loaded,
}


def every_loader_gives_a_tree_or_faults(data: bytes) -> None:
    """No exception, no half-loaded document, and every place lies in the text."""
    source = Source.from_bytes("file", data)
    for name, load in LOADERS.items():
        loaded = load(source)
        warnings = {"json_byte_order_mark"}
        assert (loaded.root is None) >= bool({fault.code for fault in loaded.faults} - warnings), name
        assert loaded.root is not None or loaded.faults or name == "front matter"
        spans = [(fault.start, fault.end) for fault in loaded.faults]
        if loaded.root is not None:
            spans += [node.span for node in loaded.root.walk()]
        assert all(0 <= start <= end <= len(source.text) for start, end in spans), name


def both_yaml_parsers_agree(text: str) -> None:
    """The same tree with the same places, or none from either."""
    seen = []
    for name in PARSERS:
        with parsed_by(name):
            root = load_yaml(source_of(text)).root
            seen.append(None if root is None else outline(root))
    assert seen[0] == seen[1]


def a_yaml_scalar_reads_the_same_alone(text: str) -> None:
    """The span of a scalar is all of it: in a list of its own it has the same value."""
    root = load_yaml(source_of(text)).root
    if root is not None and isinstance(root.value, (dict, list)):
        _scalars_read_the_same(text, root, in_brackets=False)


def _scalars_read_the_same(text: str, node: Node, *, in_brackets: bool) -> None:
    alone = text[node.start : node.end]
    if isinstance(node.value, (dict, list)):
        for child in (*node.mapping.values(), *node.items):
            _scalars_read_the_same(text, child, in_brackets=in_brackets or alone.startswith(("[", "{")))
    elif not re.match(r"[|>][-+]?[0-9]", alone):  # a stated indentation counts from what is around it
        read = load_yaml(source_of(f"[{alone}]" if in_brackets and alone else f"- {alone}")).root
        assert read is not None
        assert exactly(read.plain()) == exactly([node.plain()])


def a_repair_leaves_the_meaning(text: str) -> None:
    """If every fault of a text comes with a repair, the repaired text loads, and libyaml reads both as the same."""
    source = source_of(text)
    faults = load_yaml(source).faults
    edits = [edit for fault in faults if fault.fix is not None for edit in fault.fix.edits]
    if faults and all(fault.fix is not None for fault in faults):
        repaired = apply_edits(source, edits)
        assert load_yaml(repaired).root is not None
        assert exactly(yaml.load(text, yaml.CBaseLoader)) == exactly(yaml.load(repaired.text, yaml.CBaseLoader))


def what_is_written_as_yaml_reads_back(value: Plain) -> None:
    """To us, and to PyYAML, which guesses by the rules of YAML 1.1."""
    for text in (write_yaml(value), inline(value)):
        read = load_yaml(source_of(text)).root
        assert read is not None
        assert exactly(read.plain()) == exactly(value)
        assert exactly(yaml.load(text, yaml.CSafeLoader)) == exactly(value)


def an_edit_changes_only_what_was_meant(text: str, number: int, value: Plain) -> None:
    """At any place of any text: the edit is refused, or makes exactly this change and leaves every comment."""
    if load_yaml(source_of(text)).root is None:
        return
    document = yaml_text(source_of(text))
    places = list(paths(document.root))
    path, node = places[number % len(places)]
    if isinstance(node.value, dict):
        key = f"new {number}"
        _check(document, lambda: insert_key(document, path, key, value), (*path, key), value)
    elif isinstance(node.value, list):
        _check(document, lambda: append_item(document, path, value), (*path, len(node.value)), value)
    elif isinstance(value, (list, dict)):
        _check(document, lambda: append_item(document, path, value), path, [value])
    else:
        scalar: Scalar = value
        _check(document, lambda: set_scalar(document, path, scalar), path, value)
    if path and isinstance(path[-1], int):
        _check(document, lambda: remove_item(document, path), path, REMOVED)


def _check(document: YamlText, edit: Callable[[], Edits], path: tuple[str | int, ...], change: Change) -> None:
    try:
        edits = edit()
    except CannotEdit:
        return
    after = document.edited(edits)
    assert changed_only(document.root, after.root, path, change)
    text = document.source.text
    lost = Counter(comments(document)) - Counter(comments(after))
    if change is REMOVED:
        removed = document.root.get(*path)
        assert removed is not None
        end = document.region.line_end(removed.end)[0]
        for comment in re.findall(r"#.*", text[document.region.line_start(removed.start) : end]):
            lost.pop(comment.rstrip("\r"), None)
    assert not lost


def comments(document: YamlText) -> list[str]:
    """The comments of a text: what begins with a '#' outside of scalars, or in the first line of a block."""
    text = document.source.text
    taken = [span for _, node in paths(document.root) for span in _scalar_spans(text, node)]
    found = []
    at = 0
    while (at := text.find("#", at)) >= 0:
        inside = next((end for start, end in taken if start <= at < end), None)
        if inside is None:
            found.append(re.split(r"[\r\n]", text[at:], maxsplit=1)[0])
            inside = at + len(found[-1])
        at = inside
    return found


def _scalar_spans(text: str, node: Node) -> Iterator[tuple[int, int]]:
    yield from (node.keys or {}).values()
    if not isinstance(node.value, (dict, list)):
        first_line = re.match(r"[|>][^\r\n]*", text[node.start : node.end])
        yield node.start + (first_line.end() if first_line else 0), node.end
