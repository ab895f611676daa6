"""The three kinds of rules: about one document, about its references, about all documents together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin

from workpacket.documents.document import Document
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.reasons import Family, Reason, explanation_and_remedy
from workpacket.problem import Confidence, Location, Problem, Severity
from workpacket.text.edits import Replacement, fix_of
from workpacket.text.source import Source
from workpacket.value import Value

if TYPE_CHECKING:
    from workpacket.rules.repository import RepositorySummaries


class FileFact(Value):
    """The file at a path. `source` is set only if a rule asked for the text."""

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
    and, after the word Remedy, what to do. A class without a remedy is only a base of other rules, and is not run.
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
        """Return the reason made from the class, for the catalogue."""
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
    """Yield each item with the same key as an earlier one, together with the first of them."""
    first: dict[Hashable, T] = {}
    for item in items:
        earlier = first.setdefault(key(item), item)
        if earlier is not item:
            yield item, earlier


def first_lines(numbers: Sequence[int]) -> str:
    """Return the first of the lines of a fault that repeats: `lines 3, 9, 12 and 4 more`."""
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

    It applies to the documents of the class in brackets: `DocumentRule[Stub]`. `kinds` limits it to some of them, empty
    for all; `except_kinds` excludes some. `reads_fields`: the rule judges values, and is not run if the document could
    not be read. `requires`: rules that must find nothing before this one makes sense; if one of them finds something,
    this rule is not run, and the report says so.
    """

    about: ClassVar[type[Document]] = Document
    kinds: ClassVar[tuple[str, ...]] = ()
    except_kinds: ClassVar[tuple[str, ...]] = ()
    reads_fields: ClassVar[bool] = True
    requires: ClassVar[tuple[type[Rule], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is DocumentRule:
                (cls.about,) = get_args(base)

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
        """Return a fault about `span`. A repair may change only the lines of `span`; otherwise it is omitted.

        `safe` is passed if some repairs of a rule are less safe than the others.
        """
        fix = fix_of(span, edits, safe=self.fix == "safe" if safe is None else safe, title=fix_title)
        return Problem(self.code(), message, Location.span(*span), hint, fix, confidence=self.confidence)


class RepositoryRule(Rule):
    """A rule about documents taken together. It sees their summaries, never their text."""

    family: ClassVar[Family] = "cross-file"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        raise NotImplementedError


class ReferenceRule(Rule):
    """A rule about what one document refers to: paths that must exist, text that must be in another file.

    `wants` lists the files that the rule needs; they are read, and then `check` is called.
    """

    kinds: ClassVar[tuple[str, ...]]

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        """Yield the files to look up, and for each whether its text is needed too."""
        raise NotImplementedError

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        raise NotImplementedError
