"""The blocks of any document, through markdown-it-py.

HTML blocks are recognized, which does not mean that HTML is allowed: nothing is rendered here, but the inside of `<!--
... -->` must not be mistaken for a field or a heading, as it would be if comments were read as paragraphs. Link
reference definitions are blocks too, so that every non-blank line of the source belongs to a block.

markdown-it-py is extended to report where each line of text is, and to stop before it takes too long.

markdown-it reports the lines of a block, but not its columns. Its block rules know the columns, because they record
where the text of each line begins after all container prefixes. Each rule is therefore wrapped: when it has matched,
the positions that it used are written to its token (`meta`), so that nothing has to be guessed from the source
afterwards.

The wrappers also count steps. Every loop of the parser that is not linear goes through its rules, so a budget of steps,
blocks and tokens bounds time and memory for any text, and the same text always stops at the same line. The parser's own
limit on nesting bounds its recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from workpacket.problem import Location, Problem
from workpacket.text.blocks import BLANKS, MAX_DEPTH, Block, heading_words, node_count, row_cells, trimmed

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

    from workpacket.text.source import Source


# A place in the text that markdown-it sees, in which all line ends are "\n": line (from 0), first and last offset.
Place = tuple[int, int, int]
_Rule = Callable[["StateBlock", int, int, bool], bool]
_Record = Callable[["StateBlock", "list[Token]", int, int], None]

# A step takes about two microseconds. Ordinary text takes 4 to 8 steps per line: 2 MiB of it, in 40,000 lines, take
# 250,000.
_STEPS = 200_000
_STEPS_PER_NODE = 10
_TOKENS_PER_NODE = 5
_MADE_UP_TOKENS = 5 * 65_536  # markdown-it fills short rows of a table with at most this many cells
_CHARACTERS_PER_STEP = 32  # a rule scans the whole line, and does so again for each list that begins on it
_QUOTED_LINES_PER_STEP = 4  # a quote reads all its lines before the first block in it
# The cost of one attempt to end a block, by block type. A paragraph is tried twice, by `table` and by `fence`; other
# blocks once. The title of a link definition is copied in full for each line that it spans.
_STEPS_TO_END = {"paragraph": 1, "reference": 20}


class Exhausted(Exception):
    """Raised if the text requires more work than allowed; `line` (from 0) is where the budget was exhausted."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class TooManyBlocks(Exhausted):
    """Raised if there are more blocks than a document may have."""


class _Budget:
    """The remaining budget for one text."""

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
    """Whether a delimiter row may follow: the `table` rule creates the tokens of all columns before any check."""
    delimiter = state.src[state.bMarks[line + 1] : state.eMarks[line + 1]]
    return bool(delimiter) and not delimiter.strip("|:- \t")


def placed_tokens(text: str, most_nodes: int) -> list[Token]:
    """Return the tokens of `text`; their `meta` holds `start`, `places`, `rows`, `info`, `marker`, `content`."""
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
    """Count the steps of the `table` rule, which the parser tries first wherever a block begins or a paragraph may
    end."""

    def run(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
        budget: _Budget = state.env["budget"]
        if silent:
            budget.try_to_end_block(state, line)
        else:
            budget.begin_block(state, line, end_line)
        return rule(state, line, end_line, silent)

    return run


def _metered_fence(rule: _Rule) -> _Rule:
    """Count the steps of the `fence` rule, which is tried wherever a block may end."""

    def run(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
        if silent:
            budget: _Budget = state.env["budget"]
            budget.try_to_end_block(state, line)
        return rule(state, line, end_line, silent)

    return run


_METERS: dict[str, Callable[[_Rule], _Rule]] = {"table": _metered_table, "fence": _metered_fence}


def _placing(rule: _Rule, record: _Record) -> _Rule:
    """Return the rule, wrapped so that a match also records its position in its first token."""

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
    """Record nothing: a quote or a thematic break contains no text itself."""


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
    """Return where the text of `line` begins if `indent` columns of it belong to the containers (see `getLines`)."""
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


_CONTAINERS = {
    "bullet_list_open": "bullet_list",
    "ordered_list_open": "ordered_list",
    "list_item_open": "item",
    "blockquote_open": "quote",
}
_CLOSINGS = frozenset({"bullet_list_close", "ordered_list_close", "list_item_close", "blockquote_close"})
_LEAVES = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "table_open": "table",
    "hr": "rule",
    "definition": "definition",
}


def full_blocks(source: Source, start: int, most_nodes: int) -> list[Block] | Problem:
    """Return the blocks of `source` from the line that starts at `start`, or why there are none."""
    origin = _Origin(source, start)
    try:
        tokens = placed_tokens(source.text[start:], most_nodes)
    except TooManyBlocks as stop:
        return _too_many_blocks(source, origin.first_line + stop.line, most_nodes)
    except Exhausted as stop:
        span = source.line_span(origin.first_line + stop.line)
        return Problem(
            "markdown_too_costly",
            "reading these blocks takes more steps than the limit allows",
            Location.span(*span),
        )
    for token in tokens:
        # Below this level, markdown-it silently omits the rest of the container.
        if token.type in _CONTAINERS and token.level >= MAX_DEPTH - 1:
            span = source.line_span(origin.first_line + (token.map or [0])[0])
            return Problem(
                "markdown_too_deep",
                f"lists and quotes are nested more than {MAX_DEPTH} levels deep",
                Location.span(*span),
            )
    blocks = _fold(tokens, origin)
    if node_count(blocks) > most_nodes:
        return _too_many_blocks(source, blocks[-1].line, most_nodes)
    return blocks


def _too_many_blocks(source: Source, line: int, most_nodes: int) -> Problem:
    return Problem(
        "markdown_too_many_blocks", f"there are more than {most_nodes:,} blocks", Location.span(*source.line_span(line))
    )


class _Origin:
    """Maps offsets in the text as seen by markdown-it to the source, in which a line may end in CRLF."""

    def __init__(self, source: Source, start: int) -> None:
        self.first_line = source.line_and_column(start)[0]
        self.source = source
        self._start = start
        self._shifts: list[int] = []
        if "\r\n" in source.text:
            shift = start
            starts = source.line_starts
            for number in range(self.first_line, len(starts) + 1):
                self._shifts.append(shift)
                shift += number < len(starts) and source.text.endswith("\r\n", 0, starts[number])

    def offset(self, line: int, position: int) -> int:
        return position + (self._shifts[line] if self._shifts else self._start)

    def span(self, place: Place) -> tuple[int, int]:
        line, first, last = place
        return self.offset(line, first), self.offset(line, last)


def _fold(tokens: list[Token], origin: _Origin) -> list[Block]:
    """Return the tree described by the sequence of opening and closing tokens."""
    levels: list[list[Block]] = [[]]
    for token in tokens:
        if token.type in _CONTAINERS:
            container = _block(_CONTAINERS[token.type], token, origin)
            levels[-1].append(container)
            levels.append(container.children)
        elif token.type in _LEAVES:
            levels[-1].append(_block(_LEAVES[token.type], token, origin))
        elif token.type in _CLOSINGS:
            children = levels.pop()
            container = levels[-1][-1]
            if container.kind != "quote":  # markdown-it includes the blank lines after a list in it
                container.end_line = children[-1].end_line if children else container.line
    return levels[0]


def _block(kind: str, token: Token, origin: _Origin) -> Block:
    first, last = token.map or (0, 0)
    seen = token.meta
    block = Block(
        kind,
        origin.first_line + first,
        origin.first_line + last - 1,
        origin.offset(*seen["start"]),
        [origin.span(place) for place in seen.get("places", ())],
        seen.get("marker", "" if kind == "rule" else token.markup),
    )
    if kind == "item":
        block.content_start = origin.offset(*seen["content"])
    elif kind == "fence":
        start, end = origin.span(seen["info"])
        block.info = origin.source.text[start:end]
    elif kind == "heading":
        block.level = int(token.tag[1:])
    block.rows = [[origin.span(cell) for cell in row] for row in seen.get("rows", ())]
    return block
