"""Rules about the dates of all documents, and about the keys of YAML and JSON documents, which keep unknown keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date as day_of
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

from workpacket.documents.document import Document
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.rules.structured import PLACEHOLDER
from workpacket.text.formats import date, date_time
from workpacket.text.source import Node

_LIKE_A_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}\Z")
_BEGINS_AS_A_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}(?=\D|\Z)")
# With dots, the day comes first everywhere; with slashes, the order is unknown.
_WITH_DOTS = lazy_pattern(r"(?a)(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})\Z")
_NOT_APPLICABLE = lazy_pattern(r"(?i:n/?a|none|not applicable)\b")
# The earliest and latest plausible years: work packets are not older, and plans do not reach further.
FIRST_YEAR, LAST_YEAR = 1990, 2050


class DatedRule(DocumentRule[Document]):
    """A rule about documents whose reader lists the fields that contain dates or times."""

    @classmethod
    def applies_to(cls, reader: type[Document]) -> bool:
        return reader.dates is not Document.dates or reader.days is not Document.days


class DateOnly(DatedRule):
    """Date without a time of day

    Two events on the same day cannot be ordered.

    Remedy: write it in RFC 3339 format, with a time and a time zone, such as 2026-01-31T00:00:00Z.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "unsafe"

    def check(self, document: Document) -> Iterator[Problem]:
        for name, text in document.dates():
            if not date(text.value):
                run = document.run(text)
                edits = [run.followed_by("T00:00:00Z")] if run is not None else []
                message = f"{name} has no time of day"
                yield self.fault(text.span, message, hint=f"{text.value}T00:00:00Z", edits=edits)


class DateMalformed(DatedRule):
    """Date that does not exist or is not in RFC 3339 format

    Sorting, expiry and audits that use this date give wrong results.

    Remedy: write it in RFC 3339 format, with a time and a time zone, such as 2026-01-31T00:00:00Z.
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

    The year is probably a typo, so the date is sorted before or after all others.

    Remedy: correct the year.
    """

    severity = "warning"

    def check(self, document: Document) -> Iterator[Problem]:
        for name, text in (*document.dates(), *document.days()):
            year = text.value[:4]
            if year.isdigit() and text.value[4:5] == "-" and not FIRST_YEAR <= int(year) <= LAST_YEAR:
                yield self.fault(text.span, f"{name} is in the year {int(year)}")


_MIDNIGHT = "T00:00:00"


class DateBackwards(DocumentRule[Document]):
    """Date earlier than the one before it

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
                    message = f"{name} is dated {second.value}, before {earlier}, dated {first.value}"
                    yield self.fault(second.span, message)
                    break

    def _is_before(self, later: str, earlier: str) -> bool:
        """Whether a date is before one listed earlier in every time zone; times in the same zone are compared."""
        if not date_time(later) and not date_time(earlier) and later[-1:] == earlier[-1:] == "Z":
            # Midnight means that only the day was given.
            return (
                later[:10] < earlier[:10] if _MIDNIGHT in (later[10:19], earlier[10:19]) else later[:19] < earlier[:19]
            )
        return (day_of.fromisoformat(earlier[:10]) - day_of.fromisoformat(later[:10])).days > 1


# Where mappings with known keys are, and the keys; `*` is every key or item.
_KNOWN: Final = {
    "batch_checkpoint": {
        "": "checkpoint",
        "checkpoint": "scope_name spec_name scope_path spec_path branch base timestamp updated_at last_batch"
        " last_commit tasks next_batch deferred_issues review_config phase_cursor incomplete_stages",
        "checkpoint.next_batch": "number title tasks parallel",
        "checkpoint.deferred_issues.*": "batch severity description location",
    },
    "batch_tasks": {"tasks.*": "id content status active_form activeForm depends_on files file evidence"},
    "orchestrator_gates": {"": "gate_logs", "gate_logs.*": "wpId type timestamp signature"},
    "validator_gates": {
        "": "validation_sessions archived_sessions sessions gates",
        "validation_sessions.*": "wpId verdict status gates",
        "validation_sessions.*.gates.*": "gate timestamp",
    },
    "commit_sidecar": {"": "schema_version sha run_id milestone_index milestone_title created_at tier"},
    "role_progress": {"": "feature team agent phase status last_action updated"},
    "work_package": {"": "work_package_id title lane dependencies subtasks owned_files history execution_mode"},
}
_SHORTEST = 5
_MOST_KEYS = 200


class KeyMisspelled(DocumentRule[Document]):
    """Key that is nearly the name of a missing field

    Unknown keys are kept but ignored, so the field has no value.

    Remedy: correct the key.
    """

    kinds = tuple(_KNOWN)
    severity = "info"
    strict_severity = "warning"

    def check(self, document: Document) -> Iterator[Problem]:
        if document.root is None:
            return
        for path, names in _KNOWN[document.kind].items():
            known = _names(names)
            for node in _at(document.root, path.split(".") if path else []):
                if known <= node.mapping.keys():
                    continue
                for key in [*node.mapping][:_MOST_KEYS]:
                    meant = _meant(key, known - node.mapping.keys()) if key not in known else ""
                    if meant and node.keys is not None and key in node.keys:
                        yield self.fault(node.keys[key], f"the key {key!r} is unknown, and {meant} is missing")


@cache
def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _at(node: Node, path: list[str]) -> Iterator[Node]:
    if not path:
        if node.keys is not None:
            yield node
        return
    first, rest = path[0], path[1:]
    below = [*node.mapping.values(), *node.items] if first == "*" else [node.get(first)]
    for one in below:
        if one is not None:
            yield from _at(one, rest)


def _meant(key: str, absent: frozenset[str]) -> str:
    """Return the field whose name differs from the key in one or two letters, or in hyphens and capitalization."""
    plain = _plain(key)
    for name in sorted(absent):
        other = _plain(name)
        if abs(len(plain) - len(other)) > 1:
            continue
        if plain == other or (min(len(plain), len(other)) >= _SHORTEST and is_near(plain, other)):
            return name
    return ""


@lru_cache(maxsize=1024)
def _plain(key: str) -> str:
    return "".join(filter(str.isalnum, key)).casefold()


def is_near(one: str, other: str) -> bool:
    """Whether one word becomes the other by adding, removing or changing one letter, or by swapping two."""
    if abs(len(one) - len(other)) > 1:
        return False
    begin = 0
    while begin < min(len(one), len(other)) and one[begin] == other[begin]:
        begin += 1
    rest, more = one[begin:], other[begin:]
    swapped = rest[:2] == more[:2][::-1] and rest[2:] == more[2:] and len(rest) > 1
    return swapped or rest[1:] == more[1:] or rest == more[1:] or rest[1:] == more
