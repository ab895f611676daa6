"""`workpacket run`: a run whose steps are commands, for shell scripts and agents of any kind."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, subcommand

ACTIONS = ("start", "step", "checkpoint", "milestone", "stop")


def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    from workpacket.cli.running import carry_out

    return carry_out(arguments, action)


COMMAND = Command(
    "run",
    "do work in steps that survive a crash",
    run,
    arguments="start NAME | step HANDLE STEP [-- PROGRAM...] | checkpoint HANDLE | milestone HANDLE | stop HANDLE",
    description="""
`run start` begins the run of that name, or goes on with the unfinished one, and prints a handle for the others.
`run step` runs a program once: asked for again, in this attempt or a later one, it prints what is stored instead.
`run checkpoint --commit` commits the work as a milestone of the run, once; `run milestone` prints the
last one whose commit is verified to be here, -1 for none.
With --packet the run stands in the log of the packet, and no verdict is given on it while the run is unfinished.
The exit status of `run` is that of the stop reason: see `workpacket explain CODE`.""",
    options=(
        Option("packet", "start: the work packet the run belongs to", value="WP_ID"),
        Option("key", "start: names one run for good", value="KEY"),
        Option("input", "start: what the results depend on", value="NAME=VALUE", many=True),
        Option("scope", "start: what the run may touch", value="PATH", many=True),
        Option("code-version", "start: the version of the script; another one has to be confirmed", value="TEXT"),
        Option("from", "start: go on from this checkpoint only", value="CHECKPOINT"),
        Option("retry-token", "start: the token of a checkpoint, good for one attempt", value="TOKEN"),
        Option("allow-deps", "start: dependencies that may change, `*` for any characters", value="NAME", many=True),
        Option("fresh", "start: begin a new run even if an unfinished one exists"),
        Option("owner", "the process that owns the run, $$ of a script; else the one that called", value="PID"),
        Option("timeout", "step: stop the program after so many seconds", value="SECONDS"),
        Option("result", "step: record this result instead of running a program", value="JSON"),
        Option("cursor", "checkpoint: where to go on from here", value="JSON"),
        Option("name", "checkpoint: its name", value="TEXT"),
        Option("git", "checkpoint: promise that the commit and a clean work tree are still there at a resume"),
        Option("commit", "checkpoint: commit what the run changed, as a milestone, and print the commit"),
        Option("milestone", "checkpoint: its number from 0; the next one if not given", value="NUMBER"),
        Option("legacy", "milestone: let commit messages that name no run count as this run's"),
        Option("token", "checkpoint: also print a token that starts one retry from here"),
        Option("reason", "stop: why it stops before its end; without one it is finished", value="CODE"),
        Option("note", "stop: a sentence to store with the reason", value="TEXT"),
    ),
    examples=(
        "run=$(workpacket run start nightly --owner $$)",
        'workpacket run step "$run" fetch -- curl --fail -o data.json https://example.org/data',
        'workpacket run checkpoint "$run" --cursor \'{"page": 7}\'',
        'workpacket run checkpoint "$run" --commit --milestone 0 --name "Read front matter"',
        'workpacket run stop "$run"',
        'workpacket run stop "$run" --reason verification_failed',
    ),
)
