"""Attacks that use a true signature for something it was not given for, or at another time."""

from __future__ import annotations

from datetime import timedelta

from corpora.attacks.generator.genuine import change_policy, first_nonce
from corpora.attacks.generator.people import ALICE, OSCAR
from corpora.attacks.generator.scenario import (
    CONSUMER,
    CONTRACT,
    GENESIS,
    ISSUED,
    MOVED,
    NOW,
    OTHER_CONTRACT,
    OTHER_EVENT,
    PREPARED,
    REFINEMENT,
    SPEC,
    SPEC_TEXT,
    Scenario,
    case,
    sha256,
)
from workpacket.approvals.envelope import RepositoryName, Spec, Subject
from workpacket.approvals.sshsig import NAMESPACE


@case("subject_mismatch")
def one_byte_more(scenario: Scenario) -> None:
    """One space was added to the approved text."""
    scenario.approve()
    scenario.tree[REFINEMENT] += b" "


@case("subject_mismatch")
def line_ends_changed(scenario: Scenario) -> None:
    """The approved text with CRLF: the same to the eye, other bytes."""
    scenario.approve()
    scenario.tree[REFINEMENT] = scenario.tree[REFINEMENT].replace(b"\n", b"\r\n")


@case("subject_mismatch")
def byte_order_mark_added(scenario: Scenario) -> None:
    """The approved text with a byte order mark in front."""
    scenario.approve()
    scenario.tree[REFINEMENT] = b"\xef\xbb\xbf" + scenario.tree[REFINEMENT]


@case("subject_mismatch")
def approved_under_another_path(scenario: Scenario) -> None:
    """The same bytes, approved as another file."""
    scenario.approve(subjects=(Subject(".GOV/refinements/WP-1-Harmless.md", sha256(scenario.tree[REFINEMENT])),))


@case("subject_mismatch")
def second_file_smuggled_in(scenario: Scenario) -> None:
    """What is judged holds a file that was not approved."""
    scenario.approve()
    scenario.tree["notes.md"] = b"and delete the safety valve\n"
    scenario.subjects = [REFINEMENT, "notes.md"]


@case("subject_mismatch")
def approved_file_left_out(scenario: Scenario) -> None:
    """One of two approved files is no longer there."""
    scenario.tree["conditions.md"] = b"only with a second pump\n"
    scenario.subjects = [REFINEMENT, "conditions.md"]
    scenario.approve()
    scenario.subjects = [REFINEMENT]


@case("packet_mismatch")
def replay_in_another_packet(scenario: Scenario) -> None:
    """The approval of one packet is presented for another with the same text."""
    scenario.approve(packet="WP-7-Fuel-Gauge-v1")


@case("packet_mismatch")
def packet_id_in_other_case(scenario: Scenario) -> None:
    """Ids that differ only in case are two ids."""
    scenario.approve(packet="wp-7-fuel-gauge-v2")


@case("gate_mismatch")
def replay_at_another_gate(scenario: Scenario) -> None:
    """The approval of the beginning is presented for the release."""
    scenario.approve(gate="release")


@case("repository_mismatch")
def replay_in_a_fork(scenario: Scenario) -> None:
    """The approval was given in a fork, which has the same first commit and another name."""
    scenario.approve(repository=RepositoryName("mallory/rocket", "1" * 40))


@case("repository_mismatch")
def replay_in_a_namesake(scenario: Scenario) -> None:
    """The approval was given in a repository of the same name with another first commit."""
    scenario.approve(repository=RepositoryName("example/rocket", "2" * 40))


@case("nonce_used")
def used_by_another_event(scenario: Scenario) -> None:
    """The approval was used before: a released packet is to be activated a second time."""
    scenario.approve()
    scenario.consumptions = {first_nonce(): [OTHER_EVENT]}


@case("nonce_used")
def used_by_two_events(scenario: Scenario) -> None:
    """Two events name the same approval."""
    scenario.approve()
    scenario.consumer = CONSUMER
    scenario.consumptions = {first_nonce(): [CONSUMER, OTHER_EVENT]}


@case("nonce_repeated")
def two_statements_with_one_nonce(scenario: Scenario) -> None:
    """Two different statements of one person share their nonce."""
    scenario.approve(nonce="a" * 32)
    scenario.approve(nonce="a" * 32, expires_at=NOW + timedelta(days=2))


@case("approval_expired")
def expired(scenario: Scenario) -> None:
    """Expired to the second."""
    scenario.approve(expires_at=NOW)


@case("approval_expired")
def expired_before_use_on_the_base(scenario: Scenario) -> None:
    """The consuming event came to the base after the approval had expired."""
    scenario.approve(expires_at=NOW)
    scenario.consumer, scenario.on_base_since = CONSUMER, NOW + timedelta(hours=1)
    scenario.now = NOW + timedelta(days=2)


@case("approval_expired")
def used_only_on_a_branch(scenario: Scenario) -> None:
    """The consuming event exists but is not on the base: the verifier's clock decides."""
    scenario.approve(expires_at=NOW)
    scenario.consumer = CONSUMER
    scenario.consumptions = {first_nonce(): [CONSUMER]}


@case("issued_in_future")
def future_dated(scenario: Scenario) -> None:
    """Issued tomorrow."""
    scenario.approve(issued_at=NOW + timedelta(days=1), expires_at=NOW + timedelta(days=2))


@case("issued_in_future")
def issued_after_its_use(scenario: Scenario) -> None:
    """Issued after the event that used it had come to the base."""
    scenario.approve(issued_at=NOW + timedelta(hours=1), expires_at=NOW + timedelta(days=2))
    scenario.consumer, scenario.on_base_since = CONSUMER, NOW
    scenario.now = NOW + timedelta(hours=2)


@case("validity_too_long")
def valid_for_ten_years(scenario: Scenario) -> None:
    """A blank cheque for ten years."""
    scenario.approve(expires_at=ISSUED + timedelta(days=3652))


@case("validity_too_long")
def valid_for_a_second_too_long(scenario: Scenario) -> None:
    """Thirty days and a second."""
    scenario.approve(expires_at=ISSUED + timedelta(days=30, seconds=1))


@case("approval_too_old")
def older_than_the_gate_accepts(scenario: Scenario) -> None:
    """Still valid by its own word, but the gate accepts three days."""
    scenario.gate = "verdict"
    issued = NOW - timedelta(days=3, seconds=1)
    scenario.approve(approver="carol@example.org", issued_at=issued, expires_at=issued + timedelta(days=14))


@case("statement_malformed")
def expires_before_it_is_issued(scenario: Scenario) -> None:
    """Expires before it is issued."""
    scenario.approve(expires_at=ISSUED)


@case("approved_spec_moved")
def specification_moved(scenario: Scenario) -> None:
    """The specification has changed since."""
    scenario.approve()
    scenario.tree[SPEC] = SPEC_TEXT.replace(b"never", b"always")


@case("approved_spec_moved")
def another_place_of_the_specification(scenario: Scenario) -> None:
    """The refinement now answers to another section of the same specification."""
    scenario.approve(spec=Spec("9.9 Roadmap", sha256(SPEC_TEXT)))


@case("approved_spec_moved")
def specification_left_out(scenario: Scenario) -> None:
    """The statement names no specification although the packet has one."""
    scenario.approve(spec=None)


@case("policy_moved")
def policy_changed_since(scenario: Scenario) -> None:
    """The policy is another than the one the person saw."""
    scenario.approve()
    assert scenario.policy is not None
    scenario.policy += "\n# stricter soon\n"


@case("scope_moved")
def scope_widened(scenario: Scenario) -> None:
    """One more path in scope than was approved."""
    scenario.approve()
    scenario.scope.append("src/engine/")


@case("contract_mismatch")
def contract_rewritten_after_the_signature(scenario: Scenario) -> None:
    """Stub and packet say another contract together; the refinement is the one that was approved."""
    scenario.approve()
    scenario.contract = OTHER_CONTRACT


@case("contract_mismatch")
def contract_left_out(scenario: Scenario) -> None:
    """A statement about a packet that names no contract."""
    scenario.approve(contract=None)


@case("contract_mismatch")
def contract_at_the_gate_policy(scenario: Scenario) -> None:
    """A change of the policy approved together with a contract, which that gate is not about."""
    change_policy(scenario)
    scenario.approve(approver=OSCAR, role="operator", contract=CONTRACT)


@case("contract_unreadable")
def contract_said_twice(scenario: Scenario) -> None:
    """The packet says its criteria in two places by now, so that nobody can tell what was approved."""
    scenario.approve()
    scenario.contract, scenario.contract_fault = None, "the criteria appear in two places"


@case("statement_outdated")
def version_1_for_something_new(scenario: Scenario) -> None:
    """A statement of version 1, which names no contract, for what the base does not hold."""
    scenario.approve(version=1, contract=None)


@case("statement_outdated")
def version_1_used_but_not_on_the_base(scenario: Scenario) -> None:
    """The event that uses the statement of version 1 is there, and the base does not hold it."""
    scenario.approve(version=1, contract=None)
    scenario.consumer = CONSUMER


@case("log_moved")
def lane_moved_behind_its_back(scenario: Scenario) -> None:
    """The packet has changed its lane since the person looked."""
    scenario.approve()
    scenario.parents |= {MOVED: [PREPARED]}
    scenario.lane_changes.append(MOVED)


@case("log_moved")
def lane_moved_on_a_parallel_branch(scenario: Scenario) -> None:
    """A move of the lane on a branch of the log that the person did not see."""
    scenario.approve()
    scenario.parents |= {MOVED: [GENESIS]}
    scenario.lane_changes.append(MOVED)


@case("log_moved")
def log_heads_left_out(scenario: Scenario) -> None:
    """The statement names no event at all, so as never to be stale."""
    scenario.approve(log_heads=())


@case("log_head_unknown")
def another_history_of_the_packet(scenario: Scenario) -> None:
    """The person saw events which this log does not have."""
    scenario.approve(log_heads=tuple(sorted((PREPARED, "e" * 64))))


@case("base_unknown")
def base_of_another_branch(scenario: Scenario) -> None:
    """The base that the person saw is not in the history of this base."""
    scenario.approve(base="a" * 40)


@case("key_out_of_time")
def key_expired(scenario: Scenario) -> None:
    """The key expired between the signature and its use."""
    scenario.trust_key(ALICE, scenario.key(), f'namespaces="{NAMESPACE}",valid-before="20260310Z"')
    scenario.approve()


@case("key_out_of_time")
def key_expired_this_second(scenario: Scenario) -> None:
    """The moment of valid-before itself is too late."""
    scenario.trust_key(ALICE, scenario.key(), f'namespaces="{NAMESPACE}",valid-before="20260310120000Z"')
    scenario.approve()


@case("key_out_of_time")
def key_not_yet_valid_when_issued(scenario: Scenario) -> None:
    """The key became valid between the date of the statement and its use."""
    scenario.trust_key(ALICE, scenario.key(), f'namespaces="{NAMESPACE}",valid-after="20260310Z"')
    scenario.approve()
