"""`workpacket claim`: take a packet, or go on holding it."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING
from workpacket.cli.team_claims import claim_for_all
from workpacket.lifecycle.claims import claim, renew
from workpacket.shell.governing.execution import here
from workpacket.shell.work_done import branch_here


def run(arguments: Arguments) -> int:
    if arguments.flag("renew"):
        return claim_for_all(arguments, renew)
    branch = arguments.value("branch") or branch_here(here())
    worktree = arguments.value("worktree")
    return claim_for_all(arguments, lambda facts, packet: claim(facts, packet, branch=branch, worktree=worktree))


COMMAND = Command(
    "claim",
    "take a packet that is ready, for the time of a lease",
    run,
    arguments="WP_ID",
    description="One who claims wins; the others are told who holds it, and until when.",
    options=(
        Option("renew", "go on holding it: the lease ends later"),
        Option("branch", "where the work goes, if nothing was prepared", value="BRANCH"),
        Option("worktree", "the work tree in which it is done", value="FOLDER"),
        *ACTING,
    ),
    examples=("workpacket claim WP-1-Parser-v1 --as coder-1", "workpacket claim WP-1-Parser-v1 --renew"),
)
