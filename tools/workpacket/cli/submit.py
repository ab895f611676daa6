"""`workpacket submit`: prove each criterion and put the work up for review."""

from __future__ import annotations

from workpacket.cli.governing import ACTING, actor_of, conclude, words_of
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.team_claims import in_step
from workpacket.git.repository import Repository
from workpacket.model.canonical import Json
from workpacket.plans.drafting import Answer
from workpacket.plans.facts import Facts, PacketFacts
from workpacket.plans.reviewing import record_evidence, submit
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.commanding import carry_out, here
from workpacket.shell.governing.evidence import numbered, prove
from workpacket.shell.governing.gathering import gather
from workpacket.shell.transactions.transaction import refuse_during_merge
from workpacket.shell.work_done import work_done


def run(arguments: Arguments) -> int:
    repository = here()
    refuse_during_merge(repository)
    name = packet_called(str(repository.root), words_of(arguments, 1, "WP_ID")[0]).text
    actor = actor_of(arguments, repository)
    # Commands that prove something may take long; nobody else has to wait for them.
    evidence = _evidence(arguments, repository, gather(repository, [name], actor).packets[name])

    def decide(facts: Facts) -> Answer:
        packet = facts.packets[name]
        if arguments.flag("record-only"):
            return record_evidence(facts, packet, evidence)
        work = work_done(repository, packet, facts.target_branch, arguments.value("commit"))
        return submit(facts, packet, work, evidence)

    return in_step(arguments, conclude(arguments, carry_out(repository, "submit", [name], actor, decide)))


def _evidence(arguments: Arguments, repository: Repository, packet: PacketFacts) -> list[dict[str, Json]]:
    document = packet.packet
    criteria = [criterion.value for criterion in document.done_means] if document is not None else []
    rows: list[dict[str, Json]] = []
    if packet.lane != "IN_PROGRESS":
        return rows
    ran: dict[str, dict[str, Json]] = {}
    for criterion, how in numbered(arguments.all_of("prove"), criteria, "prove"):
        if how not in ran:
            ran[how] = prove(str(repository.root), criterion, how)
        rows.append({**ran[how], "criterion": criterion})
    for criterion, reason in numbered(arguments.all_of("not-applicable"), criteria, "not-applicable"):
        rows.append({"criterion": criterion, "result": "not_applicable", "reason": reason})
    return rows


COMMAND = Command(
    "submit",
    "prove what the packet demands, and put the work up for review",
    run,
    arguments="WP_ID",
    description="""
Each line of DONE_MEANS, counted from 1, needs a proof: a command that succeeds (it is run, and the digest and the end
of its log are recorded) or a `path:line`. `all=` stands for every line.""",
    options=(
        Option("prove", "a command or place that proves line N", value="N=COMMAND", many=True),
        Option("not-applicable", "why line N does not apply", value="N=REASON", many=True),
        Option("commit", "the commit to be judged, instead of HEAD", value="REV"),
        Option("record-only", "keep the proofs, and submit later"),
        *ACTING,
    ),
    examples=(
        "workpacket submit WP-1-Parser-v1 --prove '1=python -m pytest tests/parser' --prove 2=src/parser.py:40",
        "workpacket submit WP-1-Parser-v1 --prove 'all=just test'",
    ),
)
