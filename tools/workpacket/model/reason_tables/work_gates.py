"""Why work may not be taken up, handed in, accepted or recorded as merged, and why a hand edit is not taken over."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _gate(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "gate", exit_code=exits.REFUSED)


REASONS: tuple[Reason, ...] = (
    _gate(
        "lanes_unfit",
        "The policy in force adds lanes that do not hold",
        "Where work goes cannot be told, and a lane that was left out would be a gate that is open.",
        "Mend `[lifecycle.lanes]` on the base; `workpacket policy test` says what is wrong with it.",
    ),
    _gate(
        "advance_elsewhere",
        "The way leads to another lane",
        "Whoever names a lane expects to come to it; the policy may have changed.",
        "`workpacket policy show` says what follows what; leave `--to` out to go on.",
    ),
    _gate(
        "claimed_by_other",
        "Somebody else holds the packet",
        "Two who work on one packet undo one another's work.",
        "Wait for the lease to end, or ask the holder to release it.",
    ),
    _gate(
        "not_the_holder",
        "Only the holder may do this",
        "Whoever holds the packet answers for it.",
        "Ask the holder; when the lease has ended, anyone may.",
    ),
    _gate(
        "lease_ended",
        "The lease has ended",
        "It cannot be renewed after its end, because somebody else may have looked for work in the meantime.",
        "Release the packet and claim it again.",
    ),
    _gate(
        "assigned_to_other",
        "The packet was prepared for somebody else",
        "The assignment was made on purpose.",
        "`workpacket prepare WP --for NAME` assigns it anew.",
    ),
    _gate(
        "dependency_unmet",
        "A packet that it depends on is not done",
        "The work would rest on something that is not there.",
        "Bring the dependency on, or have it waived: `workpacket waive WP dependency_unmet`.",
    ),
    _gate(
        "dependency_unknown_lane",
        "Nobody can say how far a dependency is",
        "It has no log, and what board and files say is not believed.",
        "`workpacket adopt` begins its log; or correct the id.",
    ),
    _gate(
        "work_branch_missing",
        "No branch of its own is there for the work",
        "Work on the target branch cannot be reviewed before it is there.",
        "`workpacket prepare WP` makes branch and work tree.",
    ),
    _gate(
        "packet_uncommitted",
        "The work tree would lack the packet",
        "A work tree holds what was committed; in one that begins before the packet, no command would know of it.",
        "Commit the governed files on the branch that the work begins from, then prepare.",
    ),
    _gate(
        "done_means_missing",
        "The packet does not say when it is done",
        "Nothing could be proved.",
        "Fill in DONE_MEANS.",
    ),
    _gate(
        "evidence_missing",
        "A criterion is not proved",
        "Each line of DONE_MEANS needs a command that succeeded, a place in the code, or a reason why not.",
        "`workpacket submit WP --prove N=COMMAND`, `--prove N=PATH:LINE` or `--not-applicable N=REASON`.",
    ),
    _gate(
        "scope_undecided",
        "The packet names no path that may change",
        "Whether the work stayed within its scope could not be seen.",
        "List the paths in IN_SCOPE_PATHS.",
    ),
    _gate(
        "outside_scope",
        "A file outside of the scope was changed",
        "What is not in the scope was neither refined nor approved.",
        "Take the change back, or have the path added to IN_SCOPE_PATHS.",
    ),
    _gate(
        "changes_unknown",
        "What the work changed cannot be told",
        "The commit that it began from is not recorded.",
        "`workpacket prepare WP` records it.",
    ),
    _gate(
        "other_work_branch",
        "Work of another branch",
        "The packet was prepared on one branch; what is checked out here belongs to another packet, or to none.",
        "Go to the branch or work tree of the packet, or name the commit: `workpacket submit WP --commit REV`.",
    ),
    _gate(
        "evidence_not_kept",
        "What the proofs printed is not kept here",
        "No output of a proof enters the log. Its end stays in the clone where the proof was run, and may be deleted.",
        "Publish it from that clone, or prove again: `workpacket submit WP --prove N=COMMAND`.",
    ),
    _gate(
        "evidence_of_other_commit",
        "The evidence is of other work",
        "It was recorded at a commit whose files differ from those of the commit that is to be judged.",
        "Prove it again: `workpacket submit WP --prove N=COMMAND`.",
    ),
    _gate(
        "work_uncommitted",
        "Files of the scope are not committed",
        "What is judged is a commit; what is not in it would never be reviewed.",
        "Commit them, then submit.",
    ),
    _gate(
        "todo_left",
        "A field of the packet is still to be filled in",
        "The packet is what is reviewed against.",
        "Fill it in.",
    ),
    _gate(
        "verdict_by_coder",
        "Nobody judges their own work",
        "Whoever held the packet cannot be its validator.",
        "Have somebody else give the verdict.",
    ),
    _gate(
        "report_missing",
        "The verdict comes without a report",
        "What was looked at, and found, must be there to read.",
        "`workpacket verdict WP PASS --report FILE`.",
    ),
    _gate(
        "review_reference_missing",
        "What is to be changed is said nowhere",
        "The coder would have to guess.",
        "`workpacket verdict WP CHANGES --reference PLACE`.",
    ),
    _gate(
        "run_unfinished",
        "A run still works on the packet",
        "What it does after the verdict would be judged by nobody.",
        "Let the run end, stop or cancel it. `workpacket why WP` says how it stands: `workpacket runs settle` closes "
        "what a crash left open, and `workpacket runs unlink` gives up a run whose store is gone.",
    ),
    _gate(
        "commit_unknown",
        "No commit was submitted",
        "There is nothing to look for on the target branch.",
        "Reopen the packet and submit the commit.",
    ),
    _gate(
        "target_branch_unknown",
        "There is no branch that the work is merged into",
        "Neither the policy nor the remote nor the repository has one.",
        "Set [lifecycle] target_branch in .GOV/policy/policy.toml.",
    ),
    _gate(
        "not_contained",
        "The work is not on the target branch",
        "Neither the commit, nor the same change, nor the same files were found there.",
        "Merge it; squashed and rebased merges are recognised too.",
    ),
    _gate(
        "hand_edit_not_adoptable",
        "The move asks for more than a word on the board",
        "Its gate wants evidence, which no board entry holds.",
        "Use the command that the message names, or `workpacket board sync` to draw the board anew.",
    ),
    _gate(
        "board_section_absent",
        "The board lacks a section",
        "There is nowhere to put the entry.",
        "`workpacket board sync` adds the sections that are missing.",
    ),
    _gate(
        "registry_table_absent",
        "The registry has no table",
        "There is nowhere to put the row.",
        "Add the header and its line of dashes.",
    ),
)
