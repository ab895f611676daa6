"""Each format: what it takes, what it says about the rest, and that the patterns for editors agree with it."""

from __future__ import annotations

import calendar
import datetime as dt
import json
import re
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.text.formats import FORMATS, MAX_PATH
from workpacket.text.schema_loading import translate

SHARED = json.loads((Path(__file__).parents[2] / "schemas" / "common.schema.json").read_bytes())["$defs"]
HEX40, HEX64 = "0123456789abcdef" * 2 + "01234567", "0123456789abcdef" * 4

TAKEN = {
    "date": ["2026-01-31", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31"],
    "date-time": [
        "2026-01-31T09:30:00Z",
        "2026-01-31t09:30:00z",
        "2026-01-31T09:30:00.123456789+14:00",
        "2026-01-31T09:30:00-00:00",
        "1998-12-31T23:59:60Z",
        "1998-12-31T23:59:60.999Z",
        "1998-12-31T15:59:60-08:00",
        "1999-01-01T08:59:60+09:00",
        "2012-06-30T23:59:60Z",
    ],
    "legacy-signature": ["mara310120260930", "x290220240000"],
    "uuid": [
        "018f3b1e-7c2a-7d4e-9b1f-2a3c4d5e6f70",
        "00000000-0000-0000-0000-000000000000",
        "ABCDEF01-2345-6789-abcd-ef0123456789",
    ],
    "uuid4": ["6f1e2d3c-4b5a-4c6d-8e7f-0a1b2c3d4e5f", "6F1E2D3C-4B5A-4C6D-BE7F-0A1B2C3D4E5F"],
    "uuid7": ["018f3b1e-7c2a-7d4e-9b1f-2a3c4d5e6f70"],
    "sha1": [HEX40],
    "sha256": [HEX64],
    "git-sha": ["0123456", HEX40, HEX64],
    "work-packet-id": ["WP-1-Parser", "WP-1-Parser-v2", "WP-KERNEL-Log"],
    "work-package-id": ["WP07", "WP123"],
    "scoped-work-package-id": ["012-parser--WP07"],
    "repository-path": [
        "a",
        "a/b.md",
        ".GOV/x y.md",
        "./a",
        "a//b",
        "a/..b/c..",
        "src/**/*.rs",
        "~a",
        "ä",
        "x" * MAX_PATH,
        "docs/",
    ],
}

REFUSED = {
    "date": [
        ("", "is not written YYYY-MM-DD"),
        ("2026-1-31", "is not written YYYY-MM-DD"),
        ("2026-01-31\n", "is not written YYYY-MM-DD"),
        ("٢٠٢٦-01-31", "is not written YYYY-MM-DD"),
        ("2026-02-30", "is not a valid date: day 30 of month 02 of 2026"),
        ("2023-02-29", "is not a valid date: day 29 of month 02 of 2023"),
        ("1900-02-29", "is not a valid date: day 29 of month 02 of 1900"),
        ("2026-13-01", "is not a valid date: day 01 of month 13 of 2026"),
        ("2026-00-01", "is not a valid date: day 01 of month 00 of 2026"),
        ("2026-01-00", "is not a valid date: day 00 of month 01 of 2026"),
        ("0000-01-01", "is not a valid date: day 01 of month 01 of 0000"),
    ],
    "date-time": [
        ("2026-01-31", "has no time of day"),
        ("2026-01-31T09:30:00", "has no time zone; write UTC as Z"),
        ("2026-01-31 09:30:00Z", "has a space instead of T"),
        ("2026-01-31T09:30Z", "is not in the form YYYY-MM-DDThh:mm:ssZ"),
        ("2026-01-31T09:30:00Z\n", "is not in the form YYYY-MM-DDThh:mm:ssZ"),
        ("2026-01-31T09:30:00.Z", "is not in the form YYYY-MM-DDThh:mm:ssZ"),
        ("yesterday", "is not in the form YYYY-MM-DDThh:mm:ssZ"),
        ("2026-02-30T09:30:00Z", "is not a valid date: day 30 of month 02 of 2026"),
        ("2026-01-31T24:00:00Z", "is not a valid time: 24:00"),
        ("2026-01-31T09:60:00Z", "is not a valid time: 09:60"),
        ("2026-01-31T09:30:00+24:00", "has an invalid time zone: +24:00"),
        ("2026-01-31T09:30:00-09:60", "has an invalid time zone: -09:60"),
        ("2026-01-31T09:30:61Z", "contains a second that does not exist"),
        ("1998-12-31T23:58:60Z", "contains a second that does not exist"),
        ("1998-12-31T22:59:60Z", "contains a second that does not exist"),
        ("1998-12-30T23:59:60Z", "contains a second that does not exist"),
        ("1998-12-31T23:59:60-08:00", "contains a second that does not exist"),
        ("1998-12-31T23:59:61Z", "contains a second that does not exist"),
    ],
    "legacy-signature": [
        ("Mara310120260930", "is not a lower-case name followed by DDMMYYYYHHMM"),
        ("310120260930", "is not a lower-case name followed by DDMMYYYYHHMM"),
        ("mara31012026093", "is not a lower-case name followed by DDMMYYYYHHMM"),
        ("mara3101202609300", "is not a lower-case name followed by DDMMYYYYHHMM"),
        ("mara310220260930", "is not a valid date: day 31 of month 02 of 2026"),
        ("mara310120262400", "is not a valid time: 24:00"),
    ],
    "uuid": [("018f3b1e7c2a7d4e9b1f2a3c4d5e6f70", "is not five groups of hexadecimal digits, 8-4-4-4-12")],
    "uuid4": [
        ("018f3b1e-7c2a-7d4e-9b1f-2a3c4d5e6f70", "is not a UUID of version 4"),
        ("6f1e2d3c-4b5a-4c6d-0e7f-0a1b2c3d4e5f", "is not a UUID of version 4"),
        ("x", "is not five groups of hexadecimal digits, 8-4-4-4-12"),
    ],
    "uuid7": [("6f1e2d3c-4b5a-4c6d-8e7f-0a1b2c3d4e5f", "is not a UUID of version 7")],
    "sha1": [
        (HEX40[1:], "has 39 digits, not 40"),
        (HEX40.upper(), "contains characters other than lower-case hexadecimal digits"),
        ("", "contains characters other than lower-case hexadecimal digits"),
        (HEX40 + "\n", "contains characters other than lower-case hexadecimal digits"),
    ],
    "sha256": [(HEX40, "has 40 digits, not 64")],
    "git-sha": [("012345", "has 6 digits, not 7 to 64"), (HEX64 + "0", "has 65 digits, not 7 to 64")],
    "work-packet-id": [
        ("WP07", "is the id of a work package, not of a work packet"),
        ("WP-1-NUL", "contains a name that Windows reserves for a device"),
        ("WP-1-Parser ", "has leading or trailing whitespace"),
    ],
    "work-package-id": [
        ("WP-1-Parser", "is not of the form `WP07`"),
        ("012-parser--WP07", "is not of the form `WP07`"),
    ],
    "scoped-work-package-id": [("WP07", "is not of the form `<mission>--WP07`")],
    "repository-path": [
        ("", "is empty"),
        ("x" * (MAX_PATH + 1), "has 241 characters; the limit for a path is 240"),
        ("/etc/passwd", "is absolute; paths must be relative to the root of the repository"),
        ("~/x", "is absolute; paths must be relative to the root of the repository"),
        ("~", "is absolute; paths must be relative to the root of the repository"),
        ("C:/x", "is absolute; paths must be relative to the root of the repository"),
        ("../x", "leaves the repository through '..'"),
        ("a/../../x", "leaves the repository through '..'"),
        ("a/..", "leaves the repository through '..'"),
        ("a\\b", "contains a backslash; use '/' between the parts of a path"),
        ("a\x00b", "contains an unprintable character"),
        ("a\nb", "contains an unprintable character"),
        ("a\ud800b", "contains an unprintable character"),
    ],
}


def test_every_format_has_cases_of_both_kinds() -> None:
    assert TAKEN.keys() == REFUSED.keys() == FORMATS.keys()


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TAKEN.items() for text in texts])
def test_a_text_of_the_format_is_taken(name: str, text: str) -> None:
    assert FORMATS[name](text) == ""


@pytest.mark.parametrize(
    ("name", "text", "complaint"), [(name, *case) for name, cases in REFUSED.items() for case in cases]
)
def test_a_text_of_another_form_is_refused_with_the_reason(name: str, text: str, complaint: str) -> None:
    assert FORMATS[name](text) == complaint


@given(st.sampled_from(sorted(FORMATS)), st.text())
def test_a_check_answers_any_text(name: str, text: str) -> None:
    assert isinstance(FORMATS[name](text), str)


@given(st.datetimes(timezones=st.sampled_from([dt.timezone(dt.timedelta(minutes=m)) for m in (0, 90, -720)])))
def test_every_moment_is_a_date_time(moment: dt.datetime) -> None:
    assert FORMATS["date-time"](moment.isoformat()) == ""


@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
def test_a_date_is_taken_exactly_if_the_calendar_has_it(year: int, month: int, day: int) -> None:
    real = year > 0 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]

    assert (FORMATS["date"](f"{year:04}-{month:02}-{day:02}") == "") is real


@given(st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2100, 1, 1)), st.integers(-23 * 60, 23 * 60))
def test_a_leap_second_ends_a_month_of_utc_and_nothing_else(local: dt.datetime, offset: int) -> None:
    sign, size = "-" if offset < 0 else "+", abs(offset)
    text = f"{local:%Y-%m-%dT%H:%M}:60{sign}{size // 60:02}:{size % 60:02}"
    after = local.replace(second=0, microsecond=0) - dt.timedelta(minutes=offset - 1)

    assert (FORMATS["date-time"](text) == "") is (after.day == 1 and (after.hour, after.minute) == (0, 0))


@given(st.dates(dt.date(1971, 1, 1)), st.integers(-23 * 60, 23 * 60))
def test_the_end_of_a_month_may_have_a_leap_second_in_every_time_zone(day: dt.date, offset: int) -> None:
    first = dt.datetime(day.year, day.month, 1)
    local = first - dt.timedelta(minutes=1) + dt.timedelta(minutes=offset)
    sign, size = "-" if offset < 0 else "+", abs(offset)

    assert FORMATS["date-time"](f"{local:%Y-%m-%dT%H:%M}:60{sign}{size // 60:02}:{size % 60:02}") == ""


@given(st.uuids(version=4))
def test_a_random_uuid_is_a_uuid4_and_no_uuid7(value: uuid.UUID) -> None:
    assert FORMATS["uuid"](str(value)) == FORMATS["uuid4"](str(value)) == ""
    assert FORMATS["uuid7"](str(value))


def with_format_and_pattern() -> list[tuple[str, str, str, int]]:
    return [
        (name, definition["format"], definition["pattern"], definition["maxLength"])
        for name, definition in SHARED.items()
        if "format" in definition and "pattern" in definition
    ]


@pytest.mark.parametrize(("name", "format_name", "pattern", "longest"), with_format_and_pattern())
def test_the_pattern_for_editors_takes_whatever_the_format_takes(
    name: str, format_name: str, pattern: str, longest: int
) -> None:
    for text in TAKEN[format_name]:
        assert re.search(translate(pattern), text)
        assert len(text) <= longest


# What a pattern cannot know: the calendar, the clock, and what Windows makes of a name.
BEYOND_PATTERNS = re.compile(
    r"is not a valid (?:date|time): |has an invalid time zone: |names a |contains a (?:second|name) that"
    r"|contains an unprintable character|has \d+ characters"
)


@pytest.mark.parametrize(("name", "format_name", "pattern", "longest"), with_format_and_pattern())
def test_the_pattern_for_editors_refuses_what_the_format_refuses(
    name: str, format_name: str, pattern: str, longest: int
) -> None:
    for text, complaint in REFUSED[format_name]:
        assert bool(re.search(translate(pattern), text)) <= bool(BEYOND_PATTERNS.match(complaint)), text


@given(st.data(), st.sampled_from(with_format_and_pattern()))
def test_a_text_made_from_the_pattern_is_of_the_format_but_for_what_a_pattern_cannot_know(
    data: st.DataObject, definition: tuple[str, str, str, int]
) -> None:
    _, format_name, pattern, longest = definition
    text = data.draw(st.from_regex(translate(pattern)).filter(lambda text: len(text) <= longest))

    complaint = FORMATS[format_name](text)

    assert complaint == "" or BEYOND_PATTERNS.match(complaint)
