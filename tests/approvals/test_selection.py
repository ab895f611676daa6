"""Finding the envelopes that have a say at a gate."""

from __future__ import annotations

from approvals.gates import BOB, envelope, facts
from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import write_envelope
from workpacket.approvals.facts import EnvelopeFile
from workpacket.approvals.selection import claimed_statement, select
from workpacket.approvals.statement import Subject

YES = envelope()
NO = envelope(decision="reject", approver=BOB)
ELSEWHERE = (envelope(packet="WP-2-B"), envelope(gate="release"))


def revoke(file: EnvelopeFile) -> EnvelopeFile:
    digest = file.name.partition(".")[0]
    return envelope(decision="revoke", packet="WP-9-Z", gate="release", subjects=(Subject(digest, digest),))


def test_a_yes_and_a_no_for_the_gate_are_selected_and_others_are_not() -> None:
    assert select([*ELSEWHERE, YES, NO], "WP-1-Gauge", "activation") == (YES, NO)


def test_a_revocation_is_selected_by_what_it_revokes_whatever_it_claims_to_be_about() -> None:
    files = [revoke(YES), revoke(ELSEWHERE[0]), *ELSEWHERE, YES]
    assert select(files, "WP-1-Gauge", "activation") == (YES, revoke(YES))
    verdict = decide(facts(*select(files, "WP-1-Gauge", "activation")))
    assert [refusal.code for refusal in verdict.unmet] == ["threshold_unmet", "approval_revoked"]


def test_what_cannot_be_read_claims_nothing() -> None:
    junk = EnvelopeFile("junk.dsse.json", b"junk")
    unreadable = EnvelopeFile(*write_envelope(b"{}", "SHA256:" + "A" * 43, b"x"))
    assert [claimed_statement(file) for file in (junk, unreadable)] == [None, None]
    assert select([junk, unreadable, YES], "WP-1-Gauge", "activation") == (YES,)


def test_an_envelope_presented_for_the_wrong_gate_is_left_out_and_the_gate_says_what_it_waits_for() -> None:
    assert select(ELSEWHERE, "WP-1-Gauge", "activation") == ()
    verdict = decide(facts(*select(ELSEWHERE, "WP-1-Gauge", "activation")))
    assert [refusal.code for refusal in verdict.unmet] == ["approval_missing"]
