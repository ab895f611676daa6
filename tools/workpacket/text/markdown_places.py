"""markdown-it-py, made to say where each line of text stands and to stop before it has worked too long.

markdown-it tells on which lines a block stands, not at which columns. Its block rules know, because they keep for each
line where the text begins behind all container prefixes; so each rule is wrapped, and when it has matched, the places
it saw are written into its token (`meta`). Nothing is guessed from the source afterwards.

The wrappers also keep count. Every loop of the parser that is not linear goes through its rules: a budget of steps,
blocks and tokens therefore bounds time and memory for any text, and the same text always stops at the same line. The
parser's own limit on nesting bounds its recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from workpacket.text.blocks import MAX_DEPTH
from workpacket.text.line_syntax import BLANKS, heading_words, row_cells, trimmed

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

# A place in the text that markdown-it sees, where all line ends are "\n": line (from 0), first and last offset.
Place = tuple[int, int, int]
_Rule = Callable[["StateBlock", int, int, bool], bool]
_Record = Callable[["StateBlock", "list[Token]", int, int], None]

# A step takes two microseconds or so. Ordinary text costs 4 to 8 steps a line: 2 MiB of it, in 40,000 lines, 250,000.
_STEPS = 200_000
_STEPS_PER_NODE = 10
_TOKENS_PER_NODE = 5
_MADE_UP_TOKENS = 5 * 65_536  # markdown-it fills up short rows of a table with at most so many cells
_CHARACTERS_PER_STEP = 32  # a rule looks through the whole line, and does so again for each list that begins on it
_QUOTED_LINES_PER_STEP = 4  # a quote goes through all its lines before the first block in it is read
# What one try to end a block costs, by the block. A paragraph is tried twice, by `table` and by `fence`; the others
# once. The title of a link definition is copied whole for each line it goes on.
_STEPS_TO_END = {"paragraph": 1, "reference": 20}


class Exhausted(Exception):
    """The text asks for more work than a document may cost; `line` (from 0) is where the budget ended."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class TooManyBlocks(Exhausted):
    """There are more blocks than a document may have."""


class _Budget:
    """What is left to be spent on one text."""

    __slots__ = ("_blocks", "_cells", "_steps", "_tokens")

    def __init__(self, most_nodes: int) -> None:
        self._steps = _STEPS + _STEPS_PER_NODE * most_nodes
        self._tokens = _TOKENS_PER_NODE * most_nodes + _MADE_UP_TOKENS
        self._blocks = self._cells = most_nodes

    def begin_block(self, state: StateBlock, line: int, end_line: int) -> None:
        start, end = state.bMarks[line], state.eMarks[line]
        self._steps -= 2 + (end - start) // _CHARACTERS_PER_STEP
        if state.tokens and state.tokens[-1].type == "blockquote_open":
            self._steps -= (end_line - line) // _QUOTED_LINES_PER_STEP
        self._require_steps(line)
        self._blocks -= 1
        if self._blocks < 0 or (_begins_table(state, line) and state.src.count("|", start, end) > self._cells):
            raise TooManyBlocks(line)

    def try_to_end_block(self, state: StateBlock, line: int) -> None:
        self._steps -= _STEPS_TO_END.get(state.parentType, 2)
        self._require_steps(line)
        if state.parentType == "table":
            row = state.src.count("|", state.bMarks[line], state.eMarks[line])
            if row > self._cells or len(state.tokens) > self._tokens:
                raise TooManyBlocks(line)

    def _require_steps(self, line: int) -> None:
        if self._steps < 0:
            raise Exhausted(line)


def _begins_table(state: StateBlock, line: int) -> bool:
    """Whether a delimiter row may follow: a table makes the tokens of all its columns before it asks for anything."""
    delimiter = state.src[state.bMarks[line + 1] : state.eMarks[line + 1]]
    return bool(delimiter) and not delimiter.strip("|:- \t")


def placed_tokens(text: str, most_nodes: int) -> list[Token]:
    """The tokens of `text`. Their `meta` holds `start`, `places`, `rows`, `info`, `marker`, `content` as they apply."""
    return _parser().parse(text, {"budget": _Budget(most_nodes)})


@cache
def _parser() -> MarkdownIt:
    # CommonMark and tables, blocks only; link reference definitions leave a token, so that no line gets lost.
    parser = MarkdownIt("commonmark", {"inline_definitions": True, "maxNesting": MAX_DEPTH})
    parser.enable("table").disable(["inline", "text_join"])
    rules = parser.block.ruler
    for rule in list(rules.__rules__):
        placing = _placing(rule.fn, _RECORDS[rule.name])
        meter = _METERS.get(rule.name)
        rules.at(rule.name, meter(placing) if meter else placing, {"alt": rule.alt})
    return parser


def _metered_table(rule: _Rule) -> _Rule:
    """`table` is what the parser tries first where a block begins, and where a paragraph may end."""

    def run(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
        budget: _Budget = state.env["budget"]
        if silent:
            budget.try_to_end_block(state, line)
        else:
            budget.begin_block(state, line, end_line)
        return rule(state, line, end_line, silent)

    return run


def _metered_fence(rule: _Rule) -> _Rule:
    """`fence` is tried wherever anything may end."""

    def run(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
        if silent:
            budget: _Budget = state.env["budget"]
            budget.try_to_end_block(state, line)
        return rule(state, line, end_line, silent)

    return run


_METERS: dict[str, Callable[[_Rule], _Rule]] = {"table": _metered_table, "fence": _metered_fence}


def _placing(rule: _Rule, record: _Record) -> _Rule:
    """The rule, which after a match also writes into its first token where it stood."""

    def run(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
        first = len(state.tokens)
        start = state.bMarks[line] + state.tShift[line]
        matched = rule(state, line, end_line, silent)
        if matched and not silent:
            state.tokens[first].meta["start"] = (line, start)
            record(state, state.tokens[first:], line, state.line)
        return matched

    return run


def _record_lines(state: StateBlock, tokens: list[Token], line: int, end: int) -> None:
    tokens[0].meta["places"] = [_words(state, number) for number in range(line, end)]


def _record_heading(state: StateBlock, tokens: list[Token], line: int, _end: int) -> None:
    start = state.bMarks[line] + state.tShift[line] + len(tokens[0].markup)
    tokens[0].meta["places"] = [(line, *heading_words(state.src, start, state.eMarks[line]))]


def _record_underlined_heading(state: StateBlock, tokens: list[Token], line: int, end: int) -> None:
    _record_lines(state, tokens, line, end - 1)


def _record_fence(state: StateBlock, tokens: list[Token], line: int, _end: int) -> None:
    start = state.bMarks[line] + state.tShift[line] + len(tokens[0].markup)
    tokens[0].meta["info"] = (line, *trimmed(state.src, start, state.eMarks[line]))
    content = tokens[0].content
    lines = content.count("\n") + (content[-1:] not in {"", "\n"})
    _record_verbatim(state, tokens[0], range(line + 1, line + 1 + lines), state.sCount[line])


def _record_code(state: StateBlock, tokens: list[Token], line: int, end: int) -> None:
    _record_verbatim(state, tokens[0], range(line, end), state.blkIndent + 4)


def _record_html(state: StateBlock, tokens: list[Token], line: int, end: int) -> None:
    _record_verbatim(state, tokens[0], range(line, end), state.blkIndent)


def _record_verbatim(state: StateBlock, token: Token, lines: range, indent: int) -> None:
    token.meta["places"] = [(line, _behind_indent(state, line, indent), state.eMarks[line]) for line in lines]


def _record_table(state: StateBlock, tokens: list[Token], line: int, end: int) -> None:
    tokens[0].meta["rows"] = [
        [
            (number, *cell)
            for cell in row_cells(state.src, state.bMarks[number] + state.tShift[number], state.eMarks[number])
        ]
        for number in (line, *range(line + 2, end))
    ]


def _record_items(state: StateBlock, tokens: list[Token], _line: int, _end: int) -> None:
    for token in tokens:
        if token.type == "list_item_open" and token.level == tokens[0].level + 1 and token.map:
            number = token.map[0]
            start = state.bMarks[number] + state.tShift[number]
            marker = token.info + token.markup
            content = state.skipSpaces(start + len(marker))
            token.meta["start"] = (number, start)
            token.meta["marker"] = marker
            token.meta["content"] = (number, content if content < state.eMarks[number] else start + len(marker))


def _record_nothing(_state: StateBlock, _tokens: list[Token], _line: int, _end: int) -> None:
    """A quote or a rule: that it stands there is all there is to know."""


_RECORDS: dict[str, _Record] = {
    "table": _record_table,
    "code": _record_code,
    "fence": _record_fence,
    "blockquote": _record_nothing,
    "hr": _record_nothing,
    "list": _record_items,
    "reference": _record_lines,
    "html_block": _record_html,
    "heading": _record_heading,
    "lheading": _record_underlined_heading,
    "paragraph": _record_lines,
}


def _words(state: StateBlock, line: int) -> Place:
    start = state.bMarks[line] + state.tShift[line]
    return line, start, start + len(state.src[start : state.eMarks[line]].rstrip(BLANKS))


def _behind_indent(state: StateBlock, line: int, indent: int) -> int:
    """Where the text of `line` begins when `indent` columns of it belong to the containers (see `getLines`)."""
    position = begin = state.bMarks[line]
    column = 0
    while position < state.eMarks[line] and column < indent:
        if state.src[position] == "\t":
            column += 4 - (column + state.bsCount[line]) % 4
        elif state.src[position] == " " or position - begin < state.tShift[line]:
            column += 1
        else:
            break
        position += 1
    return position
