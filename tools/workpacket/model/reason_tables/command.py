"""Why a command cannot run: how it was called, the machine, git, another writer, or a mistake of our own."""

from __future__ import annotations

from functools import partial

from workpacket.model import exits
from workpacket.model.reasons import reasons

_usage = partial(reasons, "usage")
_environment = partial(reasons, "environment")
_conflict = partial(reasons, "conflict")
_integrity = partial(reasons, "integrity")
_internal = partial(reasons, "internal")
_interrupted = partial(reasons, "internal", exit_code=exits.INTERRUPTED)

USAGE = _usage("""
    unknown_command: There is no command of this name
        Nothing was done: guessing a command could change files that were not meant.
        Remedy: Run `workpacket --help` for the list of commands.

    unknown_option: The command has no option of this name
        An option that is passed over in silence would make the command do less, or more, than was asked.
        Remedy: Run the command with `--help` for its options.

    missing_argument: An argument that the command needs was not given
        The command has no default for it, because any default would be a guess.
        Remedy: Run the command with `--help`; the example there shows every argument.

    unexpected_argument: An argument was given that the command has no use for
        An argument that is passed over in silence hides a mistake, such as a missing quote around a blank.
        Remedy: Run the command with `--help`, and quote arguments that hold blanks.

    invalid_value: The value of an option or argument is none of those allowed
        The command checks values before it does anything, so that it never stops half-way because of one.
        Remedy: Use one of the values that the message or `--help` lists.

    conflicting_options: Two options ask for things that exclude each other
        Whichever the command chose, one of the two wishes would be broken without a word.
        Remedy: Leave one of the two options out.

    unknown_code: There is no reason code of this name
        A misspelt code in `--select` or `--ignore` would check less, or more, than was asked.
        Remedy: Use one of the codes of `docs/reference/codes.md`; `workpacket explain` without a code lists them.

    path_not_found: A path that was named does not exist
        A path that is passed over in silence would let a check pass that looked at nothing.
        Remedy: Correct the path; it is relative to the current folder.

    path_outside_repository: A path that was named lies outside the repository
        The rules, the policy and the history that judge a file are those of its own repository.
        Remedy: Change into the repository that holds the file and run the command there.
    """)

ENVIRONMENT = _environment("""
    no_repository: The current folder is in no git repository
        Governed files, their policy and their history belong to a repository; without one nothing is governed.
        Remedy: Change into a repository, or make one with `git init` and then run `workpacket init`.

    nothing_to_check: No governed file was found to check
        A check that looked at nothing must not be taken for one that passed.
        Remedy: Check the paths that were given; in a new repository run `workpacket init` first.

    tool_missing: A program that the command needs is not installed
        The command calls it for work that must not be done by a copy of its own, such as git for the history.
        Remedy: Install the program that the message names and make sure that it is on PATH.

    git_failed: A call of git failed
        What git would have answered is not known, and the command does not go on with a guess.
        Remedy: Run the git command of the message by hand; its own words say what is wrong.

    file_unreadable: A file cannot be read
        A file that was skipped could hold anything; so the check counts as failed, not as passed without it.
        Remedy: Give read permission, repair the link, or take the file out of the governed folders.

    file_unwritable: A file cannot be written
        The change was not made; nothing was left half-written.
        Remedy: Give write permission or free space on the disk, then run the command again.

    unsuitable_file_system: The file system cannot keep what is written to it safe
        Without atomic renames and locks a crash could leave files in a state that no command has written.
        Remedy: Move the repository to a local file system; `workpacket doctor` shows what is missing.
    """)

GIT = (
    *_environment("""
    repository_bare: The repository has no work tree here
        The governed files are read from and written to a work tree.
        Remedy: Work in a clone, or add a work tree: `git worktree add <folder>`.

    repository_broken: The .git file points nowhere
        A linked work tree was moved, or its repository was.
        Remedy: Run `git worktree repair`.

    repository_unreadable: The repository cannot be read
        A folder or file on the way to it is missing or forbidden.
        Remedy: See that the folder exists and may be read.

    git_timeout: Git gave no answer in time
        It waits for a lock, a network file system or a broken repository.
        Remedy: Try the same git command by hand; look for a stale .git/index.lock.

    tree_incomplete: Work tree that lacks files which git holds
        A sparse checkout, a flag of the index, a submodule or a deletion keeps governed files out of the work tree.
        Nothing is written in the place of what only seems to be missing, and no verdict rests on a part.
        Remedy: Run the git command that the message names, such as `git sparse-checkout add .GOV`.

    tree_unreadable: Folder that cannot be read
        What lies in it could be anything, so nothing is done as if it were empty.
        Remedy: Give yourself the right to read the folder: `chmod u+rwx <folder>`.
    """),
    *_conflict("""
    log_elsewhere: Packet whose log is on another branch
        A log has one beginning. A second one, made here, would contradict the first when both are merged, for ever.
        Remedy: Bring the log here by merging the branch that the message names; adopt only what has no log anywhere.

    branch_exists: The branch exists already
        It may hold somebody's work, so it is not moved.
        Remedy: Choose another name, or delete the branch yourself: `git branch -d <name>`.

    branch_checked_out: The branch is checked out elsewhere
        Two work trees of one branch would overwrite each other's commits.
        Remedy: Work in the work tree that has it; `git worktree list` shows where.

    worktree_exists: The place for the work tree is taken
        Something is there already and is not overwritten.
        Remedy: Choose another folder, or remove that one: `git worktree remove <folder>`.
    """),
    *_usage("""
    unknown_revision: No such commit here
        The name is wrong, or the clone is too shallow to hold it.
        Remedy: See `git log --oneline --all`; in a shallow clone run `git fetch --unshallow`.

    branch_name_invalid: Not a possible name for a branch
        Git would refuse it, or read it as something else.
        Remedy: Choose a name of letters, digits, '-', '_' and '/'; `git check-ref-format --branch <name>` judges it.
    """),
)

WRITING = (
    *_conflict("""
    lock_held: Another command is writing
        One command at a time changes governed files, or two of them would decide on what the other is changing.
        Remedy: Try again when the command named has ended; the lock comes free with its process.

    operation_in_progress: Git is in the middle of a merge or rebase
        The work tree is a mixture of two histories; what is written now would be lost or belong to neither.
        Remedy: Finish it or give it up: `git merge --continue` or `git merge --abort`; likewise for rebase and
        cherry-pick.

    changed_meanwhile: A file changed between reading and writing
        Writing now would undo somebody's change without anyone noticing.
        Remedy: Run the command again; it starts from the file as it is now.
    """),
    *_integrity("""
    transaction_unfinished: A command was interrupted between several files
        Some governed files are as before it and some as after it; the journal knows both.
        Remedy: Run any command that writes, or say which way: `workpacket recover --forward` or `--back`.

    third_state: A file of an interrupted command was changed since
        It is neither as before the command nor as after it, so finishing would overwrite somebody's work.
        Remedy: Run `workpacket recover --forward` or `--back`; the version that is overwritten is set aside first.

    journal_damaged: The journal of an interrupted command is not whole
        Its digest does not fit, so what it says cannot be trusted; nothing was touched.
        Remedy: Compare the work tree with git, then remove the file that is named below the git directory.
    """),
    *_environment("""
    path_unsafe: A path leads out of the repository or into .git
        Only plain relative paths are written: no '..', no backslash, no colon, no control character.
        Remedy: Use an id and a path in the form that the documentation shows.

    path_is_link: A folder on the way is a link
        A link could lead writing to any place; governed folders are real folders.
        Remedy: Replace the link by the folder that it points at.

    path_not_a_file: A governed file is a link, a folder or a device
        Governed files are regular files: only these can be compared and replaced safely.
        Remedy: Replace it by a regular file.

    no_space_left: The disk is full
        The new files are written completely before the first old one is replaced; there was no room for them.
        Remedy: Free some space and repeat the command.

    permission_denied: The file system forbids writing there
        The command needs to write in every folder that it changes, and in the git directory.
        Remedy: Correct the permissions of the path named, or work as the user who owns it.

    disk_failed: The disk reported an error
        What the disk does not confirm is not believed.
        Remedy: Check the disk, then repeat the command.

    lock_unavailable: The lock cannot be opened
        It lies in the git directory, which must be writable for anyone who changes governed files.
        Remedy: Correct the permissions of the git directory.
    """),
)

BROKEN_OFF = (
    *_internal("""
    internal_error: The program met a state that it should never meet
        This is a fault of workpacket, not of your files. What was being written was either finished or not begun.
        Remedy: Report it with the log that the message names; `workpacket doctor` shows whether anything is unfinished.
    """),
    *_interrupted("""
    interrupted: The command was interrupted from the keyboard or by a signal
        What was being written was either finished or not begun.
        Remedy: Run the command again when you are ready.
    """),
)

REASONS = (*USAGE, *ENVIRONMENT, *GIT, *WRITING, *BROKEN_OFF)
