"""What an unaltered markdown-it-py makes of a text: the tree of its tokens with their contents.

Our reader uses the same parser with its rules wrapped, and takes the text from the source by the offsets it recorded.
Here the text comes out of the tokens. Both must be the same, line by line.
"""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from workpacket.text.blocks import Block

# Kind, first line (from 1), lines or cells of text, children.
Tree = tuple[str, int, list[str], list["Tree"]]

_CONTAINERS = {"bullet_list": "bullet_list", "ordered_list": "ordered_list", "list_item": "item", "blockquote": "quote"}
_VERBATIM = {"fence": "fence", "code_block": "code", "html_block": "html"}
# What markdown-it trims from a leaf: more than the blanks that we leave out.
_TRIMMED = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

_PARSER = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table").disable(["inline", "text_join"])


def seen_by_markdown_it(text: str) -> list[Tree]:
    levels: list[list[Tree]] = [[]]
    leaf: Tree | None = None
    for token in _PARSER.parse(text):
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name in _CONTAINERS and token.nesting == 1:
            levels[-1].append((_CONTAINERS[name], _line(token), [], []))
            levels.append(levels[-1][-1][3])
        elif name in _CONTAINERS:
            levels.pop()
        elif name in _VERBATIM or name == "hr":
            kind = _VERBATIM.get(name, "rule")
            levels[-1].append((kind, _line(token), token.content.splitlines() if kind == "rule" else _cut(token), []))
        elif token.type in {"heading_open", "paragraph_open", "table_open"}:
            leaf = (name, _line(token), [], [])
            levels[-1].append(leaf)
        elif token.type == "inline" and leaf is not None:
            leaf[2].extend([_plain(token.content)] if leaf[0] == "table" else _words(token.content))
    return levels[0]


def seen_by_us(text: str, blocks: Sequence[Block]) -> list[Tree]:
    """The same of our blocks: link definitions are left out, as they leave no token."""
    return [_tree(text.replace("\0", "\ufffd"), block) for block in blocks if block.kind != "definition"]


def _tree(text: str, block: Block) -> Tree:
    lines = [text[start:end] for start, end in block.spans]
    if block.kind in {"paragraph", "heading"}:
        lines = _words("\n".join(lines))
    elif block.kind == "table":
        lines = [_plain(cell) for cell in _square(text, block)]
    elif block.kind in {"fence", "code", "html"}:
        lines = [line.lstrip(" \t") for line in lines]
    return block.kind, block.line, lines, seen_by_us(text, block.children)


def _square(text: str, block: Block) -> list[str]:
    """The cells of a table, as many in each row as in the header."""
    columns = len(block.rows[0])
    rows = [[text[start:end] for start, end in row] for row in block.rows]
    return [cell for row in rows for cell in (row + [""] * columns)[:columns]]


def _line(token: Token) -> int:
    assert token.map is not None
    return token.map[0] + 1


def _cut(token: Token) -> list[str]:
    """The lines of a verbatim leaf; blanks before them may be what is left of a tab, which stands in no span."""
    lines = token.content.removesuffix("\n").split("\n") if token.content else []
    return [line.lstrip(" \t") for line in lines]


def _words(content: str) -> list[str]:
    return [line.strip(" \t") for line in content.strip(_TRIMMED).split("\n")]


def _plain(cell: str) -> str:
    """A cell without the backslashes before its pipes, which markdown-it drops one by one."""
    return cell.strip(_TRIMMED).replace("\\|", "|")
