"""The three kinds of rules: about one document, about what it refers to, about all documents together."""

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
    """What is at a path. `source` only where a rule asked for the text."""

    state: Literal["file", "folder", "absent"]
    source: Source | None = None


class Files:
    """File facts by path. A path that was not asked for is a mistake in a rule, not an absent file."""

    def __init__(self, facts: Mapping[str, FileFact]) -> None:
        self._facts = facts

    def __getitem__(self, path: str) -> FileFact:
        return self._facts[path]

    def exists(self, path: str) -> bool:
        return self._facts[path].state != "absent"


D = TypeVar("D", bound=Document)
T = TypeVar("T")

_WORD_START = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def code_of(class_name: str) -> str:
    """`ByteOrderMark` is `byte_order_mark`."""
    return _WORD_START.sub("_", class_name).lower()


class Rule:
    """What all kinds share. A subclass has a docstring of three parts separated by blank lines:

    the title, one phrase; why it matters; and, after the word Remedy, what to do. A class without a remedy is what
    several rules share: it is not run itself.
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
        """A finding at [line, column] of a file, as summaries give it."""
        line, column = place[-2:]
        return Problem(
            self.code(), message, Location(path, line, column), hint, severity=self.severity, confidence=self.confidence
        )

    @classmethod
    def reason(cls) -> Reason:
        """The registry entry, read from the class."""
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
    """Each item whose key an earlier one has, with the first of them."""
    first: dict[Hashable, T] = {}
    for item in items:
        earlier = first.setdefault(key(item), item)
        if earlier is not item:
            yield item, earlier


def out_of_order(items: Iterable[T], rank: Callable[[T], Any]) -> Iterator[tuple[T, T]]:
    """Each item of a lower rank than one before it, with the one of the highest rank so far."""
    highest: T | None = None
    for item in items:
        if highest is not None and rank(item) < rank(highest):
            yield item, highest
        else:
            highest = item


class DocumentRule(Rule, Generic[D]):
    """A demand on one document. It sees nothing but that document, so its verdict is kept by the digest of the bytes.

    It applies to the documents of the class in brackets: `DocumentRule[Stub]`. `kinds` are those among them that it is
    about, empty for all; `except_kinds` those that it is not about. `reads_fields`: it judges what was read, and is not
    run where nothing could be read. `requires`: rules that must find nothing before this one makes sense; if one of
    them did, this rule is not run, and the report says so.
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
        """Whether documents of this class are judged by the rule."""
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
        """A fault about `span`. A repair may change the lines of `span` and no others: else there is none.

        `safe` is said where some repairs of a rule are less safe than the rule itself.
        """
        fix = fix_of(span, edits, safe=self.fix == "safe" if safe is None else safe, title=fix_title)
        return Problem(self.code(), message, Location.span(*span), hint, fix, confidence=self.confidence)


class RepositoryRule(Rule):
    """A demand on documents taken together. It sees their summaries, never their text."""

    family: ClassVar[Family] = "cross-file"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        raise NotImplementedError


class ReferenceRule(Rule):
    """A demand on what one document refers to: paths that must exist, text that must be in another file.

    It says first which files it `wants`; they are looked at, and only then is it asked to `check`.
    """

    kinds: ClassVar[tuple[str, ...]]

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        """The files to look at, and for each whether its text is needed too."""
        raise NotImplementedError

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        raise NotImplementedError
