"""What can stand in the way of asking git."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _environment(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "environment", exit_code=exits.ENVIRONMENT)


def _usage(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "usage", exit_code=exits.USAGE)


def _conflict(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "conflict", exit_code=exits.CONFLICT)


REASONS: tuple[Reason, ...] = (
    _environment(
        "repository_bare",
        "The repository has no work tree here",
        "The governed files are read from and written to a work tree.",
        "Work in a clone, or add a work tree: `git worktree add <folder>`.",
    ),
    _environment(
        "repository_broken",
        "The .git file points nowhere",
        "A linked work tree was moved, or its repository was.",
        "Run `git worktree repair`.",
    ),
    _environment(
        "repository_unreadable",
        "The repository cannot be read",
        "A folder or file on the way to it is missing or forbidden.",
        "See that the folder exists and may be read.",
    ),
    _environment(
        "git_timeout",
        "Git gave no answer in time",
        "It waits for a lock, a network file system or a broken repository.",
        "Try the same git command by hand; look for a stale .git/index.lock.",
    ),
    _environment(
        "tree_incomplete",
        "Work tree that lacks files which git holds",
        "A sparse checkout, a flag of the index, a submodule or a deletion keeps governed files out of the work tree. "
        "Nothing is written in the place of what only seems to be missing, and no verdict rests on a part.",
        "Run the git command that the message names, such as `git sparse-checkout add .GOV`.",
    ),
    _environment(
        "tree_unreadable",
        "Folder that cannot be read",
        "What lies in it could be anything, so nothing is done as if it were empty.",
        "Give yourself the right to read the folder: `chmod u+rwx <folder>`.",
    ),
    _conflict(
        "log_elsewhere",
        "Packet whose log is on another branch",
        "A log has one beginning. A second one, made here, would contradict the first when both are merged, for ever.",
        "Bring the log here by merging the branch that the message names; adopt only what has no log anywhere.",
    ),
    _usage(
        "unknown_revision",
        "No such commit here",
        "The name is wrong, or the clone is too shallow to hold it.",
        "See `git log --oneline --all`; in a shallow clone run `git fetch --unshallow`.",
    ),
    _usage(
        "branch_name_invalid",
        "Not a possible name for a branch",
        "Git would refuse it, or read it as something else.",
        "Choose a name of letters, digits, '-', '_' and '/'; `git check-ref-format --branch <name>` judges it.",
    ),
    _conflict(
        "branch_exists",
        "The branch exists already",
        "It may hold somebody's work, so it is not moved.",
        "Choose another name, or delete the branch yourself: `git branch -d <name>`.",
    ),
    _conflict(
        "branch_checked_out",
        "The branch is checked out elsewhere",
        "Two work trees of one branch would overwrite each other's commits.",
        "Work in the work tree that has it; `git worktree list` shows where.",
    ),
    _conflict(
        "worktree_exists",
        "The place for the work tree is taken",
        "Something is there already and is not overwritten.",
        "Choose another folder, or remove that one: `git worktree remove <folder>`.",
    ),
)
