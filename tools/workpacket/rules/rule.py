"""The three kinds of rules: about one document, about what it refers to, about all documents together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from workpacket.documents.document import Document
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.reasons import Family, Reason
from workpacket.problem import Confidence, Location, Problem, Severity
from workpacket.rules.files import Files
from workpacket.text.edits import Replacement, fix_of

if TYPE_CHECKING:
    from workpacket.rules.repository import RepositorySummaries

D = TypeVar("D", bound=Document)

_WORD_START = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def code_of(class_name: str) -> str:
    """`ByteOrderMark` is `byte_order_mark`."""
    return _WORD_START.sub("_", class_name).lower()


class Rule:
    """What all kinds share. A subclass has a docstring of three parts separated by blank lines:

    the title, one phrase; why it matters; and, after `Remedy:`, what to do.
    """

    family: ClassVar[Family] = "document"
    severity: ClassVar[Severity] = "error"
    strict_severity: ClassVar[Severity] = "error"
    fix: ClassVar[Literal["none", "safe", "unsafe"]] = "none"
    confidence: ClassVar[Confidence] = "certain"

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
        lines = [line.strip() for line in (cls.__doc__ or "").strip().splitlines()]
        title, _, rest = "\n".join(lines).partition("\n\n")
        explanation, _, remedy = rest.partition("Remedy:")
        return Reason(
            code=cls.code(),
            title=" ".join(title.split()).rstrip("."),
            explanation=" ".join(explanation.split()),
            remedy=" ".join(remedy.split()),
            family=cls.family,
            severity=cls.severity,
            strict_severity=cls.strict_severity,
            fix=cls.fix,
        )


class DocumentRule(Rule, Generic[D]):
    """A demand on one document. It sees nothing but that document, so its verdict is kept by the digest of the bytes.

    `kinds`: the kinds it applies to; empty means every kind. A rule about a class of documents says so in `applies_to`.
    `reads_fields`: it judges what was read, and is not run where nothing could be read. `requires`: rules that must
    find nothing before this one makes sense; if one of them did, this rule is not run, and the report says so.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    reads_fields: ClassVar[bool] = True
    requires: ClassVar[tuple[type[Rule], ...]] = ()

    @classmethod
    def applies_to(cls, reader: type[Document]) -> bool:
        """Whether documents of this class are judged by the rule."""
        return not cls.kinds or reader.kind in cls.kinds

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
    """A demand on what one document refers to: paths that must exist, text that must stand in another file.

    It says first which files it `wants`; they are looked at, and only then is it asked to `check`.
    """

    kinds: ClassVar[tuple[str, ...]]

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        """The files to look at, and for each whether its text is needed too."""
        raise NotImplementedError

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        raise NotImplementedError
