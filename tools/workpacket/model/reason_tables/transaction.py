"""What can stand in the way of writing governed files, and what can be left behind."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _conflict(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "conflict", exit_code=exits.CONFLICT)


def _environment(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "environment", exit_code=exits.ENVIRONMENT)


def _integrity(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "integrity", exit_code=exits.INTEGRITY)


REASONS: tuple[Reason, ...] = (
    _conflict(
        "lock_held",
        "Another command is writing",
        "One command at a time changes governed files, or two of them would decide on what the other is changing.",
        "Try again when the command named has ended; the lock comes free with its process.",
    ),
    _conflict(
        "operation_in_progress",
        "Git is in the middle of a merge or rebase",
        "The work tree is a mixture of two histories; what is written now would be lost or belong to neither.",
        "Finish it or give it up: `git merge --continue` or `git merge --abort`; likewise for rebase and cherry-pick.",
    ),
    _integrity(
        "transaction_unfinished",
        "A command was interrupted between several files",
        "Some governed files are as before it and some as after it; the journal knows both.",
        "Run any command that writes, or say which way: `workpacket recover --forward` or `--back`.",
    ),
    _integrity(
        "third_state",
        "A file of an interrupted command was changed since",
        "It is neither as before the command nor as after it, so finishing would overwrite somebody's work.",
        "Run `workpacket recover --forward` or `--back`; the version that is overwritten is set aside first.",
    ),
    _integrity(
        "journal_damaged",
        "The journal of an interrupted command is not whole",
        "Its digest does not fit, so what it says cannot be trusted; nothing was touched.",
        "Compare the work tree with git, then remove the file that is named below the git directory.",
    ),
    _environment(
        "path_unsafe",
        "A path leads out of the repository or into .git",
        "Only plain relative paths are written: no '..', no backslash, no colon, no control character.",
        "Use an id and a path in the form that the documentation shows.",
    ),
    _environment(
        "path_is_link",
        "A folder on the way is a link",
        "A link could lead writing to any place; governed folders are real folders.",
        "Replace the link by the folder that it points at.",
    ),
    _environment(
        "path_not_a_file",
        "A governed file is a link, a folder or a device",
        "Governed files are regular files: only these can be compared and replaced safely.",
        "Replace it by a regular file.",
    ),
    _environment(
        "no_space_left",
        "The disk is full",
        "The new files are written completely before the first old one is replaced; there was no room for them.",
        "Free some space and repeat the command.",
    ),
    _environment(
        "permission_denied",
        "The file system forbids writing there",
        "The command needs to write in every folder that it changes, and in the git directory.",
        "Correct the permissions of the path named, or work as the user who owns it.",
    ),
    _environment(
        "disk_failed",
        "The disk reported an error",
        "What the disk does not confirm is not believed.",
        "Check the disk, then repeat the command.",
    ),
    _environment(
        "lock_unavailable",
        "The lock cannot be opened",
        "It lies in the git directory, which must be writable for whoever changes governed files.",
        "Correct the permissions of the git directory.",
    ),
)
