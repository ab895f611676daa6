"""The way out when approvals no longer count, after a revocation or a change of the policy: what `explain` tells to do
is typed, and every check is without a finding again.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lifecycle.governed import Governed, forge
from lifecycle.signed import ALICE, NAME, PACKET, VICTOR, Signed, codes_of
from workpacket.model.canonical import Json
from workpacket.value import replace

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


def in_flight(signed: Signed) -> str:
    """A packet activated on a branch that has not landed when the policy of the base changes; the envelope."""
    governed = signed.governed
    signed.begin()
    governed.git("switch", "--quiet", "--create", "work")
    signed.ready()
    envelope = signed.approve()
    governed.done("packet", "activate", NAME)
    governed.replace(PACKET, "TERMS: TODO", "TERMS: x")
    governed.commit("activated")
    governed.git("switch", "--quiet", "main")
    governed.replace(".GOV/policy/policy.toml", "[approvals]", "# Other rules.\n[approvals]")
    governed.commit("other rules")
    governed.git("switch", "--quiet", "work")
    governed.git("merge", "--quiet", "main")
    return envelope


def approved_by_commands(signed: Signed, command: str) -> tuple[str, str]:
    """Approved as on another machine: the envelope, and what comes next."""
    key, statement = signed.home / "alice", signed.home / "statement"
    signed.governed.done(*command.split()[1:], "--key", f"{key}.pub", "--statement-out", str(statement))
    signing = ("ssh-keygen", "-q", "-Y", "sign", "-n", "workpacket-approval@v1", "-f", str(key), str(statement))
    subprocess.run(signing, check=True, capture_output=True)
    data = signed.governed.json("approve", "--attach", str(statement))["data"]
    return Path(data["envelope"]).name.partition(".")[0], data["next"]


def commands_in(text: str) -> list[str]:
    """The commands between backticks, about this packet."""
    told = re.findall(r"`workpacket ([^`]+)`", " ".join(text.split()))
    return [command.replace("WP_ID", NAME) for command in told]


def test_a_policy_that_changed_in_flight_is_met_by_what_its_message_says(signed: Signed) -> None:
    governed = signed.governed
    envelope = in_flight(signed)
    found = governed.json("check", "--base", "main")["findings"]
    told = next(one for one in found if one["code"] == "policy_moved")
    approving, renewing = told["hint"].split(", then: ")
    assert approving == f"workpacket approve {NAME} --gate activation"
    assert commands_in(governed.done("explain", "policy_moved").out) == ["approve", f"packet reapprove {NAME}"]
    before = governed.state(NAME)
    assert set(governed.refused("packet", "reapprove", NAME)) >= {"policy_moved"}
    again, following = approved_by_commands(signed, approving)
    assert following.endswith(f"then: {renewing}")
    governed.done(*renewing.split()[1:])
    assert codes(signed) == set()
    governed.commit("approved again")
    assert codes_of(governed, "--base", "main") == codes_of(governed) == set()
    after = governed.state(NAME)
    assert (after.lane, after.latest_moves) == (before.lane, before.latest_moves)
    event = after.history[-1]
    assert (event.type, event.attest, event.texts("replaces")) == ("reapproved", (again,), (envelope,))
    assert event.text("reason") == "the previous approvals no longer count"
    assert governed.refused("packet", "reapprove", NAME) == ["reapproval_needless"]


def test_an_event_that_lost_nothing_is_left_alone(signed: Signed) -> None:
    """An optional gate that the policy does not name was never passed, so there is nothing to replace."""
    governed = signed.governed
    signed.begin(gates={"activation": "approver", "policy": "operator"})
    signed.submitted()
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    governed.commit("judged")
    assert governed.refused("packet", "reapprove", NAME) == ["reapproval_needless"]
    assert governed.refused("packet", "reapprove", NAME, "--gate", "verdict") == ["reapproval_needless"]


def verdict_gate(signed: Signed) -> None:
    """The base names a gate for verdicts from now on."""
    governed = signed.governed
    governed.git("switch", "--quiet", "main")
    rules = '\n[approvals.gates.verdict]\nroles = ["validator"]\nthreshold = 1\nseparation = []\n'
    governed.write(".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + rules)
    governed.commit("verdicts are signed")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.git("merge", "--quiet", "main")


def test_a_verdict_that_needed_no_approval_is_approved_once_the_base_requires_it(signed: Signed) -> None:
    governed = signed.governed
    signed.begin(gates={"activation": "approver", "policy": "operator"})
    signed.submitted()
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    governed.commit("judged")
    verdict_gate(signed)
    assert codes(signed) == {"approval_missing"}
    signed.approve("verdict", VICTOR, verdict="PASS")
    governed.done("packet", "reapprove", NAME, "--gate", "verdict")
    governed.commit("approved")
    assert codes(signed) == set()
    event = governed.state(NAME).history[-1]
    assert (event.text("gate"), event.texts("replaces")) == ("verdict", ())


@pytest.mark.parametrize("what", ["a base outside of the line", "a gate that the policy did not have"])
def test_an_approval_that_never_counted_is_not_replaced(what: str, signed: Signed) -> None:
    governed = signed.governed
    gates = {"activation": "approver", "policy": "operator"}
    signed.begin(gates=gates if what == "a gate that the policy did not have" else None)
    signed.submitted()
    if what == "a base outside of the line":
        verdict = signed.draft("verdict", VICTOR, verdict="PASS")
        outside = replace(verdict, statement=replace(verdict.statement, base=governed.git("rev-parse", "HEAD")))
        signed.forged(outside, VICTOR)
        (name,) = untracked(governed)
    else:
        verdict_gate(signed)
        verdict = signed.draft("verdict", VICTOR, verdict="PASS")
        first = governed.git("rev-parse", "main~1")
        signed.forged(replace(verdict, statement=replace(verdict.statement, base=first)), VICTOR)
        (name,) = untracked(governed)
    report: Json = {"path": "report.md", "sha256": "a" * 64}
    lanes: dict[str, Json] = {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING"}
    forge(governed, NAME, "verdict.given", {**lanes, "verdict": "PASS", "report": report}, (name,))
    governed.commit("judged by hand")
    governed.git("switch", "--quiet", "main")
    governed.write(".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + "\n# Other rules.\n")
    governed.commit("other rules")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    assert governed.refused("packet", "reapprove", NAME, "--gate", "verdict") == ["reapproval_needless"]


def untracked(governed: Governed) -> list[str]:
    lines = governed.git("ls-files", "--others", "--exclude-standard", ".GOV/attestations").splitlines()
    return [line.rpartition("/")[2].partition(".")[0] for line in lines]
