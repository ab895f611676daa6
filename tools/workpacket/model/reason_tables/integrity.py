"""Faults of the log, of the moves in a change, and of files that earlier moves relied on."""

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
_SHOW = "Run `workpacket trace WP_ID` to see what depends on what."

LOG = (
    *_integrity(f"""
    event_edited: Edited event file
        The name of an event file is the SHA-256 of its bytes; if they do not match, the file was changed later.
        Remedy: `workpacket log recover` finds the original event, and restores it.

    event_line_ends: Event file with changed line endings
        A tool turned LF into CRLF, so the bytes no longer match the name although the text looks the same.
        Remedy: Add the lines that `workpacket init` writes to .GOV/.gitattributes, then run `workpacket log recover`.

    event_names_swapped: Event file with the name of a different event
        The file contains the bytes of a different event in the same log: files were swapped or overwritten.
        Remedy: {_RESTORE}

    event_not_canonical: Event file that is not canonical JSON
        An event has only one permitted encoding. Anything else was not written by workpacket, and other programs may
        read it differently.
        Remedy: Restore the file if workpacket wrote it; otherwise remove it and record the event with its command.

    event_malformed: Event that does not match the schema for its type
        With an extra or missing key, programs would disagree about the meaning of the event.
        Remedy: Compare the event with the schema that `workpacket help schema event` prints.

    event_too_large: Event file too large
        Large content belongs in separate files; the event contains their digests.
        Remedy: Remove the file and record the evidence with its command, which stores only the last lines.

    event_version_unknown: Event from a newer version of workpacket
        This version does not know the event's format, so the packet cannot be judged.
        Remedy: Install the version of workpacket that the repository requires.

    event_wrong_packet: Event in a different packet's log
        An event belongs to the packet that it names, even if the file is moved to a different folder.
        Remedy: {_RESTORE}

    log_event_missing: Event with a missing parent
        The parent was deleted, or changed and stored under its new digest, so later events prove nothing.
        Remedy: `workpacket log recover` finds the parent in any branch, reflog or stash, and restores it.

    log_second_genesis: More than one first event
        Two branches created the same id independently, or someone restarted the history.
        Remedy: On the branch that has not been merged: `workpacket packet rename WP_ID NEW_WP_ID`, before merging.

    log_no_genesis: The log has no first event
        A history that starts in the middle proves nothing.
        Remedy: `workpacket log recover` finds the parent in any branch, reflog or stash, and restores it.

    log_false_clock: Wrong clock in an event
        The event's parents determine its clock, which determines the order of replay; a wrong clock would move the
        event to another place in history.
        Remedy: Remove the event, which workpacket did not write, and record it with its command.

    log_lane_gap: Move from a lane that the packet was not in
        Every move starts in the lane where the previous move ended, so a move must be missing or forged.
        Remedy: See `workpacket log show <WP>`; restore the missing event, or record the move with its command.

    packet_forked: Two branches moved the packet in different directions
        Both moves are in the log; until a person decides between them, the packet has no lane.
        Remedy: See `workpacket why <WP>`; settle the fork with
        `workpacket packet resolve <WP> --lane <LANE> --reason <WHY>`.

    log_moved_while_forked: Move of a packet with a forked history
        Only a resolution that names the conflicting moves settles a fork; any other move is ignored.
        Remedy: Settle the fork with `workpacket packet resolve <WP> --lane <LANE> --reason <WHY>`.

    log_file_deleted: A log, approval or checkpoint file has been deleted since the base
        Nothing under .GOV/log, .GOV/attestations or .GOV/checkpoints may be deleted, because history could then change
        undetected.
        Remedy: {_RESTORE}

    log_file_modified: A log, approval or checkpoint file has changed since the base
        Files under .GOV/log, .GOV/attestations and .GOV/checkpoints are written once and never changed.
        Remedy: {_RESTORE}

    log_truncated: Events listed in a signed checkpoint are missing
        The end of the history was cut off or replaced after it had been on the protected branch.
        Remedy: `workpacket log recover` finds the events in any branch, reflog or stash, and restores them.

    log_checkpoint_unsigned: Unsigned checkpoint
        Without a signature by the protected branch's CI, a checkpoint is only a claim.
        Remedy: Restore the checkpoint's signature below .GOV/checkpoints, or have CI write the next checkpoint:
        `workpacket log checkpoint`.

    log_checkpoint_invalid: Invalid checkpoint signature
        The checkpoint or its signature was changed, or the signature was made for something else, so the checkpoint
        proves nothing.
        Remedy: {_RESTORE}

    log_checkpoint_signer: Checkpoint signer not allowed to vouch for the log
        The key must be in allowed_signers with `workpacket-checkpoint@v1`, and its owner must have the `ci` role, both
        in the policy on the base.
        Remedy: Have CI write the next checkpoint, or add the signer in an approved policy change.

    log_checkpoint_revoked: Checkpoint signed with a revoked key
        No signature by a revoked key is trusted, regardless of when it was made.
        Remedy: Have CI write the next checkpoint with a valid key: it also covers the earlier checkpoints.

    log_checkpoint_out_of_time: Checkpoint signed outside its key's validity period, or dated in the future
        The key's line in allowed_signers limits when the key may sign. A checkpoint that is not on the base yet is
        judged by the current time, so that an expired key cannot be used with an old date.
        Remedy: Have CI write the next checkpoint with a valid key: it also covers the earlier checkpoints.

    log_checkpoint_missing: Signature without its checkpoint
        The checkpoint was removed from the log, or the file is not a checkpoint signature.
        Remedy: `workpacket log recover` finds the parent in any branch, reflog or stash, and restores it.
    """),
    *_integrity_warning("""
    log_foreign_file: File in the log that is not an event
        The file is ignored, but it could be a renamed event.
        Remedy: Move the file out of .GOV/log. If it was an event, `workpacket log recover` restores it.

    use_backdated: Approval with an uncertain time of use
        An approval must be used before it expires. This approval was in time only if a commit is older than its
        predecessors. On a fast-forwarded branch, the author of the commit chooses the commit's date.
        Remedy: Find out who pushed the commit and when. If that was too late, revoke the approval and have the packet
        approved again. To avoid the doubt, have the server create merge commits (docs/approvals/protect.md).
    """),
)

CHANGE = (
    *_integrity("""
    move_illegal: Move not allowed
        No command makes this move; the event was written by hand, perhaps to bypass a gate.
        Remedy: Remove the event, and move the packet with its command.

    move_without_gate: Move that did not pass its gate
        The event exists, but nothing shows that its gate was passed: anyone can write an event file.
        Remedy: Remove the event; `workpacket why WP` shows what the gate requires.

    not_committed: File below .GOV that differs from HEAD
        HEAD would be merged, but the work tree would be judged. The two differ because of uncommitted files, attributes
        or filters.
        Remedy: Commit the files that are part of the change (`git add --all .GOV && git commit`), and move all others
        out of .GOV. Before the commit, `--uncommitted` judges the work tree; CI does not.

    attribute_converts: Changed attributes that convert files below .GOV
        A checkout would show different bytes from those merged, so people and checks would read different text.
        Remedy: Remove the line from .gitattributes. For .GOV, the lines that `workpacket init` writes are enough.

    attribute_hides: Changed attributes that hide files below .GOV from diffs
        Code hosts collapse such files, or show only that they differ, so reviewers do not see what is approved or
        decided.
        Remedy: Remove the line from .gitattributes. For .GOV, the lines that `workpacket init` writes are enough.

    path_twin: Names that differ only in case, or in invisible characters
        On macOS and Windows, one of the files replaces the other.
        Remedy: Rename or remove one of them.

    tree_entry_foreign: Entry below .GOV that is not a regular file
        A submodule or link shows content from another place, and commands ignore temporary names.
        Remedy: Remove it from the commit: `git rm --cached -- PATH`.

    event_subject_false: Event with incorrect digests of the packet's file
        A submission or a verdict records the digests of the packet's file before and after that event; an approval is
        bound to the first. The two versions may differ only in their status, and a commit must contain the later one.
        Remedy: Commit the packet right after the command, before it is edited further. If the bytes are lost, remove
        the event and run its command again.

    event_ahead: Event written while the clock was ahead
        The event's time is more than 300 seconds in the future, so no other event could follow it before that time.
        Remedy: Correct the clock, remove the event, and run its command again.

    move_beside_base: Move that ignores a move on the base
        The packet was moved on the base in the meantime, and this event's writer and approvers did not know about that
        move.
        Remedy: Merge the base, reset the log to the base's version
        (`git restore --source=BASE --staged --worktree .GOV/log/WP_ID`, `workpacket board sync`, commit), and repeat
        the commands that still apply.

    base_not_merged: Branch that lacks events merged into the base
        The merge would be judged without these events, so a contradiction between the branch and the base would not be
        found.
        Remedy: Merge the base into the branch, or rebase the branch; in CI, check out the merge result.

    base_lanes_unfit: Base policy that adds invalid lanes
        It is unknown which moves the base allows, so no moves are accepted.
        Remedy: Fix the policy on the base first; `workpacket policy test` shows what is wrong with it.

    policy_unguarded: Change that weakens a policy without approvers
        The policy on the base lists actors or requires coverage, but names no one who could approve a change to them.
        The author of the change would decide who is trusted.
        Remedy: Revert the change. Ask someone with permission to write to the base without the required check to commit
        the change there, or to name the new policy in the CI configuration: `workpacket policy re-anchor`. Once the
        base lists approvers (`workpacket policy trust`), later changes can be approved.

    event_unsigned: Unsigned event although the policy lists actors
        The policy on the base specifies which key may act for which actor, so a name alone is not trusted.
        Remedy: Create a key with `workpacket key init --event`, have it added to [actors], and record the event again.

    event_signature_invalid: Event with an invalid signature
        The signature was not made by an event key over these bytes, so someone else may have written the event.
        Remedy: Remove the event, and record it with its command.

    actor_key_unknown: Event signed by a key that the policy does not list
        Anyone can create a key. A key proves an actor's identity only if [actors] in the policy on the base lists its
        fingerprint and the policy has not revoked the key.
        Remedy: Have the key added to [actors.NAME] in an approved policy change, then record the event again.

    actor_not_allowed: Event signed with a key not allowed for its actor
        Each key may be used only with the names, kinds and roles that [actors] lists for it.
        Remedy: Record the event under a name that the key may use; `workpacket policy show` lists these names.

    approval_key_in_event: Event signed by a key that is allowed to approve
        Event keys have no passphrase, so a key that signs events must not open gates, and a key that opens gates must
        not sign events.
        Remedy: Create an event key with `workpacket key init --event`, and record the event again.

    replay_attestation_invalid: CI attestation that does not count
        CI attests the result of a replay with a certificate that names its workflow. The attestation counts only if
        `[evidence.ci]` in the policy on the base names that workflow and pins the authority that issued the
        certificate, and if it is about this submission.
        Remedy: Record the attestation of the job that replayed this submission: `workpacket evidence record WP FILE`.

    change_uncovered: Change that no packet covers
        The policy on the base requires every changed path to be in the scope of a packet in progress or of a standing
        packet. No packet covers this path.
        Remedy: Claim the packet whose scope contains the path, have a packet activated for it (`workpacket new`), or
        revert the change. A standing packet covers small recurring changes.

    changed_after_verdict: Path that differs from the judged version
        The verdict covers one commit. At every path, the merged content must be the result of merging that commit and
        the base with git.
        Remedy: Revert the later changes; or run `workpacket packet reopen WP`, submit the new commit, and have it
        judged.

    landed_otherwise: Judged work that might not have been merged as judged
        The judged commit conflicts with the base, or is not in this clone. The resolution of a conflict is new work,
        which was not judged.
        Remedy: Merge the base into the branch, run `workpacket packet reopen WP`, submit the result, and have it
    judged. If a commit is missing, fetch the branch that contains it. """),
    *_integrity_note("""
    landing_reverted: Merge reverted as a whole
        The change removes the events, envelopes and code of the merge together, as `git revert` does. If they come
        back, they are judged by the policy that applies then.
        Remedy: Nothing needs to be done, but check that the right merge was reverted.
    """),
)

AUDIT = (
    *_integrity("""
    evidence_changed: The verdict's report has changed
        The log contains the report's digest, which no longer matches the file.
        Remedy: Restore the file from git; write a later report to a separate file.

    commit_not_on_target: Work recorded as merged is not on the target branch
        According to the log, the branch contains the work. Either the branch has been moved since then, or it never
        contained the work.
        Remedy: Merge the work, then run `workpacket packet reopen` and `workpacket packet merged`; or find out who
        moved the branch.

    containment_too_early: Work was recorded as merged before the commit existed
        A commit that was created later cannot have been on the branch.
        Remedy: Find out who wrote the event, and whether the work is on the branch.
    """),
    *_finding("""
    approved_file_changed: A refinement has changed since its packet was activated
        The file is no longer the version that was approved.
        Remedy: Restore the file from git, or have the new version approved.
    """),
    *_across("""
    run_zombie: Run still open although its work has ended
        The run may still change files, and its changes after the verdict were not judged.
        Remedy: End the run with `workpacket runtime cancel RUN`, so that the log shows how it ended.
    """),
    *_across_advice(f"""
    attributes_missing: Missing attributes for the files below .GOV
        Where git converts line endings, as it usually does on Windows, the bytes in a checkout differ from those that
        were signed.
        Remedy: Run `workpacket init`, which adds the lines to a file that it wrote; if you have edited the file, add
        them yourself. Then: `git add --renormalize .GOV`.

    waiver_expired: Waiver that expired before the work ended
        The waived condition applies again.
        Remedy: Meet the condition, or have it waived again: `workpacket packet waive WP_ID CODE --reason TEXT --until
        DAY`.

    requirement_changed: Requirement that changed after the refinement
        The specification lines that the packet is based on have changed, so the packet may no longer meet the
        requirement.
        Remedy: Read the passage again, and update the refinement: `workpacket refine WP_ID`. {_SHOW}

    criterion_without_evidence: Criterion without evidence
        The work was submitted or finished, but nothing proves this line of DONE_MEANS.
        Remedy: Prove it: `workpacket submit WP_ID --prove 'N=COMMAND'`. {_SHOW}

    evidence_without_criterion: Evidence for a criterion that no longer exists
        The line of DONE_MEANS was changed after it was proved, so the evidence is for something else.
        Remedy: Restore the line of DONE_MEANS, or prove the current one. {_SHOW}
    """),
    *_across_note(f"""
    proof_changed: A file that proves a criterion has changed
        The line given as proof may have changed, so it may no longer prove the criterion.
        Remedy: Check that the criterion is still met; prove it again if work continues. {_SHOW}

    requirement_without_packet: Requirement in the main body that no packet covers
        The specification contains the requirement, but no work on it is planned.
        Remedy: Plan the work: `workpacket new` writes a stub.

    packet_without_requirement: Packet without a requirement
        It is unknown which requirement this work fulfills.
        Remedy: Add the passage of the specification to the anchors of the packet's refinement. {_SHOW}
    """),
)

REASONS = (*LOG, *CHANGE, *AUDIT)

LOG_BY_CODE = {reason.code: reason for reason in LOG}
CHANGE_BY_CODE = {reason.code: reason for reason in CHANGE}
AUDIT_BY_CODE = {reason.code: reason for reason in AUDIT}
