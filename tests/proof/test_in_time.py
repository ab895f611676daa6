"""A proof cannot take for ever, nor pass because there was no time for it."""

from __future__ import annotations

import time

import pytest

from proof.share import within


@pytest.mark.parametrize("seconds", [0.01, 0, -1])
def test_what_is_not_proved_in_time_has_failed(seconds: float) -> None:
    with pytest.raises(pytest.fail.Exception, match="not proved"), within(seconds):
        time.sleep(10)


def test_what_is_proved_in_time_is_left_alone() -> None:
    with within(0.01):
        pass
    time.sleep(0.02)
