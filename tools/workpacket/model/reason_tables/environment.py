"""The machine, the folder or the file system does not give what the command needs."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _environment(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, family="environment", exit_code=exits.ENVIRONMENT)


REASONS: tuple[Reason, ...] = (
    _environment(
        "no_repository",
        "The current folder is in no git repository",
        "Governed files, their policy and their history belong to a repository; without one nothing is governed.",
        "Change into a repository, or make one with `git init` and then run `workpacket init`.",
    ),
    _environment(
        "nothing_to_check",
        "No governed file was found to check",
        "A check that looked at nothing must not be taken for one that passed.",
        "Check the paths that were given; in a new repository run `workpacket init` first.",
    ),
    _environment(
        "tool_missing",
        "A program that the command needs is not installed",
        "The command calls it for work that must not be done by a copy of its own, such as git for the history.",
        "Install the program that the message names and make sure that it is on PATH.",
    ),
    _environment(
        "git_failed",
        "A call of git failed",
        "What git would have answered is not known, and the command does not go on with a guess.",
        "Run the git command of the message by hand; its own words say what is wrong.",
    ),
    _environment(
        "file_unreadable",
        "A file cannot be read",
        "A file that was skipped could hold anything; so the check counts as failed, not as passed without it.",
        "Give read permission, repair the link, or take the file out of the governed folders.",
    ),
    _environment(
        "file_unwritable",
        "A file cannot be written",
        "The change was not made; nothing was left half-written.",
        "Give write permission or free space on the disk, then run the command again.",
    ),
    _environment(
        "unsuitable_file_system",
        "The file system cannot keep what is written to it safe",
        "Without atomic renames and locks a crash could leave files in a state that no command has written.",
        "Move the repository to a local file system; `workpacket doctor` shows what is missing.",
    ),
)
