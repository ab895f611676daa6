"""What an audit finds besides the findings of `check`: what was proved, and no longer is, or never was."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

_SHOW = "`workpacket trace WP_ID` shows what rests on what."

REASONS: tuple[Reason, ...] = (
    Reason(
        "evidence_changed",
        "A report that a verdict rests on is not what it was",
        "The log holds the digest of the report; who reads the file now does not read what was judged.",
        "Restore the file from git; write a later report into a file of its own.",
        "integrity",
        exit_code=exits.INTEGRITY,
    ),
    Reason(
        "approved_file_changed",
        "A refinement is not what its packet was activated with",
        "Somebody approved other bytes than those that stand there now.",
        "Restore the file from git, or have the new text approved.",
        "approval",
    ),
    Reason(
        "run_zombie",
        "A run that was never closed, of work that has ended",
        "It may still write, and what it did after the verdict was judged by nobody.",
        "End it with `workpacket cancel RUN`, so that the log says how it ended.",
        "cross-file",
    ),
    Reason(
        "waiver_expired",
        "A waiver that has expired while the work goes on",
        "The condition that it waived holds again, and the gate will say so.",
        "Meet the condition, or have it waived anew: `workpacket waive WP_ID CODE --reason TEXT --until DAY`.",
        "cross-file",
        severity="warning",
        strict_severity="warning",
    ),
    Reason(
        "requirement_changed",
        "A requirement is not what it was when it was refined",
        "The specification says something else in the lines on which the packet rests: the link is suspect.",
        f"Read the passage again, and refine against it: `workpacket refine WP_ID`. {_SHOW}",
        "cross-file",
        severity="warning",
        strict_severity="warning",
    ),
    Reason(
        "proof_changed",
        "A file that proves a criterion has changed since",
        "The line that was named as proof may say something else by now: the link is suspect.",
        f"Look whether the criterion is still met; prove it anew if the work goes on. {_SHOW}",
        "cross-file",
        severity="info",
        strict_severity="info",
    ),
    Reason(
        "commit_not_on_target",
        "Work that was recorded as merged is not on the target branch",
        "The log says that the branch holds it; the branch was moved since, or never held it.",
        "Merge the work, then `workpacket reopen` and `workpacket merged`; or find out who moved the branch.",
        "integrity",
        exit_code=exits.INTEGRITY,
    ),
    Reason(
        "containment_too_early",
        "Work was recorded as merged before the commit existed",
        "Nobody can have found a commit on the branch that was made later.",
        "Find out who wrote the event, and whether the work is there.",
        "integrity",
        exit_code=exits.INTEGRITY,
    ),
    Reason(
        "requirement_without_packet",
        "A requirement of the main body on which no packet rests",
        "It is asked for, and no work is planned.",
        "`workpacket new` writes a stub for it.",
        "cross-file",
        severity="info",
        strict_severity="info",
    ),
    Reason(
        "packet_without_requirement",
        "A packet that rests on no requirement",
        "Nobody can say what asks for this work.",
        f"Name the passage of the specification among the anchors of its refinement. {_SHOW}",
        "cross-file",
        severity="info",
        strict_severity="info",
    ),
    Reason(
        "criterion_without_evidence",
        "A criterion for which there is no evidence",
        "The work was handed in or finished, and this line of DONE_MEANS is proved by nothing.",
        f"Prove it: `workpacket submit WP_ID --prove 'N=COMMAND'`. {_SHOW}",
        "cross-file",
        severity="warning",
        strict_severity="warning",
    ),
    Reason(
        "evidence_without_criterion",
        "Evidence for a criterion that the packet does not have",
        "DONE_MEANS was changed after it was proved, so what was proved is not what is asked for.",
        f"Restore the line of DONE_MEANS, or prove the present one. {_SHOW}",
        "cross-file",
        severity="warning",
        strict_severity="warning",
    ),
)
BY_CODE = {reason.code: reason for reason in REASONS}
