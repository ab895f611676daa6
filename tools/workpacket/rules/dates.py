"""Rules about dates: their form, their year, and their order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date as day_of
from itertools import pairwise

from workpacket.documents.document import Document
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.rules.structured import PLACEHOLDER
from workpacket.text.formats import date, date_time

_LIKE_A_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}\Z")
_BEGINS_AS_A_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}(?=\D|\Z)")
# With dots, the day comes first everywhere; with slashes, the order is unknown.
_WITH_DOTS = lazy_pattern(r"(?a)(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})\Z")
_NOT_APPLICABLE = lazy_pattern(r"(?i:n/?a|none|not applicable)\b")
# The earliest and latest plausible years: work packets are not older, and plans do not reach further.
FIRST_YEAR, LAST_YEAR = 1990, 2050


class DatedRule(DocumentRule[Document]):
    """A rule about documents whose reader lists the fields that contain a date or time."""

    @classmethod
    def applies_to(cls, reader: type[Document]) -> bool:
        return reader.dates is not Document.dates or reader.days is not Document.days


class DateOnly(DatedRule):
    """Date without a time of day

    Two events on the same day cannot be ordered.

    Remedy: write it as RFC 3339 with time and zone, such as 2026-01-31T00:00:00Z.
    """

    severity = "warning"
    fix = "unsafe"

    def check(self, document: Document) -> Iterator[Problem]:
        for name, text in document.dates():
            if not date(text.value):
                run = document.run(text)
                edits = [run.followed_by("T00:00:00Z")] if run is not None else []
                message = f"{name} has no time of day"
                yield self.fault(text.span, message, hint=f"{text.value}T00:00:00Z", edits=edits)


class DateMalformed(DatedRule):
    """Date that does not exist or is not RFC 3339

    Sorting, expiry and audits that use this date go wrong.

    Remedy: write it as RFC 3339 with time and zone, such as 2026-01-31T00:00:00Z.
    """

    def check(self, document: Document) -> Iterator[Problem]:
        for name, text in document.dates():
            value = text.value
            # A field for something that happens only in some packets may say that it did not happen.
            if name == "ORCHESTRATION_STARTED_AT_UTC" and _NOT_APPLICABLE.match(value):
                continue
            if value and date(value) and date_time(value) and not PLACEHOLDER.match(value):
                why = date(value) if _LIKE_A_DATE.match(value) else date_time(value)
                message = f"{name} {value!r} {why}"
                yield self.fault(text.span, message, hint=_how_to_write(value))
        for name, text in document.days():
            if _BEGINS_AS_A_DATE.match(text.value) and (problem := date(text.value[:10])):
                yield self.fault(text.span, f"{name} {text.value!r} {problem}")


def _how_to_write(value: str) -> str:
    match = _WITH_DOTS.match(value)
    day = f"{match['year']}-{match['month']:0>2}-{match['day']:0>2}" if match else ""
    if day and not date(day):
        return f"write it as {day}T00:00:00Z"
    return "write the intended date, in the form 2026-01-31T00:00:00Z"


class DateImplausible(DatedRule):
    """Implausible year in a date

    The year is probably a typo, and the date sorts before or after all others.

    Remedy: correct the year.
    """

    severity = "warning"

    def check(self, document: Document) -> Iterator[Problem]:
        for name, text in (*document.dates(), *document.days()):
            year = text.value[:4]
            if year.isdigit() and text.value[4:5] == "-" and not FIRST_YEAR <= int(year) <= LAST_YEAR:
                yield self.fault(text.span, f"{name} is in the year {int(year)}")


class DateBackwards(DocumentRule[Document]):
    """Date before an earlier one

    The entry was added later with a wrong date, or copied from another document.

    Remedy: correct the date.
    """

    severity = "warning"

    @classmethod
    def applies_to(cls, reader: type[Document]) -> bool:
        return reader.sequences is not Document.sequences

    def check(self, document: Document) -> Iterator[Problem]:
        for sequence in document.sequences():
            known = [(name, text) for name, text in sequence if not date(text.value[:10])]
            days = [day_of.fromisoformat(text.value[:10]) for _, text in known]
            if len(days) > 2 and days == sorted(days, reverse=True):
                continue  # the newest entry comes first
            for (earlier, first), (name, second) in pairwise(known):
                if self._is_before(second.value, first.value):
                    message = f"{name} is dated {second.value}, before {earlier} of {first.value}"
                    yield self.fault(second.span, message)
                    break

    def _is_before(self, later: str, earlier: str) -> bool:
        """Whether a date is before an earlier one in every time zone; times with the same zone are compared."""
        if not date_time(later) and not date_time(earlier) and later[-1:] == earlier[-1:] == "Z":
            return later[:19] < earlier[:19]
        return (day_of.fromisoformat(earlier[:10]) - day_of.fromisoformat(later[:10])).days > 1
