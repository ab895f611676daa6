"""The verdict of a gate in real repositories: policy from the base, whatever the work tree says."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from git.scratch import git
from shell.approvals.story import (
    ALICE,
    BOB,
    CAROL,
    POLICY,
    REFINEMENT_PATH,
    SPEC,
    STUB_PATH,
    WP,
    Story,
    codes,
)
from workpacket.approvals.facts import Verdict
from workpacket.documents.refinement import tokens_of
from workpacket.model.canonical import Json
from workpacket.problem import WorkpacketError
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import redraft
from workpacket.shell.approvals.facts import gate_verdict, open_approvals
from workpacket.shell.keys import find_key, signers_line


def test_a_signed_approval_opens_the_gate_and_fills_in_the_refinement(story: Story) -> None:
    envelope = story.approve()

    verdict = story.verdict()

    assert (verdict.met, verdict.assurance) == (True, "signed")
    assert [(voice.principal, voice.envelope) for voice in verdict.voices] == [(ALICE, envelope)]
    text = story.read(REFINEMENT_PATH)
    assert "- USER_REVIEW_STATUS: APPROVED\n- USER_SIGNATURE: alice" in text
    assert f"- USER_APPROVAL_EVIDENCE: APPROVE REFINEMENT {WP}\n" in text


def test_without_an_approval_the_gate_says_who_is_asked(story: Story) -> None:
    verdict = story.verdict()
    assert codes(verdict) == {"approval_missing"}
    assert "approver" in verdict.unmet[0].message


def test_one_byte_more_closes_the_gate(story: Story) -> None:
    story.approve()
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "\n")
    assert "subject_mismatch" in codes(story.verdict())


def test_a_signer_added_in_the_work_tree_is_nobody(story: Story, tmp_path: Path) -> None:
    from shell.agents import make_key_file

    own = make_key_file(tmp_path / "agent")
    path = ".GOV/policy/allowed_signers"
    story.write(path, story.read(path) + signers_line("mallory@example.org", find_key(str(own)).public) + "\n")
    story.keys["mallory@example.org"] = own
    with pytest.raises(WorkpacketError) as caught:
        story.approve("mallory@example.org")
    assert caught.value.code == "signer_unknown"


def test_a_policy_relaxed_on_the_branch_is_not_the_policy(story: Story) -> None:
    story.write(".GOV/policy/policy.toml", POLICY.replace("threshold = 1", "threshold = 2", 1))
    story.commit("two persons")
    story.branch("relaxed")
    story.write(".GOV/policy/policy.toml", POLICY)
    story.commit("one is enough")
    story.approve()
    assert codes(story.verdict()) == {"threshold_unmet"}


def test_an_approval_expires(story: Story) -> None:
    story.approve(validity=timedelta(days=2))
    assert story.verdict(later=timedelta(days=1)).met
    assert "approval_expired" in codes(story.verdict(later=timedelta(days=3)))


def test_a_revoked_approval_does_not_count(story: Story) -> None:
    story.revoke(story.approve())
    assert "approval_revoked" in codes(story.verdict())


def test_an_operator_may_revoke(story: Story) -> None:
    story.revoke(story.approve(), CAROL)
    assert "approval_revoked" in codes(story.verdict())


def test_a_revocation_on_the_base_is_not_undone_by_deleting_it_here(story: Story) -> None:
    revocation = story.revoke(story.approve())
    story.commit("revoked")
    (story.root / f".GOV/attestations/{revocation}.dsse.json").unlink()
    assert "approval_revoked" in codes(story.verdict())


def test_a_no_stands_and_is_not_evaded_by_filling_in_the_fields_again(story: Story) -> None:
    story.approve(BOB, decision="reject")
    with pytest.raises(WorkpacketError) as caught:
        story.approve(ALICE)
    assert caught.value.code == "approval_rejected"
    story.approve(BOB)
    assert story.verdict().met


def test_the_second_person_approves_the_bytes_that_the_first_has_approved(story: Story) -> None:
    story.write(".GOV/policy/policy.toml", POLICY.replace("threshold = 1", "threshold = 2", 1))
    story.commit("two persons")
    story.approve(ALICE)
    assert "threshold_unmet" in codes(story.verdict())
    story.approve(BOB)
    verdict = story.verdict()
    assert verdict.met
    assert sorted(voice.principal for voice in verdict.voices) == [ALICE, BOB]


def test_a_specification_that_moved_on_the_base_makes_it_stale(story: Story) -> None:
    story.approve()
    story.write("Spec_v1.md", SPEC + "It MUST be quick.\n")
    assert story.verdict().met, "what is not on the base is not in force"
    story.commit("the specification moves")
    assert "approved_spec_moved" in codes(story.verdict())


def test_a_scope_widened_in_the_stub_makes_it_stale(story: Story) -> None:
    story.approve()
    stub = f".GOV/task_packets/stubs/{WP}.md"
    story.write(stub, story.read(stub).replace("  - The reader.", "  - The reader.\n  - Everything else."))
    assert "scope_moved" in codes(story.verdict())


def test_a_lane_move_behind_its_back_makes_it_stale(story: Story) -> None:
    envelope = story.approve()
    story.activate(envelope)
    assert {"log_moved", "nonce_used"} <= codes(story.verdict())


def test_an_author_may_not_approve_where_the_policy_separates(story: Story) -> None:
    text = POLICY.replace("separation = []", 'separation = ["author"]', 1)
    story.write(
        ".GOV/policy/policy.toml", text.replace(f'approver = ["{ALICE}"', f'approver = ["ann@example.org", "{ALICE}"')
    )
    signers = ".GOV/policy/allowed_signers"
    story.write(signers, story.read(signers).replace(BOB, "ann@example.org"))
    story.commit("separation")
    with pytest.raises(WorkpacketError) as caught:
        story.approve(BOB)  # the key is Ann's now, and she has committed the refinement
    assert caught.value.code == "own_work"
    story.approve(ALICE)
    assert story.verdict().met


def test_until_the_policy_is_committed_gates_name_the_command_that_anchors_it(tmp_path: Path) -> None:
    from git.scratch import commit, make_repository

    repository = make_repository(tmp_path / "new")
    commit(tmp_path / "new", "first", **{"README.md": "x"})
    verdict = gate_verdict(repository, WP, "activation", moment=moment())
    assert codes(verdict) == {"policy_unanchored"}
    assert "git add .GOV/policy && git commit" in verdict.unmet[0].message


def test_in_a_repository_without_a_commit_nothing_is_anchored(tmp_path: Path) -> None:
    from git.scratch import make_repository

    repository = make_repository(tmp_path / "new")
    verdict = gate_verdict(repository, WP, "activation", moment=moment())
    assert codes(verdict) == {"policy_unanchored"}


def test_a_policy_that_was_rolled_back_is_noticed(story: Story) -> None:
    old = git(story.root, "rev-parse", "HEAD")
    story.write(".GOV/policy/policy.toml", POLICY.replace("threshold = 1", "threshold = 2", 1))
    story.commit("stricter")
    assert "approval_missing" in codes(story.verdict())
    git(story.root, "reset", "--quiet", "--hard", old)
    assert codes(story.verdict()) == {"policy_rolled_back"}


def test_a_base_named_by_hand_is_not_remembered(story: Story) -> None:
    story.branch("evil")
    story.write(".GOV/policy/policy.toml", POLICY.replace("threshold = 1", "threshold = 2", 1))
    evil = story.commit("evil")
    story.verdict(base=evil)
    assert "approval_missing" in codes(story.verdict())


def test_an_approval_that_was_used_on_the_base_needs_no_more_time(story: Story) -> None:
    envelope = story.approve()
    story.commit("approved")
    event = story.activate(envelope)
    story.commit("activated")
    assert consumed(story, event.id, later=timedelta(days=400)) == set()


def test_a_revocation_reaches_an_approval_that_was_used_on_the_base(story: Story) -> None:
    envelope = story.approve()
    event = story.activate(envelope)
    story.commit("activated")
    story.revoke(envelope)
    assert consumed(story, event.id) >= {"approval_revoked"}


def test_until_it_is_on_the_base_a_used_approval_expires(story: Story) -> None:
    envelope = story.approve()
    story.branch("work")
    event = story.activate(envelope)
    story.commit("activated")
    assert consumed(story, event.id) == set()
    assert "approval_expired" in consumed(story, event.id, later=timedelta(days=15))


def consumed(story: Story, event: str, *, later: timedelta = timedelta()) -> set[str]:
    """What is unmet for an event that has used an approval."""
    from shell.approvals.story import moment_in
    from workpacket.shell.approvals.facts import open_approvals

    with open_approvals(story.repository, None, moment_in(later)) as approvals:
        found = approvals.log(WP).by_id[event]
        return codes(approvals.verdict(WP, "activation", found))


@pytest.mark.parametrize("packet", ["../../etc/passwd", "", "WP 1", "a/b", "-x", "WP-1\n", "WP-1\x00"])
def test_a_word_that_is_no_id_reaches_no_file(story: Story, packet: str) -> None:
    with pytest.raises(WorkpacketError) as caught:
        gate_verdict(story.repository, packet, "activation", moment=moment())
    assert caught.value.code == "invalid_value"


def test_an_edited_log_closes_the_gate(story: Story) -> None:
    story.approve()
    event = next(path for path in (story.root / f".GOV/log/{WP}").iterdir() if b"presented" in path.read_bytes())
    event.write_bytes(event.read_bytes() + b" ")
    assert codes(story.verdict()) == {"event_edited"}


def test_a_link_in_the_place_of_the_attestations_is_refused(story: Story, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (story.root / ".GOV/attestations").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkpacketError) as caught:
        story.verdict()
    assert caught.value.code == "path_is_link"


def test_in_a_shallow_clone_nothing_is_judged(story: Story, tmp_path: Path) -> None:
    from workpacket.git.repository import find_repository

    story.approve()
    story.commit("second")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{story.root}", "shallow")
    with pytest.raises(WorkpacketError) as caught:
        gate_verdict(find_repository(tmp_path / "shallow", {}), WP, "activation", moment=moment())
    assert caught.value.code == "history_shallow"


def test_a_file_that_changes_while_the_person_reads_stops_the_writing(story: Story) -> None:
    draft = story.draft()
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "- one line more\n")
    with pytest.raises(WorkpacketError) as caught:
        story.write_signed(draft)
    assert caught.value.code == "changed_meanwhile"
    assert not (story.root / ".GOV/attestations").exists()


def test_a_signature_of_another_key_is_never_written(story: Story) -> None:
    draft = story.draft(ALICE)
    with pytest.raises(WorkpacketError) as caught:
        story.write_signed(draft, BOB)
    assert caught.value.code == "approver_mismatch"
    assert "PENDING" in story.read(REFINEMENT_PATH)


def test_the_audit_gets_a_row_where_there_is_one(story: Story) -> None:
    audit = ".GOV/roles_shared/SIGNATURE_AUDIT.md"
    head = "| Signature | Used By | Date/Time | Purpose | Master Spec Version | Notes |\n|---|---|---|---|---|---|\n"
    story.write(audit, f"# Signatures\n\n{head}| mara310120260930 | User | 2026-01-31 09:30 | x | v1 | |\n")
    envelope = story.approve()
    rows = story.read(audit).splitlines()[4:]
    assert rows[0].startswith("| alice")
    assert f"Refinement approved: {WP}" in rows[0]
    assert envelope[:12] in rows[0]
    assert rows[1].startswith("| mara")


@pytest.mark.parametrize(("board", "branch"), [("never", "main"), ("base", "work")])
def test_the_audit_is_left_alone_where_the_policy_has_no_shared_page_written(
    story: Story, board: str, branch: str
) -> None:
    audit, policy = ".GOV/roles_shared/SIGNATURE_AUDIT.md", ".GOV/policy/policy.toml"
    head = "| Signature | Used By | Date/Time | Purpose | Master Spec Version | Notes |\n|---|---|---|---|---|---|\n"
    story.write(audit, f"# Signatures\n\n{head}")
    story.write(policy, f'{story.read(policy)}\n[board]\ncommit = "{board}"\n')
    story.commit("An audit")
    if branch != "main":
        git(story.root, "switch", "--quiet", "--create", branch)
    before = story.read(audit)
    story.approve()
    assert story.read(audit) == before


def test_a_revocation_on_the_base_is_not_undone_by_editing_it_here(story: Story) -> None:
    revocation = story.revoke(story.approve())
    story.commit("revoked")
    story.write(f".GOV/attestations/{revocation}.dsse.json", "{}\n")
    assert "approval_revoked" in codes(story.verdict())


def test_a_key_that_was_removed_is_not_brought_back_by_the_approval_that_added_it(story: Story) -> None:
    signers = ".GOV/policy/allowed_signers"
    with_bob = story.read(signers)
    without = "".join(f"{line}\n" for line in with_bob.splitlines() if BOB not in line)
    story.write(signers, without)
    story.commit("bob is gone")
    story.write(signers, with_bob)
    story.approve(CAROL, packet="policy", gate="policy")
    assert story.verdict(gate="policy").met
    story.commit("bob is back")
    story.write(signers, without)
    story.commit("and gone again")
    story.write(signers, with_bob)
    assert "nonce_used" in codes(story.verdict(gate="policy"))


VERDICT_POLICY = POLICY.replace(
    "[approvals.gates.policy]",
    '[approvals.gates.verdict]\nroles = ["approver"]\nthreshold = 1\nseparation = ["coder"]\n[approvals.gates.policy]',
)
PACKET_PATH = f".GOV/task_packets/{WP}.md"
PACKET = f"""# Task Packet: {WP}

## METADATA
- WP_ID: {WP}

## SCOPE
- What: Parse.
- IN_SCOPE_PATHS:
  - src/parser.py
"""


def with_a_packet(story: Story) -> None:
    from workpacket.ledger.log import NewLogEvent
    from workpacket.shell.approvals.envelopes import read_packet_log, work_tree

    story.write(".GOV/policy/policy.toml", VERDICT_POLICY)
    story.write(PACKET_PATH, PACKET)
    with work_tree(story.repository) as tree:
        log = read_packet_log(tree, WP)
    lease: dict[str, Json] = {"holder": f"Bob <{BOB}>", "lease": "1", "expires_at": "2027-01-01T00:00:00Z"}
    story.event(NewLogEvent("claimed", {"lane_from": "STUB", "lane_to": "IN_PROGRESS", **lease}), log.events)
    story.commit("claimed")


def test_an_approval_of_one_verdict_is_none_of_another(story: Story) -> None:
    with_a_packet(story)
    story.approve(gate="verdict", terms={"verdict": "FAIL"})

    def verdict_on(**terms: str) -> Verdict:
        return gate_verdict(story.repository, WP, "verdict", moment=moment(), terms=terms)

    assert verdict_on(verdict="FAIL").met
    assert "scope_moved" in codes(verdict_on(verdict="PASS"))
    assert "scope_moved" in codes(verdict_on())


def test_the_coder_gives_no_verdict_on_the_own_work(story: Story) -> None:
    with_a_packet(story)
    with pytest.raises(WorkpacketError) as caught:
        story.approve(BOB, gate="verdict", terms={"verdict": "PASS"})
    assert caught.value.code == "own_work"


def test_a_damaged_memory_of_the_policy_is_not_taken_for_none(story: Story) -> None:
    story.verdict()
    (memory,) = (story.home / "config" / "workpacket" / "trust").iterdir()
    memory.write_text("{}")
    assert codes(story.verdict()) == {"trust_file_malformed"}


def test_where_nothing_can_be_remembered_the_verdict_is_the_same(story: Story) -> None:
    (story.home / "config").write_text("not a folder")
    assert codes(story.verdict()) == {"approval_missing"}


def test_the_default_branch_of_the_remote_is_the_base(story: Story, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(story.root), "clone")
    clone = Story(tmp_path / "clone", story.home)
    clone.write(".GOV/policy/policy.toml", POLICY.replace("threshold = 1", "threshold = 2", 1))
    clone.commit("a stricter policy, not pushed")
    clone.approve()
    assert clone.verdict().met


LEGACY = POLICY.replace(
    "separation = []", 'separation = []\nlegacy_tokens = "accepted although anyone can type them"', 1
)


def typed_by_anyone(story: Story, token: str) -> None:
    text = story.read(REFINEMENT_PATH)
    story.write(
        REFINEMENT_PATH, text.replace("PENDING", "APPROVED").replace("SIGNATURE: <pending>", f"SIGNATURE: {token}")
    )


def test_a_plain_token_opens_no_gate_unless_the_policy_says_so(story: Story) -> None:
    typed_by_anyone(story, "mara310120260930")
    assert "legacy_refused" in codes(story.verdict())
    story.write(".GOV/policy/policy.toml", LEGACY)
    story.commit("tokens are good enough")
    told = codes(story.verdict())
    assert "legacy_refused" not in told
    assert {"legacy_date_off", "legacy_hasty"} <= told


def test_a_plain_token_that_ever_stood_on_another_packet_is_used_up(story: Story) -> None:
    story.write(".GOV/policy/policy.toml", LEGACY)
    other = ".GOV/refinements/WP-2-Lexer-v1.md"
    story.write(other, "- USER_SIGNATURE: mara310120260930\n")
    story.commit("somewhere else")
    (story.root / other).unlink()
    story.commit("and gone")
    typed_by_anyone(story, "mara310120260930")
    assert "legacy_reused" in codes(story.verdict())


def another_packet(story: Story, number: int) -> str:
    """One more packet like the first, with its own refinement, log and stub."""
    other = f"WP-{number}-Lexer-v1"
    for path in (REFINEMENT_PATH, STUB_PATH):
        story.write(path.replace(WP, other), story.read(path).replace(WP, other))
    return other


def test_packets_that_are_approved_in_one_minute_have_a_token_each(story: Story) -> None:
    others = [another_packet(story, number) for number in range(2, 6)]
    story.commit("more of them")
    for packet in (WP, *others):
        story.approve(packet=packet)
    tokens = {re.findall("alice[0-9]{12}", story.read(REFINEMENT_PATH.replace(WP, name)))[0] for name in (WP, *others)}
    assert len(tokens) == 5
    for packet in (WP, *others):
        assert gate_verdict(story.repository, packet, "activation", moment=moment()).met


def test_a_statement_with_a_later_token_is_attached_to_the_same_bytes(story: Story) -> None:
    other = another_packet(story, 2)
    story.commit("two of them")
    story.approve()
    draft = story.draft(packet=other)
    with open_approvals(story.repository, None, moment()) as approvals:
        again = redraft(approvals, draft.statement, moment())
    assert (again.token, again.matter) == (draft.token, draft.matter)


def test_when_an_hour_of_tokens_is_taken_nothing_is_approved(story: Story) -> None:
    other = another_packet(story, 2)
    tokens = "\n".join(tokens_of(ALICE, datetime.now(UTC) - timedelta(minutes=1)))
    later = "\n".join(tokens_of(ALICE, datetime.now(UTC) + timedelta(minutes=5)))
    story.write(f".GOV/refinements/{other}.md", f"{tokens}\n{later}\n")
    with pytest.raises(WorkpacketError) as caught:
        story.approve()
    assert caught.value.code == "signature_minute_taken"
