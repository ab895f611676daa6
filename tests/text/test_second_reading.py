"""What other readers see of a repair: only the lines that an edit was to change may differ, in words and in place."""

from __future__ import annotations

import pytest

from workpacket.problem import Edit
from workpacket.text.second_reading import not_carried_over, unexpected_change
from workpacket.text.source import Source, apply_edits

LIST = "# T\n\n- one\n  - two\n- three\n"


def seen(before: str, after: str, *edits: Edit, path: str = "a.md") -> str:
    return unexpected_change(Source(path, before), Source(path, after), edits)


def replacing(text: str, old: str, new: str, path: str = "a.md") -> str:
    """What is seen of an edit that is made as it was announced."""
    edit = Edit(text.index(old), text.index(old) + len(old), new)
    before = Source(path, text)
    return unexpected_change(before, apply_edits(before, [edit]), [edit])


def test_what_an_edit_announces_is_expected() -> None:
    assert replacing(LIST, "one", "1") == ""
    assert replacing(LIST, "- three", "* three") == ""
    assert replacing("a\n\n\nb\n", "\n\n\n", "\n\n") == ""


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("# T\n\n- 1\n- three\n", "line '  - two' would be '- three'"),
        ("# T\n\n- 1\n  - two\n", "line '- three' would be None"),
        ("# T\n\n- 1\n  - two\n- three\nmore\n", "line None would be 'more'"),
        ("# T\n\n- 1\n- two\n- three\n", "line '  - two' would be '- two'"),
    ],
)
def test_any_other_line_has_to_be_as_it_was(after: str, said: str) -> None:
    assert seen(LIST, after, Edit(7, 10, "1")) == said


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (LIST, "- one", "- ```", "in a fence"),
        (LIST, "- one", "- <!-- one", "in a block of HTML"),
        ("- a\n  ```\n  x\n  ```\n", "```\n", "~~~\n", "would be in a fence"),
        ("> a\n> - b\n", "> a", "", "would be empty"),
        ("one\n\ntwo\n===\n", "two", "```", "in a fence"),
        ("a `b\nc` d\n", "`", "", "would be grouped differently"),
        ("a b\nc` d\n", "b", "`b", "would be grouped differently"),
    ],
)
def test_no_other_line_is_read_in_another_way(text: str, old: str, new: str, said: str) -> None:
    assert said in replacing(text, old, new)


@pytest.mark.parametrize("path", ["a.yaml", "a.md"])
def test_no_other_value_of_yaml_changes(path: str) -> None:
    text = "---\na: 1\nb: two\n# kept\nc: '3'\n---\n"
    assert replacing(text, "two", "2", path) == ""
    assert "YAML could no longer be read" in replacing(text, "two", "[", path)
    assert replacing("---\na: |+\n  x\n\n\n---\n", "\n\n\n---", "\n---", path) != ""


def test_yaml_that_could_not_be_read_may_change_in_blanks_only() -> None:
    broken = "a: [1\nb:\t2\n"
    assert replacing(broken, "\t", " ", "a.yaml") == ""
    assert replacing(broken, "2", "3", "a.yaml") == "the original could not be read"


@pytest.mark.parametrize(("path", "text"), [("a.json", '{"a": ["b", 1]}'), ("a.toml", 'a = ["b", 1]\n')])
def test_json_and_toml_keep_their_shape(path: str, text: str) -> None:
    assert replacing(text, "b", "c", path) == ""
    assert "form" in replacing(text, "1", "2", path)
    assert "no longer" in replacing(text, "]", "", path)


def test_what_is_written_in_another_order_holds_every_line() -> None:
    before, after = Source("a.md", "# A\n\none\n\n```\ntwo\n```\n"), Source("a.md", "```\ntwo\n```\n\n- X: one\n")
    assert not_carried_over(before, after, ["# A"], "-") == ""
    assert not_carried_over(before, after, [], "-") == "line '# A' would be lost"
    assert "begin or end elsewhere" in not_carried_over(
        before, Source("a.md", "```\n- X: one\n```\ntwo\n"), ["# A"], ""
    )


def test_front_matter_that_never_ends_is_looked_for_in_one_pass() -> None:
    text = "---\r\n" + "key: value\r\n" * 5_000
    assert replacing(text, "value", "other") == ""
