"""The gates of the lifecycle with signatures of real keys: what opens them, and what a check sees later."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.governed import SPECIFICATION, forge
from lifecycle.signed import ALICE, GATES, MALLORY, NAME, OTHER, PACKET, REFINEMENT, VICTOR, Signed, codes_of
from workpacket.model.canonical import Json

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")
POLICY_FILE = ".GOV/policy/policy.toml"


def reviewed(signed: Signed) -> None:
    """Signed, activated, worked on by a coder and submitted; the branch of the work is checked out."""
    signed.begin()
    signed.submitted()


def test_signatures_open_activation_and_verdict_and_stand_in_the_events(signed: Signed) -> None:
    governed = signed.governed
    reviewed(signed)
    judged = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    assert governed.refused(*judged) == ["approval_missing"]
    assert governed.done("why", NAME).next.startswith(f"workpacket verdict {NAME}")
    envelope = signed.approve("verdict", VICTOR, verdict="PASS")
    governed.done(*judged)
    events = {event.type: event for event in governed.state(NAME).history}
    assert events["verdict.given"].attest == (envelope,)
    assert len(events["activated"].attest) == 1
    assert codes_of(governed, "--base", "main", "--uncommitted") == set()
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
    governed.done("merged", NAME)
    governed.commit("merged")
    assert governed.state(NAME).lane == "VALIDATED"
    # Long after: what was used in time stays good.
    signed.wait(days=400)
    assert codes_of(governed) == set()


def test_a_line_leads_to_who_approved_its_contract(signed: Signed) -> None:
    governed = signed.governed
    reviewed(signed)
    changed = governed.state(NAME).history[-1].data["changed"]
    assert isinstance(changed, (list, tuple))
    path = next(str(each) for each in changed if str(each).startswith("src/"))
    (packet,) = governed.json("trace", f"{path}:1")["data"]["written_for"]
    assert (packet["packet"], packet["how"], packet["approvers"]) == (NAME, "log", ["alice@example.org"])
    assert "approved  by alice@example.org" in governed.done("trace", f"{path}:1").out


def test_a_yes_to_one_verdict_is_none_to_another(signed: Signed) -> None:
    reviewed(signed)
    signed.approve("verdict", VICTOR, verdict="PASS")
    codes = signed.governed.refused("verdict", NAME, "FAIL", "--report", "report.md", "--as", "victor")
    assert "scope_moved" in codes


def test_a_signed_waiver_lifts_what_it_names_until_its_last_day(signed: Signed) -> None:
    governed = signed.governed
    signed.begin()
    governed.stub(NAME, depends=OTHER)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    signed.approve()
    governed.done("packet", "activate", NAME)
    governed.done("packet", "prepare", NAME)
    lifting = ("waive", NAME, "dependency_unknown_lane", "--until", "2026-03-10", "--reason", "elsewhere")
    assert governed.refused(*lifting) == ["approval_missing"]
    signed.approve("waiver", rule="dependency_unknown_lane", until="2026-03-10T23:59:59Z", reason="elsewhere")
    longer = ("waive", NAME, "dependency_unknown_lane", "--until", "2026-03-11", "--reason", "elsewhere")
    assert "scope_moved" in governed.refused(*longer)
    governed.done(*lifting)
    assert "nonce_used" in governed.refused(*lifting)
    signed.wait(days=10)
    assert governed.refused("claim", NAME) == ["dependency_unknown_lane"]
    signed.wait(days=-8)
    governed.done("claim", NAME)
    # The claim has changed the packet; what was waived was said of the text before.
    said = codes_of(governed, "--base", "main", "--uncommitted")
    assert said & {"subject_mismatch", "threshold_unmet", "move_without_gate"} == set()


def test_a_signed_waiver_lets_a_verdict_pass_an_unfinished_run_and_no_other(signed: Signed) -> None:
    """As of a run whose end nobody will ever know, and that is not lost either."""
    governed = signed.governed
    reviewed(signed)
    one, two = (governed.done("runtime", "run", "start", name, "--packet", NAME).out.strip() for name in ("one", "two"))
    signed.approve("verdict", VICTOR, verdict="PASS")
    judged = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    assert governed.refused(*judged) == ["run_unfinished", "run_unfinished"]
    target = one.partition("#")[0]
    terms = {"rule": "run_unfinished", "reason": "its laptop is at sea", "target": target}
    signed.approve("waiver", until="2026-03-10T23:59:59Z", **terms)
    lifting = ("waive", NAME, "run_unfinished", "--until", "2026-03-10", "--reason", terms["reason"])
    governed.done(*lifting, "--target", target)
    assert governed.refused(*judged) == ["run_unfinished"]
    governed.done("runtime", "run", "stop", two)
    governed.done(*judged)
    assert [run.run for run in governed.state(NAME).open_runs] == [target]
    assert codes_of(governed, "--base", "main", "--uncommitted") == set()


def forged(signed: Signed) -> None:
    signed.forged(signed.draft("activation", ALICE), MALLORY)


def signed_by_another(signed: Signed) -> None:
    signed.forged(signed.draft("activation", ALICE), VICTOR)


def foreign(signed: Signed) -> None:
    signed.ready(OTHER)
    signed.approve(name=OTHER)


def expired(signed: Signed) -> None:
    signed.approve()
    signed.wait(days=15)


def stale(signed: Signed) -> None:
    signed.approve()
    signed.governed.write(REFINEMENT, signed.governed.read(REFINEMENT).replace("USER_SIGNATURE: ", "USER_SIGNATURE:  "))


def revoked(signed: Signed) -> None:
    signed.revoke(signed.approve())


def key_revoked(signed: Signed) -> None:
    signed.approve()
    signed.governed.write(".GOV/policy/revoked_keys", signed.line_of(ALICE) + "\n")
    signed.governed.commit("the key was stolen")


def policy_moved(signed: Signed) -> None:
    signed.approve()
    signed.governed.write(POLICY_FILE, signed.governed.read(POLICY_FILE) + "\n# other rules\n")
    signed.governed.commit("other rules")


def spec_moved(signed: Signed) -> None:
    signed.approve()
    signed.governed.write(".GOV/spec/SPEC_v1.md", SPECIFICATION + "\nMore.\n")
    signed.governed.commit("another specification")


def rules_of_the_work_tree(signed: Signed) -> None:
    governed = signed.governed
    path = ".GOV/policy/allowed_signers"
    line = signed.line_of(MALLORY)
    governed.write(path, governed.read(path) + f'{MALLORY} namespaces="workpacket-approval@v1" {line}\n')
    forged(signed)


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        (forged, "signer_unknown"),
        (signed_by_another, "approver_mismatch"),
        (foreign, "approval_missing"),
        (expired, "approval_expired"),
        (stale, "subject_mismatch"),
        (revoked, "approval_revoked"),
        (key_revoked, "key_revoked"),
        (policy_moved, "policy_moved"),
        (spec_moved, "approved_spec_moved"),
        (rules_of_the_work_tree, "signer_unknown"),
    ],
)
def test_what_is_no_approval_now_is_refused_and_changes_nothing(
    signed: Signed, attack: Callable[[Signed], None], code: str
) -> None:
    signed.begin()
    signed.ready()
    attack(signed)
    codes = signed.governed.refused("create-task-packet", NAME)
    assert code in codes
    assert all(one["command"] for one in signed.governed.json("packet", "activate", NAME)["data"]["unmet"])


def activated(signed: Signed) -> Path:
    """Where the envelope lies on which the activation rests."""
    signed.begin()
    signed.governed.commit("begin")
    signed.governed.git("switch", "--quiet", "--create", "change")
    signed.ready()
    envelope = signed.approve()
    signed.governed.done("packet", "activate", NAME)
    signed.governed.replace(PACKET, "TERMS: TODO", "TERMS: x")
    assert codes_of(signed.governed, "--base", "main", "--uncommitted") == set()
    return signed.governed.root / f".GOV/attestations/{envelope}.dsse.json"


def test_an_envelope_that_was_removed_is_missed(signed: Signed) -> None:
    activated(signed).unlink()
    assert {"approval_missing"} <= codes_of(signed.governed)
    assert {"approval_missing"} <= codes_of(signed.governed, "--base", "main", "--uncommitted")


def test_an_envelope_that_was_edited_is_seen(signed: Signed) -> None:
    path = activated(signed)
    path.write_bytes(path.read_bytes().replace(b'"payload":"e', b'"payload":"f'))
    assert "envelope_renamed" in codes_of(signed.governed, "--base", "main", "--uncommitted")


def test_an_event_that_rests_on_an_envelope_of_another_gate_is_seen(signed: Signed) -> None:
    governed = signed.governed
    reviewed(signed)
    activation = next(event for event in governed.state(NAME).history if event.type == "activated").attest
    report: Json = {"path": "report.md", "sha256": "a" * 64}
    lanes: dict[str, Json] = {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING"}
    forge(governed, NAME, "verdict.given", {**lanes, "verdict": "PASS", "report": report}, activation)
    assert "approval_missing" in codes_of(governed, "--base", "main", "--uncommitted")
    assert "approval_missing" in codes_of(governed)


def test_a_right_envelope_does_not_excuse_a_wrong_one_beside_it(signed: Signed) -> None:
    governed = signed.governed
    reviewed(signed)
    activation = next(event for event in governed.state(NAME).history if event.type == "activated").attest
    right = signed.approve("verdict", VICTOR, verdict="PASS")
    lanes: dict[str, Json] = {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING"}
    forge(governed, NAME, "verdict.given", {**lanes, "verdict": "PASS"}, (*activation, right))
    assert "attest_unfit" in codes_of(governed)


def test_a_replayed_activation_is_seen(signed: Signed) -> None:
    governed = signed.governed
    activated(signed)
    event = next(event for event in governed.state(NAME).history if event.type == "activated")
    forge(governed, NAME, "activated", event.data, event.attest)
    assert "nonce_used" in codes_of(governed, "--base", "main", "--uncommitted")


def contradicting_verdicts(signed: Signed) -> None:
    """A signed PASS and a signed FAIL on two branches that were merged."""
    governed = signed.governed
    configured = f"{sys.executable} -m workpacket board merge-driver %O %A %B %P %L"
    governed.git("config", "merge.workpacket.driver", configured)
    reviewed(signed)
    for verdict in ("PASS", "FAIL"):
        governed.git("switch", "--quiet", "--create", verdict, f"wp/{NAME}")
        signed.approve("verdict", VICTOR, verdict=verdict)
        governed.done("verdict", NAME, verdict, "--report", "report.md", "--as", "victor")
        governed.commit(verdict)
    governed.git("merge", "--quiet", "-X", "ours", "--message", "both", "PASS")
    assert governed.state(NAME).forked


def test_no_settlement_drops_a_signed_verdict_where_the_policy_has_no_gate_for_that(signed: Signed) -> None:
    contradicting_verdicts(signed)
    governed = signed.governed
    assert governed.refused("packet", "resolve", NAME, "--lane", "FAIL", "--reason", "x") == ["approval_missing"]
    moves: list[Json] = [*sorted(move.id for move in governed.state(NAME).latest_moves)]
    forge(governed, NAME, "fork.resolved", {"lane_from": "FORKED", "lane_to": "FAIL", "moves": moves, "reason": "x"})
    assert "move_without_gate" in codes_of(governed, "--base", "main", "--uncommitted")


def test_a_signature_at_the_gate_resolve_settles_a_fork_in_its_lane_and_no_other(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GATES, "resolve", "approver")
    contradicting_verdicts(signed)
    governed = signed.governed
    settle = ("resolve", NAME, "--reason", "the report was of another commit", "--lane")
    assert governed.refused(*settle, "FAIL") == ["approval_missing"]
    envelope = signed.approve("resolve", ALICE, lane="FAIL")
    assert "scope_moved" in governed.refused(*settle, "MERGE_PENDING")
    governed.done(*settle, "FAIL")
    (settled,) = [event for event in governed.state(NAME).history if event.type == "fork.resolved"]
    assert (settled.attest, governed.state(NAME).lane) == ((envelope,), "FAIL")
    assert codes_of(governed, "--base", "main", "--uncommitted") == set()


def test_two_approvals_of_one_minute_on_two_branches_can_both_land(signed: Signed) -> None:
    governed = signed.governed
    signed.begin()
    for name in (NAME, OTHER):
        signed.ready(name)
    governed.commit("ready")
    minute = governed.clock.now.replace(second=0) + timedelta(minutes=10)
    for name in (NAME, OTHER):
        governed.git("switch", "--quiet", "--create", f"approve-{name}", "main")
        governed.clock.now = minute
        signed.approve(name=name)
        governed.done("packet", "activate", name)
        governed.replace(f".GOV/task_packets/{name}.md", "TERMS: TODO", "TERMS: x")
        governed.commit("activated")
    tokens = {
        line
        for name in (NAME, OTHER)
        for line in governed.git("show", f"approve-{name}:.GOV/refinements/{name}.md").splitlines()
        if line.startswith("- USER_SIGNATURE:")
    }
    assert len(tokens) == 1
    governed.git("switch", "--quiet", "main")
    for name in (NAME, OTHER):
        governed.git("merge", "--quiet", "-X", "ours", "--no-ff", f"approve-{name}")
    governed.git("add", "--all")
    governed.done("board", "sync")
    governed.commit("both")
    found = governed.json("check")["findings"]
    assert [each for each in found if each["code"] in ("signature_reused", "audit_signature_twice")] == []
