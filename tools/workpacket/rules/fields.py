"""Rules about fields, for every kind that has a layout: stubs, refinements, packets."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import FieldSpec
from workpacket.documents.structured import StructuredDocument, body_of, is_empty
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import repeated
from workpacket.rules.structured import StructuredRule
from workpacket.text.edits import Run
from workpacket.text.fields import Field

_ASIDES = lazy_pattern(r"\([^()\n]*\)|\[[^\[\]\n]*\]")
_BOX = lazy_pattern(r"\[[ xX]\]|~")


class FieldDuplicate(StructuredRule):
    """Field stands twice

    Which value is used depends on the parser.

    Remedy: delete one of the lines.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for placed in document.placed:
            if placed.spec.shape != "fields":
                continue
            specified = [(placed.spec.field(field.name), field) for field in placed.fields]
            given = [(spec.key, field) for spec, field in specified if spec and (field.value or not spec.many)]
            for (_, field), (_, earlier) in repeated(given, lambda pair: pair[0]):
                line = document.source.line_and_column(earlier.key_span[0])[0]
                message = f"the field {field.key} is already on line {line}"
                yield self.fault(field.key_span, message, hint="delete one of the lines")


class FieldEmpty(StructuredRule):
    """Field without a value

    Tools that read line by line use the next line as the value; people assume that the value was forgotten.

    Remedy: fill in the value, or delete the line if the field does not apply.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for placed in document.placed:
            for field in placed.fields if placed.spec.shape == "fields" else ():
                spec = placed.spec.field(field.name)
                # Of the reasons in a refinement, only those that its verdicts ask for are given.
                asked = spec is not None and (
                    spec.required or placed.spec.key == "metadata" or document.kind != "refinement"
                )
                if asked and _says_nothing(document, field):
                    yield self.fault(field.key_span, f"the field {field.key} has no value", hint="fill it in")


def _says_nothing(document: StructuredDocument, field: Field) -> bool:
    if field.block.kind != "heading":
        return is_empty(field)
    below = (section for section in document.outline.walk() if section.heading is field.block)
    return not field.value and not any(body_of(document.source, section) for section in below)


class MetadataFieldUnknown(StructuredRule):
    """Unknown metadata field

    It is ignored; its name may be misspelled.

    Remedy: correct its name if it is misspelled; otherwise leave it.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        for field in placed.fields if placed is not None else ():
            if placed is not None and placed.spec.field(field.name) is None:
                yield self.fault(field.key_span, f"unknown field {field.key}")


class FieldSyntax(StructuredRule):
    """Fields written in another way than `- KEY: value`

    They are still read, but scripts that look for the plain form do not find them.

    Remedy: `workpacket fmt` writes them plainly.
    """

    severity = "info"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        for field in placed.fields if placed is not None and not document.is_older else ():
            spec = placed.spec.field(field.name) if placed is not None else None
            start, end = syntax_span(document, field)
            shown = document.source.text[start:end]
            written = _written(spec, field) if spec is not None else shown
            if shown not in {written, ""} and not shown.startswith("#"):
                # A tick, or words that are struck out, would be lost.
                run = Run.on_line(document.source.text, start, end) if not _BOX.search(shown) else None
                edits = [run.replaced_by(written)] if run is not None else []
                yield self.fault((start, end), f"the field is written `{shown}` instead of `{written}`", edits=edits)


def _written(spec: FieldSpec, field: Field) -> str:
    """How the field begins in a canonical document; what stands in parentheses behind its name stays."""
    asides = "".join(f" {aside}" for aside in _ASIDES.findall(field.key))
    return spec.written.replace(spec.label, spec.label + asides, 1) if asides else spec.written


def syntax_span(document: StructuredDocument, field: Field) -> tuple[int, int]:
    """All of a field before its value: bullet, key, bold marks and colon."""
    text = document.source.text
    line = document.source.line_and_column(field.key_span[0])[0]
    start, end = document.source.line_span(line)
    if start <= field.block.start < field.key_span[0]:
        start = field.block.start
    stop = field.value_span[0] if field.value else end
    return start, start + len(text[start:stop].rstrip())
