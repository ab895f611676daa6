"""Front matter: where it begins and ends, and with which positions it is read."""

from __future__ import annotations

import pytest

from text.reading import places, source_of
from workpacket.documents.structured import read_front_matter
from workpacket.text.source import Limits, Source

READ = {
    "a block and a body": ("---\na: 1\n---\n# B\n", "# B\n", 4),
    "crlf": ("---\r\na: 1\r\n---\r\n# B\r\n", "# B\r\n", 4),
    "carriage returns": ("---\ra: 1\r---\r# B", "# B", 4),
    "blanks behind the fences": ("--- \t\na: 1\n---\t \n# B", "# B", 4),
    "dots as the end": ("---\na: 1\n...\n# B", "# B", 4),
    "nothing below": ("---\na: 1\n---", "", 3),
    "fences below": ("---\na: 1\n---\n---\nb\n---\n", "---\nb\n---\n", 4),
    "comments": ("---\n# c\na: 1 # d\n---\n", "", 5),
}


@pytest.mark.parametrize("bom", [False, True])
@pytest.mark.parametrize(("text", "body", "line"), READ.values(), ids=READ)
def test_it_reads(text: str, body: str, line: int, bom: bool) -> None:
    source = Source("file", text, bom=bom)
    found = read_front_matter(source)
    assert found.loaded.root is not None
    assert found.loaded.root.plain() == {"a": 1}
    assert found.present
    assert text[found.body :] == body
    assert found.body_line == line
    assert source.line_and_column(found.body)[0] == line


def test_its_positions_are_those_of_the_file() -> None:
    text = "---\r\na: 'é'\r\nlist: [x]\r\n---\r\n# B\r\n"
    found = read_front_matter(source_of(text))
    root = found.loaded.root
    assert root is not None
    assert text[found.start : found.end] == "a: 'é'\r\nlist: [x]\r\n"
    node = root.get("list", 0)
    assert node is not None
    assert text[node.start : node.end] == "x"
    assert root.keys is not None
    assert text[slice(*root.keys["list"])] == "list"


@pytest.mark.parametrize(
    "text", ["", "# A\n", "a: 1\n---\n", "----\na: 1\n----\n", "--- a\n---\n", " ---\na: 1\n---\n"]
)
def test_without_an_opening_fence_there_is_none_and_nothing_is_wrong(text: str) -> None:
    found = read_front_matter(source_of(text))
    assert not found.present
    assert found.loaded.root is None
    assert found.loaded.faults == ()
    assert (found.body, found.body_line) == (0, 1)


REFUSED = {
    "no end": ("---\na: 1\n# B\n", [("front_matter_unclosed", 1, 1)]),
    "an indented end": ("---\na: 1\n ---\n", [("front_matter_unclosed", 1, 1)]),
    "only a fence": ("---", [("front_matter_unclosed", 1, 1)]),
    "blank lines before": ("\n \n---\na: 1\n---\n", [("front_matter_not_first", 3, 1)]),
    "nothing in it": ("---\n---\n# B\n", [("front_matter_not_a_mapping", 2, 1)]),
    "only a comment": ("---\n# c\n---\n", [("front_matter_not_a_mapping", 2, 1)]),
    "a sentence": ("---\nSome words.\n---\n", [("front_matter_not_a_mapping", 2, 1)]),
    "a list": ("---\n- a\n---\n", [("front_matter_not_a_mapping", 2, 1)]),
    "broken YAML": ("---\na: 1\nb: 'c\n---\n", [("yaml_syntax", 3, 4)]),
    "a duplicate key": ("---\na: 1\na: 2\n---\n", [("yaml_duplicate_key", 3, 1)]),
}


@pytest.mark.parametrize(("text", "faults"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(text: str, faults: list[tuple[str, int, int]]) -> None:
    source = source_of(text)
    found = read_front_matter(source)
    assert found.loaded.root is None
    assert places(source, found.loaded) == faults


def test_a_rule_below_blank_lines_is_no_front_matter() -> None:
    assert read_front_matter(source_of("\n---\nwords\n")).loaded.faults == ()


def test_the_body_of_a_broken_block_is_still_found() -> None:
    found = read_front_matter(source_of("---\na: [\n---\n# B\n"))
    assert found.loaded.root is None
    assert (found.present, found.body, found.body_line) == (True, 13, 4)


def test_limits_count_the_block_and_not_the_body() -> None:
    text = "---\na: 1\n---\n" + "x" * 100
    assert read_front_matter(source_of(text), Limits(size=5)).loaded.root is not None
    assert read_front_matter(source_of(text), Limits(size=4)).loaded.root is None
