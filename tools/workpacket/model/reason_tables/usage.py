"""The command was called in a way that it does not understand."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _usage(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, family="usage", exit_code=exits.USAGE)


REASONS: tuple[Reason, ...] = (
    _usage(
        "unknown_command",
        "There is no command of this name",
        "Nothing was done: guessing a command could change files that nobody meant.",
        "Run `workpacket --help` for the list of commands.",
    ),
    _usage(
        "unknown_option",
        "The command has no option of this name",
        "An option that is passed over in silence would make the command do less, or more, than was asked.",
        "Run the command with `--help` for its options.",
    ),
    _usage(
        "missing_argument",
        "An argument that the command needs was not given",
        "The command has no default for it, because any default would be a guess.",
        "Run the command with `--help`; the example there shows every argument.",
    ),
    _usage(
        "unexpected_argument",
        "An argument was given that the command has no use for",
        "An argument that is passed over in silence hides a mistake, such as a missing quote around a blank.",
        "Run the command with `--help`, and quote arguments that hold blanks.",
    ),
    _usage(
        "invalid_value",
        "The value of an option or argument is none of those allowed",
        "The command checks values before it does anything, so that it never stops half-way because of one.",
        "Use one of the values that the message or `--help` lists.",
    ),
    _usage(
        "conflicting_options",
        "Two options ask for things that exclude each other",
        "Whichever the command chose, one of the two wishes would be broken without a word.",
        "Leave one of the two options out.",
    ),
    _usage(
        "unknown_code",
        "There is no reason code of this name",
        "A misspelt code in `--select` or `--ignore` would check less, or more, than was asked.",
        "Use one of the codes of `docs/reference/codes.md`; `workpacket explain` without a code lists them.",
    ),
    _usage(
        "path_not_found",
        "A path that was named does not exist",
        "A path that is passed over in silence would let a check pass that looked at nothing.",
        "Correct the path; it is relative to the current folder.",
    ),
    _usage(
        "path_outside_repository",
        "A path that was named lies outside the repository",
        "The rules, the policy and the history that judge a file are those of its own repository.",
        "Change into the repository that holds the file and run the command there.",
    ),
)
