"""Work packages of spec-kitty: one file per package, in the folder of its mission. Tools read the front matter; people
follow the text below it. The history may have any form (more than forty are in use), and nothing is derived from it.
The text may also state dependencies, in two ways. A command: `spec-kitty implement WP07 --on WP05`. Or a sentence or
field about the package itself: `This WP depends on WP01 and WP02`, `**Depends on**: WP01 (models) + WP03`,
`Dependencies: none`, or, below a `Dependencies` heading, each list item that begins with an id. Dependencies of other
packages or subtasks, and packages mentioned in any other way, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from workpacket.documents.document import Text, TextAt, TextsAt, as_text, value_of, without_quotes
from workpacket.documents.structured import FrontMatterDocument, items_of_section, walk_items
from workpacket.documents.summary import PackageSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.blocks import Block, Item, normal_key, walk
from workpacket.text.source import Source

Way = Literal["command", "sentence", "none"]

_ID = r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,76}--)?WP[0-9]{2,9}"
_COMMAND = lazy_pattern(rf"\bimplement\s+(?P<own>WP[0-9]{{2,9}})\b[^\n`]{{0,80}}?--base[ =](?P<base>{_ID})\b")
# The minimum and maximum length of the text between words; bounded, so that no text takes long.
_GAP = r"[\s*_`>]{0,40}"
_SPACE = r"[\s*_`>]{1,40}"
_SUBJECT = rf"(?:(?:this|the) (?:WP|work package)|it|(?P<own>WP[0-9]{{2,9}})){_SPACE}"
_VERB = rf"depends{_SPACE}(?:only{_SPACE})?(?:up)?on\b|dependenc(?:y|ies)\b(?={_GAP}:)"
# A subtask that must wait makes its package wait.
_AFTER = rf"(?:T[0-9]{{3}}{_SPACE})?must{_SPACE}(?:run|start|begin|land){_SPACE}after\b"
_BEGIN = rf"\A|(?<=[.;:!?(,\u2014\u2013])|\n(?={_GAP}[-*+>])"
_SENTENCE = lazy_pattern(
    rf"(?:{_BEGIN})[\s*_`>()+-]{{0,40}}(?:(?:{_SUBJECT})?(?:{_VERB})|{_AFTER}){_GAP}:?{_GAP}(?:its{_SPACE}predecessors?{_SPACE})?",
    re.IGNORECASE,
)
_ONE = lazy_pattern(rf"(?P<first>{_ID})(?: ?[-\u2013\u2014]{{1,2}} ?(?P<last>WP[0-9]{{2,9}}))?(?![\w-]{{0,80}}\w)")
_BETWEEN = lazy_pattern(rf"{_GAP}(?:\([^()]{{0,200}}\){_GAP})?(?:(?:,|\+|&|/|and\b|;){_GAP}){{1,3}}")
_NONE = lazy_pattern(r"(?:none|nothing|no other|n/a|[\u2014\u2013-])(?:[\s*_.,;(]|\Z)", re.IGNORECASE)
_MOST_IN_A_RANGE = 99
_HEADINGS = frozenset({"dependencies", "depends_on"})


class Stated(NamedTuple):
    """One package that the text gives as a dependency; `id` is '' for a statement that there are none."""

    id: str
    start: int
    end: int
    way: Way


def stated_dependencies(source: Source, blocks: Iterable[Block], own: str) -> list[Stated]:
    """Return every statement about the dependencies of package `own`, in text order."""
    found: list[Stated] = []
    heading = ""
    for block in walk(blocks):
        if not block.spans:
            if block.kind == "item" and heading in _HEADINGS:
                found += _in_item(source.text, block)
            continue
        if block.kind == "heading":
            heading = normal_key(block.text(source.text))
        start, end = block.spans[0][0], block.spans[-1][1]
        if block.kind in {"paragraph", "fence", "code"}:
            found += _in_commands(source.text, start, end, own)
        if block.kind == "paragraph":
            found += _in_sentences(source.text, start, end, own)
    return found


def _in_item(text: str, item: Block) -> Iterator[Stated]:
    """Yield the statement in an item that begins with an id or with "none"."""
    first = item.children[0] if item.children else item
    if first.kind != "paragraph":
        return
    start, end = first.spans[0]
    body = text[start:end]
    begin = len(body) - len(body.lstrip("*_`"))
    if _NONE.match(body, begin):
        yield Stated("", start + begin, start + begin + 1, "none")
    else:
        yield from _ids(body, begin, start)


def _in_commands(text: str, start: int, end: int, own: str) -> Iterator[Stated]:
    if text.find("--base", start, end) < 0:
        return
    for match in _COMMAND.finditer(text, start, end):
        if match["own"] == own:
            yield Stated(match["base"], *match.span("base"), "command")


def _in_sentences(text: str, start: int, end: int, own: str) -> Iterator[Stated]:
    # The pattern is anchored to the beginning of the paragraph, so the paragraph is cut out first.
    body = text[start:end]
    if "epend" not in body and "EPEND" not in body:
        return
    for match in _SENTENCE.finditer(body):
        if match["own"] not in (None, own):
            continue
        at = match.end()
        none = _NONE.match(body, at)
        if none and ":" in match.group():
            yield Stated("", start + none.start(), start + none.start() + 1, "none")
            continue
        yield from _ids(body, at, start)


def _ids(body: str, at: int, offset: int) -> Iterator[Stated]:
    while (one := _ONE.match(body, at)) is not None:
        for name in _range(one["first"], one["last"]):
            yield Stated(name, offset + one.start(), offset + one.end(), "sentence")
        between = _BETWEEN.match(body, one.end())
        if between is None:
            return
        at = between.end()


def _range(first: str, last: str | None) -> list[str]:
    """Return the id in `WP01`, or all the ids in `WP01-WP03`."""
    if last is None:
        return [first]
    low, high = int(first.rpartition("WP")[2]), int(last[2:])
    if not low <= high <= low + _MOST_IN_A_RANGE:
        return [first, last]
    return [f"WP{number:0{len(last) - 2}d}" for number in range(low, high + 1)]


# Former lane names, and the current ones.
OLDER_LANES = {"doing": "in_progress"}

_FILE_ID = lazy_pattern(r"WP[0-9]+(?![0-9])")
_SHORT_ID = lazy_pattern(r"WP[0-9]{2,}\Z")
_SCOPED_ID = lazy_pattern(r"(?P<mission>.+)--WP[0-9]{2,}\Z")
_SUBTASK = lazy_pattern(r"T[0-9]{3,}[a-z]?(?:-[a-z]{1,8}(?![\w-]))?(?![A-Za-z0-9])")
_SUBTASK_HEADING = lazy_pattern(
    r"(?:(?:sub)?task\s+)?(?P<id>T[0-9]{3,}[a-z]?(?:-[a-z]{1,8}(?![\w-]))?)(?![A-Za-z0-9])", re.IGNORECASE
)
# How a line about a subtask begins, before its id: a heading, a list item or a paragraph.
_BEFORE_SUBTASK = lazy_pattern(r"(?i)[ \t]{0,8}[>#*+_`\[\]x0-9. \t-]{0,16}(?:(?:sub)?task\s+)?")
_WIDEST_BEFORE_SUBTASK = 80
_LIST_IN_TEXT = lazy_pattern(r"[^\s,\[\]'\"]+")


class WorkPackage(FrontMatterDocument):
    kind = "work_package"
    text_fields = frozenset(
        [
            *("work_package_id", "title", "work_package_title", "lane", "dependencies", "subtasks", "owned_files"),
            *("requirement_refs", "tracker_refs", "tags", "phase", "priority", "assignee", "shell_pid", "base_commit"),
            *("created_at", "mission_id", "mission_number"),
        ]
    )

    work_package_id = TextAt("work_package_id")
    lane = TextAt("lane")
    subtasks = TextsAt("subtasks")
    owned_files = TextsAt("owned_files")
    # Dependencies given as text instead of a list: `"[]"` or `WP01, WP02`.
    dependencies_text = TextAt("dependencies")

    @property
    def title(self) -> Text | None:
        return self.text_at("title") or self.text_at("work_package_title")

    @property
    def mission(self) -> str:
        """Return the folder of the mission in `kitty-specs/<mission>/tasks/WP07-slug.md`."""
        segments = self.path.split("/")
        return segments[-3] if len(segments) >= len(("mission", "tasks", "file")) else ""

    @property
    def file_id(self) -> str:
        """Return the id at the beginning of the file name."""
        match = _FILE_ID.match(self.path.rpartition("/")[2])
        return match.group() if match else ""

    @property
    def own_id(self) -> str:
        """Return the id in the document; if it has none, the id in its file name."""
        stated = self.work_package_id
        return stated.value if stated is not None and stated.value else self.file_id

    @cached_property
    def dependencies(self) -> tuple[Text, ...]:
        """Return the dependencies of the package according to the front matter."""
        written = self.dependencies_text
        if written is None:
            return self.texts_at("dependencies")
        raw = self.source.text[written.start : written.end]
        found = _LIST_IN_TEXT.finditer(raw)
        return tuple(Text(match.group(), written.start + match.start(), written.start + match.end()) for match in found)

    @cached_property
    def stated(self) -> list[Stated]:
        """Return the statements about dependencies in the text below the front matter."""
        return stated_dependencies(self.source, self.blocks, self.own_id)

    @cached_property
    def subtask_ids(self) -> tuple[Text, ...]:
        """Return the ids of the subtasks; an id may be followed by a description."""
        found = ((text, _SUBTASK.match(text.value)) for text in self.subtasks)
        return tuple(Text(match.group(), text.start, text.end) for text, match in found if match is not None)

    @cached_property
    def subtask_headings(self) -> tuple[Text, ...]:
        """Return the ids of the subtasks with a separate heading."""
        found = ((section.title_span, _SUBTASK_HEADING.match(section.title)) for section in self.sections())
        return tuple(
            Text(match["id"], span[0] + match.start("id"), span[0] + match.end("id"))
            for span, match in found
            if match is not None
        )

    @cached_property
    def described_subtasks(self) -> frozenset[str]:
        """Return the subtasks whose id begins a heading, list item or paragraph below the front matter."""
        return frozenset(text.value for text in self.subtask_ids if self._describes(text.value))

    def _describes(self, subtask: str) -> bool:
        text = self.source.text
        at = text.find(subtask, self.body)
        while at >= 0:
            begin = max(text.rfind("\n", self.body, at), text.rfind("\r", self.body, at)) + 1 or self.body
            near = (
                at - begin <= _WIDEST_BEFORE_SUBTASK and not text[at + len(subtask) : at + len(subtask) + 1].isalnum()
            )
            if near and _BEFORE_SUBTASK.fullmatch(text, begin, at):
                return True
            at = text.find(subtask, at + 1)
        return False

    def done_items(self) -> Iterator[Item]:
        """Yield the checkboxes of the definition of done."""
        for section in self.sections():
            if "definition_of_done" in section.name:
                items = walk_items(items_of_section(self.source, section))
                yield from (item for item in items if item.ticked is not None)

    @cached_property
    def _history(self) -> list[tuple[str, Text]]:
        entries = self.items_at("history")
        stated = (as_text(entry.get("timestamp")) or as_text(entry.get("at")) for entry in entries if entry.mapping)
        return [("the entry", without_quotes(self.source, text)) for text in stated if text is not None]

    def days(self) -> Iterator[tuple[str, Text]]:
        yield from self._history

    def sequences(self) -> Iterator[list[tuple[str, Text]]]:
        yield self._history

    def summary(self) -> Mapping[str, object]:
        lane, title = self.lane, self.title
        own_id = scoped(self.own_id, self.mission)
        summary: PackageSummary = {
            "id": own_id,
            "base": own_id,
            "title": value_of(title),
            "place": self.place(self.work_package_id),
            "lanes": [found.token for found in self.lanes.named(lane.value)] if lane is not None else [],
            "status": value_of(lane),
            "status_place": self.place(lane),
            "created": value_of(self.text_at("created_at")),
            "risk": "",
            "mission": self.mission,
            "depends": [(scoped(text.value, self.mission), *self.place(text)) for text in self.dependencies],
            "subtasks": [self.mention(text) for text in self.subtask_ids],
            "owned_files": [self.mention(text) for text in self.owned_files],
            "unlisted": self._unlisted(),
            "dependencies_line": self.source.line_and_column(self._key_of("dependencies"))[0],
        }
        return summary

    def _key_of(self, name: str) -> int:
        return (self.root.keys or {}).get(name, (0, 0))[0] if self.root is not None else 0

    def _unlisted(self) -> list[tuple[str, str, int, int]]:
        """Return what the text states about dependencies beyond the front matter; each package once."""
        if self.root is None:
            return []
        listed = {text.value.rpartition("--")[2] for text in self.dependencies}
        found: dict[str, tuple[str, str, int, int]] = {}
        for stated in self.stated:
            name = stated.id.rpartition("--")[2]
            if name not in listed and name != self.own_id and (name or listed):
                found.setdefault(name, (name, stated.way, *self.source.line_and_column(stated.start)))
        return list(found.values())


def scoped(name: str, mission: str) -> str:
    """Return a short id in the form used outside its mission; anything else unchanged."""
    return f"{mission}--{name}" if mission and _SHORT_ID.match(name) else name


def mission_of(name: str) -> str:
    """Return the mission of a scoped id; '' for other ids."""
    match = _SCOPED_ID.match(name)
    return match["mission"] if match else ""
