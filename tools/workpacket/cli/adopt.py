"""`workpacket adopt`: begin the log of a repository that was governed without one."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, actor_of, conclude
from workpacket.lifecycle.adoption import Preference, adopt
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.moves import Answer
from workpacket.shell.governed_files import find_governed, packet_named
from workpacket.shell.governing.execution import carry_out, here
from workpacket.shell.log_files import require_no_log_elsewhere


def run(arguments: Arguments) -> int:
    repository = here()
    governed = find_governed(str(repository.root))
    only = [packet_named(governed, word).text for word in arguments.words]
    said = arguments.value("prefer")
    prefer: Preference = "board" if said == "board" else "packet" if said == "packet" else ""
    actor = actor_of(arguments, repository)

    def decide(facts: Facts) -> Answer:
        without = [name for name, packet in sorted(facts.packets.items()) if not packet.log.by_id]
        require_no_log_elsewhere(repository, [name for name in without if not only or name in only])
        return adopt(facts, prefer, only)

    carried = carry_out(repository, "adopt", None, actor, decide)
    return conclude(arguments, carried)


COMMAND = Command(
    "adopt",
    "begin a log for packets that have none, from what their documents say",
    run,
    arguments="[WP_ID...]",
    description="""
No document is rewritten. Packets on which board and file contradict one another are listed and left out, until you say
which is to be believed.""",
    options=(
        Option("prefer", "what to believe where they contradict one another", choices=("board", "packet")),
        *ACTING,
    ),
    examples=("workpacket adopt", "workpacket adopt WP-1-Parser-v1 --prefer board"),
)
