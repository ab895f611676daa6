"""The way out after a revocation: what `explain` tells to do is typed, and every check is without a finding again."""

from __future__ import annotations

import pytest

from lifecycle.governed import forge
from lifecycle.signed import ALICE, NAME, PACKET, VICTOR, Signed, codes_of
from workpacket.model.canonical import Json

pytestmark = pytest.mark.share(4)


def landed(signed: Signed) -> str:
    """The packet was activated on the base; the digest of the envelope."""
    signed.begin()
    signed.ready()
    envelope = signed.approve()
    signed.governed.done("packet", "activate", NAME)
    signed.governed.replace(PACKET, "TERMS: TODO", "TERMS: x")
    signed.governed.commit("activated")
    return envelope


def codes(signed: Signed) -> set[str]:
    return codes_of(signed.governed, "--base", "main", "--uncommitted")


def test_a_revocation_can_land_and_what_it_leaves_is_mended_by_a_new_approval(signed: Signed) -> None:
    governed = signed.governed
    envelope = landed(signed)
    governed.git("switch", "--quiet", "--create", "revocation")
    signed.revoke(envelope)
    governed.commit("revoked")
    found = governed.json("check", "--base", "main")["findings"]
    assert [one["code"] for one in found] == ["revocation_lands"]
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", "--message", "landed", "revocation")
    assert "approval_revoked" in codes(signed)
    assert "workpacket packet reapprove" in " ".join(governed.done("explain", "approval_revoked").out.split())
    assert "approval_revoked" in governed.refused("packet", "reapprove", NAME)
    refinement = governed.read(f".GOV/refinements/{NAME}.md")
    signed.approve()
    assert governed.read(f".GOV/refinements/{NAME}.md") == refinement
    governed.done("packet", "reapprove", NAME)
    assert codes(signed) == set()
    governed.commit("approved again")
    assert codes(signed) == codes_of(governed) == set()
    assert governed.refused("packet", "reapprove", NAME) == ["reapproval_needless"]


def test_a_second_revocation_needs_a_second_approval(signed: Signed) -> None:
    governed = signed.governed
    envelope = landed(signed)
    for _ in range(2):
        signed.revoke(envelope)
        governed.commit("revoked")
        assert "approval_revoked" in codes(signed)
        envelope = signed.approve()
        governed.done("packet", "reapprove", NAME, "--gate", "activation", "--reason", "the key was lent")
        governed.commit("approved again")
        assert codes(signed) == set()


def test_a_signed_verdict_is_given_again(signed: Signed) -> None:
    governed = signed.governed
    signed.begin()
    signed.submitted()
    envelope = signed.approve("verdict", VICTOR, verdict="PASS")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", "--message", "landed", f"wp/{NAME}")
    signed.revoke(envelope, VICTOR)
    governed.commit("revoked")
    assert "approval_revoked" in codes(signed)
    signed.approve("verdict", VICTOR, verdict="FAIL")
    assert governed("packet", "reapprove", NAME).status == 3
    signed.approve("verdict", VICTOR, verdict="PASS")
    governed.done("packet", "reapprove", NAME)
    governed.commit("approved again")
    assert codes(signed) == set()


@pytest.mark.parametrize("what", ["nothing lost", "of another event", "of an envelope that was never used", "unsigned"])
def test_new_approvals_help_no_event_that_they_are_not_for(what: str, signed: Signed) -> None:
    governed = signed.governed
    envelope = landed(signed)
    history = {event.type: event.id for event in governed.state(NAME).history}
    again = signed.approve(who=ALICE)
    data: dict[str, Json] = {"gate": "activation", "event": history["activated"], "replaces": [envelope], "reason": "x"}
    changed: dict[str, dict[str, Json]] = {
        "nothing lost": {},
        "of another event": {"event": history["created"]},
        "of an envelope that was never used": {"replaces": ["0" * 64]},
        "unsigned": {},
    }
    forge(governed, NAME, "reapproved", {**data, **changed[what]}, () if what == "unsigned" else (again,))
    expected = {"nothing lost": set(), "unsigned": {"approval_missing"}}
    assert codes(signed) == expected.get(what, {"reapproval_unfit"})
