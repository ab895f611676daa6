"""Moves that cannot be played: product and model agree on what may land, and cases of the lists, each with its code."""

from __future__ import annotations

import random

import pytest

from trust.docs_model import History
from trust.enumerate_moves import READY, TRIED, differences, model_answer, new_event, product_answer, settlement
from trust.measure import HERE
from trust.play import Case, Table, read_cases
from workpacket.lifecycle.transitions import TRANSITIONS

pytestmark = pytest.mark.share(4)

CASES = {case.id: case for name in ("review_findings", "own_attacks") for case in read_cases(HERE / f"{name}.jsonl")}
REFUSED = {
    "K1-L01": "move_illegal",
    "K1-F01": "move_beside_base",
    "K1-F02": "move_beside_base",
    "K1-F03": "move_beside_base",
    "B4": "move_beside_base",
    "T03": "move_illegal",
    "T06": "packet_forked",
    "T12": "packet_forked",
    "T13": "packet_forked",
    "T20": "move_illegal",
    "M-L10": "move_without_gate",
    "M-L10b": "move_without_gate",
    "M-L10c": "move_without_gate",
    "M-L14": "move_without_gate",
    "M-L15b": "move_without_gate",
    "A33": "move_without_gate",
    "A34": "move_without_gate",
}
KEPT = ("K1-control", "M-L10-control", "H2-control")
# The envelope of one's own key at the gate that nobody asks, and at one that does not exist, for a settlement.
SETTLED = CASES["T13"].steps[:-5]
SIGNED = [
    Case("own-resolve", "a settlement signed with a key that no policy knows", "submitted",
         (*SETTLED, "let p last {P}:verdict.given", "sign z mallory resolve {P} lane=MERGE_PENDING",
          "settle f {P} MERGE_PENDING $z", "try board sync", "commit", "land {PB} merge"), "refused"),
    Case("own-gate", "a settlement with an envelope of another gate", "submitted",
         (*SETTLED, "settle f {P} MERGE_PENDING $a", "try board sync", "commit", "land {PB} merge"), "refused"),
]  # fmt: skip

AGAIN = next(case for case in read_cases(HERE / "honest_changes.jsonl") if case.id == "N16").steps[:-1]
MERGED = (
    '{"lane_from": "MERGE_PENDING", "lane_to": "VALIDATED", "commit": "$old", "target": "main", '
    '"target_commit": "$old", "proof": "commit"}'
)
EARLIER = Case("earlier", "a merge of the commit that was submitted before changes were asked for", "submitted",
               ("let old rev {PB}~1", *AGAIN, "land {PB} merge", "branch x", f"event m merged {{P}} agent '{MERGED}'",
                "try board sync", "commit", "land x merge"), "refused", codes=("move_without_gate",))  # fmt: skip


# They begin or end a packet, or keep its lane: no history of the model continues with them.
NOT_TRIED = {"created", "activated", "handed_over", "superseded"}


def test_every_event_that_moves_a_packet_is_tried_in_the_histories() -> None:
    tried = {"verdict.given" if kind.isupper() else kind for rows in TRIED.values() for kind, _, _ in rows}
    moves = {transition.event for transition in TRANSITIONS}
    assert moves - tried == NOT_TRIED, "add the event and its data to TRIED in tests/trust/enumerate_moves.py"


# Named, because every worker has to collect the same tests.
@pytest.mark.parametrize(
    ("one_in", "beginning"),
    [
        pytest.param(487, 0, id="first"),
        pytest.param(97, random.SystemRandom().randrange(1, 97), id="drawn", marks=pytest.mark.long),
    ],
)
def test_product_and_model_agree_on_what_may_land(one_in: int, beginning: int) -> None:
    """A share of the histories, from the first one and from one drawn afresh; tests/proof/lifecycle asks about all."""
    asked = list(differences(one_in, beginning))
    assert len(asked) > 70_000 // one_in
    assert [difference for difference in asked if difference[0]] == []


def test_a_settlement_gives_the_packet_to_nobody_who_had_given_it_back() -> None:
    """What the model found that was written from the docs: the product took every holder of the past."""
    log = (
        *READY,
        new_event(2, "claimed", "READY_FOR_DEV", "IN_PROGRESS", (1,), holder="bob"),
        new_event(3, "released", "IN_PROGRESS", "READY_FOR_DEV", (2,)),
        new_event(4, "claimed", "READY_FOR_DEV", "IN_PROGRESS", (1,), holder="ann"),
    )
    base = frozenset({"0", "1"})
    for holder, wrong in (
        ("ann", []),
        ("bob", ["move_illegal fork.resolved: bob did not hold the packet on any of its branches"]),
    ):
        settled = (*log, settlement(History(log), (3, 4), "IN_PROGRESS", holder=holder))
        assert product_answer(settled, base) == (wrong, "IN_PROGRESS")
        assert bool(model_answer(settled, base)[0]) == bool(wrong)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", REFUSED)
def test_a_change_is_refused_with_its_code(name: str, table: Table) -> None:
    outcome = table.play(CASES[name], "merge")
    assert outcome.fits(CASES[name])
    assert REFUSED[name] in outcome.codes


@pytest.mark.parametrize("name", KEPT)
def test_a_control_lands(name: str, table: Table) -> None:
    outcome = table.play(CASES[name], "merge")
    assert outcome.fits(CASES[name]), outcome


@pytest.mark.parametrize("case", SIGNED, ids=lambda case: case.id)
def test_no_envelope_but_one_of_the_gate_drops_a_verdict(case: Case, table: Table) -> None:
    outcome = table.play(case, "merge")
    assert outcome.fits(case)
    assert outcome.codes & {"attest_unfit", "approvers_unnamed", "signer_unknown", "gate_unknown"}, outcome


def test_what_is_merged_is_what_was_submitted_last(table: Table) -> None:
    outcome = table.play(EARLIER, "merge")
    assert outcome.landings == [True, False]
    assert outcome.fits(EARLIER), outcome
