"""Documents: one per file, read once. Choosing the reader for a kind imports only that reader.

A kind is a class. Each field is declared on one line, as a path into the tree of nodes that the reader builds; the
declaration gives the typed value, which keeps its position in the file.

    class Stub(Document):
        kind = "stub"
        created_at = TextAt("metadata", "created_at")

The layout of a kind of Markdown document, its sections and fields, is data. Readers, rules, `fmt`, templates and
reference pages all use it, so they always agree on a heading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from typing import ClassVar, Literal, TypeVar, cast, overload

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.problem import Problem
from workpacket.text.blocks import normal_key
from workpacket.text.source import DATA, MARKDOWN, REGISTER, Limits, Node, Source, TextRun
from workpacket.value import NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.summary import Mention


class Text:
    """A string in a document and its position."""

    __slots__ = ("end", "start", "value")

    def __init__(self, value: str, start: int, end: int) -> None:
        self.value = value
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return f"Text({self.value!r}, {self.start}, {self.end})"

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


class Document:
    """A file that was read. `root` is None if the file could not be parsed; `faults` then say why."""

    kind: ClassVar[str]
    # The lanes that its text may name, set by the reader for a repository.
    lanes: LaneTable = BUILT_IN

    def __init__(self, source: Source, root: Node | None, faults: Iterable[Problem] = ()) -> None:
        self.source = source
        self.root = root
        self.faults = tuple(faults)

    @property
    def schema(self) -> str:
        """Return the name of the JSON Schema that the document must satisfy."""
        return self.kind

    def summary(self) -> Mapping[str, object]:
        """Return what the document tells the rest of the repository: see `summary.py`."""
        return {}

    def place(self, text: Text | None) -> tuple[int, int]:
        """Return the line and column of a string; if there is no string, those of the start of the file."""
        return self.source.line_and_column(text.start) if text is not None else (1, 1)

    def mention(self, text: Text | None) -> Mention:
        """Return a string with its position, as used in summaries."""
        return (text.value, *self.place(text)) if text is not None else ("", 0, 0)

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def stem(self) -> str:
        return stem_of(self.path)

    def at(self, *path: str | int) -> Node | None:
        return self.root.get(*path) if self.root is not None else None

    def items_at(self, *path: str | int) -> list[Node]:
        return self.root.items_at(*path) if self.root is not None else []

    def mapping_at(self, *path: str | int) -> dict[str, Node]:
        return self.root.mapping_at(*path) if self.root is not None else {}

    def text_at(self, *path: str | int) -> Text | None:
        return as_text(self.at(*path))

    def texts_at(self, *path: str | int) -> tuple[Text, ...]:
        found = (as_text(item) for item in self.items_at(*path))
        return tuple(text for text in found if text is not None)

    def run(self, text: Text | None) -> TextRun | None:
        """Return the span of the string; None if the reader joined it from several parts."""
        return TextRun.quoting(self.source.text, text.start, text.value) if text is not None else None

    def first_line(self, text: Text | None) -> TextRun | None:
        """Return the part of a string on its first line; None if it begins with something other than words. Commands
        replace only this part, and leave the lines below to their author.
        """
        if text is None:
            return None
        end = self.source.line_span(self.source.line_and_column(text.start)[0])[1]
        words = self.source.text[text.start : min(end, max(text.end, text.start))].rstrip()
        return TextRun.quoting(self.source.text, text.start, words) if text.value.startswith(words) else None

    def dates(self) -> Iterable[tuple[str, Text]]:
        """Return the fields that contain a time, keyed by their names in the document."""
        return ()

    def days(self) -> Iterable[tuple[str, Text]]:
        """Return the other dates, with or without a time of day, keyed by their meaning."""
        return ()

    def sequences(self) -> Iterable[Sequence[tuple[str, Text]]]:
        """Return lists of dates; the dates in each list must be in ascending order."""
        return ()


def without_quotes(source: Source, text: Text) -> Text:
    """Return a string in a YAML or JSON file as written, without its quotes."""
    if source.text[text.start : text.start + 1] in ("'", '"') and text.end - text.start >= len("''"):
        return Text(text.value, text.start + 1, text.end - 1)
    return text


def stem_of(path: str) -> str:
    """Return a file's name without the extension; for `<WP_ID>/packet.md`, the name of the folder."""
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0]
    return folder.rpartition("/")[2] if stem in {"packet", "refinement"} and folder else stem


def value_of(text: Text | None) -> str:
    return text.value if text is not None else ""


def as_text(node: Node | None) -> Text | None:
    if node is None or not isinstance(node.value, str):
        return None
    return Text(node.value, node.start, node.end)


class TextAt:
    """A field with one string."""

    def __init__(self, *path: str | int) -> None:
        self.path = path

    @overload
    def __get__(self, document: None, owner: type[Document]) -> TextAt: ...
    @overload
    def __get__(self, document: Document, owner: type[Document]) -> Text | None: ...
    def __get__(self, document: Document | None, owner: type[Document]) -> Text | None | TextAt:
        return self if document is None else document.text_at(*self.path)


class TextsAt:
    """A field with a list of strings."""

    def __init__(self, *path: str | int) -> None:
        self.path = path

    @overload
    def __get__(self, document: None, owner: type[Document]) -> TextsAt: ...
    @overload
    def __get__(self, document: Document, owner: type[Document]) -> tuple[Text, ...]: ...
    def __get__(self, document: Document | None, owner: type[Document]) -> tuple[Text, ...] | TextsAt:
        return self if document is None else document.texts_at(*self.path)


# The content of a section: `fields` are `KEY: value` lines; `items` a list; `checklist` a list whose items can be
# ticked; `prose` anything.
Shape = Literal["fields", "items", "checklist", "prose"]


class FieldSpec(Value):
    """One field. `label` is how the field is written; its name in the tree of values is the label in snake case."""

    label: str
    required: bool = False
    many: bool = False
    bold: bool = False
    aliases: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        return normal_key(self.label)

    @property
    def written(self) -> str:
        """Return the beginning of the field in a canonical document."""
        return f"- **{self.label}:**" if self.bold else f"- {self.label}:"


def fields(*labels: str, required: bool = False, many: bool = False) -> tuple[FieldSpec, ...]:
    """Return fields that differ only in their names."""
    return tuple(FieldSpec(label, required=required, many=many) for label in labels)


class SectionSpec(Value):
    """One section. `heading` is how it is written, and `key` is its name in the tree of values."""

    key: str
    heading: str
    shape: Shape
    required: bool = False
    fields: tuple[FieldSpec, ...] = ()
    # Alternative keys of headings for the same section.
    aliases: tuple[str, ...] = ()
    repeatable: bool = False

    def field(self, name: str) -> FieldSpec | None:
        """Return the field with this name or alias."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, FieldSpec]:
        return {name: spec for spec in reversed(self.fields) for name in (spec.key, *spec.aliases)}


class Layout(Value):
    """The sections of a kind, in the order of its template. Only headings of `levels` begin sections; the first level
    is canonical. `extra` sections are allowed anywhere. `older` sections belong to earlier forms of the kind; they are
    read and reported. `frames` are the keys of headings that only group sections.
    """

    levels: tuple[int, ...]
    sections: tuple[SectionSpec, ...]
    extra: tuple[SectionSpec, ...] = ()
    older: tuple[SectionSpec, ...] = ()
    frames: frozenset[str] = frozenset()

    def section(self, title: str) -> SectionSpec | None:
        """Return the section with this heading, however it is spelled."""
        return self._by_heading.get(heading_key(title))

    @cached_property
    def _by_heading(self) -> dict[str, SectionSpec]:
        everything = (*self.sections, *self.extra, *self.older)
        return {key: spec for spec in reversed(everything) for key in (heading_key(spec.heading), *spec.aliases)}


# A remark may contain a colon: `SPEC_ANCHORS (REQUIRED: one or more)`.
_REMARK = lazy_pattern(r"\([^()]*\)")


@lru_cache(maxsize=4096)
def heading_key(title: str) -> str:
    """Return a heading normalized for comparison: `INTENT (DRAFT)`, `Intent (draft)` and `Intent` all become `intent`.

    Remarks in parentheses or brackets, values after a colon, markup and emoji are ignored.
    """
    return normal_key(_REMARK.sub("", title).partition(":")[0])


_D = TypeVar("_D", bound=Document)


def read_once(kind: Callable[[Source], _D], source: Source) -> _D:
    """Return the document of this kind, parsed once per command. It is shared, so do not modify it."""
    return cast("_D", _read(kind, source.path, source.text, source.bom))


# A command examines one packet and a few others; if it reads many, none is requested again.
@lru_cache(maxsize=16)
def _read(kind: Callable[[Source], Document], path: str, text: str, bom: bool) -> Document:
    return kind(Source(path, text, bom=bom))


class DocumentKind(NamedTuple):
    """A kind of document: its rules, and the class that reads it, which is in the given module or in the one named
    after the kind. `rules` are the modules in `workpacket.rules` for this kind, in addition to those for every kind;
    the JSON Schema is named after the kind.
    """

    name: str
    title: str
    reader: str
    limits: Limits
    rules: tuple[str, ...]
    module: str = ""


# The rules for every `StructuredDocument`.
_STRUCTURED = ("structured", "identity", "keys_and_dates", "sentences")
# The rules for every document with keys and dates.
_KEYED = ("keys_and_dates",)

KINDS: tuple[DocumentKind, ...] = (
    DocumentKind("stub", "work packet stub", "Stub", MARKDOWN, (*_STRUCTURED, "anchors", "stub")),
    DocumentKind("refinement", "technical refinement", "Refinement", MARKDOWN, (*_STRUCTURED, "anchors", "refinement")),
    DocumentKind(
        "packet",
        "task packet",
        "Packet",
        MARKDOWN,
        (*_STRUCTURED, "anchors", "packet", "packet_reports", "packet_evidence", "scope_paths"),
    ),
    DocumentKind("task_board", "task board", "TaskBoard", REGISTER, (*_KEYED, "task_board")),
    DocumentKind("registry", "traceability registry", "TraceabilityRegistry", REGISTER, ("registers",)),
    DocumentKind("signature_audit", "signature audit", "SignatureAudit", REGISTER, ("registers",), "registry"),
    DocumentKind(
        "orchestrator_gates",
        "orchestrator gate log",
        "OrchestratorGates",
        REGISTER,
        (*_KEYED, "registers"),
        "gate_logs",
    ),
    DocumentKind(
        "validator_gates",
        "validator gate sessions",
        "ValidatorGates",
        DATA,
        (*_KEYED, "registers"),
        "gate_logs",
    ),
    DocumentKind("spec_pointer", "pointer to the current specification", "SpecPointer", MARKDOWN, ("refinement",)),
    DocumentKind("policy", "policy", "PolicyDocument", DATA, ("policy",)),
    DocumentKind(
        "work_package",
        "spec-kitty work package",
        "WorkPackage",
        MARKDOWN,
        (*_KEYED, "sentences", "scope_paths", "work_package", "package_log"),
    ),
    DocumentKind(
        "batch_checkpoint",
        "batch checkpoint",
        "BatchCheckpoint",
        DATA,
        (*_KEYED, "scope_paths", "batch"),
        "batch",
    ),
    DocumentKind(
        "batch_tasks", "tasks of a batch scope", "BatchTasks", DATA, (*_KEYED, "scope_paths", "batch"), "batch"
    ),
    DocumentKind("batch_dependencies", "dependencies of a batch scope", "BatchDependencies", DATA, ("batch",), "batch"),
    DocumentKind("batch_validation", "validation of a batch scope", "BatchValidation", DATA, ("batch",), "batch"),
    DocumentKind("role_progress", "role progress", "RoleProgress", MARKDOWN, (*_KEYED, "sentences", "role_progress")),
    DocumentKind("commit_sidecar", "commit checkpoint sidecar", "CommitSidecar", DATA, (*_KEYED, "checkpoints")),
)

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_named(name: str) -> DocumentKind:
    return _BY_NAME[name]


# Kinds whose structure, and not only whose words, depends on the defined lanes.
_LAID_OUT_BY_LANES = frozenset({"task_board", "registry"})


def reader_of(kind: str) -> type[Document]:
    """Return the class that reads documents of `kind`."""
    known = _BY_NAME[kind]
    module = import_module(f"workpacket.documents.{known.module or known.name}")
    return cast("type[Document]", getattr(module, known.reader))


def read_document(kind: str, source: Source, lanes: LaneTable = BUILT_IN) -> Document:
    """Read `source` as a document of `kind`. Errors are in the document's `faults`."""
    reader = reader_of(kind)
    if kind in _LAID_OUT_BY_LANES:
        return cast("Callable[[Source, LaneTable], Document]", reader)(source, lanes)
    document = cast("Callable[[Source], Document]", reader)(source)
    document.lanes = lanes
    return document
