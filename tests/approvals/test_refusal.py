"""A refusal that travelled as an exception says the same as one that did not."""

from __future__ import annotations

from workpacket.approvals.refusal import Refusal, RefusalError


def test_what_was_thrown_is_told_with_its_place_or_with_none() -> None:
    refused = RefusalError("key_weak", "the key is weak")
    assert refused.at() == Refusal("key_weak", "the key is weak") == Refusal("key_weak", "the key is weak", "", 0)
    assert refused.at("signers", 3) == Refusal("key_weak", "the key is weak", "signers", 3)
    assert str(refused) == "the key is weak"
