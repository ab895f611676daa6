"""Markdown documents made up of the pieces that readers stumble over, and a short way to write down what was read."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from workpacket.text.blocks import Block
from workpacket.text.source import Source

INDENTS = ["", "", "", "", " ", "  ", "   ", "    ", "     ", "      ", "        ", "\t", " \t"]
MARKERS = [
    *["", "", "", "", "- ", "- ", "* ", "+ ", "1. ", "2. ", "1) ", "# ", "## ", "- [ ] ", "- [x] "],
    *["-  ", "-   ", "-    ", "-     ", "-      ", "-\t", "- \t", "-", "*", "1.", "10. ", "0. ", "123456789. "],
    *[
        "1234567890. ",
        "####### ",
        "#",
        "```",
        "```py",
        "~~~",
        "````",
        "``` a|b",
        "> ",
        ">",
        "<!-- ",
        "<div>",
        "<fill in: ",
        "<a",
        "<",
        "| ",
        "|",
    ],
    *["[x]: ", "[ ] ", "[x](y) ", "[a", "- - ", "- 1. ", "1. - ", "- # ", "- ```", "- > ", "* * ", "- |"],
    *["\f", "\u00a0", "\u2028", "\0", "\v", "\ufeff"],
]
BODIES = [
    *["", "a", "foo bar", "KEY: value", "**KEY**: value", "a | b", "a|b|", "|a|b|", "|1|2|3|", "a \\| b|", "x  "],
    *["---", "--", "-", "===", "=", "***", "* * *", "- - -", "___", "_ _", "|---|", "|-|-|", "-|-", "--|--", ":-:"],
    *["`x`", "```", "~~~", "words #", "#", "## ", "[x]: y", "[x]", "-->", "</div>", "  ", "\t", "a\tb", "*", "+", "1."],
    *["> q", "<fill in>", "b, c>", "\\", "\f", "é", "r\rs"],
]
LINE_ENDS = [*["\n"] * 12, "\n\n", "\n\n\n", "\n  \n", "\n\t\n", "\r\n", "\r"]


def _lines(indents: list[str], markers: list[str], bodies: list[str], ends: list[str]) -> st.SearchStrategy[str]:
    line = st.tuples(*(st.sampled_from(pieces) for pieces in (indents, markers, bodies, ends))).map("".join)
    return st.lists(line, max_size=10).map("".join)


NASTY = _lines(INDENTS, MARKERS, BODIES, LINE_ENDS)
PLAIN = _lines(INDENTS[:10], [*MARKERS[:15], "```", "> "], [*BODIES[:7], "---", "```", "|-|-|"], ["\n", "\n", "\n\n"])
ANYTHING = st.text(st.sampled_from("ab :#-*+_`~>|=[]()<!/\\.019 \t\n\r\0\f\u2028é\udcff"), max_size=60)
DOCUMENTS = st.one_of(NASTY, PLAIN, ANYTHING)
IN_ONE_LINE_END = st.tuples(st.one_of(NASTY, PLAIN), st.sampled_from(["\n", "\r\n"])).map(
    lambda drawn: drawn[0].replace("\r\n", "\n").replace("\r", "\n").replace("\n", drawn[1])
)

_SHORT = {
    "heading": "h",
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "item": "li",
    "quote": "q",
    "rule": "hr",
    "definition": "def",
}


def short(source: Source, blocks: Sequence[Block]) -> str:
    """The blocks in one line: `h2:Title ul[li[p:first/second line]] fence(py):x=1 table(a,b;1,2)`."""
    return " ".join(_short(source.text, block) for block in blocks)


def _short(text: str, block: Block) -> str:
    name = _SHORT.get(block.kind, block.kind)
    if block.kind in {"bullet_list", "ordered_list", "item", "quote"}:
        return f"{name}[{' '.join(_short(text, child) for child in block.children)}]"
    if block.kind == "table":
        return f"table({';'.join(','.join(text[start:end] for start, end in row) for row in block.rows)})"
    if block.kind == "rule":
        return name
    label = f"{name}{block.level or ''}" + (f"({block.info})" if block.info else "")
    return f"{label}:{block.text(text).replace(chr(10), '/')}"


def everything(blocks: Sequence[Block]) -> list[object]:
    """All that the blocks say, to be compared."""
    return [
        (
            (block.kind, block.line, block.end_line, block.start, block.marker, block.level, block.content_start),
            (block.info, list(block.spans), [list(row) for row in block.rows]),
            everything(block.children),
        )
        for block in blocks
    ]
