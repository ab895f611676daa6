"""From YAML events to nodes, collecting every fault on the way.

Events come one at a time, so that the caller can stop at the first bracket that is too deep: libyaml and PyYAML compose
trees by recursion, and 30,000 opening brackets crash the process. Neither scanner looks ahead by more than a line.

libyaml reads YAML 1.1, and so does PyYAML's own parser, but with different gaps. The event stream is the same with
both: text that they read differently from each other or from YAML 1.2 is refused, except for the question mark. Inside
brackets PyYAML reads any `?` as the start of a key, so that `[what?]` fails in one parser and `[?x]` is misread by
both. A `?` that is text in YAML 1.2 is therefore passed to them as U+10FFFF, a code point that Unicode reserves for
internal use and that no document may contain. Text without a final line ending gets one; otherwise a block scalar at
the end of the file would have a different value in PyYAML.

This module imports `yaml`, which takes longer than reading a file with it; `yaml_strict` therefore imports this module
only when there is a file.

YAML 1.1 and 1.2, libyaml and PyYAML's own parser agree on nearly everything that people write. The rest is refused, so
that a file has one meaning or none, on every machine (the tests compare the two parsers on random text, and both with
the published results of yaml-test-suite):

- a tab anywhere but in a comment, in quotes, or inside the lines of a block scalar;
- a comment without a space before its '#', which some parsers read as text;
- a key marked with '?', and a lone '?' or '-' in brackets;
- a plain key in brackets whose ':' touches the next bracket or comma;
- a block scalar whose last line is blank and ends with the file (refused if it is the whole document).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import yaml

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Fix, Location, Problem
from workpacket.text.source import Limits, Loaded, Node, Source, TextRun, duplicate_key, fix_of
from workpacket.text.yaml_strict import resolve

_QUOTE = "put the whole value in double quotes"
_NO_SIBLING = "this line does not match the lines above it"

# Messages of libyaml and PyYAML, what they mean, and the remedy; the first match counts.
_MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "mapping values are not allowed",
        "a ':' starts a key where a key is not allowed",
        f"if it is part of a value, {_QUOTE}; if it begins a new key, check the indentation and the line above",
    ),
    (
        "could not find expected ':'",
        "this is neither 'key: value' nor part of the value above",
        "add the ':', or indent the line",
    ),
    ("cannot start any token", "a value cannot begin with this character", _QUOTE),
    ("unexpected end of stream", "this quote is never closed", "close it where the value ends"),
    ("unexpected document", "this quote is not closed before the '---'", "close it where the value ends"),
    ("unknown escape character", "invalid YAML escape", "double the backslash, or use single quotes"),
    (
        "Unicode character escape",
        "this escape does not represent a character",
        "double the backslash, or use single quotes",
    ),
    ("hex", "this escape is incomplete", "double the backslash, or use single quotes"),
    ("',' or ']'", "a list in brackets lacks a ',' or its ']'", ""),
    ("',' or '}'", "a mapping in braces lacks a ',' or its '}'", ""),
    ("comment or line break", "only a comment may follow a block scalar indicator", ""),
    ("chomping or indentation", "only a comment may follow a block scalar indicator", ""),
    (
        "sequence entries are not allowed",
        "a list item is not allowed here",
        "begin a new line, or " + _QUOTE,
    ),
    ("did not find expected key", _NO_SIBLING, "align it with its siblings"),
    ("<block end>", _NO_SIBLING, "align it with its siblings"),
    ("expected '-' indicator", _NO_SIBLING, "align it with its siblings, or begin it with '- '"),
)
# Best reported where they begin, not where the parser gave up.
_SHOWN_AT_THEIR_START = ("could not find expected ':'", "unexpected document")


def syntax_fault(source: Source, start: int, end: int, error: NotYaml) -> Problem:
    """Return the fault for the text in [start, end) of `source`, where it ceases to be YAML."""
    at, since = start + error.at, start + error.since
    if source.text[at:end].startswith("\t"):
        return Problem(
            "yaml_tab", "a tab where spaces are required", Location.span(at, at + 1), "replace it with spaces"
        )
    line, column = source.line_and_column(at)
    meaning, hint = next(
        ((meaning, hint) for said, meaning, hint in _MEANINGS if said in error.problem), (error.problem, "")
    )
    if meaning == _NO_SIBLING and source.line(line)[: column - 1].strip():
        meaning, hint = "the value already ended before this point", _QUOTE
    # At the end of the file, something unclosed is to be expected.
    if any(said in error.problem for said in _SHOWN_AT_THEIR_START) or not source.text[at:end].strip():
        at, line = since, source.line_and_column(since)[0]
    begun = source.line_and_column(since)[0]
    if begun != line:
        meaning = f"{meaning} (in the structure that begins on line {begun})"
    return Problem("yaml_syntax", meaning, Location.span(at, min(at + 1, end)), hint)


Scalar: TypeAlias = tuple[int, int, bool]
"""Where a scalar begins and ends in the text, and whether it is in brackets."""

# Most texts contain none of these; only a text that does is examined scalar by scalar. Each begins with its own
# character, which is faster to search for than the characters that may precede it.
_SUSPECT = lazy_pattern(
    r"\t|#(?<=\S#)|:(?=[,\[\]{}])|\?(?<![^\s,\[\]{}]\?)(?=[\s,\[\]{}]|\Z)|-(?<![^\s,\[\]{}]-)(?=[,\[\]{}])"
)
_BETWEEN_SCALARS = lazy_pattern(r"#[^\r\n]*+|\t++|[?:]")
_LONE_QUESTION_MARK = lazy_pattern(r"(?<!\S)\?(?=[\s,\[\]{}]|\Z)")
_BLOCK = lazy_pattern(
    r"[|>](?P<marks>[-+0-9]*)(?P<rest>[^\r\n]*)(?:\r\n|\r|\n)?(?P<lead>[ \r\n]*+)(?P<tab>\t)?",
)


def faults(text: str, start: int, scalars: list[Scalar]) -> Iterator[Problem]:
    """Yield the positions in `text` that parsers read differently. `start` is its offset in the source."""
    yield from _unfinished(text, start, scalars)
    if _SUSPECT.search(text) is None:
        return
    done, may_be_key = 0, False
    for first, end, in_brackets in scalars:
        yield from _between(text, done, first, start, after_plain=may_be_key)
        yield from _within(text, (first, end, in_brackets), start)
        done, may_be_key = end, in_brackets and first < end and text[first] not in "\"'"
    yield from _between(text, done, len(text), start, after_plain=may_be_key)


def end_of_block_scalar(text: str, start: int, end: int) -> int:
    """Return where the last line of the block scalar in [start, end) ends: trailing blank lines belong to it only if
    they are kept.
    """
    end = min(end, len(text))
    header = _BLOCK.match(text, start)
    if header is None or header["marks"].strip("-"):
        return end
    lines = text[start:end].splitlines(keepends=True)
    contents = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line.strip()]
    while len(lines) > 1 and not lines[-1].strip() and len(lines[-1].rstrip("\r\n")) <= min(contents, default=-1):
        end -= len(lines.pop())
    return end


def _between(text: str, done: int, first: int, start: int, *, after_plain: bool) -> Iterator[Problem]:
    """Yield what is wrong between the scalar that ends at `done` and the one that begins at `first`."""
    for found in _BETWEEN_SCALARS.finditer(text, done, first):
        at = found.start()
        match text[at]:
            case "\t":
                blank = [TextRun(text, at, found.end(), start).replaced_by(" ")]
                fix = fix_of((start + at, start + at + 1), blank, safe=True, title="replace it with a space")
                yield _tab(start + at, "a tab between values", fix)
            case "#" if at and text[at - 1] not in " \t\r\n":
                yield _glued(text, at, start)
            case "?":
                yield _question_mark(start + at)
            case ":" if after_plain and not text[done:at].strip() and text[at + 1] in ",[]{}":
                message = "a space is missing after the ':' of this key"
                yield Problem(
                    "yaml_syntax", message, Location.span(start + at, start + at + 1), "add a space after the ':'"
                )


def _within(text: str, scalar: Scalar, start: int) -> Iterator[Problem]:
    """Yield what is wrong inside a scalar."""
    first, end, in_brackets = scalar
    if text[first:end].startswith(("'", '"')):
        return
    block = _BLOCK.match(text, first, end)
    if block:
        yield from _within_block(block, start)
        return
    tab = text.find("\t", first, end)
    if tab >= 0:
        yield _tab(start + tab, "a tab in an unquoted value")
    if in_brackets and text[first:end] == "-":
        message = "a lone '-' in brackets is not a value"
        yield Problem("yaml_syntax", message, Location.span(start + first, start + end), "put it in quotes")
    lone = _LONE_QUESTION_MARK.search(text, first, end) if in_brackets else None
    if lone:
        yield _question_mark(start + lone.start())


def _within_block(parts: re.Match[str], start: int) -> Iterator[Problem]:
    before_comment, number_sign, _ = parts["rest"].partition("#")
    if "\t" in before_comment:
        yield _tab(start + parts.start("rest") + before_comment.index("\t"), "a tab after a block scalar indicator")
    if number_sign and not before_comment:
        yield _glued(parts.string, parts.start("rest"), start)
    if parts["tab"] and not parts["marks"].strip("-+"):
        yield _tab(start + parts.start("tab"), "a tab in the indentation of a block scalar")


def _unfinished(text: str, start: int, scalars: list[Scalar]) -> Iterator[Problem]:
    first, end, _ = scalars[-1] if scalars else (0, 0, False)
    if not text[first:end].startswith(("|", ">")) or text[end:].strip():
        return
    blanks = len(text.rstrip(" "))
    if blanks < len(text) and text[blanks - 1] in "\r\n":
        message = "a block scalar ends with a line of spaces without a newline"
        yield Problem("yaml_unfinished_block", message, Location.span(start + blanks, start + len(text)))


def _tab(at: int, message: str, fix: Fix | None = None) -> Problem:
    return Problem("yaml_tab", message, Location.span(at, at + 1), fix=fix)


def _glued(text: str, at: int, start: int) -> Problem:
    span = (start + at, start + at + 1)
    blank = [TextRun(text, at, at, start).replaced_by(" ")]
    fix = fix_of(span, blank, safe=True, title="add a space before the comment")
    return Problem(
        "yaml_comment_without_blank", "a comment without a space before its '#'", Location.span(*span), fix=fix
    )


def _question_mark(at: int) -> Problem:
    message = "a lone '?' marks a key to some parsers and is text to others"
    return Problem("yaml_question_mark", message, Location.span(at, at + 1))


Event: TypeAlias = Any
"""An event of PyYAML. Its stubs declare the marks as optional, but no parser omits them."""

STAND_IN = "\U0010ffff"
_TEXTUAL_QUESTION_MARK = lazy_pattern(r"\?(?:(?<=[^\s,\[\]{}]\?)|(?=[^\s,\[\]{}]))")

LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader


class NotYaml(Exception):
    """Raised if the text ceases to be YAML at offset `at`, in something that began at `since`."""

    def __init__(self, problem: str, at: int, since: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.since = since


def events(text: str) -> Iterator[Event]:
    """Yield the events of `text`, in which `STAND_IN` may represent a question mark; raise `NotYaml` on a syntax error.

    The last event, a block scalar or nothing, may end one character beyond the end of `text`.
    """
    final = "" if text.endswith(("\n", "\r")) else "\n"
    shown = _TEXTUAL_QUESTION_MARK.sub(STAND_IN, text) if "?" in text else text
    parser = LOADER(shown + final)
    try:
        while parser.check_event():
            yield parser.get_event()
    except yaml.MarkedYAMLError as error:
        at = len(text) if error.problem_mark is None else min(error.problem_mark.index, len(text))
        since = at if error.context_mark is None else min(error.context_mark.index, at)
        raise NotYaml(error.problem or "", at, since) from None
    except (ValueError, OverflowError):
        # PyYAML's own parser passes any escaped number to `chr`; libyaml refuses it, as we do here.
        at = parser.get_mark().index if isinstance(parser, yaml.BaseLoader) else 0
        raise NotYaml("found invalid Unicode character escape code", at, at) from None
    finally:
        parser.dispose()


def restored(value: str) -> str:
    """Return `value` with its question marks restored."""
    return value.replace(STAND_IN, "?") if STAND_IN in value else value


_COLON = lazy_pattern(r" *:")
# libyaml refuses such an escape; PyYAML's own parser makes a string of it that no file can contain.
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def build(source: Source, text: str, start: int, limits: Limits) -> Loaded:
    """Return the tree of `text`, at `start` of `source`."""
    builder = _Builder(source, text, start, limits)
    try:
        for event in events(text):
            if not builder.take(event):
                break
        else:
            builder.faults += [] if builder.has_properties else faults(text, start, builder.scalars)
    except NotYaml as error:
        builder.faults.append(syntax_fault(source, start, start + len(text), error))
    if builder.faults:
        return Loaded(None, tuple(builder.faults))
    return Loaded(builder.root or Node(None, start, start))


class _OpenNode:
    """An unclosed list or mapping; in a mapping, `key` is waiting for its value."""

    __slots__ = ("in_brackets", "is_key", "is_list", "items", "key", "keys", "members", "node")

    def __init__(self, start: int, end: int, *, is_list: bool, in_brackets: bool, is_key: bool) -> None:
        self.items: list[Node] = []
        self.members: dict[str, Node] = {}
        self.keys: dict[str, tuple[int, int]] = {}
        self.node = Node(self.items, start, end) if is_list else Node(self.members, start, end, self.keys)
        self.is_list = is_list
        self.in_brackets = in_brackets
        self.is_key = is_key
        self.key: str | None = None

    @property
    def awaits_key(self) -> bool:
        return self.key is None and not self.is_list


class _Builder:
    """Consumes events and keeps the path from the root to the current node."""

    def __init__(self, source: Source, text: str, start: int, limits: Limits) -> None:
        self.root: Node | None = None
        self.faults: list[Problem] = []
        self.scalars: list[Scalar] = []
        self.has_properties = False
        self._source = source
        self._text = text
        self._start = start
        self._limits = limits
        self._open: list[_OpenNode] = []
        self._brackets = 0
        self._count = 0
        self._documents = 0
        self._last_end = start
        self._handlers: dict[type[yaml.Event], Callable[[Event], bool]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceEndEvent: self._finish,
            yaml.MappingEndEvent: self._finish,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }

    def take(self, event: Event) -> bool:
        """Process one event; return False once a limit is exceeded, after which nothing more counts."""
        handler = self._handlers.get(type(event))
        return handler is None or handler(event)

    def _document(self, event: Event) -> bool:
        self._documents += 1
        if self._documents == 1:
            return True
        start, end = self._span(event)
        self._fault("yaml_several_documents", start, end, "a second document begins here")
        return False

    def _scalar(self, event: Event) -> bool:
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in ("|", ">"):
            end = end_of_block_scalar(self._text, start, end)
        elif start == end:
            start = end = self._place_of_nothing(start)
        self.scalars.append((start, end, self._brackets > 0))
        start, end = self._start + start, self._start + end
        if event.style in ("|", ">") and not self._open:
            self._fault("yaml_bare_block", start, end, "the whole document is one block scalar")
        self._properties(event, start, end)
        written = restored(event.value)
        if event.style == '"' and _SURROGATE.search(written):
            self._fault("yaml_syntax", start, end, "an escape for a lone surrogate")
        if self._open and self._open[-1].awaits_key:
            self._key(self._open[-1], written, start, end, plain=not event.style)
            return True
        return self._add(Node(written if event.style else resolve(written), start, end))

    def _place_of_nothing(self, at: int) -> int:
        """Return where an omitted value would be: in brackets, after its ':', or after the key if there is no ':'."""
        if not self._brackets:
            return min(at, len(self._text))
        done = self.scalars[-1][1] if self.scalars else 0
        colon = _COLON.match(self._text, done, at)
        return at if colon is None else colon.end()

    def _key(self, top: _OpenNode, written: str, start: int, end: int, *, plain: bool) -> None:
        top.key = written
        if plain and not written:
            self._fault("yaml_key_not_text", start, end, "a value without a key")
        elif plain and written == "<<":
            self._fault("yaml_merge_key", start, end, "'<<' merges another mapping into this one")
        elif written in top.keys:
            self.faults.append(
                duplicate_key("yaml_duplicate_key", self._source, written, top.keys[written], (start, end))
            )
        else:
            top.keys[written] = (start, end)

    def _begin(self, event: Event) -> bool:
        start, end = self._span(event)
        self._properties(event, start, end)
        if len(self._open) == self._limits.depth:
            self.faults.append(self._limits.depth_fault(start, end))
            return False
        is_list = type(event) is yaml.SequenceStartEvent
        is_key = bool(self._open) and self._open[-1].awaits_key
        if is_key:
            self._fault("yaml_key_not_text", start, end, f"a {'list' if is_list else 'mapping'} as a key")
        in_brackets = bool(event.flow_style) and start < end
        self._brackets += in_brackets
        opened = _OpenNode(start, end, is_list=is_list, in_brackets=in_brackets, is_key=is_key)
        fits = is_key or self._add(opened.node)
        self._open.append(opened)
        return fits

    def _finish(self, event: Event) -> bool:
        done = self._open.pop()
        self._brackets -= done.in_brackets
        done.node.end = self._last_end = self._span(event)[1] if done.in_brackets else self._last_end
        if done.is_key:
            self._open[-1].key = ""
        return True

    def _alias(self, event: Event) -> bool:
        start, end = self._span(event)
        self._fault("yaml_alias", start, end, f"'*{event.anchor}' refers to a value that is written elsewhere")
        if self._open and self._open[-1].awaits_key:
            self._open[-1].key = ""
            return True
        return self._add(Node(None, start, end))

    def _add(self, node: Node) -> bool:
        self._count += 1
        if self._count > self._limits.nodes:
            self.faults.append(self._limits.nodes_fault(node.start, node.end))
            return False
        self._last_end = node.end
        top = self._open[-1] if self._open else None
        if top is None:
            self.root = node
        elif top.is_list:
            top.items.append(node)
        else:
            top.members.setdefault(top.key or "", node)
            top.key = None
        return True

    def _properties(self, event: Event, start: int, end: int) -> None:
        """Refuse an anchor or a tag; the span of such a value begins with it."""
        if event.anchor is None and event.tag is None:
            return
        self.has_properties = True
        if event.anchor is not None:
            self._fault("yaml_anchor", start, end, f"'&{event.anchor}' names a value for use elsewhere")
        if event.tag is not None:
            self._fault("yaml_tag", start, end, f"'{event.tag}' specifies the type of a value")

    def _span(self, event: Event) -> tuple[int, int]:
        return self._start + event.start_mark.index, self._start + event.end_mark.index

    def _fault(self, code: str, start: int, end: int, message: str) -> None:
        self.faults.append(Problem(code, message, Location.span(start, end)))
