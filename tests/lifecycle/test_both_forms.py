"""The seven items of the activation checklist hold in both forms: each is left out once, and then refused.

With `WORKPACKET_PROGRAMS`, the commands are those of an installed wheel: `nox -s package`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from lifecycle.governed import ANCHOR_LINE, ROADMAP_LINE, SPECIFICATION, forge
from lifecycle.signed import GATES, NAME, PACKET, REFINEMENT, Signed, codes_of
from workpacket.lifecycle.activation import ITEMS
from workpacket.model.canonical import Json

LIGHT = "WP-1-Light-Greeting-v1"
DOCUMENT = f".GOV/task_packets/{LIGHT}.md"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
SAID = {
    "--criterion": "The name is printed.",
    "--scope": "src/",
    "--anchor": "1.1 Greeting",
    "--refinement": "The name is an argument of the program.",
}


def new_light(signed: Signed, **instead: str | None) -> None:
    """A draft with everything that it needs, except what is given instead; None leaves an option out."""
    said = SAID | {f"--{name}": text for name, text in instead.items()}
    words = [word for name, text in said.items() if text is not None for word in (name, text)]
    signed.governed.done("new", "Light greeting", "--form", "light", *words)


def full(signed: Signed, *, line: int = ANCHOR_LINE, present: bool = True) -> None:
    signed.governed.stub(NAME)
    signed.governed.refine(NAME, line)
    if present:
        signed.governed.done("refine", NAME, "--present")


def activated_without(signed: Signed, path: str, old: str, new: str) -> set[str]:
    signed.activated()
    signed.governed.replace(path, old, new)
    return codes_of(signed.governed)


def full_main_body(signed: Signed) -> set[str]:
    full(signed, line=ROADMAP_LINE)
    return set(signed.governed.refused("packet", "activate", NAME))


def full_presented(signed: Signed) -> set[str]:
    full(signed, present=False)
    return set(signed.governed.refused("packet", "activate", NAME))


def full_signature(signed: Signed) -> set[str]:
    full(signed)
    return set(signed.governed.refused("packet", "activate", NAME))


def full_approved(signed: Signed) -> set[str]:
    """The approval is of another text than the one that is there."""
    full(signed)
    signed.approve()
    signed.governed.replace(REFINEMENT, "Nothing of that kind.", "Something else.")
    return set(signed.governed.refused("packet", "activate", NAME))


def full_packet(signed: Signed) -> set[str]:
    signed.activated()
    (signed.governed.root / PACKET).unlink()
    return codes_of(signed.governed)


def full_scope(signed: Signed) -> set[str]:
    return activated_without(signed, PACKET, "The greeting itself.", "Everything.")


def full_board(signed: Signed) -> set[str]:
    return activated_without(signed, BOARD, "[READY_FOR_DEV]", "[STUB]")


def light_main_body(signed: Signed) -> set[str]:
    new_light(signed, anchor="2 Roadmap")
    return set(signed.governed.refused("start", LIGHT))


def light_refined(signed: Signed) -> set[str]:
    new_light(signed, refinement="TODO")
    return set(signed.governed.refused("start", LIGHT))


def light_signature(signed: Signed) -> set[str]:
    new_light(signed)
    return set(signed.governed.refused("start", LIGHT))


def light_approved(signed: Signed) -> set[str]:
    new_light(signed)
    signed.approve(name=LIGHT)
    signed.governed.replace(DOCUMENT, "an argument of the program", "read from a file")
    return set(signed.governed.refused("start", LIGHT))


def light_packet(signed: Signed) -> set[str]:
    new_light(signed)
    signed.approve(name=LIGHT)
    signed.governed.done("packet", "activate", LIGHT)
    (signed.governed.root / DOCUMENT).unlink()
    return codes_of(signed.governed)


def light_scope(signed: Signed) -> set[str]:
    new_light(signed, criterion=None, scope=None)
    return set(signed.governed.refused("start", LIGHT))


def light_board(signed: Signed) -> set[str]:
    """Where the log has not moved, nobody can claim: the board is drawn from it."""
    new_light(signed)
    signed.approve(name=LIGHT)
    return set(signed.governed.refused("claim", LIGHT))


LEFT_OUT: tuple[tuple[str, Callable[[Signed], set[str]], str], ...] = (
    ("requirement_in_main_body", full_main_body, "requirement_only_in_roadmap"),
    ("refinement_presented", full_presented, "refinement_not_presented"),
    ("user_signature", full_signature, "user_signature_missing"),
    ("refinement_approved", full_approved, "subject_mismatch"),
    ("packet_created", full_packet, "log_without_file"),
    ("scope_carried_over", full_scope, "scope_not_carried_over"),
    ("board_entry_moved", full_board, "board_drift"),
    ("requirement_in_main_body", light_main_body, "requirement_only_in_roadmap"),
    ("refinement_presented", light_refined, "refinement_missing"),
    ("user_signature", light_signature, "approval_missing"),
    ("refinement_approved", light_approved, "subject_mismatch"),
    ("packet_created", light_packet, "log_without_file"),
    ("scope_carried_over", light_scope, "scope_undecided"),
    ("board_entry_moved", light_board, "packet_is_stub"),
)


def test_every_item_of_the_checklist_is_left_out_in_each_form() -> None:
    assert [item for item, _, _ in LEFT_OUT] == [*ITEMS, *ITEMS]


@pytest.mark.parametrize(
    ("leave_out", "code"), [row[1:] for row in LEFT_OUT], ids=[row[1].__name__ for row in LEFT_OUT]
)
def test_an_item_that_is_left_out_is_refused(
    signed: Signed, leave_out: Callable[[Signed], set[str]], code: str
) -> None:
    signed.begin()
    assert code in leave_out(signed)


def test_with_all_items_both_forms_are_activated(signed: Signed) -> None:
    signed.begin()
    signed.activated()
    new_light(signed)
    signed.approve(name=LIGHT)
    signed.governed.done("start", LIGHT)
    signed.governed.commit("Started")
    assert codes_of(signed.governed) == set()
    assert codes_of(signed.governed, "--base", "main") == set()


def test_an_event_written_by_hand_does_not_stand_in_for_an_item(signed: Signed) -> None:
    signed.begin()
    new_light(signed, refinement="TODO")
    signed.governed.commit("Draft")
    signed.governed.git("switch", "--quiet", "--create", "forged")
    document = signed.governed.read(DOCUMENT)
    data = {"lane_from": "STUB", "lane_to": "READY_FOR_DEV", "form": "light", "checklist": []}
    pinned = {"path": DOCUMENT, "sha256": "0" * 64}
    forge(signed.governed, LIGHT, "activated", {**data, "refinement": pinned, "contract": "1" * 64})
    signed.governed.commit("Forged")
    assert document == signed.governed.read(DOCUMENT)
    codes = codes_of(signed.governed, "--base", "main")
    assert {"move_without_gate", "approval_missing", "contract_changed"} <= codes


def started(signed: Signed) -> None:
    signed.begin(gates=GATES | {"amendment": "approver"})
    new_light(signed)
    signed.approve(name=LIGHT)
    signed.governed.done("start", LIGHT)
    signed.governed.commit("Started")


def test_what_was_approved_cannot_be_rewritten(signed: Signed) -> None:
    started(signed)
    signed.governed.replace(DOCUMENT, "`src/`", "`payroll/`")
    signed.governed.write("payroll/pay.py", "pay()\n")
    signed.governed.commit("Wider")
    assert "contract_changed" in signed.governed.refused("done", LIGHT, "--prove", "1=true")
    assert "contract_changed" in codes_of(signed.governed, "--base", "main")


def test_a_light_packet_is_amended_like_a_full_one(signed: Signed) -> None:
    started(signed)
    signed.governed.replace(DOCUMENT, "`src/`", "`src/`, `docs/`")
    assert "approval_missing" in signed.governed.refused(
        "packet", "amend", LIGHT, "--reason", "The manual belongs to it."
    )
    signed.approve("amendment", name=LIGHT)
    signed.governed.done("packet", "amend", LIGHT, "--reason", "The manual belongs to it.")
    signed.governed.commit("Amended")
    assert codes_of(signed.governed, "--base", "main") == set()
    assert signed.governed.state(LIGHT).light


def test_a_verdict_says_something(signed: Signed) -> None:
    started(signed)
    lanes = {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING"}
    forge(signed.governed, LIGHT, "verdict.given", {**lanes, "verdict": "PASS"})
    signed.governed.commit("Judged by hand")
    assert "move_without_gate" in codes_of(signed.governed, "--base", "main")


def test_an_event_cannot_call_a_full_packet_light(signed: Signed) -> None:
    """Where nobody approves light packets, that would leave out the approval of a full one."""
    governed = signed.governed
    governed.done("init", "--commit")
    governed.write(".GOV/spec/SPEC_v1.md", SPECIFICATION)
    governed.stub(NAME)
    governed.refine(NAME)
    governed.commit("A stub")
    governed.git("switch", "--quiet", "--create", "forged")
    pinned: Json = {"path": REFINEMENT, "sha256": hashlib.sha256(governed.read(REFINEMENT).encode()).hexdigest()}
    data: dict[str, Json] = {
        "lane_from": "STUB",
        "lane_to": "READY_FOR_DEV",
        "form": "light",
        "checklist": [],
        "refinement": pinned,
    }
    contract = governed.json("packet", "contract", NAME)["data"]["digest"]
    forge(governed, NAME, "activated", {**data, "contract": contract})
    governed.commit("Forged")
    found = governed.json("check", "--base", "main")["findings"]
    assert "move_without_gate" in {one["code"] for one in found if one["severity"] == "error"}
