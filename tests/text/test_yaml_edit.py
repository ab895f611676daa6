"""Edits of YAML: what people wrote stays as they wrote it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from text.reading import source_of
from workpacket.documents.structured import read_front_matter
from workpacket.text.source import Plain, Source
from workpacket.text.yaml_edit import (
    CannotEdit,
    Edits,
    YamlText,
    append_item,
    insert_key,
    remove_item,
    set_scalar,
    yaml_text,
)
from workpacket.text.yaml_strict import NodePath

Step = Callable[[YamlText], Edits]


def after(text: str, edit: Step) -> str:
    document = yaml_text(source_of(text))
    return document.edited(edit(document)).source.text


SET = {
    "plain stays plain": ("a: b  # c\n", "d e", "a: d e  # c\n"),
    "single quotes stay": ("a: 'b' # c\n", "it's", "a: 'it''s' # c\n"),
    "double quotes stay": ('a: "b"\n', 'say "c"', 'a: "say \\"c\\""\n'),
    "single quotes give way to escapes": ("a: 'b'\n", "c\nd", 'a: "c\\nd"\n'),
    "quotes come where they are needed": ("a: b\n", "c: d", 'a: "c: d"\n'),
    "single quotes save escapes": ("a: b\n", '"c" \\ d', "a: '\"c\" \\ d'\n"),
    "text that looks like a number is quoted": ("a: 2a\n", "3", 'a: "3"\n'),
    "text that looks like a float to others is quoted": ("a: abcdef0\n", "123e456", 'a: "123e456"\n'),
    "text that looks like a boolean to others is quoted": ("a: b\n", "no", 'a: "no"\n'),
    "a date follows a date": ("a: 2026-06-08 # when\n", "2026-07-01", "a: 2026-07-01 # when\n"),
    "a date does not follow a word": ("a: soon\n", "2026-07-01", 'a: "2026-07-01"\n'),
    "a number is not quoted": ("a: '1'\n", 2, "a: 2\n"),
    "a boolean": ("a: 1\n", True, "a: true\n"),
    "null": ("a: b # c\n", None, "a: null # c\n"),
    "nothing becomes something": ("a:\nb: c\n", "x", "a: x\nb: c\n"),
    "nothing with a blank": ("a: \nb: c\n", "x", "a: x\nb: c\n"),
    "nothing with a comment": ("a:   # c\n", "x", "a: x   # c\n"),
    "nothing at the end of the file": ("a:", "x", "a: x"),
    "nothing in braces": ("{b, a: , c}\n", "x", "{b, a: x , c}\n"),
    "a key in braces without a colon": ("{b, a}\n", "x", "{b, a: x}\n"),
    "several lines": ("a: b\n  c\n  d # e\nf: g\n", "x", "a: x # e\nf: g\n"),
    "a block by a line": ("a: | # c\n  b\n\nd: e\n", "x", "a: x # c\n\nd: e\n"),
    "a block by a block": ("a: >-  # c\n   b\nd: e\n", "x\ny\n", "a: |  # c\n   x\n   y\nd: e\n"),
    "a block with a stated indentation by a block": ("a: |1\n   b\n", "x\ny", "a: |-\n   x\n   y\n"),
    "an empty block by a text of two lines": ("a: |\nd: e\n", "x\ny", 'a: "x\\ny"\nd: e\n'),
    "a block by a number": ("a: |\n  b\n", 7, "a: 7\n"),
    "in brackets a comma needs quotes": ("x: 1\na: b\n", "c, d", "x: 1\na: c, d\n"),
    "its own value": ("a: >\n  b\n  c\n", "b c\n", "a: >\n  b\n  c\n"),
    "nothing for nothing": ("a:  # c\n", None, "a:  # c\n"),
    "true for a number": ("a: 1\n", True, "a: true\n"),
    "crlf stays": ("a: |\r\n  b\r\nc: d\r\n", "x\ny\n", "a: |\r\n  x\r\n  y\r\nc: d\r\n"),
}


@pytest.mark.parametrize(("text", "value", "expected"), SET.values(), ids=SET)
def test_a_value_is_set(text: str, value: str | int | bool | None, expected: str) -> None:
    assert after(text, lambda document: set_scalar(document, ("a",), value)) == expected


def test_the_document_itself_can_be_a_value() -> None:
    assert after("# a\nb # c\n", lambda document: set_scalar(document, (), "d")) == "# a\nd # c\n"


def test_a_value_in_brackets_is_quoted_when_the_brackets_ask_for_it() -> None:
    assert after("[a, b]\n", lambda document: set_scalar(document, (0,), "c, d")) == '["c, d", b]\n'


APPEND: dict[str, tuple[str, Plain, str]] = {
    "dashes": ("a:\n  - b # c\nd: e\n", "x", "a:\n  - b # c\n  - x\nd: e\n"),
    "dashes at the margin": ("a:\n- b\n", "x", "a:\n- b\n- x\n"),
    "dashes without a final line end": ("a:\n- b", "x", "a:\n- b\n- x"),
    "below a block of text": ("a:\n- |\n  b\n\nd: e\n", "x", "a:\n- |\n  b\n- x\n\nd: e\n"),
    "below a mapping": (
        "a:\n  - id: 1\n    b: c\n",
        {"id": "2", "b": ["x", "y"]},
        'a:\n  - id: 1\n    b: c\n  - id: "2"\n    b:\n      - x\n      - "y"\n',
    ),
    "brackets": ("a: [b, c] # d\n", "x", "a: [b, c, x] # d\n"),
    "empty brackets": ("a: [ ]\n", "x, y", 'a: ["x, y" ]\n'),
    "brackets with a comma at the end": ("a: [b, c,]\n", "x", "a: [b, c, x,]\n"),
    "brackets line by line": ("a: [\n  b, # c\n  d # e\n]\n", "x", "a: [\n  b, # c\n  d, # e\n  x\n]\n"),
    "brackets line by line, comma at the end": ("a: [\n  b,\n  d, # e\n]\n", "x", "a: [\n  b,\n  d, # e\n  x,\n]\n"),
    "brackets that close on the last line": ("a: [\n  b,\n  c]\n", "x", "a: [\n  b,\n  c, x]\n"),
    "nothing": ("a:\nb: c\n", "x", "a: [x]\nb: c\n"),
    "null": ("a: null # c\n", {"x": 1}, "a: [{x: 1}] # c\n"),
    "crlf": ("a:\r\n- b\r\n", "x", "a:\r\n- b\r\n- x\r\n"),
    "a text of two lines": ("a:\n  - b\n", "x\ny\n", "a:\n  - b\n  - |\n    x\n    y\n"),
}


@pytest.mark.parametrize(("text", "value", "expected"), APPEND.values(), ids=APPEND)
def test_an_item_is_appended(text: str, value: Plain, expected: str) -> None:
    assert after(text, lambda document: append_item(document, ("a",), value)) == expected


REMOVE = {
    "the first of dashes": ("a:\n  - b # c\n  # d\n  - e\n", 0, "a:\n  # d\n  - e\n"),
    "the last of dashes": ("a:\n  - b\n  # d\n  - e # f\ng: h\n", 1, "a:\n  - b\n  # d\ng: h\n"),
    "the last of a file without a final line end": ("a:\n- b\n- c", 1, "a:\n- b"),
    "a mapping": ("a:\n- b: 1\n  c: 2 # d\n- e\n", 0, "a:\n- e\n"),
    "a block of text": ("a:\n- |\n  b\n\n- e\n", 0, "a:\n\n- e\n"),
    "the only one": ("a:\n  - b # c\n  # d\ne: f\n", 0, "a: []\n  # d\ne: f\n"),
    "the only one below a comment": ("a: # c\n- b\n", 0, "a: [] # c\n"),
    "the only one at the end of a file": ("a:\n- b", 0, "a: []"),
    "the first in brackets": ("a: [b, c] # d\n", 0, "a: [c] # d\n"),
    "the last in brackets": ("a: [b, c]\n", 1, "a: [b]\n"),
    "the last in brackets before a comma": ("a: [b, c,]\n", 1, "a: [b,]\n"),
    "the only one in brackets": ("a: [b]\n", 0, "a: []\n"),
    "the only one in brackets before a comma": ("a: [b, ]\n", 0, "a: []\n"),
    "one line of brackets": ("a: [\n  b, # c\n  # d\n  e\n]\n", 0, "a: [\n  # d\n  e\n]\n"),
    "the last line of brackets": ("a: [\n  b, # c\n  e # f\n]\n", 1, "a: [\n  b, # c\n]\n"),
    "one of a wrapped list": ("a: [b,\n  c, d]\n", 1, "a: [b,\n  d]\n"),
    "crlf": ("a:\r\n- b\r\n- c\r\n", 0, "a:\r\n- c\r\n"),
}


@pytest.mark.parametrize(("text", "index", "expected"), REMOVE.values(), ids=REMOVE)
def test_an_item_is_removed(text: str, index: int, expected: str) -> None:
    assert after(text, lambda document: remove_item(document, ("a", index))) == expected


REMOVE_DEEP = {
    "the first of a list in a list": ("- - a # c\n  - b\n", (0, 0), "- - b\n"),
    "the only one of a list in a list": ("- - a\n- b\n", (0, 0), "- []\n- b\n"),
    "the only one of the document": ("- a # c\n", (0,), "[] # c\n"),
    "the only one, a block of text": ("- |\n  a\n", (0,), "[]\n"),
    "a whole list in a list": ("- - a\n  - b\n- c\n", (0,), "- c\n"),
    "a dash inside the item before": ("- a - b\n-  # - c\n   d\n- e\n", (1,), "- a - b\n- e\n"),
}


@pytest.mark.parametrize(("text", "path", "expected"), REMOVE_DEEP.values(), ids=REMOVE_DEEP)
def test_an_item_is_removed_from_within(text: str, path: tuple[int, ...], expected: str) -> None:
    assert after(text, lambda document: remove_item(document, path)) == expected


INSERT: dict[str, tuple[str, NodePath, Plain, str]] = {
    "below the last entry": ("a: 1\nb: 2 # c\n# d\n", (), "x", "a: 1\nb: 2 # c\nnew: x\n# d\n"),
    "without a final line end": ("a: 1", (), "x", "a: 1\nnew: x"),
    "in an inner mapping": ("a:\n  b: 1\nc: d\n", ("a",), ["x"], "a:\n  b: 1\n  new:\n    - x\nc: d\n"),
    "in a mapping of a list": ("- a: 1\n  b: 2\n- c\n", (0,), "x", "- a: 1\n  b: 2\n  new: x\n- c\n"),
    "below a list": ("a:\n- b\n", (), "x", "a:\n- b\nnew: x\n"),
    "below nothing": ("a:\n", (), "x", "a:\nnew: x\n"),
    "below a block of text": ("a: |\n  b\n", (), "x", "a: |\n  b\nnew: x\n"),
    "in braces": ("a: {b: 1, c}\n", ("a",), "x, y", 'a: {b: 1, c, new: "x, y"}\n'),
    "in empty braces": ("a: {}\n", ("a",), {"y": []}, 'a: {new: {"y": []}}\n'),
    "in braces behind a colon": ("a: {b: }\n", ("a",), "x", "a: {b: , new: x}\n"),
}


@pytest.mark.parametrize(("text", "path", "value", "expected"), INSERT.values(), ids=INSERT)
def test_a_key_is_inserted(text: str, path: NodePath, value: Plain, expected: str) -> None:
    assert after(text, lambda document: insert_key(document, path, "new", value)) == expected


def test_a_key_that_readers_guess_about_is_quoted() -> None:
    assert after("a: 1\n", lambda document: insert_key(document, (), "on", "x")) == 'a: 1\n"on": x\n'


def test_a_checkpoint_moves_on_and_its_comments_stay() -> None:
    text = (
        "checkpoint:\n"
        "  last_batch: 1  # the one before was 0\n"
        "  timestamp: 2026-06-08\n"
        "  tasks:\n"
        "    done: [T-1]\n"
        "    pending:  # in order\n"
        "      - T-2\n"
        "      - T-3  # needs a decision\n"
        "  next_batch: {number: 2, tasks: [T-2]}\n"
    )
    steps: tuple[Step, ...] = (
        lambda now: set_scalar(now, ("checkpoint", "last_batch"), "2a"),
        lambda now: set_scalar(now, ("checkpoint", "timestamp"), "2026-06-09"),
        lambda now: append_item(now, ("checkpoint", "tasks", "done"), "T-2"),
        lambda now: remove_item(now, ("checkpoint", "tasks", "pending", 0)),
        lambda now: set_scalar(now, ("checkpoint", "next_batch", "number"), 3),
        lambda now: set_scalar(now, ("checkpoint", "next_batch", "tasks", 0), "T-3"),
        lambda now: insert_key(now, ("checkpoint",), "last_commit", "1234567"),
    )
    document = yaml_text(source_of(text))
    for step in steps:
        document = document.edited(step(document))
    assert document.source.text == (
        "checkpoint:\n"
        "  last_batch: 2a  # the one before was 0\n"
        "  timestamp: 2026-06-09\n"
        "  tasks:\n"
        "    done: [T-1, T-2]\n"
        "    pending:  # in order\n"
        "      - T-3  # needs a decision\n"
        "  next_batch: {number: 3, tasks: [T-3]}\n"
        '  last_commit: "1234567"\n'
    )


def test_front_matter_is_edited_and_every_other_byte_stays() -> None:
    data = (
        b"\xef\xbb\xbf---\r\nlane: planned # l\r\ntasks:\r\n- T1\r\n---\r\n"
        b"# Caf\xe9 \xf0\x9f\x98\x80  \r\nlane: planned\r\n"
    )
    source = Source.from_bytes("file", data)
    found = read_front_matter(source)
    document = yaml_text(source, start=found.start, end=found.end)
    document = document.edited(set_scalar(document, ("lane",), "doing"))
    document = document.edited(append_item(document, ("tasks",), "T2"))
    document = document.edited(insert_key(document, (), "agent", None))
    assert document.source.encode() == data.replace(b"lane: planned #", b"lane: doing #").replace(
        b"- T1\r\n", b"- T1\r\n- T2\r\nagent: null\r\n"
    )


REFUSED: dict[str, tuple[str, Step, str]] = {
    "a list is no single value": ("a: [b]", lambda doc: set_scalar(doc, ("a",), "c"), "file:1:4: this is a list"),
    "nothing stands there": ("a: b", lambda doc: set_scalar(doc, ("b",), "c"), "file: there is nothing at b"),
    "no list to append to": ("a:\n  b: c", lambda doc: append_item(doc, ("a",), "c"), "file:2:3: this is not a list"),
    "no item to remove": ("a: b", lambda doc: remove_item(doc, ("a",)), "file:1:4: this is not a list item"),
    "no such item": ("a: [b]", lambda doc: remove_item(doc, ("a", 1)), "there is nothing at a/1"),
    "an item counted from the end": ("a: [b]", lambda doc: remove_item(doc, ("a", -1)), "there is nothing at a/-1"),
    "no mapping": ("a: [b]", lambda doc: insert_key(doc, ("a",), "b", "c"), "file:1:4: this is not a mapping"),
    "the key is there": (
        "a: {b: c}",
        lambda doc: insert_key(doc, ("a",), "b", "c"),
        "file:1:4: the key 'b' already exists",
    ),
    "a comment in between": (
        "- - a\n  # about b\n  - b\n",
        lambda doc: remove_item(doc, (0, 0)),
        "file:1:5: this change cannot be made without changing other text",
    ),
}


@pytest.mark.parametrize(("text", "edit", "why"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(text: str, edit: Step, why: str) -> None:
    with pytest.raises(CannotEdit, match=why):
        edit(yaml_text(source_of(text)))


def test_what_is_no_yaml_cannot_be_edited() -> None:
    with pytest.raises(CannotEdit, match=r"file:2:1: the key 'a' occurs on line 1 and again on line 2"):
        yaml_text(source_of("a: 1\na: 2\n"))
