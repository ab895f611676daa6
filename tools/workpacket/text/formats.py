"""The meaning of `format` in our schemas: each name has its own check, which says what is wrong.

`jsonschema` leaves most formats unchecked unless further packages are installed, and no one would notice an unchecked
format. The names in `FORMATS` are therefore the only ones allowed; the schema loader refuses any other.

A check takes a string and returns a complaint (a clause whose subject is the string), or "" if the string is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import InvalidId, WorkPacketId

FormatCheck = Callable[[str], str]

MAX_PATH = 240

_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
_ZONE = r"(?:[Zz]|(?P<zone>[+-][0-9]{2}:[0-9]{2}))"
_DATE_ONLY = lazy_pattern(rf"{_DATE}\Z")
_DATE_TIME = lazy_pattern(rf"{_DATE}[Tt]{_CLOCK}:(?P<second>[0-9]{{2}})(?:\.[0-9]+)?{_ZONE}\Z")
_LEGACY_SIGNATURE = lazy_pattern(
    r"[a-z]+(?P<day>[0-9]{2})(?P<month>[0-9]{2})(?P<year>[0-9]{4})(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})\Z"
)
_UUID = lazy_pattern(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
_LOWER_HEX = lazy_pattern(r"[0-9a-f]+\Z")
_DRIVE = lazy_pattern(r"[A-Za-z]:")
_DOUBTFUL_PATH = lazy_pattern(r"\A(?:[/~]|[A-Za-z]:|\Z)|\.\.|[\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MINUTES_A_DAY = 24 * 60


def date(text: str) -> str:
    """Check a date in RFC 3339 form: `2026-01-31`. Years begin at 0001, because calendar libraries cannot compute with
    earlier ones.
    """
    match = _DATE_ONLY.match(text)
    return _calendar(match) if match else "is not written YYYY-MM-DD"


def date_time(text: str) -> str:
    """Check a time in RFC 3339 form: `2026-01-31T09:30:00Z`. A second 60 is allowed only at the end of a month in
    UTC."""
    match = _DATE_TIME.match(text)
    if match is None:
        return _why_no_date_time(text)
    if text[-1] == "Z" and text[11:13] < "24" and _in_the_calendar(text):
        return ""  # the usual form, which every event of a log contains
    complaint = _calendar(match) or _clock(match)
    if complaint or match["second"] < "60":
        return complaint
    return "" if match["second"] == "60" and _ends_a_month_of_utc(match) else "contains a second that does not exist"


def legacy_signature(text: str) -> str:
    """Check a user name followed by the local minute of signing, DDMMYYYYHHMM: `mara310120260930`."""
    match = _LEGACY_SIGNATURE.match(text)
    return _calendar(match) or _clock(match) if match else "is not a lower-case name followed by DDMMYYYYHHMM"


def uuid(text: str) -> str:
    """Check a UUID of any version, in hexadecimal groups of 8-4-4-4-12."""
    return "" if _UUID.match(text) else "is not five groups of hexadecimal digits, 8-4-4-4-12"


def uuid4(text: str) -> str:
    """Check a random UUID."""
    return uuid(text) or _uuid_version(text, "4")


def uuid7(text: str) -> str:
    """Check a version 7 UUID, which begins with its time."""
    return uuid(text) or _uuid_version(text, "7")


def sha1(text: str) -> str:
    """Check a SHA-1 digest: 40 lower-case hexadecimal digits."""
    return _hexadecimal(text, 40, 40)


def sha256(text: str) -> str:
    """Check a SHA-256 digest: 64 lower-case hexadecimal digits."""
    return _hexadecimal(text, 64, 64)


def git_sha(text: str) -> str:
    """Check a git object name, full or abbreviated: 7 to 64 lower-case hexadecimal digits."""
    return _hexadecimal(text, 7, 64)


def work_packet_id(text: str) -> str:
    """Check the id of a work packet, with or without a revision."""
    return _id_of_kind(text, "packet", "is the id of a work package, not of a work packet")


def work_package_id(text: str) -> str:
    """Check the short id of a work package within its mission: `WP07`."""
    return _id_of_kind(text, "short", "is not of the form `WP07`")


def scoped_work_package_id(text: str) -> str:
    """Check the id of a work package, including its mission: `012-parser--WP07`."""
    return _id_of_kind(text, "scoped", "is not of the form `<mission>--WP07`")


def repository_path(text: str) -> str:
    """Check a path below the root of the repository, with '/' between its parts."""
    if len(text) <= MAX_PATH and not _DOUBTFUL_PATH.search(text):
        return ""
    parts = text.split("/")
    faults = (
        (not text, "is empty"),
        (len(text) > MAX_PATH, f"has {len(text)} characters; the limit for a path is {MAX_PATH}"),
        (_UNPRINTABLE.search(text), "contains an unprintable character"),
        ("\\" in text, "contains a backslash; use '/' between the parts of a path"),
        (
            parts[0] in {"", "~"} or _DRIVE.match(text),
            "is absolute; paths must be relative to the root of the repository",
        ),
        (".." in parts, "leaves the repository through '..'"),
    )
    return next((complaint for wrong, complaint in faults if wrong), "")


FORMATS: Mapping[str, FormatCheck] = {
    "date": date,
    "date-time": date_time,
    "git-sha": git_sha,
    "legacy-signature": legacy_signature,
    "repository-path": repository_path,
    "scoped-work-package-id": scoped_work_package_id,
    "sha1": sha1,
    "sha256": sha256,
    "uuid": uuid,
    "uuid4": uuid4,
    "uuid7": uuid7,
    "work-package-id": work_package_id,
    "work-packet-id": work_packet_id,
}


def _month_length(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_LENGTHS[month - 1]


def _calendar(match: re.Match[str]) -> str:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if year and 1 <= month <= 12 and 1 <= day <= _month_length(year, month):
        return ""
    return f"is not a valid date: day {match['day']} of month {match['month']} of {match['year']}"


def _clock(match: re.Match[str]) -> str:
    if match["hour"] > "23" or match["minute"] > "59":
        return f"is not a valid time: {match['hour']}:{match['minute']}"
    zone = match.groupdict().get("zone")
    if zone and (zone[1:3] > "23" or zone[4:] > "59"):
        return f"has an invalid time zone: {zone}"
    return ""


def _ends_a_month_of_utc(match: re.Match[str]) -> bool:
    """Whether the minute is the last one of a month in UTC, the only possible time for a leap second (RFC 3339,
    5.7)."""
    zone = match["zone"] or "+00:00"
    offset = int(zone[1:3]) * 60 + int(zone[4:])
    local = int(match["hour"]) * 60 + int(match["minute"])
    days, minute = divmod(local + offset if zone[0] == "-" else local - offset, _MINUTES_A_DAY)
    if minute != _MINUTES_A_DAY - 1:
        return False
    day = int(match["day"]) + days
    return day in {0, _month_length(int(match["year"]), int(match["month"]))}


def _in_the_calendar(text: str) -> bool:
    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _why_no_date_time(text: str) -> str:
    if _DATE_ONLY.match(text):
        return "has no time of day"
    if _DATE_TIME.match(text + "Z"):
        return "has no time zone; write UTC as Z"
    if _DATE_TIME.match(text.replace(" ", "T", 1)):
        return "has a space instead of T"
    return "is not in the form YYYY-MM-DDThh:mm:ssZ"


def _uuid_version(text: str, version: str) -> str:
    return "" if text[14] == version and text[19] in "89abAB" else f"is not a UUID of version {version}"


def _hexadecimal(text: str, least: int, most: int) -> str:
    if not _LOWER_HEX.match(text):
        return "contains characters other than lower-case hexadecimal digits"
    wanted = str(least) if least == most else f"{least} to {most}"
    return "" if least <= len(text) <= most else f"has {len(text)} digits, not {wanted}"


def _id_of_kind(text: str, kind: str, otherwise: str) -> str:
    try:
        return "" if WorkPacketId.parse(text).kind == kind else otherwise
    except InvalidId as invalid:
        return str(invalid)
