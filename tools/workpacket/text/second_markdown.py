"""Two versions of a Markdown text, compared by what markdown-it makes of them and not by our own readers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from workpacket.text.numbered_lines import NumberedLines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# Blocks in which nothing is read as Markdown.
HIDING = {"fence": "a fence", "code_block": "a block of code", "html_block": "a block of HTML"}
_BREAKS = frozenset({"softbreak", "hardbreak"})


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


class Blocks:
    """What markdown-it makes of a text: for each line its items and what hides it, and where lines are one."""

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
        """The lines that are not read as Markdown, with what hides them."""
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
            # Code, a comment or a link goes on over the end of a line where no break is seen.
            self.joined[self._number(first)] = max(last - first - 1 - breaks, 0)
            self.holders.update(dict.fromkeys(numbers, holders))
        elif token.type in {"heading_open", "paragraph_open", "tr_open"}:
            self.kinds.update(dict.fromkeys(numbers, token.type))


def compare_markdown(old: Blocks, new: Blocks, named: frozenset[int]) -> str:
    """Whether each line that no finding names is in the same items, and as visible as it was."""
    for number, line in enumerate(old.reading.lines):
        was, now = old.hidden.get(number), new.hidden.get(number)
        if (was or now) and (was is None or now is None or was[:2] != now[:2]):
            return f"the line {line.strip()!r} would be {f'in {HIDING[now[0]]}' if now else 'read as Markdown'}"
        if number in named:
            continue
        if was != now:
            return f"the line {line.strip()!r} would be indented in another way"
        if _outer(old.holders.get(number, ()), named) != _outer(new.holders.get(number, ()), named):
            return f"the line {line.strip()!r} would belong to another item"
        if (old.kinds.get(number) == "heading_open") != (new.kinds.get(number) == "heading_open"):
            return f"the line {line.strip()!r} would begin or cease to be a heading"
    for number, joined in old.joined.items():
        if new.joined.get(number, 0) != joined:
            return f"the lines from {old.reading.lines[number].strip()!r} on would be read together in another way"
    return ""


def _outer(holders: tuple[tuple[str, int], ...], named: frozenset[int]) -> tuple[tuple[str, int], ...]:
    """The items and quotes around a line, but for those that begin on a line that is named."""
    return tuple(holder for holder in holders if holder[1] not in named)
