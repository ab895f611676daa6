"""`workpacket merged`: the work is on the target branch."""

from __future__ import annotations

from workpacket.cli.open_roles import noting_roles
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, packet_command
from workpacket.lifecycle.drafts import Answer
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.review import merged
from workpacket.shell.governing.commanding import here
from workpacket.shell.work_done import containment


def run(arguments: Arguments) -> int:
    repository = here()

    def decide(facts: Facts, packet: PacketFacts) -> Answer:
        target = arguments.value("target") or facts.target_branch
        return merged(facts, packet, containment(repository, packet, target))

    return packet_command(arguments, noting_roles(repository, decide))


COMMAND = Command(
    "merged",
    "record that the work is on the target branch, after looking for it there",
    run,
    arguments="WP_ID",
    description="Found are the commit itself, the same change (after squash), or the same files (after rebase).",
    options=(Option("target", "the branch, instead of the one of the policy", value="BRANCH"), *ACTING),
    examples=("workpacket merged WP-1-Parser-v1",),
)
