"""Why a packet may not move: its log, stub and refinement, the word of a person, the work, and its proofs."""

from __future__ import annotations

from functools import partial

from workpacket.model.reasons import reasons

_usage = partial(reasons, "usage")
_gate = partial(reasons, "gate")
_environment = partial(reasons, "environment")

_SIGN = "Have a person read the refinement and sign it: `workpacket approve WP`; it fills in the fields USER_*."

BEGINNING = (
    *_usage("""
    packet_unknown: There is no packet of this id
        Nothing is guessed: the nearest id may be another piece of work.
        Remedy: Use the id that the message names, or look for it with `workpacket list`.

    packet_ambiguous: A base id was given where several revisions are possible
        Which of them is meant cannot be told from the base.
        Remedy: Name the revision.

    actor_unknown: It was not said who acts
        Each event names who did it, though only a signature makes that more than a claim.
        Remedy: Give `--as NAME`, or set WORKPACKET_ACTOR or git's user.name.

    proof_not_run: The command that is to prove a criterion could not be run
        It proves nothing, neither for nor against.
        Remedy: Correct the command; it is run from the top of the repository, without a shell.

    proof_needs_shell: The command that is to prove a criterion is written for a shell
        A proof is run without a shell, so a pipe, a variable or a pattern would reach the program as plain text: of
        `echo Eve | python3 greet.py`, `echo` would print all of it, and greet.py would never start.
        Remedy: Name the shell: `--prove "1=sh -c 'COMMAND'"`. Or quote the character, if it is meant as it is.

    secret_in_proof: What is given as proof holds a secret
        The command, and the reason why a line does not apply, enter the log, and stay there for everybody.
        Remedy: Let the program read the secret from a file, or from a variable that `[evidence] env` of the policy
        names. A secret that was typed here should be replaced.
    """),
    *_gate(f"""
    proof_tree_differs: The work tree is not the commit that is to be proved
        What a command comes to in another tree says nothing about the commit.
        Remedy: Check the commit out completely, here or in a new work tree: `git worktree add --detach PATH REV`.

    proof_changed_tree: A proof changed the work tree
        It changed tracked files, left new ones or moved HEAD: what it proved is not the commit any more, and neither is
        what later proofs see.
        Remedy: Take the change back. Let the proof write to a temporary folder, or to files that git ignores.

    log_absent: The packet has no log
        Its lane is what the log says. Board and packet are drawn from the log and prove nothing.
        Remedy: `workpacket adopt` begins a log for what the documents say.

    log_unsound: The log of the packet does not hold together
        What it says cannot be trusted, so nothing is built upon it.
        Remedy: `workpacket log verify` shows what is wrong; restore the file from git.

    packet_is_forked: The packet was moved independently on two branches
        The moves contradict one another, and no command can know which of them holds.
        Remedy: `workpacket history WP` shows both; `workpacket resolve WP --lane LANE --reason TEXT` settles it.

    not_forked: There is nothing to settle
        The moves of the packet do not contradict one another.
        Remedy: `workpacket why WP` says what comes next.

    fork_lane_unknown: None of the contradicting moves leads to this lane
        Settling a fork means to say which of its moves holds, not to make another one.
        Remedy: Name one of the lanes that the message lists.

    wrong_lane: The packet is in a lane that the command does not lead out of
        Each move begins in certain lanes, so that no gate can be walked around.
        Remedy: Use one of the commands that the message lists.

    packet_is_stub: The packet is a stub
        A stub is a note in the backlog: it was neither refined nor approved, so work may not start from it.
        Remedy: `workpacket activate WP` says what is missing.

    packet_superseded: The packet is superseded
        A later revision has taken its place; work on this one would be lost.
        Remedy: Work on the revision that the message names.

    packet_exists: There is such a packet already
        Two files for one packet would say two things.
        Remedy: Choose another id, or the next revision: `workpacket new --next BASE`.

    packet_missing: The file of the packet is missing
        The log has it as activated, and what is to be done cannot be read.
        Remedy: Restore it from git.

    stub_missing: The stub is missing
        Scope and acceptance of the packet are taken from it.
        Remedy: Restore it from git, or write it again.

    successor_unfit: This packet cannot take the place of the other
        A packet is superseded by another one that is known and has a log.
        Remedy: Name a later revision, or make one: `workpacket new --next BASE`.

    spec_pointer_missing: Nothing says which specification is in force
        A refinement is made against one version of one specification.
        Remedy: Write its path into .GOV/roles_shared/SPEC_CURRENT.md.

    specification_unreadable: The specification cannot be read
        Whether it states the requirement cannot be seen.
        Remedy: Correct the path, or bring the file back.

    requirement_only_in_roadmap: The requirement is in a roadmap section only
        A roadmap says what somebody wants one day; what binds is the main body of the specification.
        Remedy: Anchor it in the main body; if it is not there, enrich the specification first.

    enrichment_needed: The specification has to be enriched first
        The refinement found that the specification does not cover the work.
        Remedy: Add the proposed text to the specification, then refine against the new version.

    coverage_point_open: A point of the five-point checklist is not passed
        A box without a tick was never answered, whatever word is behind it and whatever the verdict says.
        Remedy: Tick the points that hold (`[x] PASS`). If one does not, the verdict is FAIL and the specification has
        to be enriched.

    refinement_missing: There is no technical refinement
        Without it no one has looked whether the specification covers the work.
        Remedy: `workpacket refine WP` writes the scaffold.

    refinement_incomplete: The technical refinement is not complete
        What is left open there is decided by the person who writes the code.
        Remedy: Fill in the point that the message names.

    refinement_not_presented: The refinement was not shown to the user as it is now
        No one can approve what they have not seen.
        Remedy: `workpacket refine WP --present` prints it for the conversation and records its digest.

    user_signature_missing: The user has not signed
        Work begins with a person's word.
        Remedy: {_SIGN}

    refinement_not_approved: The refinement is not approved
        The user's answer is still open.
        Remedy: {_SIGN}

    checklist_item_unmet: An item that the policy adds to the checklist is not met
        The repository decided that no packet is activated without it.
        Remedy: Add the section with its text to the refinement.

    scope_not_carried_over: The packet lacks something that its stub demands
        What is dropped between stub and packet is never built and never missed.
        Remedy: Carry it over, or change the stub and say why.

    board_entry_not_moved: The board still has the packet among the stubs
        It looks like something that may not be started.
        Remedy: `workpacket board sync` moves it.
    """),
    *_environment("""
    clock_behind: The clock is behind what the log has seen
        Leases and approvals are judged by the clock; one that goes backwards would make ended ones valid.
        Remedy: Set the clock of this machine.

    lane_unknown: The log names a lane that this version does not know
        It was written by another version, or by hand.
        Remedy: Update workpacket.
    """),
)

WORK = _gate("""
    lanes_unfit: The policy in force adds lanes that do not hold
        Where work goes cannot be told, and a lane that was left out would be a gate that is open.
        Remedy: Mend `[lifecycle.lanes]` on the base; `workpacket policy test` says what is wrong with it.

    advance_elsewhere: The way leads to another lane
        A command that names a lane is expected to lead to it; the policy may have changed.
        Remedy: `workpacket policy show` says what follows what; leave `--to` out to go on.

    claimed_by_other: Someone else holds the packet
        Two who work on one packet undo one another's work.
        Remedy: Wait for the lease to end, or ask the holder to release it.

    not_the_holder: Only the holder may do this
        The holder answers for the packet.
        Remedy: Ask the holder; when the lease has ended, anyone may.

    lease_ended: The lease has ended
        It cannot be renewed after its end, because someone else may have looked for work in the meantime.
        Remedy: Release the packet and claim it again.

    assigned_to_other: The packet was prepared for someone else
        The assignment was made on purpose.
        Remedy: `workpacket prepare WP --for NAME` assigns it to someone else.

    dependency_unmet: A packet that it depends on is not done
        The work would rest on something that is not there.
        Remedy: Bring the dependency on, or have it waived: `workpacket waive WP dependency_unmet`.

    dependency_unknown_lane: The state of a dependency is not known
        It has no log, and what board and files say is not believed.
        Remedy: `workpacket adopt` begins its log; or correct the id.

    work_branch_missing: No branch of its own is there for the work
        Work on the target branch cannot be reviewed before it is there.
        Remedy: `workpacket prepare WP` makes branch and work tree.

    packet_uncommitted: The work tree would lack the packet
        A work tree holds what was committed; in one that begins before the packet, no command would know of it.
        Remedy: Commit the governed files on the branch that the work begins from, then prepare.

    done_means_missing: The packet does not say when it is done
        Nothing could be proved.
        Remedy: Fill in DONE_MEANS.

    evidence_missing: A criterion is not proved
        Each line of DONE_MEANS needs a command that succeeded, a place in the code, or a reason why not.
        Remedy: `workpacket submit WP --prove N=COMMAND`, `--prove N=PATH:LINE` or `--not-applicable N=REASON`.

    scope_undecided: The packet names no path that may change
        Whether the work stayed within its scope could not be seen.
        Remedy: List the paths in IN_SCOPE_PATHS.

    outside_scope: A file outside of the scope was changed
        What is not in the scope was neither refined nor approved.
        Remedy: Take the change back, or have the path added to IN_SCOPE_PATHS.

    changes_unknown: What the work changed cannot be told
        The commit that it began from is not recorded.
        Remedy: `workpacket prepare WP` records it.

    other_work_branch: Work of another branch
        The packet was prepared on one branch; what is checked out here belongs to another packet, or to none.
        Remedy: Go to the branch or work tree of the packet, or name the commit: `workpacket submit WP --commit REV`.

    evidence_not_kept: What the proofs printed is not kept here
        No output of a proof enters the log. Its end stays in the clone where the proof was run, and may be deleted.
        Remedy: Publish it from that clone, or prove again: `workpacket submit WP --prove N=COMMAND`.

    evidence_of_other_commit: The evidence is of other work
        It was recorded at a commit whose files differ from those of the commit that is to be judged.
        Remedy: Prove it again: `workpacket submit WP --prove N=COMMAND`.

    work_uncommitted: Files of the scope are not committed
        What is judged is a commit; what is not in it would never be reviewed.
        Remedy: Commit them, then submit.

    todo_left: A field of the packet is still to be filled in
        The packet is what is reviewed against.
        Remedy: Fill it in.

    verdict_by_coder: No one judges their own work
        A person who held the packet cannot be its validator.
        Remedy: Have someone else give the verdict.

    report_missing: The verdict comes without a report
        What was looked at, and found, must be there to read.
        Remedy: `workpacket verdict WP PASS --report FILE`.

    review_reference_missing: What is to be changed is said nowhere
        The coder would have to guess.
        Remedy: `workpacket verdict WP CHANGES --reference PLACE`.

    reapproval_needless: No approval has to be replaced
        Every approval that the packet rests on counts.
        Remedy: Nothing has to be done; `workpacket approvals list WP_ID` shows them.

    run_unfinished: A run still works on the packet
        What it does after the verdict would not be judged.
        Remedy: Let the run end, stop or cancel it. `workpacket why WP` says what its state is: `workpacket runs settle`
        closes what a crash left open, and `workpacket runs unlink` gives up a run whose store is gone.

    commit_unknown: No commit was submitted
        There is nothing to look for on the target branch.
        Remedy: Reopen the packet and submit the commit.

    target_branch_unknown: There is no branch that the work is merged into
        Neither the policy nor the remote nor the repository has one.
        Remedy: Set [lifecycle] target_branch in .GOV/policy/policy.toml.

    not_contained: The work is not on the target branch
        Neither the commit, nor the same change, nor the same files were found there.
        Remedy: Merge it; squashed and rebased merges are recognised too.

    hand_edit_not_adoptable: The move asks for more than a word on the board
        Its gate wants evidence, which no board entry holds.
        Remedy: Use the command that the message names, or `workpacket board sync` to draw the board again.

    board_section_absent: The board lacks a section
        There is nowhere to put the entry.
        Remedy: `workpacket board sync` adds the sections that are missing.

    registry_table_absent: The registry has no table
        There is nowhere to put the row.
        Remedy: Add the header and its line of dashes.
    """)

REASONS = (*BEGINNING, *WORK)
