"""Product and model of docs/approvals/moves.md say the same of histories; tests/proof/lifecycle asks about all."""

from __future__ import annotations

import random

import pytest

from trust.enumerate_moves import differences


# Named, because every worker has to collect the same tests.
@pytest.mark.parametrize("beginning", [0, random.SystemRandom().randrange(1, 97)], ids=["first", "drawn"])
def test_product_and_model_agree_on_what_may_land(beginning: int) -> None:
    """One history in 97, from the first one and from one drawn afresh."""
    asked = list(differences(97, beginning))
    assert len(asked) > 700
    assert [difference for difference in asked if difference[0]] == []
