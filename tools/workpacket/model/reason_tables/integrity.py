"""What is wrong with the log, with the moves that a change brings, and with what an earlier move rested on."""

from __future__ import annotations

from functools import partial

from workpacket.model import exits
from workpacket.model.reasons import reasons

_integrity = partial(reasons, "integrity")
_integrity_warning = partial(reasons, "integrity", severity="warning")
_integrity_note = partial(reasons, "integrity", severity="info", strict_severity="info")
_finding = partial(reasons, "approval", exit_code=exits.FINDINGS)
_across = partial(reasons, "cross-file")
_across_advice = partial(reasons, "cross-file", severity="warning", strict_severity="warning")
_across_note = partial(reasons, "cross-file", severity="info", strict_severity="info")

_RESTORE = "Restore the file as it was committed: `git restore --source=<base> -- <path>`."
_SHOW = "`workpacket trace WP_ID` shows what rests on what."

LOG = (
    *_integrity(f"""
    event_edited: An event file does not hold what was written
        The name of an event file is the SHA-256 of its bytes; bytes that do not fit the name were changed later.
        Remedy: {_RESTORE}

    event_line_ends: An event file was given other line ends
        A tool turned LF into CRLF, so the bytes no longer fit the name although the text looks the same.
        Remedy: Mark `.GOV/log/**` and `.GOV/attestations/**` as `-text` in .gitattributes and restore the file.

    event_names_swapped: An event file bears the name of another event
        Its bytes belong to another name in the same log: files were exchanged or copied over each other.
        Remedy: {_RESTORE}

    event_not_canonical: An event file is not canonical JSON
        One event has one sequence of bytes; anything else was not written by this tool, and another reader may read it
        differently.
        Remedy: Restore the file if the tool wrote it, else remove it and record the event by its command.

    event_malformed: An event does not have the shape of its type
        The shapes are closed: a key too many or too few means that readers would disagree on what happened.
        Remedy: Compare the place named with the shape that `workpacket schema event` prints.

    event_too_large: An event file is larger than any event
        Large contents belong in files of their own; the event holds their digest.
        Remedy: Remove the file and record the evidence by its command, which keeps the last lines only.

    event_version_unknown: An event was written by a newer workpacket
        Its format is not known here, so its packet cannot be judged.
        Remedy: Install the version of workpacket that the repository asks for.

    event_wrong_packet: An event lies in the log of another packet
        An event counts for the packet that it names; moving it to another folder does not make it history there.
        Remedy: {_RESTORE}

    log_event_missing: An event names a parent that is not in the log
        The parent was deleted, or changed and stored under its new digest; what followed from it is unproved.
        Remedy: Restore the missing event; `git log --all --diff-filter=D -- .GOV/log` finds it.

    log_second_genesis: The log has more than one first event
        Two branches created the same id independently, or someone started the history again.
        Remedy: Keep one; give the work of the other branch an id of its own before merging.

    log_no_genesis: The log has no first event
        A history that begins in the middle proves nothing.
        Remedy: Restore the first event; `git log --all --diff-filter=D -- .GOV/log` finds it.

    log_false_clock: An event's clock does not follow from its parents
        The clock orders the replay; a false one would move the event to another place in history.
        Remedy: Remove the event, which this tool has not written, and record it by its command.

    log_lane_gap: An event leaves a lane that the packet was not in
        Every move starts in the lane where the move before it ended; here one is missing or was made up.
        Remedy: See `workpacket history <WP>`; restore the missing event, or record the move by its command.

    packet_forked: Two branches moved the packet in different directions
        Both moves are in the log and neither knew of the other; until a person decides the packet is in no lane.
        Remedy: See `workpacket why <WP>`; settle it with `workpacket resolve <WP> --lane <LANE> --reason <WHY>`.

    log_moved_while_forked: A packet was moved although its history is forked
        Only a resolution that names the contradicting moves ends a fork; any other move is not believed.
        Remedy: Settle the fork with `workpacket resolve <WP> --lane <LANE> --reason <WHY>`.

    log_file_deleted: A file of the log, the approvals or the checkpoints was deleted since the base
        Nothing under .GOV/log, .GOV/attestations and .GOV/checkpoints is ever deleted: history would change unseen.
        Remedy: {_RESTORE}

    log_file_modified: A file of the log, the approvals or the checkpoints was changed since the base
        Files under .GOV/log, .GOV/attestations and .GOV/checkpoints are written once.
        Remedy: {_RESTORE}

    log_truncated: The log lacks events that a signed checkpoint names
        The end of the history was cut off or replaced after the protected branch had seen it.
        Remedy: Restore the events named; `git log --all --diff-filter=D -- .GOV/log` finds them.

    log_checkpoint_unsigned: A checkpoint of the log is not signed
        Without the signature of the protected branch's CI a checkpoint is a claim, and vouches for nothing.
        Remedy: Restore its signature below .GOV/checkpoints, or have CI write the next one: `workpacket log
        checkpoint`.

    log_checkpoint_invalid: The signature of a checkpoint is not over its bytes
        It was changed, belongs to another checkpoint, or was made for another purpose; it vouches for nothing.
        Remedy: {_RESTORE}

    log_checkpoint_signer: A checkpoint is signed by somebody who may not vouch for the log
        The key has to be in allowed_signers with `workpacket-checkpoint@v1`, and its owner has to have the role
        `ci`, both in the policy of the base.
        Remedy: Have CI write the next checkpoint, or name the signer by an approved change of the policy.

    log_checkpoint_revoked: A checkpoint is signed with a revoked key
        Nothing that a revoked key has signed is believed, whenever it was signed.
        Remedy: Have CI write the next checkpoint with a valid key: it vouches for those before it too.

    log_checkpoint_out_of_time: A checkpoint is signed outside the time of its key, or dated in the future
        The line of the key in allowed_signers says from when and until when it may sign; what is not on the base yet is
        judged now, so that an old key cannot be used with an old date.
        Remedy: Have CI write the next checkpoint with a valid key: it vouches for those before it too.

    log_checkpoint_missing: A signature is here, and the checkpoint that it signs is not
        The checkpoint was taken out of the log, or the file is none.
        Remedy: Restore the checkpoint: `git log --all --diff-filter=D -- .GOV/log/_checkpoints` finds it.
    """),
    *_integrity_warning("""
    log_foreign_file: A file in the log is not an event
        Nothing reads it, and a renamed event looks just like it.
        Remedy: Move the file out of .GOV/log.

    use_backdated: An approval was in time only if a commit is older than those before it
        An approval has to be used before it expires. When it was used is the time of the commit that brought the event
        onto the base, which its author writes where a branch is fast-forwarded.
        Remedy: Ask who pushed the commit and when. If it came too late, revoke the approval and have the packet
        approved again; let the server make the merge commits (docs/approvals/protect.md).
    """),
)

CHANGE = (
    *_integrity("""
    move_illegal: A move that is not a transition
        No command makes it; the event was written by hand, to get around a gate.
        Remedy: Take the event back, and move the packet by its command.

    move_without_gate: A move whose gate was not passed
        The event is there, but what its gate asks for is not: anyone can write an event.
        Remedy: Take the event back; `workpacket why WP` says what the gate asks for.

    not_committed: A file below .GOV that HEAD does not hold as it lies here
        What HEAD holds is merged, and what lies here would be judged. Attributes, filters and files that were never
        committed make them differ.
        Remedy: Commit what belongs to the change, or move the rest away. Before the commit, `--worktree` judges what
        lies here; CI does not.

    attribute_converts: A change of attributes that convert files below .GOV
        A checkout would show other bytes than are merged, so a person or a check would read another text.
        Remedy: Take the line out of .gitattributes. Below .GOV those that `workpacket init` writes are enough.

    path_twin: A name that is the same as another where case does not count
        On macOS and Windows one of the two files takes the place of the other.
        Remedy: Rename it, or remove it.

    tree_entry_foreign: An entry below .GOV that is not a file of its own
        A submodule or a link shows what another place holds, and a temporary name is read by no command.
        Remedy: Remove it from the commit: `git rm --cached -- PATH`.

    event_ahead: An event of the change is from a clock that is ahead
        It says that it was written more than 300 seconds from now. No later event could follow it before that time.
        Remedy: Set the clock, take the event back and run its command again.

    move_beside_base: A move that does not rest on what the base has
        The packet was moved on the base meanwhile. The writer of this event did not know it, nor did those who
        approved it.
        Remedy: Merge the base, take the log back to it (`git restore --source=BASE --staged --worktree
        .GOV/log/WP_ID`, `workpacket board sync`, commit), and type the commands again that still apply.

    base_lanes_unfit: Base whose policy adds lanes that do not hold
        Which moves the base allows is not known, so none that a change brings is believed.
        Remedy: Mend the policy on the base first; `workpacket policy test` says what is wrong with it.

    event_unsigned: An event without a signature where the policy names actors
        The policy of the base says which keys act as whom, so a name alone is not believed.
        Remedy: Make a key with `workpacket key init --event`, have [actors] list it, and record the event again.

    event_signature_invalid: An event whose signature does not hold
        The signature is not one of an event key over these bytes, so somebody else may have written the event.
        Remedy: Take the event back, and record it by its command.

    actor_key_unknown: An event signed by a key that the policy does not list
        Anyone can make a key. It proves an actor only where [actors] in the policy of the base lists its fingerprint.
        Remedy: Have the key added to [actors.NAME] by an approved change of the policy, then record the event again.

    actor_not_allowed: An event whose key may not act as its actor
        Each key acts under the names, of the kind and in the roles that [actors] gives to it.
        Remedy: Record the event under a name that the key may use; `workpacket policy show` lists them.

    approval_key_in_event: An event signed by a key that may approve
        An event key has no passphrase. A key that is used like one must open no gate, and one that opens gates must not
        be used like one.
        Remedy: Make a key for events with `workpacket key init --event`, and record the event again.

    change_uncovered: A change for which no packet answers
        The policy of the base requires that every changed path is in the scope of a packet that somebody works on, or
        of a standing packet. Nothing asks for this one.
        Remedy: Claim the packet whose scope has the path, or have a packet activated for it: `workpacket new`; else
        take the change back. Small changes that recur are covered by a standing packet.

    changed_after_verdict: A path that is not what was judged
        The verdict is on one commit. What lands has to be what git makes of that commit and the base, at every path.
        Remedy: Take back what was changed since; or `workpacket reopen WP`, submit the new commit, and have it judged.

    landed_otherwise: Judged work that cannot be told to have landed as it was judged
        The judged commit and the base conflict, or the judged commit is not in this clone. How a conflict was settled
        is work of its own, and was not judged.
        Remedy: Merge the base into the branch, `workpacket reopen WP`, submit the result, and have it judged; a missing
        commit is fetched with its branch.
    """),
    *_integrity_note("""
    landing_reverted: A landing that is taken back as a whole
        Its events, its envelopes and its code go together, as `git revert` of the landing makes it. If they come back,
        they are judged by the policy of that day.
        Remedy: Nothing has to be done. Look whether the landing is the one that was meant.
    """),
)

AUDIT = (
    *_integrity("""
    evidence_changed: A report that a verdict rests on is not what it was
        The log holds the digest of the report; who reads the file now does not read what was judged.
        Remedy: Restore the file from git; write a later report into a file of its own.

    commit_not_on_target: Work that was recorded as merged is not on the target branch
        The log says that the branch holds it; the branch was moved since, or never held it.
        Remedy: Merge the work, then `workpacket reopen` and `workpacket merged`; or find out who moved the branch.

    containment_too_early: Work was recorded as merged before the commit existed
        No one can have found a commit on the branch that was made later.
        Remedy: Find out who wrote the event, and whether the work is there.
    """),
    *_finding("""
    approved_file_changed: A refinement is not what its packet was activated with
        The bytes that were approved are not those that are there now.
        Remedy: Restore the file from git, or have the new text approved.
    """),
    *_across("""
    run_zombie: A run that was never closed, of work that has ended
        It may still write, and what it did after the verdict was not judged.
        Remedy: End it with `workpacket cancel RUN`, so that the log says how it ended.
    """),
    *_across_advice(f"""
    waiver_expired: A waiver that has expired while the work goes on
        The condition that it waived holds again, and the gate will say so.
        Remedy: Meet the condition, or have it waived again: `workpacket waive WP_ID CODE --reason TEXT --until DAY`.

    requirement_changed: A requirement is not what it was when it was refined
        The specification says something else in the lines on which the packet rests: the link is suspect.
        Remedy: Read the passage again, and refine against it: `workpacket refine WP_ID`. {_SHOW}

    criterion_without_evidence: A criterion for which there is no evidence
        The work was handed in or finished, and this line of DONE_MEANS is proved by nothing.
        Remedy: Prove it: `workpacket submit WP_ID --prove 'N=COMMAND'`. {_SHOW}

    evidence_without_criterion: Evidence for a criterion that the packet does not have
        DONE_MEANS was changed after it was proved, so what was proved is not what is asked for.
        Remedy: Restore the line of DONE_MEANS, or prove the present one. {_SHOW}
    """),
    *_across_note(f"""
    proof_changed: A file that proves a criterion has changed since
        The line that was named as proof may say something else by now: the link is suspect.
        Remedy: Look whether the criterion is still met; prove it again if the work goes on. {_SHOW}

    requirement_without_packet: A requirement of the main body on which no packet rests
        It is asked for, and no work is planned.
        Remedy: `workpacket new` writes a stub for it.

    packet_without_requirement: A packet that rests on no requirement
        What asks for this work cannot be looked up.
        Remedy: Name the passage of the specification among the anchors of its refinement. {_SHOW}
    """),
)

REASONS = (*LOG, *CHANGE, *AUDIT)

LOG_BY_CODE = {reason.code: reason for reason in LOG}
CHANGE_BY_CODE = {reason.code: reason for reason in CHANGE}
AUDIT_BY_CODE = {reason.code: reason for reason in AUDIT}
