"""Reason codes: what one must have, and that none stands twice."""

from __future__ import annotations

from typing import Any

import pytest

from workpacket.model.reasons import Reason, Registry


def reason(code: str = "some_code", **other: Any) -> Reason:
    return Reason(code, "A title", "An explanation.", "A remedy.", **{"family": "document", **other})


@pytest.mark.parametrize("code", ["", "Some_Code", "some-code", "1code", "some__code", "some_code\n"])
def test_a_code_is_lower_case_words_joined_by_underscores(code: str) -> None:
    with pytest.raises(ValueError, match="is not a reason code"):
        reason(code)


@pytest.mark.parametrize("title", ["", "A title."])
def test_a_title_is_a_phrase_without_a_full_stop(title: str) -> None:
    with pytest.raises(ValueError, match="the title must be a single phrase"):
        Reason("some_code", title, "An explanation.", "A remedy.", family="document")


def test_the_strict_profile_is_never_milder() -> None:
    with pytest.raises(ValueError, match="must not be weaker"):
        reason(severity="error", strict_severity="warning")


@pytest.mark.parametrize("family", ["approval", "integrity", "environment", "reading"])
def test_what_was_forged_damaged_or_not_looked_at_cannot_be_ignored(family: str) -> None:
    assert not reason(family=family).ignorable
    assert reason(family="document").ignorable


def test_an_earlier_name_still_finds_the_reason_and_is_not_listed() -> None:
    registry = Registry([reason(aliases=("old_code",))])
    assert registry["old_code"] is registry["some_code"]
    assert list(registry) == ["some_code"]


@pytest.mark.parametrize("again", [reason(), reason("other_code", aliases=("some_code",))])
def test_no_name_stands_twice(again: Reason) -> None:
    with pytest.raises(ValueError, match="'some_code' is registered twice"):
        Registry([reason(), again])
