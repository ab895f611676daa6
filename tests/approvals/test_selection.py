"""Finding the envelopes that have a say at a gate."""

from __future__ import annotations

from approvals.gates import BOB, envelope, facts
from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import EnvelopeFile, Selection, Subject, write_envelope

YES = envelope()
NO = envelope(decision="reject", approver=BOB)
ELSEWHERE = (envelope(packet="WP-2-B"), envelope(gate="release"))


def revoke(file: EnvelopeFile) -> EnvelopeFile:
    digest = file.name.partition(".")[0]
    return envelope(decision="revoke", packet="WP-9-Z", gate="release", subjects=(Subject(digest, digest),))


def test_a_yes_and_a_no_for_the_gate_are_selected_and_others_are_not() -> None:
    assert Selection([*ELSEWHERE, YES, NO]).about("WP-1-Gauge", "activation") == (YES, NO)


def test_a_revocation_is_selected_by_what_it_revokes_whatever_it_claims_to_be_about() -> None:
    files = [revoke(YES), revoke(ELSEWHERE[0]), *ELSEWHERE, YES]
    assert Selection(files).about("WP-1-Gauge", "activation") == (YES, revoke(YES))
    verdict = decide(facts(*Selection(files).about("WP-1-Gauge", "activation")))
    assert [refusal.code for refusal in verdict.unmet] == ["threshold_unmet", "approval_revoked"]


def test_what_cannot_be_read_claims_nothing() -> None:
    junk = EnvelopeFile("junk.dsse.json", b"junk")
    unreadable = EnvelopeFile(*write_envelope(b"{}", "SHA256:" + "A" * 43, b"x"))
    assert [file.claim for file in (junk, unreadable)] == [None, None]
    assert Selection([junk, unreadable, YES]).about("WP-1-Gauge", "activation") == (YES,)


def test_an_envelope_presented_for_the_wrong_gate_is_left_out_and_the_gate_says_what_it_waits_for() -> None:
    assert Selection(ELSEWHERE).about("WP-1-Gauge", "activation") == ()
    verdict = decide(facts(*Selection(ELSEWHERE).about("WP-1-Gauge", "activation")))
    assert [refusal.code for refusal in verdict.unmet] == ["approval_missing"]
