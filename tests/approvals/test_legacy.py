"""The old tokens: what can be checked of a name and a date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from workpacket.approvals.decide import LegacyToken, judge_token, read_token
from workpacket.approvals.facts import LegacyUse
from workpacket.problem import Problem
from workpacket.value import replace

RECORDED = datetime(2026, 1, 31, 12, tzinfo=UTC)
USE = LegacyUse("ana310120261200", "WP-1-A", "activation", RECORDED, RECORDED - timedelta(hours=1))
NOW = RECORDED + timedelta(days=1)
MINUTE = timedelta(minutes=1)


def codes(use: LegacyUse, *others: LegacyUse, now: datetime = NOW) -> list[str]:
    return [refusal.code for refusal in judge_token(use, (use, *others), now)]


def test_a_token_is_a_name_and_a_local_time() -> None:
    assert read_token("ana310120261259") == LegacyToken("ana", datetime(2026, 1, 31, 12, 59, tzinfo=UTC))


MALFORMED = (
    *("", "ana", "310120261200", "Ana310120261200", "ana31012026120", "ana3101202612000", "ana310120261200\n"),
    *("an a310120261200", "\u00e1na310120261200", "ana_310120261200", " ana310120261200", "ana\u0663\u06610120261200"),
)


@pytest.mark.parametrize("token", MALFORMED)
def test_another_form_is_malformed(token: str) -> None:
    refusal = read_token(token)
    assert isinstance(refusal, Problem)
    assert refusal.code == "legacy_malformed"


def test_a_long_text_is_not_repeated_in_full() -> None:
    refusal = read_token("x" * 10_000)
    assert isinstance(refusal, Problem)
    assert len(refusal.message) < 150


@pytest.mark.parametrize("digits", ["300220261200", "310420261200", "000120261200", "011320261200", "010120262400"])
def test_a_date_that_does_not_exist_is_refused(digits: str) -> None:
    assert codes(replace(USE, token="ana" + digits)) == ["legacy_date_unreal"]


def test_a_leap_day_exists_in_a_leap_year() -> None:
    assert isinstance(read_token("ana290220281200"), LegacyToken)
    assert isinstance(read_token("ana290220261200"), Problem)


def test_a_token_recorded_when_it_says_counts() -> None:
    assert codes(USE) == []


@pytest.mark.parametrize(
    ("lead", "off"),
    [
        (timedelta(hours=-14), False),
        (timedelta(hours=-14) - MINUTE, True),
        (timedelta(hours=38), False),
        (timedelta(hours=38) + MINUTE, True),
        (timedelta(days=-365), True),
    ],
)
def test_the_date_fits_the_record_up_to_time_zones_and_a_day(lead: timedelta, off: bool) -> None:
    use = replace(USE, recorded_at=RECORDED + lead, presented_at=RECORDED + lead - timedelta(hours=1))
    assert codes(use, now=NOW + timedelta(days=9)) == (["legacy_date_off"] if off else [])


@pytest.mark.parametrize(("ahead", "off"), [(5 * MINUTE, False), (6 * MINUTE, True)])
def test_a_record_from_the_future_is_off(ahead: timedelta, off: bool) -> None:
    assert codes(USE, now=RECORDED - ahead) == (["legacy_date_off"] if off else [])


def test_a_token_is_used_once_in_all_history() -> None:
    assert codes(USE, replace(USE, packet="WP-2-B")) == ["legacy_reused"]
    assert codes(USE, replace(USE, gate="verdict")) == ["legacy_reused"]


def test_another_token_or_the_same_use_told_twice_is_no_reuse() -> None:
    assert codes(USE, replace(USE, packet="WP-2-B", token="ben310120261200")) == []
    assert codes(USE, replace(USE, recorded_at=RECORDED + MINUTE)) == []


def test_of_other_uses_the_first_is_named() -> None:
    (refusal,) = judge_token(USE, (USE, replace(USE, packet="WP-3-C"), replace(USE, packet="WP-2-B")), NOW)
    assert refusal.message == "'ana310120261200' was also used at gate activation of WP-2-B"


@pytest.mark.parametrize(
    ("pause", "hasty"), [(5 * MINUTE, False), (5 * MINUTE - timedelta(seconds=1), True), (-MINUTE, True)]
)
def test_there_is_time_to_read(pause: timedelta, hasty: bool) -> None:
    assert codes(replace(USE, presented_at=RECORDED - pause)) == (["legacy_hasty"] if hasty else [])


def test_how_long_is_needed_to_read_is_said() -> None:
    (refusal,) = judge_token(replace(USE, presented_at=RECORDED), (USE,), NOW)
    assert refusal.message == "the token was recorded less than 5 minutes after the text was shown"


def test_a_text_that_was_never_presented_was_not_read() -> None:
    assert codes(replace(USE, presented_at=None)) == ["legacy_unpresented"]


def test_all_reasons_are_given_at_once() -> None:
    use = replace(USE, presented_at=None, token="ana310120251200")
    assert codes(use, replace(use, packet="WP-2-B")) == ["legacy_date_off", "legacy_reused", "legacy_unpresented"]
