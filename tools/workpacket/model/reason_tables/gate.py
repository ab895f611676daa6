"""Why a packet may not move: its log, its stub and refinement, the signature, the work, or its proofs."""

from __future__ import annotations

from functools import partial

from workpacket.model.reasons import reasons

_usage = partial(reasons, "usage")
_gate = partial(reasons, "gate")
_environment = partial(reasons, "environment")

_SIGN = "Have a person read the refinement and sign it with `workpacket approve WP`, which fills in the USER_* fields."

BEGINNING = (
    *_usage("""
    packet_unknown: Unknown packet
        The command does not guess: a similar id may be a different piece of work.
        Remedy: Use the id that the message names, or find it with `workpacket list`.

    packet_ambiguous: Ambiguous base id
        The base has several revisions, and the id does not specify which one is meant.
        Remedy: Name the revision.

    actor_unknown: Unknown actor
        Each event names its actor, but no actor is given on the command line, in the environment or in git.
        Remedy: Pass `--as NAME`, or set WORKPACKET_ACTOR or git's user.name.

    proof_not_run: The command that should prove a criterion could not be run
        It is still unknown whether the criterion is met.
        Remedy: Fix the command; it is run from the top of the repository, without a shell.

    replay_unmatched: Nothing to replay
        A replay reruns the commands of the latest submission, but the log has no submission.
        Remedy: Run `workpacket submit WP` first.

    proof_needs_shell: The command that should prove a criterion needs a shell
        Proofs are run without a shell, so pipes, variables and patterns would reach the program as plain text: `echo
        Eve | python3 greet.py` would make `echo` print everything after it, and greet.py would never start.
        Remedy: Name the shell: `--prove "1=sh -c 'COMMAND'"`. Or quote the character if it is meant literally.

    secret_in_proof: Proof that contains a secret
        Commands, and reasons why a line does not apply, are recorded in the log for everyone to read.
        Remedy: Have the program read the secret from a file, or from a variable listed in `[evidence] env` of the
        policy. Replace any secret that was typed here. """),
    *_gate(f"""
    proof_tree_differs: The work tree differs from the commit to prove
        The result of a command in a different work tree says nothing about the commit.
        Remedy: Check out the whole commit, here or in a new work tree: `git worktree add --detach PATH REV`.

    proof_changed_tree: A proof changed the work tree
        The proof changed tracked files, left new files or moved HEAD, so neither it nor later proofs apply to the
        commit.
        Remedy: Undo the change. Have the proof write to a temporary folder, or to files that git ignores.

    proof_undeclared: The contract specifies no proof for a criterion
        The policy requires the approver to sign the proof of each criterion: a command and the tests that it must run,
        or the reason why no test proves it.
        Remedy: Write the proof below the criterion, by hand or with
        `workpacket evidence demand WP N --command COMMAND`. After activation, this requires an amendment.

    proof_trivial: A command that proves nothing
        `true` and `echo` always succeed, and `test -f` only shows that a file exists.
        Remedy: Name a command that runs tests.

    no_test_executed: No test was executed
        Nothing is proved by a filter that matches nothing, by skipped tests, or by a runner that does not report its
        tests.
        Remedy: Fix the command or the filter: it must execute the tests that the contract names.

    test_not_run: A test that the contract names was not run
        The test was deselected or skipped, or has a different name. A test with the same name in another place is a
        different test.
        Remedy: Have the command run it, or have the contract amended.

    test_failed: A test of the proof failed
        With the work, every test that the command runs must pass, and its exit code must be 0.
        Remedy: Fix the work or the test. Exclude from the command any tests that were already failing.

    proof_not_needed: The proof also succeeds without the work
        All tests of the proof also pass at the base, so they say nothing about the work.
        Remedy: Write a test that fails without the work. If that is impossible, have the contract state why: EXEMPT.

    base_not_run: The tests could not run at the base
        The tests failed at the base for a reason unrelated to the work, so they do not show that the work is needed.
        Remedy: Write the tests so that they can be loaded without the work, or so that they fail because something that
        the work adds is missing. PATHS lists tests that are not where the policy looks for them.

    change_not_executed: The tests do not execute the changed code
        The tests fail without the work, but execute none of the added lines: they only test that something exists, or
        use a mock instead.
        Remedy: Have the test call the new code.

    proof_program_changed: The change adds the program that should prove it
        A program added by the change, if found before the real one, could print anything.
        Remedy: Specify the program by its path, and have it approved with the contract; or give it another name.

    proof_other_command: A proof that differs from the one in the contract
        The proof of a criterion is approved with the contract.
        Remedy: Run `workpacket submit WP`, which runs the commands of the contract; a different proof requires an
        amendment.

    exemption_unsigned: Unapproved exemption
        The coder cannot decide that a criterion needs no proof: the contract must say so, with a reason that the
        approver signed.
        Remedy: Prove the criterion, or have the contract amended with `EXEMPT: REASON`.

    criterion_unticked: Unticked criterion
        According to the packet itself, the criterion is not met.
        Remedy: Meet the criterion, then tick its box in DONE_MEANS.

    replay_missing: No one else has rerun the proofs
        Before a PASS verdict, the policy requires that the proofs be rerun by someone who did not do the work, or by
        CI. Remedy: Have someone else run `workpacket evidence replay WP --record`, or record the CI attestation:
        `workpacket evidence record WP FILE`.

    log_absent: The packet has no log
        The log determines the lane; the board and the packet are generated from it, and prove nothing.
        Remedy: `workpacket adopt` creates a log from the contents of the documents.

    log_unsound: The packet's log is inconsistent
        An inconsistent log cannot be trusted, so it is not used.
        Remedy: `workpacket log verify` shows what is wrong; restore the file from git.

    packet_is_forked: The packet was moved independently on two branches
        The moves contradict each other, and no command can tell which one is right.
        Remedy: `workpacket log show WP` shows both moves; `workpacket packet resolve WP --lane LANE --reason TEXT`
        settles the fork.

    not_forked: Nothing to settle
        The packet's moves do not contradict each other.
        Remedy: Run `workpacket why WP` to see what comes next.

    fork_lane_unknown: None of the conflicting moves leads to this lane
        A fork is settled by choosing one of its moves, not by making another move.
        Remedy: Specify one of the lanes that the message lists.

    wrong_lane: The command does not apply in the packet's lane
        Each move starts from certain lanes, so that no gate can be bypassed.
        Remedy: Use one of the commands that the message lists.

    packet_is_stub: The packet is a stub
        A stub is a backlog note that has been neither refined nor approved, so work cannot start from it.
        Remedy: Run `workpacket packet activate WP`, or for a light packet `workpacket start WP`; both list what is
        missing.

    packet_superseded: The packet is superseded
        A later revision has replaced this packet, so work on it would be lost.
        Remedy: Work on the revision that the message names.

    packet_exists: The packet already exists
        Two files for one packet could contradict each other.
        Remedy: Choose a different id, or the next revision: `workpacket new --next BASE`. If both were created on
        different
            branches: `workpacket packet rename WP_ID NEW_WP_ID`.

    packet_landed: The packet has been merged
        Other branches, approvals and documents refer to the packet by its id.
        Remedy: Create another packet, and supersede this one: `workpacket packet supersede WP_ID --by NEW_WP_ID`.

    packet_missing: The packet's file is missing
        According to the log, the packet was activated, but the file that describes the work is missing.
        Remedy: Restore it from git.

    stub_missing: The stub is missing
        The packet's scope and acceptance criteria come from the stub.
        Remedy: Restore it from git, or write it again.

    successor_unfit: This packet cannot replace the other one
        A packet can be superseded only by an existing packet that has a log.
        Remedy: Specify a later revision, or create one: `workpacket new --next BASE`.

    spec_pointer_missing: The repository does not name the current specification
        A refinement is based on one version of one specification.
        Remedy: Write its path into .GOV/roles_shared/SPEC_CURRENT.md.

    specification_unreadable: The specification cannot be read
        Without the specification, it is unknown whether it contains the requirement.
        Remedy: Correct the path, or restore the file.

    requirement_only_in_roadmap: The requirement appears only in a roadmap section
        Roadmaps list plans; only the main body of the specification is binding.
        Remedy: Anchor the work in the main body; if the requirement is not there, extend the specification first.

    enrichment_needed: The specification must be extended first
        According to the refinement, the specification does not cover the work.
        Remedy: Add the proposed text to the specification, then write the refinement against the new version.

    coverage_point_open: A point on the five-point checklist is not met
        An unticked box counts as not answered, regardless of the word that follows it and of the verdict.
        Remedy: Tick the points that are met (`[x] PASS`). If one is not met, the verdict is FAIL, and the specification
        must be extended.

    refinement_missing: No technical refinement
        Without a refinement, no one has checked that the specification covers the work.
        Remedy: `workpacket refine WP` writes the scaffold.

    refinement_incomplete: The technical refinement is incomplete
        The coder would have to decide whatever the refinement leaves open.
        Remedy: Fill in the point that the message names.

    refinement_not_presented: The current refinement was not shown to the user
        No one can approve what they have not seen.
        Remedy: `workpacket refine WP --present` prints the block to be shown in the conversation, and records its
        digest.

    user_signature_missing: The user has not signed
        Work may start only after a person has approved the refinement.
        Remedy: {_SIGN}

    refinement_not_approved: The refinement is not approved
        The user has not answered yet.
        Remedy: {_SIGN}

    checklist_item_unmet: A checklist item that the policy adds is not met
        This repository's policy requires this item for activation.
        Remedy: Add the section with its text to the refinement.

    scope_not_carried_over: The packet lacks something that its stub requires
        A requirement that is lost between the stub and the packet would never be met, and no one would notice.
        Remedy: Either add it to the packet, or change the stub and explain the change.
    """),
    *_environment("""
    proof_setup_failed: The work trees for a proof could not be prepared
        A command in `[evidence] setup` failed, so nothing was proved and nothing was recorded.
        Remedy: Run the command that the message names in a fresh checkout, and fix either the command or the policy on
        the base.

    clock_behind: The clock is behind the log
        Leases and approvals depend on the clock; if it went backward, those that have expired would become valid again.
        Remedy: Correct this machine's clock.
    """),
)

WORK = _gate("""
    lanes_unfit: The current policy adds invalid lanes
        The next lane cannot be determined, and without the added lane, its gate would be skipped.
        Remedy: Fix `[lifecycle.lanes]` on the base; `workpacket policy test` shows what is wrong with it.

    moved_elsewhere: Another branch has already moved the packet
        Another move here would contradict that one, and only one of the two could be merged. The other branch is the
        packet's own branch, or a branch of the remote.
        Remedy: Continue on the branch that the message names, or merge it. If the work was abandoned, delete the
        branch. If nothing followed the claim on that branch, the claim ends when its lease expires.

    advance_elsewhere: The specified lane is not the next one
        The lane given on the command line must be the next one; the policy may have changed.
        Remedy: `workpacket policy show` lists the order of the lanes; omit `--to` to move to the next one.

    claimed_by_other: Someone else holds the packet
        Two people working on one packet would undo each other's work.
        Remedy: Wait for the lease to expire, or ask the holder to release the packet.

    not_the_holder: Only the holder may do this
        Only the holder is responsible for the packet.
        Remedy: Ask the holder, or wait until the lease has expired; then anyone may do it.

    lease_ended: The lease has expired
        A lease cannot be renewed after it has expired, because someone else may have started working on the packet.
        Remedy: Release the packet and claim it again.

    assigned_to_other: The packet is assigned to someone else
        Only the assignee may claim the packet.
        Remedy: Change the assignment with `workpacket packet prepare WP --for NAME`.

    dependency_unmet: A dependency is not done
        The work would rely on something that does not exist yet.
        Remedy: Complete the dependency, or have it waived: `workpacket packet waive WP dependency_unmet`.

    dependency_unknown_lane: The state of a dependency is unknown
        The dependency has no log, and the board and the files are not authoritative.
        Remedy: Create the dependency's log with `workpacket adopt`, or correct the id.

    work_branch_missing: The packet does not have its own branch
        Work done directly on the target branch cannot be reviewed before it is merged.
        Remedy: Run `workpacket packet prepare WP`, which creates the branch and the work tree.

    packet_uncommitted: The packet is not committed
        A new work tree contains only committed files, so commands run in it would not find the packet.
        Remedy: Commit the governed files on the branch that the work starts from, then run `workpacket packet prepare`
        again.

    done_means_missing: The packet has no acceptance criteria
        Without criteria, nothing can be proved.
        Remedy: Fill in DONE_MEANS.

    evidence_missing: Criterion without proof
        Each line of DONE_MEANS needs a command that succeeded, or a location in the code. A line needs no proof only if
        the contract says `EXEMPT: REASON` below it.
        Remedy: `workpacket submit WP --prove N=COMMAND` or `--prove N=PATH:LINE`; `--not-applicable N=REASON` for a
        line that the contract exempts.

    scope_undecided: The packet does not list the paths that the work may change
        Without these paths, it is unknown whether the work stayed within its scope.
        Remedy: List the paths in IN_SCOPE_PATHS.

    outside_scope: File changed outside the scope
        Changes outside the scope were neither refined nor approved.
        Remedy: Undo the change, or have the path added to IN_SCOPE_PATHS.

    changes_unknown: What the work changed cannot be determined
        The commit that the work started from is not recorded.
        Remedy: `workpacket packet prepare WP` records it.

    path_protected: Only commands may write to the path
        Editing git's files or the log's files by hand breaks the repository for everyone.
        Remedy: Use the command that writes to it: `git config`, or `workpacket packet note` to correct the log.

    other_work_branch: Another packet's branch is checked out
        The packet was prepared on a different branch; the branch checked out here belongs to another packet, or to
        none.
        Remedy: Switch to the packet's branch or work tree, or specify the commit: `workpacket submit WP --commit REV`.

    evidence_not_kept: The output of the proofs is not in this clone
        The log does not contain the output of proofs. The end of the output remains in the clone where the proof was
        run, and may be deleted.
        Remedy: Publish the output from that clone, or prove the criterion again: `workpacket submit WP --prove
        N=COMMAND`.

    evidence_of_other_commit: The evidence is for different work
        The evidence was recorded at a commit whose files differ from those in the commit to be judged.
        Remedy: Prove it again: `workpacket submit WP --prove N=COMMAND`.

    work_uncommitted: Files in scope are not committed
        Only committed work is judged; anything else would never be reviewed.
        Remedy: Commit the files, then submit.

    todo_left: A field of the packet is not filled in
        Reviewers judge the work against the packet.
        Remedy: Fill it in.

    verdict_by_coder: Verdict on your own work
        Someone who has held the packet may not validate it.
        Remedy: Have someone else give the verdict.

    report_missing: Verdict without a report
        Others must be able to read what was examined and what the result was.
        Remedy: `workpacket verdict WP PASS --report FILE`.

    review_reference_missing: The verdict does not say where changes are requested
        The coder would have to guess what to change.
        Remedy: `workpacket verdict WP CHANGES --reference PLACE`.

    reapproval_needless: No approval needs to be replaced
        New approvals help only events whose own approvals used to count but no longer do. Here, they either still count
        or never did.
        Remedy: `workpacket approvals list WP_ID` shows the approvals; an event that never had valid approvals must be
        removed.

    run_unfinished: A run of the packet is unfinished
        The verdict would not cover later changes by the run.
        Remedy: Wait for the run to finish, or stop or cancel it; `workpacket why WP` shows its state. After a crash,
        run `workpacket runtime runs settle`; if the run's store is gone, `workpacket runtime runs unlink`.

    commit_unknown: No commit was submitted
        Without a submitted commit, there is nothing to look for on the target branch.
        Remedy: Reopen the packet and submit the commit.

    target_branch_unknown: Unknown target branch
        Neither the policy, nor the remote, nor the repository specifies a target branch.
        Remedy: Set [lifecycle] target_branch in .GOV/policy/policy.toml.

    not_contained: The work is not on the target branch
        The target branch contains neither the commit, nor the same change, nor the same files.
        Remedy: Merge the work; squash and rebase merges are recognized, too.

    hand_edit_not_adoptable: The move requires more than a board edit
        The move's gate requires evidence, which a board entry cannot contain.
        Remedy: Use the command that the message names, or `workpacket board sync` to regenerate the board.

    board_section_absent: The board lacks a section
        The board has no section for the entry.
        Remedy: `workpacket board sync` adds the missing sections.

    registry_table_absent: The registry has no table
        The registry has no table for the row.
        Remedy: Add the header and its separator line of dashes.
    """)

REASONS = (*BEGINNING, *WORK)
