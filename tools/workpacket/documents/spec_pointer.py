"""`SPEC_CURRENT.md`: which specification is in force."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.documents.document import Document, TextAt
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.node import Node
from workpacket.text.source import Source

# The file is prose. The specification is the Markdown file that it names: in bold, in backticks, as a link or bare.
_FILE = lazy_pattern(r"(?<![\w/.-])(?P<path>(?:[\w.-]+/)*[\w.-]+\.md)\b")
_OWN_NAME = "SPEC_CURRENT.md"


class SpecPointer(Document):
    kind = "spec_pointer"

    target = TextAt("target")

    def __init__(self, source: Source) -> None:
        found = [match for match in _FILE.finditer(source.text) if not match["path"].endswith(_OWN_NAME)]
        specifications = [match for match in found if "spec" in match["path"].casefold()] or found
        entries: dict[str, Node] = {}
        if specifications:
            start, end = specifications[0].span("path")
            entries["target"] = Node(source.text[start:end], start, end)
        super().__init__(source, Node(entries, 0, len(source.text), {}))

    def summary(self) -> Mapping[str, object]:
        target = self.target
        return {"target": target.value if target is not None else "", "place": self.place(target)}
