"""Why a batch cannot begin, go on or be completed. Staleness and contradictions are stop reasons: see `stops`."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "batch_scope_missing",
        "There is no such batch scope",
        "A scope is a folder below specs/active or scopes/active with a tasks.yaml; without tasks there is no batch.",
        "Name a folder that has a tasks.yaml, such as specs/active/auth.",
        family="usage",
        exit_code=exits.USAGE,
    ),
    Reason(
        "batch_dependency_undecided",
        "Nobody can say which of two tasks comes first",
        "dependencies.yaml gives a pair {from, to}, tasks.yaml confirms neither direction, and people mean both.",
        "State it in tasks.yaml: `depends_on` of the task that has to wait.",
        family="document",
    ),
    Reason(
        "batch_not_begun",
        "No batch is under way",
        "What was not begun cannot be completed: nobody knows which tasks it would be about.",
        "Begin it: workpacket batch begin SPEC.",
        family="gate",
        exit_code=exits.REFUSED,
    ),
    Reason(
        "batch_phase_open",
        "A phase of the batch is not done",
        "A batch is complete when its tests were written, its tasks implemented and the work reviewed; a reviewer who "
        "gave no answer has approved nothing.",
        "Finish the phase: workpacket batch begin SPEC, and workpacket batch complete SPEC --phase PHASE.",
        family="gate",
        exit_code=exits.REFUSED,
    ),
    Reason(
        "batch_stage_not_begun",
        "A stage ends that was not begun",
        "Stages are written down before anybody works on them; one that was not may be done already.",
        "Look where the batch stands: workpacket batch status SPEC.",
        family="gate",
        exit_code=exits.REFUSED,
    ),
    Reason(
        "batch_issue_not_deferrable",
        "An issue is too severe to be put off",
        "Only what is of medium severity or less may be carried forward; the rest is resolved within the batch.",
        "Correct the work and have it reviewed again: --phase reviewers --outcome rejected.",
        family="gate",
        exit_code=exits.REFUSED,
    ),
    Reason(
        "batch_file_unwritable",
        "A file of the scope cannot be brought up to date without touching more",
        "It is written in a way in which the one value cannot be changed and everything else be left alone.",
        "Make the change by hand, then workpacket batch adopt SPEC.",
        family="conflict",
        exit_code=exits.CONFLICT,
    ),
)
