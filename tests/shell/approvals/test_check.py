"""Approvals as part of `workpacket check` and of `approvals verify`."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest

from git.scratch import git
from shell.approvals.deciding import digest_of, drafted, written
from shell.approvals.story import ALICE, BOB, POLICY, REFINEMENT_PATH, STUB_PATH, WP, Story, moment_in
from workpacket.model.layout import BASELINE_PATH


def found(story: Story, *words: str) -> dict[str, str]:
    """Codes of the family approval and integrity that `check` reports, with their places."""
    told: list[dict[str, Any]] = story.json("check", *words)["findings"]
    approval = story.json("approvals", "verify", *words)["findings"]
    here = {(each["code"], each["path"]) for each in approval}
    places = {each["code"]: f"{each['path']}:{each['line']}" for each in told if (each["code"], each["path"]) in here}
    lost = {code for code, _ in here} - places.keys()
    assert not lost - {"log_file_deleted", "log_file_modified"}, "check and verify agree"
    return places


def test_a_sound_approval_is_no_finding(story: Story) -> None:
    story.approve()
    assert found(story) == {}


def test_one_byte_more_is_found_at_the_line_that_claims_approval(story: Story) -> None:
    story.approve()
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "- and more\n")
    assert found(story) == {"subject_mismatch": f"{REFINEMENT_PATH}:8"}


def test_a_refinement_that_merely_claims_approval_is_found(story: Story) -> None:
    text = story.read(REFINEMENT_PATH).replace("PENDING", "APPROVED").replace("<pending>", "alice010120260900")
    story.write(REFINEMENT_PATH, text)
    assert found(story)["approval_missing"] == f"{REFINEMENT_PATH}:8"


def test_what_the_base_has_claimed_before_there_was_a_policy_is_left_alone(story: Story) -> None:
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH).replace("PENDING", "APPROVED"))
    story.commit("as it was before")
    assert found(story) == {}


def test_an_edited_envelope_is_found_at_its_file(story: Story) -> None:
    envelope = story.approve()
    path = f".GOV/attestations/{envelope}.dsse.json"
    story.write(path, story.read(path).replace('"payload":"e', '"payload":"f'))
    assert found(story)["envelope_renamed"] == f"{path}:0"


def test_an_activation_without_an_approval_is_found_at_its_event(story: Story) -> None:
    event = story.activate()
    assert found(story)["approval_missing"] == f"{event.path}:0"


def test_an_activation_that_names_no_envelope_is_found(story: Story) -> None:
    story.approve()
    event = story.activate()
    assert found(story) == {"approval_missing": f"{event.path}:0"}


def test_an_activation_with_its_approval_is_no_finding_before_and_after_the_merge(story: Story) -> None:
    story.branch("work")
    envelope = story.approve()
    story.activate(envelope)
    assert found(story) == {}
    story.commit("activated")
    assert found(story, "--base", "main", "--uncommitted") == {}
    git(story.root, "checkout", "--quiet", "main")
    git(story.root, "merge", "--quiet", "--ff-only", "work")
    assert found(story) == {}


def test_a_refinement_edited_after_activation_is_found(story: Story) -> None:
    story.activate(story.approve())
    story.commit("activated")
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "- and more\n")
    assert found(story) == {"subject_mismatch": f"{REFINEMENT_PATH}:0", "contract_changed": f"{STUB_PATH}:0"}


def test_a_refinement_edited_after_activation_is_found_whatever_it_says_of_itself(story: Story) -> None:
    story.activate(story.approve())
    story.commit("activated")
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH).replace("APPROVED", "PENDING"))
    assert found(story) == {"subject_mismatch": f"{REFINEMENT_PATH}:0"}
    (story.root / REFINEMENT_PATH).unlink()
    assert found(story) == {"subject_mismatch": f"{REFINEMENT_PATH}:0", "contract_changed": f"{STUB_PATH}:0"}


def test_a_changed_text_that_was_approved_again_at_the_first_gate_needs_an_amendment(story: Story) -> None:
    story.activate(story.approve())
    story.commit("activated")
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "- and more\n")
    story.approve()
    assert found(story) == {"contract_changed": f"{STUB_PATH}:0"}


def test_one_approval_carries_one_event(story: Story) -> None:
    envelope = story.approve()
    story.activate(envelope)
    story.activate(envelope, refinement=None)
    assert "nonce_used" in found(story)


def test_an_approval_that_grew_stale_unused_is_no_fault_of_the_repository(story: Story) -> None:
    story.approve()
    story.commit("approved")
    story.write("Spec_v1.md", "another specification\n")
    story.commit("the specification moves")
    assert found(story) == {}
    assert not story.verdict().met


def baseline_of(*lines: str) -> str:
    """A baseline that knows these lines of one file, by their digests."""
    known = ({"path": STUB_PATH, "code": "date_only", "line": line, "count": 1} for line in lines)
    return json.dumps({"version": 1, "findings": [*known]}) + "\n"


def test_what_a_change_adds_to_the_baseline_needs_the_approval_of_a_policy(story: Story) -> None:
    story.write(BASELINE_PATH, baseline_of("0123456789abcdef"))
    assert found(story)["approval_missing"] == ".GOV/policy/policy.toml:0"


def test_a_baseline_that_only_shrinks_needs_no_approval(story: Story) -> None:
    story.write(BASELINE_PATH, baseline_of("0123456789abcdef", "fedcba9876543210"))
    story.commit("a baseline, as it is on the base")
    story.write(BASELINE_PATH, baseline_of("fedcba9876543210"))
    assert found(story) == {}
    (story.root / BASELINE_PATH).unlink()
    assert found(story) == {}
    story.write(BASELINE_PATH, baseline_of("fedcba9876543210", "aaaaaaaaaaaaaaaa"))
    assert "approval_missing" in found(story)


def test_a_policy_that_was_not_approved_is_found(story: Story) -> None:
    story.write(
        ".GOV/policy/allowed_signers", story.read(".GOV/policy/allowed_signers").replace(BOB, "eve@example.org")
    )
    assert found(story)["approval_missing"] == ".GOV/policy/policy.toml:0"


def test_a_table_whose_name_is_escaped_is_the_same_table(story: Story) -> None:
    policy = story.read(".GOV/policy/policy.toml")
    story.write(".GOV/policy/policy.toml", policy.replace("[approvals", r'["\u0061pprovals"'))
    story.commit("the same policy")
    story.write(".GOV/policy/allowed_signers", story.read(".GOV/policy/allowed_signers").replace(BOB, "eve@x.org"))
    assert found(story)["approval_missing"] == ".GOV/policy/policy.toml:0"


def test_approvals_cannot_be_ignored(story: Story) -> None:
    story.activate()
    status = story.run("check", "--ignore", "approval_missing", "--select", "hint_text_left").status
    assert status == 1
    assert "approval_missing" in story.run("check", "--ignore", "approval_missing").out


def test_a_revocation_is_seen_by_a_check_of_files_that_have_not_changed(story: Story) -> None:
    envelope = story.approve()
    story.activate(envelope)
    story.commit("activated")
    first = story.run("check").out
    story.revoke(envelope, ALICE)
    assert "approval_revoked" not in first
    assert "approval_revoked" in story.run("check").out


def test_against_a_base_nothing_of_the_log_may_be_gone(story: Story) -> None:
    event = next((story.root / f".GOV/log/{WP}").iterdir())
    event.unlink()
    told = {each["code"] for each in story.json("check", "--base", "main", "--uncommitted")["findings"]}
    assert "log_file_deleted" in told


def test_with_a_base_the_change_cannot_switch_its_own_judge_off(story: Story) -> None:
    story.activate()
    git(story.root, "rm", "-r", "-q", "--cached", ".GOV/policy")
    for name in ("policy.toml", "allowed_signers"):
        (story.root / ".GOV/policy" / name).unlink()
    told = {each["code"] for each in story.json("check", "--base", "main", "--uncommitted")["findings"]}
    assert "approval_missing" in told


def test_severities_are_read_from_the_base(story: Story) -> None:
    story.write("spec_other.md", "x")
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "- caf\u00e9\n")
    story.write(".GOV/policy/policy.toml", POLICY + '\n[check.severity]\nrefinement_not_ascii = "off"\n')
    told = {each["code"] for each in story.json("check", "--base", "main", "--uncommitted")["findings"]}
    here = {each["code"] for each in story.json("check")["findings"]}
    assert "refinement_not_ascii" in told
    assert "refinement_not_ascii" not in here


@pytest.mark.parametrize(
    ("used", "code"),
    [
        pytest.param(timedelta(0), "approval_expired", id="now"),
        pytest.param(timedelta(minutes=90), "use_backdated", id="dated-back-behind-the-base"),
    ],
)
def test_an_approval_that_expired_before_the_base_moved_on_cannot_have_been_used_before_that(
    story: Story, used: timedelta, code: str
) -> None:
    """As after a fast-forward, the commit that uses it stands on the line of the base itself."""
    story.activate(approve_two_hours_ago(story, validity=timedelta(hours=1)))
    commit_dated(story, used)
    assert ({"approval_expired", "use_backdated"} & found(story).keys()) == {code}
    assert story.run("approvals", "verify").status == (code == "approval_expired")


def approve_two_hours_ago(story: Story, validity: timedelta) -> str:
    given = moment_in(-timedelta(hours=2))
    draft = drafted(story.root, story.keys[ALICE], given, WP, "activation", "approve", validity=validity)
    return digest_of(written(story.root, story.keys[ALICE], given, draft))


def commit_dated(story: Story, ago: timedelta) -> None:
    git(story.root, "add", "--all")
    git(story.root, "commit", "--quiet", "-m", "activated", date=f"{time.time() - ago.total_seconds():.0f} +0000")


def test_a_commit_that_is_dated_back_is_of_no_interest_where_the_approval_was_in_time_all_the_same(
    story: Story,
) -> None:
    story.activate(approve_two_hours_ago(story, validity=timedelta(days=1)))
    commit_dated(story, timedelta(minutes=90))
    assert found(story) == {}


def test_a_base_that_is_dated_ahead_makes_nothing_late(story: Story) -> None:
    git(story.root, "commit", "--quiet", "--allow-empty", "-m", "a wrong clock", date="2099-01-01T00:00:00Z")
    story.activate(story.approve())
    story.commit("activated")
    assert found(story) == {}
