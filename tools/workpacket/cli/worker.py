"""`workpacket worker`: does the runs of a queue, with the functions of a module of yours."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.working import carry_out

    return carry_out(arguments)


COMMAND = Command(
    "worker",
    "do the runs that are offered in a queue",
    run,
    arguments="MODULE:TASKS",
    description="""
TASKS is a mapping in MODULE, from the name of a run to the function that does it; MODULE is found from the present
folder. SIGTERM or Ctrl-C ends the worker at the next boundary of its run, which another worker goes on with at once; a
second one ends it in the middle of a step.""",
    options=(
        Option("queue", "which queue (default)", value="QUEUE"),
        Option("lease", "how long a worker that says nothing keeps its run (30)", value="SECONDS"),
        Option("idle", "how long to wait between two looks at an empty queue (1)", value="SECONDS"),
        Option("until-empty", "end when there is nothing to do"),
    ),
    examples=("workpacket worker jobs:TASKS", "workpacket worker jobs:TASKS --until-empty"),
)
