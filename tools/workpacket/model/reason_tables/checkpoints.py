"""Why a run, a batch or a role cannot continue. Reasons why a run stops are in `stops`."""

from __future__ import annotations

from functools import partial

from workpacket.model.reasons import reasons

_gate = partial(reasons, "gate")
_conflict = partial(reasons, "conflict")
_document = partial(reasons, "document")
_across_advice = partial(reasons, "cross-file", severity="warning", strict_severity="warning")
_usage = partial(reasons, "usage")

RUNS = (
    *_gate("""
    packet_not_active: The work packet of the run is not active
        A stub has no approved scope yet, so work cannot start from it.
        Remedy: Activate the stub: `just create-task-packet WP_ID`; or name a packet that `workpacket list` shows.

    run_not_lost: The run is not lost
        The run's store is here, so its outcome can be read, or it can be ended.
        Remedy: Resume or cancel it, or have `workpacket runs settle` record how it ended.

    person_needed: Only a person may declare this
        A program that could declare its own runs lost could get a verdict on unfinished work.
        Remedy: Have a person run the command, without `--kind` and without WORKPACKET_ACTOR_KIND.
    """),
    *_conflict("""
    run_links_disagree: Log and store disagree about a run
        No transaction spans both the log and the store. If a process is killed in between, the link of a run that has
        ended, or never started, stays open. A program that uses the runtime without the log leaves a run without a
        link.
        Remedy: `workpacket runs settle` records in the log what the store knows, and lists what a person must decide.
    """),
    *_document("""
    checkpoint_malformed: A checkpoint file is malformed
        A misread checkpoint would repeat or skip work, so no part of the file is used.
        Remedy: Correct the field that the message names, or restore the file.
    """),
)

ROLES = (
    *_across_advice("""
    artifact_changed: A file that a role named has changed since its last milestone
        The interrupted role continued to work on the file, or someone else changed it and may have undone the role's
        last work.
        Remedy: Review the file; `workpacket resume ID --yes` accepts it as it is.
    """),
    *_gate("""
    role_feature_closed: The feature of a role is complete
        A summary declares the feature complete, or the packet with this id is finished. Further work would be lost or
        done twice.
        Remedy: Close its open checkpoints: `workpacket progress close FEATURE`. For new work, use a new feature.
    """),
    *_conflict("""
    role_file_unwritable: A role's file cannot be updated without changing other parts of it
        The file is written in a way that does not allow this value alone to be changed.
        Remedy: Make the change by hand, then run `workpacket progress adopt FEATURE AGENT`.
    """),
)

BATCHES = (
    *_usage("""
    batch_scope_missing: Batch scope not found
        A scope is a folder below specs/active or scopes/active that contains a tasks.yaml.
        Remedy: Name a folder that has a tasks.yaml, such as specs/active/auth.
    """),
    *_document("""
    batch_dependency_undecided: The order of two tasks is not stated
        dependencies.yaml has a pair {from, to}, which people write in either direction, and tasks.yaml confirms neither
        direction.
        Remedy: In tasks.yaml, add `depends_on` to the task that must wait.
    """),
    *_gate("""
    batch_not_begun: No batch is in progress
        A batch that was not started cannot be completed, because its tasks are not known.
        Remedy: Begin it with `workpacket batch begin SPEC`.

    batch_phase_open: A phase of the batch is not done
        A batch is complete once its tests are written, its tasks implemented and the work reviewed; a missing answer
        from a reviewer is not an approval.
        Remedy: Finish the phase with `workpacket batch begin SPEC`, then `workpacket batch complete SPEC --phase
        PHASE`.

    batch_stage_not_begun: A stage that never started was ended
        Each stage is recorded before work on it starts; a stage that was not recorded may already be done.
        Remedy: See the state of the batch with `workpacket batch status SPEC`.

    batch_issue_not_deferrable: An issue is too severe to be deferred
        Only issues of medium severity or less may be carried forward; all others must be resolved within the batch.
        Remedy: Correct the work, and have it reviewed again: `--phase reviewers --outcome rejected`.
    """),
    *_conflict("""
    batch_file_unwritable: A file of the scope cannot be updated without changing other parts of it
        The file is written in a way that does not allow this value alone to be changed.
        Remedy: Make the change by hand, then run `workpacket batch adopt SPEC`.
    """),
)

REASONS = (*RUNS, *ROLES, *BATCHES)
