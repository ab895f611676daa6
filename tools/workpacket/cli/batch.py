"""`workpacket batch`: batches of tasks through their three phases, with a checkpoint after each."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, subcommand

ACTIONS = ("next", "begin", "complete", "status", "adopt", "restore")


def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    from workpacket.cli.batching import carry_out

    return carry_out(arguments, action)


COMMAND = Command(
    "batch",
    "take tasks through tests, implementation and review, batch by batch",
    run,
    arguments="next SPEC | begin SPEC | complete SPEC | status SPEC | adopt SPEC | restore SPEC",
    description="""
`begin` writes down what comes next before anybody works on it: the next batch with its testers, then the implementers,
then the reviewers; after a crash, what was left incomplete. `complete --phase` says how stages ended; `complete` alone
updates tasks.yaml, writes checkpoint.yaml and commits both with what is staged and with the files the tasks name.
`adopt` takes a checkpoint.yaml that contradicts the log for true, `restore` writes it anew from the log.""",
    options=(
        Option("phase", "complete: the stages of this phase ended", choices=("testers", "implementers", "reviewers")),
        Option("task", "complete --phase: this task only; of a rejection, what it is about", value="ID", many=True),
        Option("reviewer", "complete --phase reviewers: this reviewer only", value="NAME", many=True),
        Option("outcome", "complete --phase: how they ended", choices=("ok", "failed", "rejected", "timed_out")),
        Option("note", "complete --phase: a sentence to store", value="TEXT"),
        Option("defer", "complete: an issue to carry forward", value="SEVERITY:TEXT", many=True),
        Option("resolved", "complete: a deferred issue that is mended, by its number", value="NUMBER", many=True),
        Option("message", "complete: the first line of the commit message", value="TEXT"),
        Option("label", "begin: the label of the batch, such as 5a", value="LABEL"),
        Option("accept", "go on although this is not as it was: branch, commit, tasks, base, config; or although its "
               "holder lives: holder", value="ASPECT", many=True),
        Option("allow-deps", "begin: dependencies that may change in this batch, `*` for any characters", value="NAME",
               many=True),
        Option("owner", "begin: the process that does the work; else the one that called and those above it",
               value="PID"),
    ),
    examples=(
        "workpacket batch begin auth-system",
        "workpacket batch complete auth-system --phase testers",
        "workpacket batch complete auth-system --phase reviewers --outcome rejected --task T003",
        'workpacket batch complete auth-system --defer "medium: names could be clearer @ src/auth.py:45"',
    ),
)  # fmt: skip
