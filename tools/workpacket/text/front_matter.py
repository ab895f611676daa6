"""The YAML block at the top of a Markdown file.

It begins on the very first line with `---` and ends with the next line that is `---` or `...`; white space may follow
either, a byte order mark may come first, and line ends may be of any kind. Its positions are those of the file.
"""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.limits import DATA, Limits
from workpacket.text.node import Loaded
from workpacket.text.source import Source
from workpacket.text.yaml_strict import load_yaml
from workpacket.value import Value

_LINE_END = r"[ \t]*(?:\r\n|\r|\n|\Z)"
_OPENING = lazy_pattern(rf"---{_LINE_END}")
_CLOSING = lazy_pattern(rf"(?:---(?<=[\r\n]---)|\.\.\.(?<=[\r\n]\.\.\.)){_LINE_END}")
_LATE = lazy_pattern(rf"(?:[ \t]*(?:\r\n|\r|\n))++(---){_LINE_END}")


class FrontMatter(Value):
    """The loaded block: its YAML is [start, end); the Markdown begins at `body`, the start of `body_line`.

    A file without such a block has `present` false, a body that is the whole file, and no root.
    """

    loaded: Loaded
    present: bool
    start: int
    end: int
    body: int
    body_line: int


def read_front_matter(source: Source, limits: Limits = DATA) -> FrontMatter:
    """Return the front matter of `source`; its faults explain why an intended block is missing."""
    text = source.text
    opening = _OPENING.match(text)
    if opening is None:
        late = _LATE.match(text)
        if late is None or _CLOSING.search(text, late.end()) is None:
            return _absent()
        hint = "remove what comes before it"
        message = "front matter must begin on the first line of a file"
        return _absent(Problem("front_matter_not_first", message, Location.span(late.start(1), late.end(1)), hint))
    start = opening.end()
    closing = _CLOSING.search(text, start)
    if closing is None:
        message = "front matter begins here but is never closed with '---'"
        return _absent(Problem("front_matter_unclosed", message, Location.span(0, len("---"))))
    end, body = closing.start(), closing.end()
    loaded = load_yaml(source, start=start, end=end, limits=limits)
    if loaded.root is not None and not isinstance(loaded.root.value, dict):
        found = {list: "a list", type(None): "nothing"}.get(type(loaded.root.value), "a single value")
        message = f"front matter must consist of keys and values; found {found}"
        loaded = Loaded(None, (Problem("front_matter_not_a_mapping", message, Location.span(*loaded.root.span)),))
    return FrontMatter(loaded, True, start, end, body, source.line_and_column(body)[0])


def _absent(*faults: Problem) -> FrontMatter:
    return FrontMatter(Loaded(None, faults), False, 0, 0, 0, 1)
