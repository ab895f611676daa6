"""Determine what a repair really changed, by independent readers: lines, markdown-it's tokens, PyYAML, json and
tomllib.

Rules and their edits depend on this project's own readers. If a reader were wrong about where a value ends, a repair
would destroy text, and the same reader would not detect that in the result. Before it is written, each repaired file is
therefore compared again by libraries that know nothing of our documents.

A line is identified by its number among the non-blank lines, because blank lines come and go. The lines that findings
cover are those whose words an edit touches; everything else must be unchanged.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from workpacket.problem import Edit
from workpacket.text.source import DROP_BOM, Source

# Every line end is read in only one way: a lone carriage return would have two.
_FRONT_MATTER = re.compile(
    r"---[ \t]*+(?:\r\n?+|\n)(?P<yaml>(?:[^\r\n]*+(?:\r\n?+|\n))*?)(?:---|\.\.\.)[ \t]*+(?:\r\n?+|\n|\Z)"
)

Leaf: TypeAlias = tuple[str, str, int, int]
"""The tag and text of a YAML scalar, and the numbers of its first and last lines."""


def unexpected_change(before: Source, after: Source, edits: Sequence[Edit]) -> str:
    """Return what differs although no edit was meant to change it; '' if nothing does."""
    old, new = NumberedLines(before.text), NumberedLines(after.text)
    wanted = _wanted_lines(old, edits)
    named = frozenset(wanted)
    said = _compare_lines(old, new, wanted)
    if said:
        return said
    suffix = before.path.rpartition(".")[2].lower()
    if suffix == "json":
        return _compare_values(old, new, json.loads)
    if suffix == "toml":
        return _compare_values(old, new, tomllib.loads)
    if suffix in {"yaml", "yml"}:
        return _compare_yaml(old, new, named, (0, len(old.text)), (0, len(new.text)))
    first, second = _FRONT_MATTER.match(old.text), _FRONT_MATTER.match(new.text)
    if (first is None) != (second is None):
        return "the front matter would begin or end elsewhere"
    if first is not None and second is not None:
        said = _compare_yaml(old, new, named, first.span("yaml"), second.span("yaml"))
    begin = (first.end() if first else 0, second.end() if second else 0)
    return said or compare_markdown(Blocks(old, begin[0]), Blocks(new, begin[1]), named)


def _wanted_lines(old: NumberedLines, edits: Sequence[Edit]) -> dict[int, list[str]]:
    """Return the replacement for each line to be reworded, keyed by line number."""
    by_line: dict[int, list[Edit]] = {}
    for edit in edits:
        there = old.text[max(edit.start, 0) : edit.end]
        # Blank lines come and go; white space inside a line is part of it.
        if edit != DROP_BOM and (edit.text.strip() or there.strip() or not LINE_END.search(there + edit.text)):
            by_line.setdefault(old.line_at(edit.start), []).append(edit)
    wanted: dict[int, list[str]] = {}
    for line, group in by_line.items():
        start = old.starts[line]
        words = LINE_END.split(old.text[start:], maxsplit=1)[0]
        for edit in sorted(set(group), key=lambda edit: edit.start, reverse=True):
            words = words[: edit.start - start] + edit.text + words[edit.end - start :]
        wanted[old.number(line)] = [piece for piece in LINE_END.split(words) if piece.strip()]
    return wanted


def _compare_lines(old: NumberedLines, new: NumberedLines, wanted: dict[int, list[str]]) -> str:
    """Check that each line is unchanged, or changed as intended. Record in `new` where the lines come from."""
    origin: list[int] = []
    expected: list[str] = []
    for number, line in enumerate(old.lines):
        pieces = wanted.get(number, [line])
        if not pieces:
            return f"line {line.strip()!r} would be empty"
        expected += pieces
        origin += [number] * len(pieces)
    for line, other in zip_longest(expected, new.lines):
        # White space at the end of a line may be edited without naming it.
        if line is None or other is None or line.rstrip() != other.rstrip():
            return f"line {line!r} would be {other!r}"
    new.origin = [*origin, len(old.lines)]
    return ""


def _compare_values(old: NumberedLines, new: NumberedLines, load: Callable[[str], Any]) -> str:
    """Compare the structure of JSON and TOML, which have no positions; their words were compared line by line."""
    try:
        before = load(old.text)
    except ValueError:
        return _compare_marks(old.text, new.text)
    try:
        return "" if _shape(before) == _shape(load(new.text)) else "values would have a different form"
    except ValueError:
        return "it could no longer be read"


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key.isascii() and key, _shape(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return "" if isinstance(value, str) else repr(value)


def _compare_marks(old: str, new: str) -> str:
    """Compare a text that was unreadable before: only white space and characters without syntactic meaning may
    change."""
    was, now = ([character for character in text if "!" <= character <= "~"] for text in (old, new))
    return "" if was == now else "the original could not be read"


def _compare_yaml(
    old: NumberedLines, new: NumberedLines, named: frozenset[int], here: tuple[int, int], there: tuple[int, int]
) -> str:
    import yaml

    try:
        before = dict(_leaves(old, *here))
    except (yaml.YAMLError, RecursionError):
        return _compare_marks(old.text[slice(*here)], new.text[slice(*there)])
    try:
        after = dict(_leaves(new, *there))
    except (yaml.YAMLError, RecursionError):
        return "YAML could no longer be read"
    for path in before.keys() | after.keys():
        was, now = before.get(path), after.get(path)
        if was is None or now is None or was[:2] != now[:2]:
            places = [leaf for leaf in (was, now) if leaf is not None]
            if not any(number in named for leaf in places for number in range(leaf[2], leaf[3] + 1)):
                return f"the value of {'/'.join(path)} would change"
    return ""


def _leaves(reading: NumberedLines, start: int, end: int) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield every scalar and every empty collection of the YAML in [start, end), by path; keys are numbered too."""
    import yaml

    first = reading.line_at(start)
    starts = [0, *(match.end() for match in LINE_END.finditer(reading.text[start:end]))]

    def number(mark: Any, back: int) -> int:
        return reading.number(first + bisect_right(starts, max(mark.index - back, 0)) - 1)

    documents = yaml.compose_all(reading.text[start:end], Loader=yaml.SafeLoader)
    waiting: list[tuple[tuple[str, ...], Any]] = [((str(index),), root) for index, root in enumerate(documents)]
    while waiting:
        path, node = waiting.pop()
        if node is None:
            continue
        if isinstance(node, yaml.MappingNode) and node.value:
            for index, (key, value) in enumerate(node.value):
                name = key.value if isinstance(key, yaml.ScalarNode) else "?"
                waiting.append(((*path, f"{index} {name}"), value))
                if not isinstance(key, yaml.ScalarNode):
                    waiting.append(((*path, f"{index} ?"), key))
        elif isinstance(node, yaml.SequenceNode) and node.value:
            waiting.extend(((*path, str(index)), item) for index, item in enumerate(node.value))
        else:
            words = node.value if isinstance(node, yaml.ScalarNode) else ""
            yield path, (str(node.tag), str(words), number(node.start_mark, 0), number(node.end_mark, 1))


def not_carried_over(before: Source, after: Source, rewritten: Sequence[str], invented: str) -> str:
    """Return what would be lost if `after`, which is in a different order, replaced `before`; '' if nothing would.

    Each line of `before` must be present, possibly indented or after a label, except those that are `rewritten`.
    `invented` are the only words allowed in an HTML block that was not there before.
    """
    old, new = NumberedLines(before.text), NumberedLines(after.text)
    there = Counter(line.strip() for line in new.lines)
    missing = Counter(line.strip() for line in old.lines) - there - Counter(line.strip() for line in rewritten)
    behind_labels = Counter(words for line in there - Counter(map(str.strip, old.lines)) for words in _behind(line))
    lost = missing - behind_labels
    if lost:
        return f"line {next(iter(lost))!r} would be lost"
    was, now = (Counter(Blocks(reading, 0).hidden_words()) for reading in (old, new))
    for kind, words in (was - now) + (now - was):
        if words != invented:
            return f"{HIDING[kind]} would begin or end elsewhere: {words!r}"
    return ""


def _behind(line: str) -> Iterator[str]:
    """Yield the words of a line after its label, and after each colon in it."""
    yield line.removeprefix("- ")
    for match in re.finditer(r":[ \t]+", line):
        yield line[match.end() :]


if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# Blocks whose content is not read as Markdown.
HIDING = {"fence": "a fence", "code_block": "a block of code", "html_block": "a block of HTML"}
_BREAKS = frozenset({"softbreak", "hardbreak"})


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


class Blocks:
    """A text as markdown-it sees it: for each line, its items and what hides the line, and where lines are joined."""

    def __init__(self, reading: NumberedLines, start: int) -> None:
        self.reading = reading
        self.hidden: dict[int, tuple[str, int, str]] = {}
        self.holders: dict[int, tuple[tuple[str, int], ...]] = {}
        self.kinds: dict[int, str] = {}
        self.joined: dict[int, int] = {}
        self._first = reading.line_at(start)
        holders: list[tuple[str, int]] = []
        for token in _parser().parse(reading.text[start:]):
            if token.type in {"list_item_open", "blockquote_open"} and token.map is not None:
                holders.append((token.type, self._number(token.map[0])))
            elif token.type in {"list_item_close", "blockquote_close"}:
                holders.pop()
            elif token.map is not None:
                self._take(token, tuple(holders))

    def hidden_words(self) -> Iterator[tuple[str, str]]:
        """Yield the lines that are not read as Markdown, with what hides them."""
        return ((kind, words.strip()) for kind, _, words in self.hidden.values())

    def _number(self, line: int) -> int:
        return self.reading.number(self._first + line)

    def _take(self, token: Token, holders: tuple[tuple[str, int], ...]) -> None:
        assert token.map is not None
        first, last = token.map
        numbers = {self._number(line) for line in range(first, max(last, first + 1))}
        if token.type in HIDING:
            shown = [""] * (token.type == "fence") + token.content.split("\n")
            for line in range(first, max(last, first + 1)):
                words = shown[line - first] if line - first < len(shown) else ""
                if words.strip() or line == first:
                    self.hidden[self._number(line)] = (token.type, self._number(first), words.rstrip())
            self.holders.update(dict.fromkeys(numbers, holders))
        elif token.type == "inline":
            breaks = sum(child.type in _BREAKS for child in token.children or ())
            # Code, a comment or a link continues past the end of a line where no break is visible.
            self.joined[self._number(first)] = max(last - first - 1 - breaks, 0)
            self.holders.update(dict.fromkeys(numbers, holders))
        elif token.type in {"heading_open", "paragraph_open", "tr_open"}:
            self.kinds.update(dict.fromkeys(numbers, token.type))


def compare_markdown(old: Blocks, new: Blocks, named: frozenset[int]) -> str:
    """Check that each line without a finding remains in the same items and as visible as before."""
    for number, line in enumerate(old.reading.lines):
        was, now = old.hidden.get(number), new.hidden.get(number)
        if (was or now) and (was is None or now is None or was[:2] != now[:2]):
            return f"line {line.strip()!r} would be {(f'in {HIDING[now[0]]}' if now else 'read as Markdown')}"
        if number in named:
            continue
        if was != now:
            return f"line {line.strip()!r} would be indented differently"
        if _outer(old.holders.get(number, ()), named) != _outer(new.holders.get(number, ()), named):
            return f"line {line.strip()!r} would belong to a different item"
        if (old.kinds.get(number) == "heading_open") != (new.kinds.get(number) == "heading_open"):
            return f"line {line.strip()!r} would become a heading or no longer be one"
    for number, joined in old.joined.items():
        if new.joined.get(number, 0) != joined:
            return f"the lines from {old.reading.lines[number].strip()!r} onward would be grouped differently"
    return ""


def _outer(holders: tuple[tuple[str, int], ...], named: frozenset[int]) -> tuple[tuple[str, int], ...]:
    """Return the items and quotes around a line, except those that begin on a line with a finding."""
    return tuple(holder for holder in holders if holder[1] not in named)


LINE_END = re.compile(r"\r\n|\r|\n")


class NumberedLines:
    """The non-blank lines of a text. `origin` gives the number that each line had before the repair."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []
        self.starts = [0, *(match.end() for match in LINE_END.finditer(text))]
        self._numbers: list[int] = []
        for line in LINE_END.split(text):
            self._numbers.append(len(self.lines))
            if line.strip():
                self.lines.append(line)
        self.origin: Sequence[int] = range(len(self.lines) + 1)

    def line_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def number(self, line: int) -> int:
        """Return the number of the line (counted from 0, including blank ones), or of the next non-blank line."""
        number = self._numbers[line] if line < len(self._numbers) else len(self.lines)
        return self.origin[number] if number < len(self.origin) else len(self.lines)
