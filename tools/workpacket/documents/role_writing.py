"""Writing checkpoints of roles: a new file in the canonical form, and an old one by its few changed spans.

The canonical form is that of the published format: the seven fields in their order and in double quotes, further keys
behind them, and below the front matter whatever stands there. In a file that exists, the values that changed are
replaced and one note is added; every other byte stays, comments included.
"""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.documents.role_progress import KEYS, RoleProgress
from workpacket.model.findings import Edit
from workpacket.text.blocks import LISTS, Block
from workpacket.text.edits import apply_edits
from workpacket.text.front_matter import read_front_matter
from workpacket.text.node import Plain
from workpacket.text.outline import Section
from workpacket.text.source import Source
from workpacket.text.yaml_edit import CannotEdit, YamlText, insert_key, set_value, yaml_text
from workpacket.text.yaml_write import double_quoted, writable, write_yaml

HEADING = "## Progress Notes"
EMPTY_BODY = f"\n{HEADING}\n"


def canonical(front: Mapping[str, Plain], body: str) -> bytes:
    """The file of a checkpoint; `NotWritable` if a value has no form in YAML."""
    order = [*(key for key in KEYS if key in front), *(key for key in front if key not in KEYS)]
    lines = "".join(_line(key, front[key]) for key in order)
    return f"---\n{lines}---\n{body}".encode()


def _line(key: str, value: Plain) -> str:
    if isinstance(value, str) and writable(value):
        return write_yaml({key: None}).removesuffix("null\n") + double_quoted(value) + "\n"
    return write_yaml({key: value})


def body_of(document: RoleProgress) -> str:
    return document.source.text[document.body :]


def front_of(document: RoleProgress) -> dict[str, Plain]:
    plain = document.root.plain() if document.root is not None else None
    return dict(plain) if isinstance(plain, dict) else {}


def advanced(document: RoleProgress, fields: Mapping[str, str], note: str = "") -> bytes:
    """The file with these fields and, if it is not empty, one more note. `CannotEdit` if that takes more."""
    text = _front(document)
    for key, value in fields.items():
        node = text.root.get(key)
        edits = insert_key(text, (), key, value) if node is None else set_value(text, (key,), value)
        text = text.edited(edits)
    after = RoleProgress(noted(text.source, note) if note else text.source)
    wanted = {**front_of(document), **fields}
    before, now = ([item.text for item in one.notes()] for one in (document, after))
    if front_of(after) != wanted or after.faults or now != [*before, *([note] if note else [])]:
        raise CannotEdit(f"{document.path}: this note cannot be added without touching more; make it by hand")
    return after.source.encode()


def _front(document: RoleProgress) -> YamlText:
    front = read_front_matter(document.source)
    if not front.present:
        raise CannotEdit(f"{document.path}:1:1: here is no front matter")
    return yaml_text(document.source, start=front.start, end=front.end)


def noted(source: Source, note: str) -> Source:
    """The document with a note behind the last one of `## Progress Notes`, which is added where there is none."""
    document = RoleProgress(source)
    sections = [section for section in document.sections() if section.name == "progress_notes"]
    eol = source.eol
    if not sections:
        start = "" if source.text.endswith(("\n", "\r")) else eol
        end = len(source.text)
        return apply_edits(source, [Edit(end, end, f"{start}{eol}{HEADING}{eol}{eol}- {note}{eol}")])
    holder = [section for section in sections[-1].walk() if _lists(section)]
    if not holder:
        return _first_note(source, sections[-1], note)
    last = _lists(holder[-1])[-1].children[-1]
    indent = " " * (last.start - source.line_starts[last.line - 1])
    marker = last.marker if last.marker in {"-", "*", "+"} else "-"
    return _after_line(source, last.end_line, f"{indent}{marker} {note}")


def _lists(section: Section) -> list[Block]:
    return [block for block in section.blocks if block.kind in LISTS]


def _first_note(source: Source, section: Section, note: str) -> Source:
    line = section.heading.end_line if section.heading is not None else section.line
    eol = source.eol
    gap = "" if section.end_line == line else eol
    return _after_line(source, line, f"{eol}- {note}{gap}" if gap else f"{eol}- {note}")


def _after_line(source: Source, line: int, text: str) -> Source:
    """`text` on lines of its own behind this line."""
    _, end = source.line_span(line)
    has_end = source.text[end : end + 1] in {"\n", "\r"}
    addition = f"{source.eol}{text}" if has_end else f"{source.eol}{text}{source.eol}"
    return apply_edits(source, [Edit(end, end, addition)])
