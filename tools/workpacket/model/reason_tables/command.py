"""Why a command cannot run: its arguments, the machine, git, another writer, or a bug in workpacket; and why a run, a
batch or a role cannot continue. Reasons why a run stops are in `stops`.
"""

from __future__ import annotations

from functools import partial

from workpacket.model import exits
from workpacket.model.reasons import reasons

_usage = partial(reasons, "usage")
_environment = partial(reasons, "environment")
_conflict = partial(reasons, "conflict")
_integrity = partial(reasons, "integrity")
_gate = partial(reasons, "gate")
_document = partial(reasons, "document")
_across_advice = partial(reasons, "cross-file", severity="warning", strict_severity="warning")
_internal = partial(reasons, "internal")
_interrupted = partial(reasons, "internal", exit_code=exits.INTERRUPTED)

USAGE = _usage("""
    unknown_command: Unknown command
        Nothing was done: guessing which command was meant could change files unintentionally.
        Remedy: Run `workpacket --help` for the list of commands.

    unknown_option: Unknown option
        A command that ignored an option would do less, or more, than requested.
        Remedy: Run the command with `--help` for its options.

    missing_argument: Missing argument
        The argument has no default, because any default would be a guess.
        Remedy: Run the command with `--help`; the example there shows every argument.

    unexpected_argument: Unexpected argument
        A command that ignored an argument would hide a mistake, such as missing quotes around a space.
        Remedy: Run the command with `--help`, and quote arguments that contain spaces.

    invalid_value: Invalid value for an option or argument
        Values are checked first, so that no command stops halfway because of a bad one.
        Remedy: Use one of the values that the message or `--help` lists.

    conflicting_options: Options that cannot be used together
        The command would have to ignore one of them silently.
        Remedy: Remove one of the options.

    unknown_code: Unknown reason code
        A misspelled code in `--select` or `--ignore` would make the check cover less or more than requested.
        Remedy: Use one of the codes in `docs/reference/codes.md`; `workpacket explain` without a code lists them.

    path_not_found: Path not found
        If missing paths were ignored, a check of no files would pass.
        Remedy: Correct the path; it is relative to the current directory.

    path_outside_repository: Path outside the repository
        A file is judged by the rules, policy and history of its own repository.
        Remedy: Go to the repository that contains the file, and run the command there.

    install_source_local: This copy of workpacket was installed from a path on this machine
        A workflow or hook installs the version of workpacket that is running here, but that version's path does not
        exist on other machines.
        Remedy: Pass `--from` with a version, a git commit, or an archive and its digest.

    install_source_open: The requirement does not specify which version of workpacket to install
        Without a version, commit or digest, CI would run whatever was last published.
        Remedy: Pass `--from` with a version, a git commit, or an archive and its digest.
    """)

ENVIRONMENT = _environment("""
    extra_missing: A package that the command needs is not installed
        The command needs optional dependencies, which a plain installation does not include.
        Remedy: Install the extra that the message names, with `pip install 'workpacket[NAME]'`.

    port_taken: The port is in use
        Another program is listening there, or this account is not allowed to use the port.
        Remedy: Specify another port, or 0 for any free one.

    no_repository: Not a git repository
        Governed files, their policy and their history belong to a repository.
        Remedy: Go to a repository, or create one with `git init`, then run `workpacket init`.

    nothing_to_check: No governed files found
        A check that examined no files must not look like a successful check.
        Remedy: Check the paths on the command line; in a new repository, run `workpacket init` first.

    tool_missing: A program that the command needs is not installed
        The command relies on other programs, such as git for the history.
        Remedy: Install the program that the message names, and make sure that it is on PATH.

    tool_failed: A program that the command needs has failed
        The command cannot continue without the program's output. Nothing was written.
        Remedy: Run the command in the message by hand; its own error message explains what is wrong.

    git_failed: A git command failed
        Without git's output, the command would have to guess, so it stopped.
        Remedy: Run the git command in the message by hand; its error message explains what is wrong.

    file_unreadable: A file cannot be read
        The file could contain anything, so the check cannot pass without it.
        Remedy: Grant read permission, repair the link, or move the file out of the governed folders.

    file_unwritable: A file cannot be written
        The change was not made, and no file is half-written.
        Remedy: Grant write permission or free some disk space, then run the command again.

    unsuitable_file_system: The file system cannot store files safely
        Without atomic renames and locks, a crash could leave files in a state that no command wrote.
        Remedy: Move the repository to a local file system; `workpacket runtime doctor` shows what is missing.
    """)

GIT = (
    *_environment("""
    repository_bare: The repository has no work tree here
        The governed files are read from and written to a work tree.
        Remedy: Work in a clone, or add a work tree: `git worktree add <folder>`.

    repository_broken: The .git file points to a missing repository
        A linked work tree or its repository was moved.
        Remedy: Run `git worktree repair`.

    repository_unreadable: The repository cannot be read
        A folder or file on the path to the repository is missing or inaccessible.
        Remedy: Make sure that the folder exists and is readable.

    repository_not_trusted: Repository owned by another account
        Git does not read the settings and hooks of a folder that belongs to another account, because they could run
        programs, so no git command works there.
        Remedy: If you trust it: `git config --global --add safe.directory PATH`.

    git_timeout: Git timed out
        The command may be waiting for a lock or a network file system, or the repository may be broken.
        Remedy: Run the same git command by hand; look for a stale .git/index.lock.

    tree_incomplete: Incomplete work tree
        A sparse checkout, an index flag, a submodule or a deletion keeps governed files out of the work tree. Nothing
        is written in place of files that only seem to be missing, and nothing is judged in an incomplete work tree.
        Remedy: Run the git command that the message names, such as `git sparse-checkout add .GOV`.

    tree_unreadable: Unreadable folder
        The folder could contain anything, so it is not treated as empty.
        Remedy: Give yourself permission to read the folder: `chmod u+rwx <folder>`.
    """),
    *_conflict("""
    log_elsewhere: Packet with its log on another branch
        A log has only one first event. Another first event, written here, would permanently conflict with that event
        once both are merged.
        Remedy: Merge the branch that the message names; adopt only packets that have no log on any branch.

    branch_exists: The branch already exists
        The branch may contain someone's work, so it is not moved.
        Remedy: Choose another name, or delete the branch yourself: `git branch -d <name>`.

    branch_checked_out: The branch is checked out elsewhere
        Two work trees on one branch would overwrite each other's commits.
        Remedy: Use the work tree that has the branch checked out; `git worktree list` shows where it is.

    worktree_exists: The work tree path already exists
        Existing files are not overwritten.
        Remedy: Choose another folder, or remove the existing one: `git worktree remove <folder>`.
    """),
    *_usage("""
    unknown_revision: No such commit here
        The name is wrong, or the clone is too shallow to contain the commit.
        Remedy: See `git log --oneline --all`; in a shallow clone, run `git fetch --unshallow`.

    branch_name_invalid: Invalid branch name
        Git would refuse or misinterpret the name.
        Remedy: Use letters, digits, '-', '_' and '/'; `git check-ref-format --branch <name>` checks a name.
    """),
)

WRITING = (
    *_conflict("""
    lock_held: Another command is writing
        Only one command at a time can change governed files, because two could overwrite each other's changes.
        Remedy: Try again when that command has finished; the lock is released when its process exits.

    operation_in_progress: Git is in the middle of a merge or rebase
        The work tree is a mixture of two histories; anything written now could be lost or belong to neither.
        Remedy: Finish or abort it: `git merge --continue` or `git merge --abort`; likewise for rebase and cherry-pick.

    changed_meanwhile: A file changed between reading and writing
        Writing now would silently undo someone's change.
        Remedy: Run the command again; it will use the current file.
    """),
    *_integrity("""
    transaction_unfinished: A command was interrupted while it changed several files
        Some governed files have been changed and others have not; the journal contains both versions.
        Remedy: Run any command that writes, or choose: `workpacket log recover --forward` or `--back`.

    third_state: A file was changed after an interrupted command
        The file matches neither the state before the command nor the state after it, so finishing would overwrite
        someone's work.
        Remedy: Run `workpacket log recover --forward` or `--back`; the version that is overwritten is saved first.

    journal_damaged: The journal of an interrupted command is damaged
        The journal does not match its digest, so it cannot be trusted. Nothing was changed.
        Remedy: Compare the work tree with git, then remove the file in the git directory that the message names.
    """),
    *_environment("""
    path_unsafe: A path leads out of the repository or into .git
        Only plain relative paths are written: no '..', no backslash, no colon, no control character.
        Remedy: Use an id and a path in the documented form.

    path_is_link: A folder on the path is a symbolic link
        A link could redirect writes anywhere; governed folders must be real folders.
        Remedy: Replace the link with the folder that it points to.

    path_not_a_file: A governed file is a link, a folder or a device
        Only regular files can be compared and replaced safely.
        Remedy: Replace it with a regular file.

    no_space_left: The disk is full
        All new files are written before the first old one is replaced, and there was not enough space for them.
        Remedy: Free some space, then run the command again.

    permission_denied: Permission denied
        The command needs write permission for every folder that it changes, and for the git directory.
        Remedy: Fix the permissions of that path, or run the command as its owner.

    disk_failed: The disk reported an error
        Data that the disk has not confirmed may be lost.
        Remedy: Check the disk, then run the command again.

    lock_unavailable: The lock cannot be opened
        The lock is in the git directory, which must be writable by everyone who changes governed files.
        Remedy: Fix the permissions of the git directory.
    """),
)

BROKEN_OFF = (
    *_internal("""
    internal_error: Internal error
        This is a bug in workpacket, not a problem with your files. Any write in progress was either completed or not
        started.
        Remedy: Report this together with the log that the message names; `workpacket runtime doctor` shows whether
    anything is unfinished. """),
    *_interrupted("""
    interrupted: The command was interrupted from the keyboard or by a signal
        Any write in progress was either completed or not started.
        Remedy: Run the command again.
    """),
)

RUNS = (
    *_gate("""
    packet_not_active: The run's work packet is not active
        A stub has no approved scope yet, so work cannot start from it.
        Remedy: Activate the stub: `just create-task-packet WP_ID`; or specify a packet that `workpacket list` shows.

    run_not_lost: The run is not lost
        The run's store is on this machine, so you can read the run's outcome or end the run.
        Remedy: Resume or cancel the run, or have `workpacket runtime runs settle` record how it ended.

    person_needed: Only a person may declare a run lost
        A program that could declare its own runs lost could get a verdict on unfinished work.
        Remedy: Have a person run the command, without `--kind` and without WORKPACKET_ACTOR_KIND.
    """),
    *_conflict("""
    run_links_disagree: The log and the store disagree about a run
        No single transaction covers the log and the store. If a process is killed between the two writes, the link to a
        run that has ended, or that never started, remains open. A program that uses the runtime without the log leaves
        a run without a link.
        Remedy: `workpacket runtime runs settle` updates the log from the store, and lists the decisions left to a
    person. """),
    *_document("""
    checkpoint_malformed: A checkpoint file is malformed
        Misreading a checkpoint would cause work to be repeated or skipped, so no part of the file is used.
        Remedy: Fix the field that the message names, or restore the file.
    """),
)

ROLES = (
    *_across_advice("""
    artifact_changed: A file that a role listed has changed since the role's last milestone
        The interrupted role continued working on the file, or someone else changed it and may have undone the role's
        last work.
        Remedy: Review the file; `workpacket resume ID --yes` accepts its current state.
    """),
    *_gate("""
    role_feature_closed: The feature that a role works on is complete
        A summary declares the feature complete, or the packet with this id is finished. Further work would be lost or
        duplicated.
        Remedy: Close the feature's open checkpoints: `workpacket runtime progress close FEATURE`. For new work, use a
    new feature. """),
    *_conflict("""
    role_file_unwritable: A role's file cannot be updated without changing other parts of it
        Because of how the file is written, this value cannot be changed on its own.
        Remedy: Make the change by hand, then run `workpacket runtime progress adopt FEATURE AGENT`.
    """),
)

BATCHES = (
    *_usage("""
    batch_scope_missing: Batch scope not found
        A scope is a folder below specs/active or scopes/active that contains a tasks.yaml.
        Remedy: Specify a folder that contains a tasks.yaml, such as specs/active/auth.
    """),
    *_document("""
    batch_dependency_undecided: The order of two tasks is not specified
        dependencies.yaml has a pair {from, to}, which people write in either direction, and tasks.yaml confirms neither
        direction.
        Remedy: In tasks.yaml, add `depends_on` to the task that must wait for the other.
    """),
    *_gate("""
    batch_not_begun: No batch is in progress
        A batch that was never started cannot be completed, because its tasks are unknown.
        Remedy: Begin it with `workpacket runtime batch begin SPEC`.

    batch_phase_open: A phase of the batch is not done
        A batch is complete once its tests are written, its tasks are implemented and its work is reviewed; a missing
        response from a reviewer is not an approval.
        Remedy: Finish the phase with `workpacket runtime batch begin SPEC`, then `workpacket runtime batch complete
        SPEC --phase PHASE`.

    batch_stage_not_begun: A stage that never started was reported as ended
        Each stage is recorded before work on it starts; a stage that was not recorded may already be done.
        Remedy: See the state of the batch with `workpacket runtime batch status SPEC`.

    batch_issue_not_deferrable: An issue is too severe to be deferred
        Only issues of medium or lower severity may be carried forward; all others must be resolved within the batch.
        Remedy: Fix the work, and have it reviewed again: `--phase reviewers --outcome rejected`.
    """),
    *_conflict("""
    batch_file_unwritable: A file in the scope cannot be updated without changing other parts of it
        Because of how the file is written, this value cannot be changed on its own.
        Remedy: Make the change by hand, then run `workpacket runtime batch adopt SPEC`.
    """),
)

REASONS = (*USAGE, *ENVIRONMENT, *GIT, *WRITING, *BROKEN_OFF, *RUNS, *ROLES, *BATCHES)
