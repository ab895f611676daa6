"""From YAML events to nodes, collecting every fault on the way."""

from __future__ import annotations

from collections.abc import Callable

import yaml

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text import yaml_portable
from workpacket.text.fault import Fault
from workpacket.text.limits import Limits
from workpacket.text.loaded import Loaded, duplicate_key
from workpacket.text.node import Node
from workpacket.text.plain_scalars import resolve
from workpacket.text.source import Source
from workpacket.text.yaml_errors import syntax_fault
from workpacket.text.yaml_events import Event, NotYaml, events, restored

_COLON = lazy_pattern(r" *:")
# libyaml refuses such an escape; PyYAML's own parser makes a string of it that no file can hold.
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def build(source: Source, text: str, start: int, limits: Limits) -> Loaded:
    """The tree of `text`, which stands at `start` of `source`."""
    builder = _Builder(source, text, start, limits)
    try:
        for event in events(text):
            if not builder.take(event):
                break
        else:
            builder.faults += [] if builder.has_properties else yaml_portable.faults(text, start, builder.scalars)
    except NotYaml as error:
        builder.faults.append(syntax_fault(source, start, start + len(text), error))
    if builder.faults:
        return Loaded(None, tuple(builder.faults))
    return Loaded(builder.root or Node(None, start, start))


class _Open:
    """A list or mapping whose end has not come yet; of a mapping, `key` waits for its value."""

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
    """Takes events and holds the way down from the root to where reading stands."""

    def __init__(self, source: Source, text: str, start: int, limits: Limits) -> None:
        self.root: Node | None = None
        self.faults: list[Fault] = []
        self.scalars: list[yaml_portable.Scalar] = []
        self.has_properties = False
        self._source = source
        self._text = text
        self._start = start
        self._limits = limits
        self._open: list[_Open] = []
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
        """Take in one event; false when a limit is passed and nothing after it counts."""
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
            end = yaml_portable.end_of_block_scalar(self._text, start, end)
        elif start == end:
            start = end = self._place_of_nothing(start)
        self.scalars.append((start, end, self._brackets > 0))
        start, end = self._start + start, self._start + end
        if event.style in ("|", ">") and not self._open:
            self._fault("yaml_bare_block", start, end, "the whole document is one block of text")
        self._properties(event, start, end)
        written = restored(event.value)
        if event.style == '"' and _SURROGATE.search(written):
            self._fault("yaml_syntax", start, end, "an escape that names half a character")
        if self._open and self._open[-1].awaits_key:
            self._key(self._open[-1], written, start, end, plain=not event.style)
            return True
        return self._add(Node(written if event.style else resolve(written), start, end))

    def _place_of_nothing(self, at: int) -> int:
        """Where a value left out would stand: in brackets after its ':', or after the key that has none."""
        if not self._brackets:
            return min(at, len(self._text))
        done = self.scalars[-1][1] if self.scalars else 0
        colon = _COLON.match(self._text, done, at)
        return at if colon is None else colon.end()

    def _key(self, top: _Open, written: str, start: int, end: int, *, plain: bool) -> None:
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
        opened = _Open(start, end, is_list=is_list, in_brackets=in_brackets, is_key=is_key)
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
        self._fault("yaml_alias", start, end, f"'*{event.anchor}' stands for a value that is written elsewhere")
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
        """Refuse an anchor and a tag; what has one has a span that begins with it."""
        if event.anchor is None and event.tag is None:
            return
        self.has_properties = True
        if event.anchor is not None:
            self._fault("yaml_anchor", start, end, f"'&{event.anchor}' names a value for use elsewhere")
        if event.tag is not None:
            self._fault("yaml_tag", start, end, f"'{event.tag}' says which type a value has")

    def _span(self, event: Event) -> tuple[int, int]:
        return self._start + event.start_mark.index, self._start + event.end_mark.index

    def _fault(self, code: str, start: int, end: int, message: str) -> None:
        self.faults.append(Fault(code, start, end, message))
