"""What can be wrong with the event log: files that are not what was written, histories that do not hold together."""

from __future__ import annotations

from typing import Literal

from workpacket.model import exits
from workpacket.model.reasons import Reason

_RESTORE = "Restore the file as it was committed: `git restore --source=<base> -- <path>`."


def _integrity(
    code: str, title: str, explanation: str, remedy: str, severity: Literal["error", "warning"] = "error"
) -> Reason:
    return Reason(
        code=code,
        title=title,
        explanation=explanation,
        remedy=remedy,
        family="integrity",
        severity=severity,
        strict_severity="error",
        exit_code=exits.INTEGRITY,
    )


REASONS: tuple[Reason, ...] = (
    _integrity(
        "event_edited",
        "An event file does not hold what was written",
        "The name of an event file is the SHA-256 of its bytes; bytes that do not fit the name were changed later.",
        _RESTORE,
    ),
    _integrity(
        "event_line_ends",
        "An event file was given other line ends",
        "A tool turned LF into CRLF, so the bytes no longer fit the name although the text looks the same.",
        "Mark `.GOV/log/**` and `.GOV/attestations/**` as `-text` in .gitattributes and restore the file.",
    ),
    _integrity(
        "event_names_swapped",
        "An event file bears the name of another event",
        "Its bytes belong to another name in the same log: files were exchanged or copied over each other.",
        _RESTORE,
    ),
    _integrity(
        "event_not_canonical",
        "An event file is not canonical JSON",
        "One event has one sequence of bytes; anything else was not written by this tool, and another reader may read "
        "it differently.",
        "Restore the file if the tool wrote it, else remove it and record the event by its command.",
    ),
    _integrity(
        "event_malformed",
        "An event does not have the shape of its type",
        "The shapes are closed: a key too many or too few means that readers would disagree on what happened.",
        "Compare the place named with the shape that `workpacket schema event` prints.",
    ),
    _integrity(
        "event_too_large",
        "An event file is larger than any event",
        "Large contents belong in files of their own; the event holds their digest.",
        "Remove the file and record the evidence by its command, which keeps the last lines only.",
    ),
    _integrity(
        "event_version_unknown",
        "An event was written by a newer workpacket",
        "Its format is not known here, so its packet cannot be judged.",
        "Install the version of workpacket that the repository asks for.",
    ),
    _integrity(
        "event_wrong_packet",
        "An event lies in the log of another packet",
        "An event counts for the packet that it names; moving it to another folder does not make it history there.",
        _RESTORE,
    ),
    _integrity(
        "log_foreign_file",
        "A file in the log is not an event",
        "Nothing reads it, and a renamed event looks just like it.",
        "Move the file out of .GOV/log.",
        severity="warning",
    ),
    _integrity(
        "log_event_missing",
        "An event names a parent that is not in the log",
        "The parent was deleted, or changed and stored under its new digest; what followed from it is unproved.",
        "Restore the missing event; `git log --all --diff-filter=D -- .GOV/log` finds it.",
    ),
    _integrity(
        "log_second_genesis",
        "The log has more than one first event",
        "Two branches created the same id independently, or somebody started the history anew.",
        "Keep one; give the work of the other branch an id of its own before merging.",
    ),
    _integrity(
        "log_no_genesis",
        "The log has no first event",
        "A history that begins in the middle proves nothing.",
        "Restore the first event; `git log --all --diff-filter=D -- .GOV/log` finds it.",
    ),
    _integrity(
        "log_false_clock",
        "An event's clock does not follow from its parents",
        "The clock orders the replay; a false one would move the event to another place in history.",
        "Remove the event, which this tool has not written, and record it by its command.",
    ),
    _integrity(
        "log_lane_gap",
        "An event leaves a lane that the packet was not in",
        "Every move starts in the lane where the move before it ended; here one is missing or was made up.",
        "See `workpacket history <WP>`; restore the missing event, or record the move by its command.",
    ),
    _integrity(
        "packet_forked",
        "Two branches moved the packet in different directions",
        "Both moves stand in the log and neither knew of the other; until a person decides the packet is in no lane.",
        "See `workpacket why <WP>`; settle it with `workpacket resolve <WP> --lane <LANE> --reason <WHY>`.",
    ),
    _integrity(
        "log_moved_while_forked",
        "A packet was moved although its history is forked",
        "Only a resolution that names the contradicting moves ends a fork; any other move is not believed.",
        "Settle the fork with `workpacket resolve <WP> --lane <LANE> --reason <WHY>`.",
    ),
    _integrity(
        "log_file_deleted",
        "A file of the log, the approvals or the checkpoints was deleted since the base",
        "Nothing under .GOV/log, .GOV/attestations and .GOV/checkpoints is ever deleted: history would change unseen.",
        _RESTORE,
    ),
    _integrity(
        "log_file_modified",
        "A file of the log, the approvals or the checkpoints was changed since the base",
        "Files under .GOV/log, .GOV/attestations and .GOV/checkpoints are written once.",
        _RESTORE,
    ),
    _integrity(
        "log_truncated",
        "The log lacks events that a signed checkpoint names",
        "The end of the history was cut off or replaced after the protected branch had seen it.",
        "Restore the events named; `git log --all --diff-filter=D -- .GOV/log` finds them.",
    ),
    _integrity(
        "log_checkpoint_unsigned",
        "A checkpoint of the log is not signed",
        "Without the signature of the protected branch's CI a checkpoint is a claim, and vouches for nothing.",
        "Restore its signature below .GOV/checkpoints, or have CI write the next one: `workpacket log checkpoint`.",
    ),
    _integrity(
        "log_checkpoint_invalid",
        "The signature of a checkpoint is not over its bytes",
        "It was changed, belongs to another checkpoint, or was made for another purpose; it vouches for nothing.",
        _RESTORE,
    ),
    _integrity(
        "log_checkpoint_signer",
        "A checkpoint is signed by somebody who may not vouch for the log",
        "The key has to stand in allowed_signers with `workpacket-checkpoint@v1`, and its owner has to have the role "
        "`ci`, both in the policy of the base.",
        "Have CI write the next checkpoint, or name the signer by an approved change of the policy.",
    ),
    _integrity(
        "log_checkpoint_revoked",
        "A checkpoint is signed with a revoked key",
        "Nothing that a revoked key has signed is believed, whenever it was signed.",
        "Have CI write the next checkpoint with a valid key: it vouches for those before it too.",
    ),
    _integrity(
        "log_checkpoint_out_of_time",
        "A checkpoint is signed outside the time of its key, or dated in the future",
        "The line of the key in allowed_signers says from when and until when it may sign; what is not on the base yet "
        "is judged now, so that an old key cannot be used with an old date.",
        "Have CI write the next checkpoint with a valid key: it vouches for those before it too.",
    ),
    _integrity(
        "log_checkpoint_missing",
        "A signature is here, and the checkpoint that it signs is not",
        "The checkpoint was taken out of the log, or the file is none.",
        "Restore the checkpoint: `git log --all --diff-filter=D -- .GOV/log/_checkpoints` finds it.",
    ),
    _integrity(
        "use_backdated",
        "An approval was in time only if a commit is older than those before it",
        "An approval has to be used before it expires. When it was used is the time of the commit that brought the "
        "event onto the base, which its author writes where a branch is fast-forwarded.",
        "Ask who pushed the commit and when. If it came too late, revoke the approval and have the packet approved "
        "again; let the server make the merge commits (docs/approvals/protect.md).",
        "warning",
    ),
)

BY_CODE = {reason.code: reason for reason in REASONS}
