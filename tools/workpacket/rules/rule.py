"""The three kinds of rules (about one document, about its references, about all documents together), and how they are
run. `settings` assigns severities afterwards.

Only the rules of the kinds involved are imported: to check one stub, no rule about boards is needed. Rules in a module
listed neither here nor in `workpacket.documents.document.KINDS` are not run; a test reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from workpacket.documents.document import KINDS, Document, kind_named, reader_of
from workpacket.documents.structured import StructuredDocument
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.reasons import Family, Reason, explanation_and_remedy
from workpacket.problem import Confidence, Location, Problem, Severity
from workpacket.text.blocks import normal_key
from workpacket.text.source import Node, Replacement, Source, fix_of
from workpacket.value import Value, replace

if TYPE_CHECKING:
    from typing import Generic

    from workpacket.rules.repository import RepositorySummaries
    from workpacket.text.schema import SchemaSet
else:

    class Generic:
        """Replaces the class in `typing`, which doubles the time that it takes to define the 70 rules of a kind."""

        def __class_getitem__(cls, _):
            return cls


class FileFact(Value):
    """The file at a path. `source` is set only if a rule requested the text."""

    state: Literal["file", "folder", "absent"]
    source: Source | None = None


class Files:
    """Files by path. A path that was not requested is a bug in a rule, not a missing file."""

    def __init__(self, facts: Mapping[str, FileFact]) -> None:
        self._facts = facts

    def __getitem__(self, path: str) -> FileFact:
        return self._facts[path]

    def exists(self, path: str) -> bool:
        return self._facts[path].state != "absent"


D = TypeVar("D", bound=Document)
T = TypeVar("T")

# How many places the message about a repeated fault names.
_SHOWN = 5
_WORD_START = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def code_of(class_name: str) -> str:
    """Convert `ByteOrderMark` to `byte_order_mark`."""
    return _WORD_START.sub("_", class_name).lower()


class Rule:
    """The base of all rules.

    The docstring of a subclass has three parts, separated by blank lines: the title, a single phrase; why it matters;
    and, after the word Remedy, what to do. A class without a remedy is only a base class for other rules, and is not
    run.
    """

    family: ClassVar[Family] = "document"
    severity: ClassVar[Severity] = "error"
    strict_severity: ClassVar[Severity] = "error"
    fix: ClassVar[Literal["none", "safe", "unsafe"]] = "none"
    confidence: ClassVar[Confidence] = "certain"

    @classmethod
    def is_complete(cls) -> bool:
        return "Remedy:" in (cls.__doc__ or "")

    @classmethod
    def code(cls) -> str:
        return code_of(cls.__name__)

    def finding(self, path: str, place: Sequence[int], message: str, *, hint: str = "") -> Problem:
        """Return a finding about the file, at a [line, column] from its summary."""
        line, column = place[-2:]
        return Problem(
            self.code(), message, Location(path, line, column), hint, severity=self.severity, confidence=self.confidence
        )

    @classmethod
    def reason(cls) -> Reason:
        """Return the reason that the class defines, for the catalogue."""
        title, _, rest = (cls.__doc__ or "").strip().partition("\n\n")
        explanation, remedy = explanation_and_remedy(rest)
        return Reason(
            code=cls.code(),
            title=" ".join(title.split()).rstrip("."),
            explanation=explanation,
            remedy=remedy,
            family=cls.family,
            severity=cls.severity,
            strict_severity=cls.strict_severity,
            fix=cls.fix,
        )


def repeated(items: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[tuple[T, T]]:
    """Yield each item with the same key as an earlier one, together with the first item with that key."""
    first: dict[Hashable, T] = {}
    for item in items:
        earlier = first.setdefault(key(item), item)
        if earlier is not item:
            yield item, earlier


def first_lines(numbers: Sequence[int]) -> str:
    """Return the first lines on which a fault repeats: `lines 3, 9, 12 and 4 more`."""
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{more}"


def out_of_order(items: Iterable[T], rank: Callable[[T], Any]) -> Iterator[tuple[T, T]]:
    """Yield each item that ranks below an earlier one, together with the highest-ranking one so far."""
    highest: T | None = None
    for item in items:
        if highest is not None and rank(item) < rank(highest):
            yield item, highest
        else:
            highest = item


class DocumentRule(Rule, Generic[D]):
    """A rule about one document. It sees only that document, so its findings are cached by the document's digest.

    It applies to the documents of the class in brackets: `DocumentRule[Stub]`. `kinds` limits the rule to some of them
    (empty means all); `except_kinds` excludes some. `reads_fields`: the rule judges values, and is not run if the
    document could not be read. `requires`: rules that must find nothing before this rule makes sense; if one of them
    finds something, this rule is not run, and the report says so.
    """

    about: ClassVar[type[Document]] = Document
    kinds: ClassVar[tuple[str, ...]] = ()
    except_kinds: ClassVar[tuple[str, ...]] = ()
    reads_fields: ClassVar[bool] = True
    requires: ClassVar[tuple[type[Rule], ...]] = ()

    if not TYPE_CHECKING:

        @classmethod
        @cache
        def __class_getitem__(cls, about):
            """Return the class of the rules about these documents."""
            return type(cls.__name__, (cls,), {"about": about})

    @classmethod
    def applies_to(cls, reader: type[Document]) -> bool:
        """Whether the rule applies to documents of this class."""
        named = not cls.kinds or reader.kind in cls.kinds
        return issubclass(reader, cls.about) and named and reader.kind not in cls.except_kinds

    def check(self, document: D) -> Iterator[Problem]:
        raise NotImplementedError

    def fault(
        self,
        span: tuple[int, int],
        message: str,
        *,
        hint: str = "",
        edits: Iterable[Replacement] = (),
        fix_title: str = "",
        safe: bool | None = None,
    ) -> Problem:
        """Return a fault about `span`. A repair may change only the lines of `span`; otherwise the repair is omitted.

        Pass `safe` if some of a rule's repairs are less safe than others.
        """
        fix = fix_of(span, edits, safe=self.fix == "safe" if safe is None else safe, title=fix_title)
        return Problem(self.code(), message, Location.span(*span), hint, fix, confidence=self.confidence)


class RepositoryRule(Rule):
    """A rule about all documents together. It sees their summaries, never their text."""

    family: ClassVar[Family] = "cross-file"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        raise NotImplementedError


class LogRule(RepositoryRule):
    """A rule that compares documents with the log. The log is authoritative, so a baseline never hides its findings."""


class ReferenceRule(Rule):
    """A rule about what one document refers to: paths that must exist, text that must be in a different file.

    `wants` lists the files that the rule needs; they are read, and then `check` is called.
    """

    kinds: ClassVar[tuple[str, ...]]

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        """Yield the files to look up, and, for each, whether its text is needed too."""
        raise NotImplementedError

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        raise NotImplementedError


# The modules whose rules apply to every kind.
EVERY_KIND = ("text",)

# The modules with rules that compare documents.
ACROSS = (
    "across_board",
    "across_packets",
    "missions",
    "checkpoints",
    "role_progress",
)

# The rules used so far: the reason of a finding is looked up here, without importing other rules.
LOADED: dict[str, type[Rule]] = {}

# A megabyte of control characters has a million findings. No one reads them all, and every later step would have to
# process them.
MOST_OF_A_KIND = 1_000


# How the message about a missing field begins.
_NAMED = lazy_pattern(r"`([^`]+)` is missing")


@cache
def rules_in(module: str) -> tuple[type[Rule], ...]:
    """Return the rules of one module of this package, in module order, which is the order in which they run."""
    there = import_module(f"workpacket.rules.{module}")
    classes = [each for each in vars(there).values() if isinstance(each, type) and issubclass(each, Rule)]
    rules = tuple(each for each in classes if each.__module__ == there.__name__ and each.is_complete())
    if not rules:
        # `python -OO` removes docstrings, and a check without rules would find nothing wrong with anything.
        raise RuntimeError(
            f"{module} has no rules: do not run Python with -OO, because rules are defined by their docstrings"
        )
    LOADED.update((rule.code(), rule) for rule in rules)
    return rules


@cache
def rules_for(kind: str) -> tuple[type[Rule], ...]:
    """Return the rules about one document of `kind`, and about its references."""
    modules = (*EVERY_KIND, *kind_named(kind).rules)
    return tuple(rule for module in modules for rule in rules_in(module) if _judges(rule, kind))


@cache
def rules_across() -> tuple[type[RepositoryRule], ...]:
    """Return the rules that compare documents with one another."""
    return tuple(rule for module in ACROSS for rule in rules_in(module) if issubclass(rule, RepositoryRule))


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Return every rule; this imports all of them."""
    modules = (*EVERY_KIND, *(module for kind in KINDS for module in kind.rules), *ACROSS)
    return tuple(rule for module in dict.fromkeys(modules) for rule in rules_in(module))


def _judges(rule: type[Rule], kind: str) -> bool:
    if issubclass(rule, DocumentRule):
        return rule.applies_to(reader_of(kind))
    return issubclass(rule, ReferenceRule) and kind in rule.kinds


def examine(document: Document, rules: Sequence[type[Rule]], schemas: SchemaSet) -> list[Problem]:
    """Return everything that is wrong in one document, in text order, and the rules that could not be run."""
    faults = list(document.faults)
    if document.root is not None:
        faults += schema_faults(document, schemas)
    not_run: dict[str, list[str]] = {}
    found: set[str] = {fault.code for fault in faults}
    for rule in _made(document.kind, tuple(rules)):
        if document.root is None and document.faults and rule.reads_fields:
            continue  # nothing could be read; the reason is among the faults, and no setting can hide it
        unmet = tuple(needed.code() for needed in rule.requires if needed.code() in found) if found else ()
        if unmet:
            not_run.setdefault(unmet[0], []).append(rule.code())
            continue
        made = list(islice(rule.check(document), MOST_OF_A_KIND + 1))
        if len(made) > MOST_OF_A_KIND:
            message = f"there are more than {MOST_OF_A_KIND:,} {rule.code()} findings; the rest are not listed"
            made[-1] = Problem("findings_cut", message, Location.span(made[-1].start, made[-1].start))
        if made:
            found.update(fault.code for fault in made)
            faults += made
    for code, rules_not_run in not_run.items():
        first = next(fault for fault in faults if fault.code == code)
        message = f"not checked: {', '.join(rules_not_run)}, because of {code}"
        faults.append(Problem("rule_not_run", message, Location.span(first.start, first.end)))
    faults.sort(key=lambda fault: (fault.start, fault.end))
    return faults


@cache
def _made(kind: str, rules: tuple[type[Rule], ...]) -> tuple[DocumentRule[Document], ...]:
    """Return the rules about documents of one kind. Rules have no state, so each is created once."""
    reader = reader_of(kind)
    return tuple(rule() for rule in rules if issubclass(rule, DocumentRule) and rule.applies_to(reader))


def schema_faults(document: Document, schemas: SchemaSet) -> Iterator[Problem]:
    """Yield violations of the kind's JSON Schema, each at the line of its field."""
    if document.root is None:
        return
    # A missing section is reported by its rule; of a packet, that is only a warning.
    has_rule = isinstance(document, StructuredDocument) and document.kind != "packet" and not document.is_older
    for violation in schemas.violations(document.schema, document.root.plain()):
        if violation.code == "field_missing" and not violation.location.keys and has_rule:
            continue
        where, outside = _elsewhere(document, violation)
        yield replace(
            violation,
            code="field_elsewhere" if outside else violation.code,
            message=violation.message + where,
            location=Location.span(*span_of(document.root, violation)),
        )


def _elsewhere(document: Document, violation: Problem) -> tuple[str, bool]:
    """Return where a misplaced field is, and whether that is outside its section: in older packets, the signature is
    below the skeleton.
    """
    if violation.code != "field_missing" or not isinstance(document, StructuredDocument):
        return "", False
    from workpacket.rules.structured import elsewhere, line_of_field

    named = _NAMED.match(violation.message)
    key = normal_key(named[1]) if named is not None else ""
    found = line_of_field(document, key, f"{key}_locked") if key else None
    home = document.placed_section(str(violation.location.keys[0])) if violation.location.keys else None
    if found is None or home is None:
        return (elsewhere(document, key) if key else ""), False
    return elsewhere(document, key, f"{key}_locked"), not home.section.line <= found[0] <= home.section.end_line


def span_of(root: Node, violation: Problem) -> tuple[int, int]:
    """Return the position of a violation: an unexpected key, otherwise the value or what contains it."""
    keys = violation.location.keys
    if violation.code == "field_unknown" and keys:
        holder = root.nearest(keys[:-1])
        name = keys[-1]
        if holder.keys and isinstance(name, str) and name in holder.keys:
            return holder.keys[name]
    return root.nearest(keys).span


def across(repository: RepositorySummaries) -> Iterator[Problem]:
    """Yield the findings of the rules that compare documents with one another."""
    for rule in rules_across():
        yield from rule().check(repository)


def wanted_files(summaries: Iterable[tuple[str, str, Mapping[str, object]]]) -> Iterator[tuple[str, bool]]:
    """Yield the files that reference rules need: the path, and whether the text is needed."""
    for kind, _, summary in summaries:
        for rule in _reference_rules(kind):
            yield from rule.wants(summary)


def references(summaries: Iterable[tuple[str, str, Mapping[str, object]]], files: Files) -> Iterator[Problem]:
    """Yield the findings of the rules that follow a document's references."""
    for kind, path, summary in summaries:
        for rule in _reference_rules(kind):
            yield from rule.check(path, summary, files)


@cache
def _reference_rules(kind: str) -> tuple[ReferenceRule, ...]:
    return tuple(rule() for rule in rules_for(kind) if issubclass(rule, ReferenceRule))
