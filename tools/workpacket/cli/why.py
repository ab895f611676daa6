"""`workpacket why`: everything that stands between a packet and its next lane."""

from __future__ import annotations

import sys

from workpacket.cli.linked_runs import runs_of
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, refuse, unmet_json, unmet_lines
from workpacket.cli.read_only import packet_facts, show_json
from workpacket.lifecycle.next_steps import why
from workpacket.lifecycle.review import Work
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.report.escape import escape
from workpacket.shell.approvals.gate_queries import ACTIVATION, verdict_question
from workpacket.shell.work_done import branch_here, work_done


def run(arguments: Arguments) -> int:
    repository, facts, packet = packet_facts(arguments, questions=(ACTIVATION, verdict_question("PASS")))
    work = work_done(repository, packet, facts.target_branch) if packet.lane == "IN_PROGRESS" else Work("")
    standing = why(facts, packet, work, branch_here(repository))
    runs = runs_of({standing.id: packet.state}).get(standing.id, ())
    listed: list[Json] = [run.as_json() for run in runs]
    if arguments.flag("gate") and standing.unmet:
        return refuse(arguments, standing.id, standing.unmet, {"lane": standing.lane, "runs": listed})
    if arguments.flag("json"):
        unmet: list[Json] = [unmet_json(one) for one in standing.unmet]
        data = {"id": standing.id, "lane": standing.lane, "next": standing.command, "unmet": unmet}
        return show_json(arguments, {**data, "runs": listed})
    lane = standing.lane or "without a log"
    print(f"{standing.id} is {lane}")
    if standing.unmet:
        print(f"{counted(len(standing.unmet), 'condition')} not met for `{standing.command}`:")
        sys.stdout.write("".join(unmet_lines(standing.unmet)))
    for run in runs:
        print(f"run: {escape(run.sentence)}\n     -> {escape(run.command)}")
    print(f"next: {escape(standing.unmet[0].command if standing.unmet else standing.command)}")
    return exits.OK


COMMAND = Command(
    "why",
    "show everything that stands between a packet and its next lane",
    run,
    arguments="WP_ID",
    options=(Option("gate", "exit with 3 if anything stands in the way"), *ACTING),
    examples=("workpacket why WP-1-Parser-v1", "workpacket why WP-1-Parser-v1 --json"),
)
