"""Runs the rules: faults of one document, findings across documents. Severity comes later, in `settings`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from workpacket.documents.document import Document
from workpacket.documents.reading import reader_of
from workpacket.model.findings import Confidence, Finding
from workpacket.rules.by_kind import rules_across, rules_for
from workpacket.rules.rule import DocumentRule, Files, ReferenceRule, Rule
from workpacket.text.schema import SchemaSet, Violation
from workpacket.text.source import Fault, Source

if TYPE_CHECKING:
    from workpacket.rules.repository import RepositorySummaries

# A megabyte of control characters has a million findings. Nobody reads them, and all that follows would carry them.
MOST_OF_A_KIND = 1_000


def examine(document: Document, rules: Sequence[type[Rule]], schemas: SchemaSet) -> list[Fault]:
    """Everything that is wrong in one document, in the order of the text, and which rules were not run."""
    faults = list(document.faults)
    if document.root is not None:
        faults += schema_faults(document, schemas)
    not_run: dict[str, list[str]] = {}
    found: set[str] = {fault.code for fault in faults}
    for rule in _made(document.kind, tuple(rules)):
        if document.root is None and document.faults and rule.reads_fields:
            continue  # nothing was read that it could judge; why, is among the faults, and no setting can hide it
        unmet = tuple(needed.code() for needed in rule.requires if needed.code() in found) if found else ()
        if unmet:
            not_run.setdefault(unmet[0], []).append(rule.code())
            continue
        made = list(islice(rule.check(document), MOST_OF_A_KIND + 1))
        if len(made) > MOST_OF_A_KIND:
            message = f"there are more than {MOST_OF_A_KIND:,} findings {rule.code()}; they are not listed from here on"
            made[-1] = Fault("findings_cut", made[-1].start, made[-1].start, message)
        if made:
            found.update(fault.code for fault in made)
            faults += made
    for code, rules_not_run in not_run.items():
        first = next(fault for fault in faults if fault.code == code)
        message = f"not checked because of {code}: {', '.join(rules_not_run)}"
        faults.append(Fault("rule_not_run", first.start, first.end, message))
    faults.sort(key=lambda fault: (fault.start, fault.end))
    return faults


def placed_finding(source: Source, fault: Fault, confidence: Confidence = "certain") -> Finding:
    """A fault, at its line and column. Its severity is set by grading."""
    line, column = source.line_and_column(max(fault.start, 0))
    end_line, end_column = source.line_and_column(max(fault.end, fault.start, 0))
    return Finding(
        fault.code,
        "error",
        source.path,
        line,
        column,
        fault.message,
        fault.hint,
        fault.fix,
        confidence,
        end_line,
        end_column,
    )


@cache
def _made(kind: str, rules: tuple[type[Rule], ...]) -> tuple[DocumentRule[Document], ...]:
    """The rules about documents of one kind. They hold no state, so each is made once."""
    reader = reader_of(kind)
    return tuple(rule() for rule in rules if issubclass(rule, DocumentRule) and rule.applies_to(reader))


def schema_faults(document: Document, schemas: SchemaSet) -> Iterator[Fault]:
    """Violations of the kind's JSON Schema, each at the line of the field it speaks of."""
    if document.root is None:
        return
    for violation in schemas.violations(document.schema, document.root.plain()):
        start, end = place_of(document, violation)
        yield Fault(violation.code, start, end, violation.message, violation.hint)


def place_of(document: Document, violation: Violation) -> tuple[int, int]:
    """Where a violation stands: the key, for a name that should not be there; else the value, or what holds it."""
    root = document.root
    if root is None:
        return 0, 0
    node = root.nearest(violation.path)
    if violation.code == "field_unknown" and violation.path:
        holder = root.nearest(violation.path[:-1])
        name = violation.path[-1]
        if holder.keys and isinstance(name, str) and name in holder.keys:
            return holder.keys[name]
    return node.start, node.end


def across(repository: RepositorySummaries) -> Iterator[Finding]:
    """Findings of the rules that compare documents with one another."""
    for rule in rules_across():
        yield from rule().check(repository)


def wanted_files(summaries: Iterable[tuple[str, str, Mapping[str, object]]]) -> Iterator[tuple[str, bool]]:
    """The files that reference rules have to look at: path, and whether their text is wanted."""
    for kind, _, summary in summaries:
        for rule in _reference_rules(kind):
            yield from rule.wants(summary)


def references(summaries: Iterable[tuple[str, str, Mapping[str, object]]], files: Files) -> Iterator[Finding]:
    """Findings of the rules that follow a document's references."""
    for kind, path, summary in summaries:
        for rule in _reference_rules(kind):
            yield from rule.check(path, summary, files)


@cache
def _reference_rules(kind: str) -> tuple[ReferenceRule, ...]:
    return tuple(rule() for rule in rules_for(kind) if issubclass(rule, ReferenceRule))
