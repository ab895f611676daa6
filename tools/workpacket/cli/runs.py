"""`workpacket runs`: look at runs, and move, prune and verify them."""

from __future__ import annotations

from workpacket.cli.governing import ACTING
from workpacket.cli.options import Arguments, Command, Option, subcommand

LOOKING = ("list", "show", "tail", "diff")
KEEPING = ("export", "import", "prune", "verify")
LINKING = ("settle", "unlink")


def run(arguments: Arguments) -> int:
    action = subcommand(arguments, (*LOOKING, *KEEPING, *LINKING))
    if action in LOOKING:
        from workpacket.cli.runs_looking import carry_out as look

        return look(arguments, action)
    if action in LINKING:
        from workpacket.cli.runs_linking import carry_out as set_right

        return set_right(arguments, action)
    from workpacket.cli.runs_keeping import carry_out as keep

    return keep(arguments, action)


COMMAND = Command(
    "runs",
    "look at runs, move, prune and verify them",
    run,
    arguments="list [PREFIX] | show ID | tail ID | diff ID ID | export ID | import FILE | prune | verify [ID]"
    " | settle | unlink ID",
    description="""
A run is named by its id, or by the beginning of it if that fits one run only.
`prune` removes finished runs that nothing happened to for some days; without --yes it only says which.
A run of a packet stands in the packet's log, and no verdict is given while it is unfinished. Where a crash left log and
store apart, `settle` writes into the log what the store knows; of a run whose store is gone a person says with `unlink`
that it is lost, and why.""",
    options=(
        Option("state", "list: only runs in this state",
               choices=("live", "interrupted", "stopped", "cancelled", "completed")),
        Option("packet", "list: only runs of this work packet", value="WP_ID"),
        Option("at", "show: the run as it was at this checkpoint", value="CHECKPOINT"),
        Option("lines", "tail: how many events to begin with (10)", value="N"),
        Option("follow", "tail: wait for more, until the run ends"),
        Option("format", "export: as CloudEvents 1.0, without payloads, instead of as it is stored",
               choices=("cloudevents",)),
        Option("output", "export: write into this file", value="FILE"),
        Option("raw", "export: the whole store as SQL, interpreting nothing; also of a newer version"),
        Option("older-than", "prune: days without an event (30)", value="DAYS"),
        Option("yes", "prune: really remove them"),
        Option("reason", "unlink: why nobody will ever finish the run", value="TEXT"),
        *ACTING,
    ),
    examples=(
        "workpacket runs list --state interrupted",
        "workpacket runs show nightly@00000003",
        "workpacket runs tail nightly@00000003 --follow",
        "workpacket runs export nightly@00000003 --output nightly.jsonl",
        "workpacket runs export nightly@00000003 --format cloudevents",
        "workpacket runs prune --older-than 90 --yes",
        "workpacket runs verify",
        "workpacket runs settle",
        "workpacket runs unlink WP-1-Parser-v1/nightly@00000003 --reason 'the laptop was stolen'",
    ),
)  # fmt: skip
