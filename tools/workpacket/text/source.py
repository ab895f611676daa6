"""The text of one file, with every byte preserved, how much of it a reader accepts, parsed values that remember their
positions, and edits that leave every other byte alone.

Bytes that are not UTF-8 are kept as lone surrogates (`surrogateescape`), a byte order mark is kept separately, and line
endings are unchanged, so `Source.encode()` returns exactly the bytes that were read. Positions are offsets in `text`;
people see them as line and column, both counted from 1, where a column is one character.

`Limits` bound the work that one document may require; the sizes of other files are in `model/layout`. Exceeding a limit
is a fault with a place and a remedy, never a crash. Limits are checked before the work that they bound: sizes before
reading, depth before a tree is built.

Every strict loader (YAML, JSON, TOML) and every Markdown kind makes a tree of nodes, or says why there is none, so that
one schema validator and one set of rules can handle all of them and still point to line and column.

A command's plan makes its own edits and is judged as a whole. A repair relies on a finding, so its edits can only be
made from a `TextRun`: characters that are adjacent in the source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from workpacket.digests import sha1, sha256
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import LARGEST_BASELINE, LARGEST_DATA, LARGEST_MARKDOWN, LARGEST_REGISTER
from workpacket.problem import Edit, Fix, Location, Problem
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


# The maximum length of a path below the repository, in characters.
PATH_LENGTH = 240


class Limits(Value):
    """The limits for one kind: `size` in bytes of UTF-8, `depth` in nested lists and mappings, `nodes` in values of any
    kind.
    """

    size: int
    depth: int = 32
    nodes: int = 20_000

    def size_fault(self, start: int) -> Problem:
        """Return the fault for a text at `start` that exceeds the size limit."""
        return Problem("limit_size", f"more than {self.size:,} bytes of text", Location.span(start, start))

    def depth_fault(self, start: int, end: int) -> Problem:
        """Return the fault for the first bracket, dash or key that opens one level too many."""
        return Problem(
            "limit_depth",
            f"lists and mappings are nested more than {self.depth} levels deep here",
            Location.span(start, end),
        )

    def nodes_fault(self, start: int, end: int) -> Problem:
        """Return the fault for the first value beyond the limit."""
        return Problem("limit_nodes", f"more than {self.nodes:,} values", Location.span(start, end))


MARKDOWN = Limits(size=LARGEST_MARKDOWN)
DATA = Limits(size=LARGEST_DATA)
REGISTER = Limits(size=LARGEST_REGISTER, nodes=500_000)
# Five values for each known finding of a repository.
BASELINE = Limits(size=LARGEST_BASELINE, nodes=600_000)


_BOM_BYTES = b"\xef\xbb\xbf"
_LINE_END = lazy_pattern(r"\r\n?|\n")
# The bytes of ordinary text: white space that ends or indents lines, and printable ASCII.
_ORDINARY = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])


class Source:
    """The text of the file at `path` (relative to the repository, with '/')."""

    __slots__ = ("_digest", "_lowered", "_starts", "_unusual", "bom", "path", "text")

    def __init__(self, path: str, text: str, *, bom: bool = False) -> None:
        self.path = path
        self.text = text
        self.bom = bom
        self._starts: list[int] | None = None
        self._digest = ""
        self._lowered: bytes | None = None
        self._unusual: frozenset[str] | None = None

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> Source:
        bom = data.startswith(_BOM_BYTES)
        source = cls(path, (data[3:] if bom else data).decode("utf-8", "surrogateescape"), bom=bom)
        source._digest = sha256(data).hexdigest()
        return source

    def encode(self) -> bytes:
        return (_BOM_BYTES if self.bom else b"") + self.text.encode("utf-8", "surrogateescape")

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the raw bytes, in hexadecimal."""
        if not self._digest:
            self._digest = sha256(self.encode()).hexdigest()
        return self._digest

    @property
    def sha1(self) -> str:
        """Return the SHA-1 of the raw bytes. Older documents pin specifications by this digest; it is never trusted."""
        return sha1(self.encode()).hexdigest()

    @property
    def unusual(self) -> frozenset[str]:
        """Return the characters of the text that are neither printable ASCII, nor tabs, nor line endings. Several rules
        look for such characters, and few documents have more than a dash.
        """
        if self._unusual is None:
            rest = self.lowered.translate(None, _ORDINARY)
            self._unusual = frozenset(rest.decode("utf-8", "surrogatepass"))
        return self._unusual

    @property
    def lowered(self) -> bytes:
        """Return the text as bytes, with ASCII capitals converted to lower case."""
        if self._lowered is None:
            self._lowered = self.text.encode("utf-8", "surrogatepass").lower()
        return self._lowered

    def mentions(self, *words: bytes) -> bool:
        """Whether any of these words, given in lower-case ASCII, is in the text, ignoring case. This is much faster
        than a pattern, and a pattern that is not used need not be compiled.
        """
        lowered = self.lowered
        return any(word in lowered for word in words)

    @property
    def line_starts(self) -> list[int]:
        """Return the offset of the first character of each line. As in CommonMark, a line ends only at
        CRLF, LF or CR.
        """
        if self._starts is None:
            self._starts = _line_starts(self.text)
        return self._starts

    def line_and_column(self, offset: int) -> tuple[int, int]:
        starts = self.line_starts
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_span(self, line: int) -> tuple[int, int]:
        """Return the offsets of line `line` (from 1) without its line ending."""
        starts = self.line_starts
        start = starts[line - 1]
        end = starts[line] if line < len(starts) else len(self.text)
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return start, end

    def line(self, line: int) -> str:
        start, end = self.line_span(line)
        return self.text[start:end]

    @property
    def line_count(self) -> int:
        return len(self.line_starts)

    def placed(self, problem: Problem) -> Problem:
        """Return a problem found in this text, with path, line and column."""
        start, end = max(problem.start, 0), max(problem.end, problem.start, 0)
        where = Location(self.path, *self.line_and_column(start), *self.line_and_column(end), start, end)
        return replace(problem, location=where)

    @property
    def eol(self) -> str:
        """Return the first line ending in the file, which is used for lines added to it."""
        newline = self.text.find("\n")
        if newline > 0 and self.text[newline - 1] == "\r":
            return "\r\n"
        if newline < 0 and "\r" in self.text:
            return "\r"
        return "\n"


def _line_starts(text: str) -> list[int]:
    if "\r" in text:
        return [0, *(match.end() for match in _LINE_END.finditer(text))]
    starts = [0]
    found = text.find("\n")
    while found >= 0:
        starts.append(found + 1)
        found = text.find("\n", found + 1)
    return starts


Scalar: TypeAlias = "None | bool | int | float | str"
Plain: TypeAlias = "Scalar | list[Plain] | dict[str, Plain]"


class Node:
    """A scalar, a list of nodes or a mapping of nodes, at [start, end) of its source.

    For a mapping, `keys` has the position of each key. A node that the reader derived (a title, a file name) has the
    span of the text from which it was derived.
    """

    __slots__ = ("end", "keys", "start", "value")

    def __init__(
        self,
        value: Scalar | list[Node] | dict[str, Node],
        start: int,
        end: int,
        keys: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self.value = value
        self.start = start
        self.end = end
        self.keys = keys

    def __repr__(self) -> str:
        return f"Node({self.value!r}, {self.start}, {self.end})"

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def mapping(self) -> dict[str, Node]:
        """Return the entries of a mapping; an empty mapping for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """Return the items of a list; an empty list for anything else."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str | None:
        """Return the string of a string node."""
        return self.value if isinstance(self.value, str) else None

    def get(self, *path: str | int) -> Node | None:
        """Return the node at `path` below this one, if it exists."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            node = node._child(step)
        return node

    def items_at(self, *path: str | int) -> list[Node]:
        """Return the items of the list at `path`; an empty list if there is none."""
        node = self.get(*path)
        return node.items if node is not None else []

    def mapping_at(self, *path: str | int) -> dict[str, Node]:
        """Return the entries of the mapping at `path`; an empty mapping if there is none."""
        node = self.get(*path)
        return node.mapping if node is not None else {}

    def string_at(self, *path: str | int) -> str:
        """Return the string at `path`, or '' if there is none."""
        node = self.get(*path)
        return node.text or "" if node is not None else ""

    def nearest(self, path: tuple[str | int, ...]) -> Node:
        """Return the node at `path`, or the innermost one on the way to it."""
        node = self
        for step in path:
            child = node._child(step)
            if child is None:
                break
            node = child
        return node

    def _child(self, step: str | int) -> Node | None:
        if isinstance(step, str):
            return self.value.get(step) if isinstance(self.value, dict) else None
        if isinstance(self.value, list) and -len(self.value) <= step < len(self.value):
            return self.value[step]
        return None

    def plain(self) -> Plain:
        """Return the value without positions, as a JSON library would return it."""
        value = self.value
        if isinstance(value, dict):
            return {key: node.plain() for key, node in value.items()}
        if isinstance(value, list):
            return [node.plain() for node in value]
        return value

    def walk(self) -> Iterator[Node]:
        """Yield this node and every node below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node.value, dict):
                stack.extend(reversed(node.value.values()))
            elif isinstance(node.value, list):
                stack.extend(reversed(node.value))


class Loaded(Value):
    """A tree, or the reasons why there is none.

    A document is never partly loaded: if any fault is an error, `root` is None. Only a fault that the catalogue
    classifies as a warning (`json_byte_order_mark`) can accompany a tree.
    """

    root: Node | None
    faults: tuple[Problem, ...] = ()


def unreadable(text: str, start: int, limits: Limits) -> list[Problem]:
    """Return why `text`, at `start` of its source, cannot be read at all: too long, or not UTF-8."""
    if len(text) > limits.size:
        return [limits.size_fault(start)]
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        return [_not_utf8(text, error.start, start)]
    return [limits.size_fault(start)] if size > limits.size else []


def _not_utf8(text: str, first: int, start: int) -> Problem:
    broken = sum(1 for character in text if "\ud800" <= character <= "\udfff")
    byte = ord(text[first]) & 0xFF
    others = f", and {broken - 1} more after it" if broken > 1 else ""
    message = f"byte 0x{byte:02X} is not UTF-8{others}"
    return Problem("text_not_utf8", message, Location.span(start + first, start + first + 1))


def duplicate_key(code: str, source: Source, key: str, first: tuple[int, int], again: tuple[int, int]) -> Problem:
    """Return the fault for a key that occurs twice in one mapping, at `first` and at `again`."""
    line, later = source.line_and_column(first[0])[0], source.line_and_column(again[0])[0]
    where = f"twice on line {line}" if line == later else f"on line {line} and again on line {later}"
    return Problem(code, f"the key {key!r} occurs {where}", Location.span(*again), "keep only one of them")


# A byte order mark precedes offset 0; this edit removes it.
DROP_BOM = Edit(-1, 0, "")
BLANK = " \t\r\n"
_LINE_ENDS = ("\r", "\n")


class OverlappingEdits(ValueError):
    """Raised if two edits change the same characters, because applying both would lose one of them."""


class NotTogether(ValueError):
    """Raised if the characters are not one run, or if their replacement would join two lines or split one."""


class Replacement:
    """A run and the text to write in its place. Only `TextRun` creates one."""

    __slots__ = ("run", "text")

    def __init__(self, run: TextRun, text: str) -> None:
        self.run = run
        self.text = text

    @property
    def edit(self) -> Edit:
        return Edit(self.run.start + self.run.offset, self.run.end + self.run.offset, self.text)


class TextRun:
    """Characters [start, end) of a text, all on one line or all blank. `offset` is where the text begins in its source.

    A value that a reader assembled from several lines is not a run of any text: `quoting` returns None for such a
    value.
    """

    __slots__ = ("end", "offset", "start", "text")

    def __init__(self, text: str, start: int, end: int, offset: int = 0) -> None:
        if not 0 <= start <= end <= len(text):
            raise NotTogether(f"{start}..{end} is outside the text, which has {len(text)} characters")
        body = text[start:end]
        if _has_line_end(body) and body.strip(BLANK):
            raise NotTogether(f"{start}..{end} is not on one line")
        self.text = text
        self.start = start
        self.end = end
        self.offset = offset

    @classmethod
    def quoting(cls, text: str, start: int, quoted: str) -> TextRun | None:
        """Return the run that begins at `start` and reads as `quoted`; None if the text at that position differs."""
        if start < 0 or not quoted or _has_line_end(quoted) or not text.startswith(quoted, start):
            return None
        return cls(text, start, start + len(quoted))

    @classmethod
    def on_line(cls, text: str, start: int, end: int) -> TextRun | None:
        """Return the run [start, end); None if it extends over more than one line."""
        try:
            run = cls(text, start, end)
        except NotTogether:
            return None
        return None if _has_line_end(run.words) else run

    @property
    def words(self) -> str:
        return self.text[self.start : self.end]

    @property
    def is_blank(self) -> bool:
        return not self.words.strip(BLANK)

    def part(self, start: int, end: int | None = None) -> TextRun:
        """Return part of the run, counted from its first character."""
        length = self.end - self.start
        last = length if end is None else end
        if not 0 <= start <= last <= length:
            raise NotTogether(f"{start}..{last} is outside the text, which has {length} characters")
        return TextRun(self.text, self.start + start, self.start + last, self.offset)

    def replaced_by(self, text: str) -> Replacement:
        if self.is_blank:
            # If nothing is left between two lines, they become one.
            alone = self.start == 0 or self.text[self.start - 1] in _LINE_ENDS or self.end == len(self.text)
            if _has_line_end(self.words) and not _has_line_end(text) and not alone:
                raise NotTogether(f"removing {self.start}..{self.end} would join two lines")
        elif _has_line_end(text):
            raise NotTogether(f"the edit at {self.start}..{self.end} would split a line")
        return Replacement(self, text)

    def deleted(self) -> Replacement:
        return self.replaced_by("")

    def followed_by(self, text: str) -> Replacement:
        return TextRun(self.text, self.end, self.end, self.offset).replaced_by(text)


def fix_of(
    span: tuple[int, int], replacements: Iterable[Replacement], *, safe: bool, title: str = "", bom: bool = False
) -> Fix | None:
    """Return the fix for a finding about `span`; None if there is nothing to replace, or if the fix would exceed the
    finding's lines.
    """
    made = tuple(replacements)
    edits = tuple(replacement.edit for replacement in made)
    if bom:
        return Fix((DROP_BOM, *edits), safe=safe, title=title)
    if not made or not _is_consistent(edits) or not all(_is_own(span, replacement) for replacement in made):
        return None
    return Fix(edits, safe=safe, title=title)


def _is_own(span: tuple[int, int], replacement: Replacement) -> bool:
    """Whether the replacement affects only the lines of `span`; white space may also change on adjacent blank lines."""
    run = replacement.run
    text = run.text
    start, end = span[0] - run.offset, max(span) - run.offset
    while start > 0 and text[start - 1] not in _LINE_ENDS:
        start -= 1
    while end < len(text) and text[end] not in _LINE_ENDS:
        end += 1
    if run.is_blank and not replacement.text.strip(BLANK):
        while start > 0 and text[start - 1] in BLANK:
            start -= 1
        while end < len(text) and text[end] in BLANK:
            end += 1
    return start <= run.start and run.end <= end


def _has_line_end(text: str) -> bool:
    return "\n" in text or "\r" in text


def apply_edits(source: Source, edits: Iterable[Edit]) -> Source:
    """Return a new source with all edits applied. Identical edits count once; insertions at the same position keep
    their order.
    """
    ordered = sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end))
    bom = source.bom and DROP_BOM not in ordered
    ordered = [edit for edit in ordered if edit != DROP_BOM]
    text = source.text
    pieces: list[str] = []
    position = 0
    for edit in ordered:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise OverlappingEdits(f"the span {edit.start}..{edit.end} is outside {source.path}")
        if edit.start < position:
            raise OverlappingEdits(f"two edits of {source.path} overlap at offset {edit.start}")
        pieces += (text[position : edit.start], edit.text)
        position = edit.end
    pieces.append(text[position:])
    return Source(source.path, "".join(pieces), bom=bom)


def compatible(edits: Iterable[Iterable[Edit]]) -> list[tuple[Edit, ...] | None]:
    """Return what each group of edits adds to the earlier ones; None for a group that conflicts with them."""
    taken: list[tuple[Edit, ...] | None] = []
    spans: list[tuple[int, int]] = []
    seen: set[Edit] = set()
    for group in edits:
        fresh = tuple(edit for edit in dict.fromkeys(group) if edit not in seen)
        if not _is_consistent(fresh) or any(_overlaps(edit, spans) for edit in fresh):
            taken.append(None)
        else:
            taken.append(fresh)
            seen.update(fresh)
            spans.extend((edit.start, edit.end) for edit in fresh)
    return taken


def _is_consistent(group: tuple[Edit, ...]) -> bool:
    ordered = sorted(group, key=lambda edit: (edit.start, edit.end))
    return all(later.start >= earlier.end for earlier, later in pairwise(ordered))


def _overlaps(edit: Edit, spans: list[tuple[int, int]]) -> bool:
    return any((edit.start < end and start < edit.end) or edit.start == start for start, end in spans)
