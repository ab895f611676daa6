"""What is changed, and the tests that have to notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutation.changes import Change, changes

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "tools" / "workpacket"
WANTED = 0.90


class Group(NamedTuple):
    """Modules below the package, and the tests of all of them, as files or folders below tests/."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


_APPROVALS = "decide envelope facts fields keys policy sigstore sshsig verify webauthn"
GROUPS = (
    Group(tuple(f"approvals/{name}.py" for name in _APPROVALS.split()), ("approvals", "corpora/attacks")),
    Group(
        ("approvals/actors.py", "approvals/event_signatures.py"),
        (
            "approvals/test_actors.py",
            "approvals/test_event_signatures.py",
            "approvals/test_event_signatures_checkpoints.py",
            "trust/test_actor_attacks.py",
        ),
    ),
    Group(
        tuple(f"ledger/{name}.py" for name in ("fold", "log", "verify")),
        (
            *(f"ledger/test_{name}.py" for name in ("decode", "fold", "log", "verify")),
            "ledger/test_event_schema.py::test_both_accept_what_the_tool_writes",
            "ledger/test_event_schema.py::test_every_set_of_an_event_is_asked_whether_it_is_sorted",
            "contract/test_contract_drift.py",
            "lifecycle/test_change_checks.py",
        ),
    ),
    Group(
        ("lifecycle/attestations.py",),
        ("lifecycle/test_attestations.py", "lifecycle/test_machine_statements.py"),
    ),
    Group(
        ("evidence/comparison.py", "evidence/runners.py"),
        tuple(
            f"evidence/test_{name}.py"
            for name in ("comparison", "comparison_additions", "comparison_emptied", "runners", "runners_reports")
        ),
    ),
    Group(
        ("lifecycle/coverage.py",),
        ("lifecycle/test_coverage_rules.py", "lifecycle/test_specification_growth.py"),
    ),
    Group(
        ("lifecycle/contract.py", "lifecycle/contract_drift.py"),
        (
            "contract/test_contract.py::test_a_document_has_the_canonical_form_of_its_vector",
            "contract/test_contract_drift.py",
            "contract/test_what_counts.py",
            "contract/test_what_is_proved.py",
            "evidence/test_demands.py",
        ),
    ),
    Group(
        ("lifecycle/change_checks.py",),
        ("lifecycle/test_change_checks.py", "lifecycle/test_submissions.py", "lifecycle/test_submitted_files.py"),
    ),
    Group(
        ("lifecycle/event_checks.py",),
        (
            "lifecycle/test_event_checks.py",
            "lifecycle/test_transitions.py::test_every_gate_is_asked_again_of_events_that_were_written_by_hand",
            "lifecycle/test_transitions.py::test_a_gate_without_a_judge_names_the_file_to_edit",
        ),
    ),
    Group(
        ("shell/judging/coverage.py",),
        ("judging/test_coverage_of_changes.py", "judging/test_coverage_of_the_specification.py"),
    ),
    Group(
        ("shell/judging/merged_tree.py",),
        (
            "judging/test_merged_tree.py",
            "judging/test_append_only.py",
            "judging/test_coverage_of_changes.py::test_a_landing_is_taken_back_as_a_whole",
            "judging/test_coverage_of_changes.py::test_a_landing_that_was_taken_back_comes_back_as_a_whole",
        ),
    ),
    Group(
        ("shell/judging/landed_work.py",),
        ("judging/test_landed_work.py", "judging/test_coverage_of_the_specification.py"),
    ),
    Group(("shell/judging/log_checkpoints.py",), ("lifecycle/test_log_checkpoints.py",)),
    Group(
        ("shell/judging/log_verification.py",),
        (
            "judging/test_log_verification.py",
            "lifecycle/test_log_checkpoints.py",
            *(
                f"lifecycle/test_actors.py::test_{name}"
                for name in (
                    "a_log_with_a_fault_is_not_verified_although_every_signature_is",
                    "log_verify_counts_what_signatures_come_to",
                    "log_verify_counts_a_revoked_key_as_one_that_proves_nothing",
                    "many_packets_are_read_by_two_processes_with_the_same_answer",
                    "what_a_second_process_cannot_read_is_named_as_in_the_first",
                    "log_verify_names_a_signature_that_does_not_hold",
                    "lists_say_what_is_signed_and_what_was_verified_and_verify_nothing",
                    "what_was_verified_under_another_policy_is_only_signed",
                    "nothing_is_called_verified_that_is_not_proven",
                )
            ),
        ),
    ),
    Group(
        ("shell/judging/change.py",),
        (
            "judging/test_change.py",
            "judging/test_submitted_work.py",
            "lifecycle/test_change.py",
            "lifecycle/test_log_checkpoints.py::test_a_checkpoint_says_how_much_is_vouched_for_and_by_whom",
            "trust/test_judging.py",
        ),
    ),
    Group(("shell/judging/lost_events.py",), ("judging/test_lost_events.py",)),
    Group(("shell/approvals/shown.py",), ("shell/approvals/test_shown.py",)),
    Group(("report/approval_text.py",), ("report/test_approval_text.py", "report/test_approval_text_page.py")),
    Group(
        ("runtime/resume/decide.py", "runtime/attempts/effects.py"),
        ("runtime/test_decide.py", "runtime/test_effects.py", "runtime/test_run.py", "runtime/test_async.py"),
    ),
)
# Of all the tests of a group these say nothing of a module: they run programs of their own for long.
LEFT_OUT = ("approvals/test_verify_by_hand.py", "approvals/test_interop.py")


def changes_of(module: str) -> Iterator[Change]:
    return changes((PACKAGE / module).read_text("utf-8"))
