"""One instant has one text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.approvals.fields import read_instant, write_instant


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_written_is_read(instant: datetime) -> None:
    assert read_instant(write_instant(instant)) == instant.replace(microsecond=0)


def test_another_zone_is_written_in_utc() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    assert write_instant(datetime(2026, 1, 1, 3, 0, 59, 999_999, zone)) == "2025-12-31T21:30:59Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T12:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T12:00:60Z",
        "2026-01-01T12:00:00",
        "2026-01-01T12:00:00z",
        "2026-01-01 12:00:00Z",
        "2026-01-01T12:00:00.0Z",
        "2026-01-01T12:00:00+00:00",
        "2026-01-01T12:00:00Z\n",
        "0000-01-01T12:00:00Z",
        "٢٠٢٦-01-01T12:00:00Z",
        "",
    ],
)
def test_every_other_text_is_none(text: str) -> None:
    assert read_instant(text) is None
