"""Why a run, a batch or a role cannot go on. The reasons for which a run stops are in `stops`."""

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
        Work is done from packets: a stub has no approved scope yet, so work cannot start from one.
        Remedy: Activate the stub: `just create-task-packet WP_ID`; or name a packet that `workpacket list` shows.

    run_not_lost: The run is not lost
        Its store is here: how it ended can be read, or it can be brought to an end.
        Remedy: Resume or cancel it, or have `workpacket runs settle` write down how it ended.

    person_needed: That is for a person to say
        A program that could call its own runs lost could have a verdict on unfinished work.
        Remedy: A person types it, without `--kind` and without WORKPACKET_ACTOR_KIND.
    """),
    *_conflict("""
    run_links_disagree: Log and store say different things of a run
        No transaction spans both. A process that was killed between them leaves a link open of a run that ended, or
        never began; a program that used the runtime without the log leaves a run without a link.
        Remedy: `workpacket runs settle` writes into the log what the store knows, and names what is left for a person.
    """),
    *_document("""
    checkpoint_malformed: A checkpoint file does not have the form it should have
        A checkpoint that is read wrongly has work done twice or left out, so nothing of the file is taken over.
        Remedy: Correct the field at the place that is named, or restore the file.
    """),
)

ROLES = (
    *_across_advice("""
    artifact_changed: A file that a role named is not as it was at its last milestone
        The interrupted role has gone on since, or someone else changed it. What the role last did may not hold.
        Remedy: Look at the file; `workpacket resume ID --yes` goes on with what is there.
    """),
    *_gate("""
    role_feature_closed: The feature of a role is complete
        A summary says so, or the packet whose id it is has come to its end; work on it would be lost or done twice.
        Remedy: Close its open checkpoints: workpacket progress close FEATURE. New work is a new feature.
    """),
    *_conflict("""
    role_file_unwritable: A role's file cannot be brought up to date without touching more
        It is written in a way in which the one value cannot be changed and everything else be left alone.
        Remedy: Make the change by hand, then workpacket progress adopt FEATURE AGENT.
    """),
)

BATCHES = (
    *_usage("""
    batch_scope_missing: There is no such batch scope
        A scope is a folder below specs/active or scopes/active with a tasks.yaml; without tasks there is no batch.
        Remedy: Name a folder that has a tasks.yaml, such as specs/active/auth.
    """),
    *_document("""
    batch_dependency_undecided: The order of two tasks is not stated
        dependencies.yaml gives a pair {from, to}, tasks.yaml confirms neither direction, and people mean both.
        Remedy: State it in tasks.yaml: `depends_on` of the task that has to wait.
    """),
    *_gate("""
    batch_not_begun: No batch is under way
        What was not begun cannot be completed: its tasks are not known.
        Remedy: Begin it: workpacket batch begin SPEC.

    batch_phase_open: A phase of the batch is not done
        A batch is complete when its tests were written, its tasks implemented and the work reviewed; a reviewer who
        gave no answer has approved nothing.
        Remedy: Finish the phase: workpacket batch begin SPEC, and workpacket batch complete SPEC --phase PHASE.

    batch_stage_not_begun: A stage ends that was not begun
        Stages are written down before work on them begins; one that was not may be done already.
        Remedy: Look at the state of the batch: workpacket batch status SPEC.

    batch_issue_not_deferrable: An issue is too severe to be put off
        Only what is of medium severity or less may be carried forward; the rest is resolved within the batch.
        Remedy: Correct the work and have it reviewed again: --phase reviewers --outcome rejected.
    """),
    *_conflict("""
    batch_file_unwritable: A file of the scope cannot be brought up to date without touching more
        It is written in a way in which the one value cannot be changed and everything else be left alone.
        Remedy: Make the change by hand, then workpacket batch adopt SPEC.
    """),
)

REASONS = (*RUNS, *ROLES, *BATCHES)
