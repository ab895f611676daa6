"""From the activation on, stub, packet and log say one contract; another is an error until it is amended."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lifecycle.governed import Governed, forge, govern
from lifecycle.signed import ALICE, MALLORY, NAME, PACKET, REFINEMENT, VICTOR, Signed, codes_of
from workpacket.model.canonical import Json
from workpacket.problem import WorkpacketError

pytestmark = pytest.mark.share(4)

STUB = f".GOV/task_packets/stubs/{NAME}.md"


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Signed:
    """Activated and committed."""
    (tmp_path / "repository").mkdir()
    signed = Signed(govern(tmp_path / "repository", monkeypatch, capsys), tmp_path / "people")
    signed.begin()
    signed.activated()
    return signed


def digest_of(governed: Governed) -> str:
    return str(governed.json("packet", "contract", NAME)["data"]["digest"])


def in_force(governed: Governed) -> list[str]:
    return [str(digest) for digest in governed.json("packet", "contract", NAME)["data"]["approved"]]


def says(governed: Governed) -> dict[str, bool]:
    """Which of the commands say `contract_changed`."""
    answers: dict[str, Any] = {
        "check": governed.json("check")["findings"],
        "check --base": governed.json("check", "--base", "main")["findings"],
        "approvals verify": governed.json("approvals", "verify")["findings"],
        "audit": governed.json("audit")["findings"],
        "why": governed.json("why", NAME)["data"]["unmet"],
    }
    said = {name: any(one["code"] == "contract_changed" for one in rows) for name, rows in answers.items()}
    return {**said, "show": bool(governed.json("show", NAME)["data"]["contract_changed"])}


def test_the_event_names_the_contract_that_stub_and_packet_say(signed: Signed) -> None:
    governed = signed.governed
    event = governed.state(NAME).history[-1]
    assert event.type == "activated"
    assert (event.text("title"), event.text("risk"), event.data["dependencies"]) == ("Greet the user", "LOW", [])
    assert in_force(governed) == [event.text("contract")] == [digest_of(governed)]
    assert governed.json("show", NAME)["data"]["contract"] == event.text("contract")
    assert not any(says(governed).values())


def test_the_canonical_form_has_the_digest_by_sha256sum(signed: Signed) -> None:
    root = signed.governed.root
    command = [sys.executable, "-c", "from workpacket.cli.main import console; console()", "contract", NAME]
    answer = subprocess.run([*command, "--canonical"], cwd=root, capture_output=True, check=True)
    assert hashlib.sha256(answer.stdout).hexdigest() == digest_of(signed.governed)
    assert json.loads(answer.stdout) == signed.governed.json("packet", "contract", NAME)["data"]["contract"]


@pytest.mark.share(8)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Greet the user", "Greet nobody"),
        ("People like it", "Somebody asked"),
        ("The name is printed.", "Something is printed."),
        ("- It ends with a line feed.\n", ""),
        ("`src/`", "`payroll/`"),
        ("The greeting itself.", "The greeting, and the rest."),
        ("RISK_TIER: LOW", "RISK_TIER: HIGH"),
        ("- It ends with a line feed.", "- It ends with a line feed.\n  - PROVED_BY: `true`"),
    ],
)
def test_files_rewritten_together_are_an_error_everywhere(signed: Signed, old: str, new: str) -> None:
    for path in (STUB, PACKET):
        signed.governed.replace(path, old, new)
    assert all(says(signed.governed).values())


@pytest.mark.parametrize("path", [STUB, PACKET])
def test_one_file_rewritten_is_an_error_everywhere(signed: Signed, path: str) -> None:
    signed.governed.replace(path, "The name is printed.", "The name is printed, perhaps.")
    assert all(says(signed.governed).values())


def test_a_refinement_rewritten_is_an_error_everywhere(signed: Signed) -> None:
    signed.governed.write(REFINEMENT, signed.governed.read(REFINEMENT) + "- And this.\n")
    assert all(says(signed.governed).values())


def test_a_packet_without_a_contract_is_an_error_everywhere(signed: Signed) -> None:
    signed.governed.replace(PACKET, "- Why: People like it", "- Why: People like it\n- Why: Others do not")
    assert all(says(signed.governed).values())


def test_progress_is_free(signed: Signed) -> None:
    governed = signed.governed
    governed.replace(PACKET, "## EVIDENCE_MAPPING\n- (nothing yet)", "## EVIDENCE_MAPPING\n- src/greet.py:1 prints it")
    governed.replace(PACKET, "## IMPLEMENTATION\n(nothing yet)", "## IMPLEMENTATION\nA function.")
    governed.replace(PACKET, "- The name is printed.", "- [x] The name   is printed.")
    governed.work(NAME)
    assert not any(says(governed).values())


def test_work_of_another_contract_is_neither_submitted_nor_judged(signed: Signed) -> None:
    governed = signed.governed
    governed.work(NAME)
    for path in (STUB, PACKET):
        governed.replace(path, "The name is printed.", "Something is printed.")
    governed.commit("another contract")
    assert "contract_changed" in governed.refused("submit", NAME, "--as", "coder", "--prove", "all=true")


def test_a_verdict_about_another_contract_is_not_signed(signed: Signed) -> None:
    governed = signed.governed
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.replace(PACKET, "The name is printed.", "Something is printed.")
    with pytest.raises(WorkpacketError) as caught:
        signed.approve("verdict", VICTOR, verdict="PASS")
    assert caught.value.code == "contract_changed"


def rewritten(signed: Signed, old: str = "The name is printed.", new: str = "The full name is printed.") -> None:
    for path in (STUB, PACKET):
        signed.governed.replace(path, old, new)


def test_an_amendment_replaces_the_contract(signed: Signed) -> None:
    governed = signed.governed
    before = digest_of(governed)
    rewritten(signed)
    envelope = signed.approve("amendment")
    result = governed.done("packet", "amend", NAME, "--reason", "whole names")
    assert "| The {+full+} name is printed." in result.out
    event = governed.state(NAME).history[-1]
    assert (event.type, event.text("previous"), event.text("contract")) == ("amended", before, digest_of(governed))
    assert event.attest == (envelope,)
    assert not any(says(governed).values())
    governed.commit("amended")
    assert not any(says(governed).values())
    rewritten(signed, "The full name is printed.", "The name is printed.")
    assert all(says(governed).values())


def test_a_refinement_is_amended_too(signed: Signed) -> None:
    governed = signed.governed
    governed.write(REFINEMENT, governed.read(REFINEMENT) + "- And this.\n")
    signed.approve("amendment")
    governed.done("packet", "amend", NAME, "--reason", "more is known")
    assert not any(says(governed).values())


def test_an_amendment_needs_an_approval_of_this_very_contract(signed: Signed) -> None:
    governed = signed.governed
    rewritten(signed)
    assert governed.refused("packet", "amend", NAME, "--reason", "x") == ["approval_missing"]
    signed.approve("amendment")
    rewritten(signed, "People like it", "They want it")
    assert "subject_mismatch" in governed.refused("packet", "amend", NAME, "--reason", "x")
    with pytest.raises(WorkpacketError) as caught:
        signed.approve("amendment", VICTOR)
    assert caught.value.code == "role_not_held"


def test_a_refinement_changed_after_the_approval_is_another_contract(signed: Signed) -> None:
    rewritten(signed)
    signed.approve("amendment")
    signed.governed.write(REFINEMENT, signed.governed.read(REFINEMENT) + "- And this.\n")
    assert "contract_mismatch" in signed.governed.refused("packet", "amend", NAME, "--reason", "x")


def test_stub_and_packet_are_amended_together(signed: Signed) -> None:
    signed.governed.replace(PACKET, "The name is printed.", "The full name is printed.")
    with pytest.raises(WorkpacketError) as caught:
        signed.approve("amendment")
    assert "the stub and the packet state different contracts" in caught.value.message
    assert signed.governed.refused("packet", "amend", NAME, "--reason", "x") == ["contract_changed"]


def test_nothing_to_amend_is_refused(signed: Signed) -> None:
    assert signed.governed.refused("packet", "amend", NAME, "--reason", "x") == ["contract_unchanged"]


def test_what_is_being_judged_is_not_amended(signed: Signed) -> None:
    governed = signed.governed
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    rewritten(signed)
    assert governed.refused("packet", "amend", NAME, "--reason", "x") == ["wrong_lane"]
    signed_by_hand: dict[str, Json] = {
        "previous": in_force(governed)[0],
        "contract": digest_of(governed),
        "reason": "x",
    }
    forge(governed, NAME, "amended", signed_by_hand, [signed.approve("amendment")])
    assert "while WP-1-Greeting-v1 is IN_REVIEW" in governed("check").out


@pytest.mark.parametrize("envelope", [True, False])
def test_an_amendment_by_hand_needs_the_approval(signed: Signed, envelope: bool) -> None:
    governed = signed.governed
    rewritten(signed)
    attest = []
    if envelope:
        draft = signed.draft("amendment", ALICE)
        signed.forged(draft, MALLORY)
        attest = [path.name.partition(".")[0] for path in (governed.root / ".GOV/attestations").iterdir()][-1:]
    data: dict[str, Json] = {"previous": in_force(governed)[0], "contract": digest_of(governed), "reason": "x"}
    forge(governed, NAME, "amended", data, attest)
    assert codes_of(governed, "--base", "main") & {"approval_missing", "threshold_unmet"}


def test_an_amendment_says_what_it_replaces(signed: Signed) -> None:
    governed = signed.governed
    rewritten(signed)
    data: dict[str, Json] = {"previous": "e" * 64, "contract": digest_of(governed), "reason": "x"}
    forge(governed, NAME, "amended", data, [signed.approve("amendment")])
    assert "claims to replace a contract that was not the current one" in governed("check").out


def test_two_amendments_on_two_branches_are_settled_by_a_third(signed: Signed) -> None:
    governed = signed.governed
    for branch, words in (("one", "The first name is printed."), ("two", "The last name is printed.")):
        governed.git("switch", "--quiet", "--create", branch, "main")
        rewritten(signed, new=words)
        signed.approve("amendment")
        governed.done("packet", "amend", NAME, "--reason", branch)
        governed.commit(branch)
    governed.git("merge", "--quiet", "--strategy-option=ours", "--message", "both", "one")
    assert "two current contracts" in governed("check").out
    rewritten(signed, "The last name is printed.", "Both names are printed.")
    signed.approve("amendment")
    governed.done("packet", "amend", NAME, "--reason", "both")
    assert not any(says(governed).values())


def test_a_submission_beside_an_amendment_is_found(signed: Signed) -> None:
    governed = signed.governed
    governed.work(NAME)
    governed.git("switch", "--quiet", "--create", "amended")
    rewritten(signed)
    signed.approve("amendment")
    governed.done("packet", "amend", NAME, "--reason", "whole names")
    governed.commit("amended")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.git("merge", "--quiet", "--message", "both", "amended")
    assert "submitted uses the contract from before an amendment" in governed("check").out


def test_what_was_activated_before_there_were_contracts_is_called_so(signed: Signed) -> None:
    """The event of an older version names no contract; nothing is asked of the files then."""
    governed = signed.governed
    folder = governed.root / ".GOV/log" / NAME
    event = next(event for event in governed.state(NAME).history if event.type == "activated")
    newer = {"contract", "title", "risk", "dependencies"}
    older = {key: value for key, value in event.data.items() if key not in newer}
    (folder / f"{event.id}.json").unlink()
    forge(governed, NAME, "activated", older, event.attest)
    assert governed.json("show", NAME)["data"]["contract"] == "approved: refinement only"
    rewritten(signed)
    assert "contract_changed" not in codes_of(governed)
    found = governed.json("check", "--base", "main")["findings"]
    assert any("does not refer to a contract" in one["message"] for one in found)


def test_a_stub_that_the_packet_cannot_repeat_is_not_activated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "repository").mkdir()
    signed = Signed(govern(tmp_path / "repository", monkeypatch, capsys), tmp_path / "people")
    signed.begin()
    signed.ready()
    governed = signed.governed
    governed.replace(STUB, "- OUT_OF_SCOPE:\n  - None known.", "- OUT_OF_SCOPE:\n  - The rest\n\n    and more of it.")
    signed.approve()
    assert governed.refused("packet", "activate", NAME) == ["contract_unreadable"]
    governed.replace(STUB, "The rest\n\n    and more of it.", "The rest and more of it.")
    signed.approve()
    governed.done("packet", "activate", NAME)
    governed.commit("activated")
    assert "contract_changed" not in codes_of(governed)


def test_a_stub_is_refused_that_says_its_criteria_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "repository").mkdir()
    signed = Signed(govern(tmp_path / "repository", monkeypatch, capsys), tmp_path / "people")
    signed.begin()
    signed.ready()
    path = f".GOV/task_packets/stubs/{NAME}.md"
    signed.governed.write(path, signed.governed.read(path) + "\n## ACCEPTANCE_CRITERIA (DRAFT)\n- Nothing.\n")
    with pytest.raises(WorkpacketError) as caught:
        signed.approve()
    assert caught.value.code == "contract_unreadable"
    assert "appears twice" in caught.value.message
