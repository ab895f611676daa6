"""`workpacket report pr`: how a pull request affects the packets, for the pull request's page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from workpacket.audit.packet_row import AuditedPacket
from workpacket.audit.tracing import Criterion
from workpacket.cli.check import COMMAND as CHECK
from workpacket.cli.checking import outcome_of
from workpacket.cli.options import Arguments, Command, Option, chosen, parse, usage
from workpacket.cli.read_only import open_for_reading, reader_identity, show_json
from workpacket.cli.show import QUESTIONS, log_at, status_of, task_of
from workpacket.cli.workspace import open_workspace, write_new
from workpacket.documents.packet import Packet
from workpacket.documents.refinement import Refinement
from workpacket.documents.stub import Stub
from workpacket.git.objects import read_file_at
from workpacket.git.repository import Repository, commit_of
from workpacket.ledger.fold import fold
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.contract_drift import covered, difference
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.next_steps import waits_for_merge
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.report.packet import TaskView
from workpacket.report.pull_request import PacketChange, Signed, render_pull_request, verdict
from workpacket.report.terminal import escape
from workpacket.shell.actor import moment
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.audit import decisions
from workpacket.shell.base import readable_commit
from workpacket.shell.cache import NO_CACHE
from workpacket.shell.governing.execution import gather
from workpacket.shell.keys import proven_events
from workpacket.text.source import Source


def _run(arguments: Arguments) -> int:
    action = chosen(arguments, ("pr", "requirements", "waiting"))
    if action == "waiting":
        from workpacket.cli.overview import waiting_report

        return waiting_report(arguments)
    if action == "requirements":
        return _requirements(arguments)
    base = arguments.value("base")
    if not base:
        raise usage(arguments.command, "missing_argument", "--base REV is required: the revision to compare with")
    workspace = open_workspace()
    checking = parse(CHECK, ["--base", base, *(["--uncommitted"] if arguments.flag("uncommitted") else [])])
    outcome = outcome_of(checking, workspace, NO_CACHE)
    repository = open_for_reading()
    commit = readable_commit(repository, commit_of(repository, base))
    packets = tuple(_changes(arguments, repository, commit))
    text = render_pull_request(outcome, packets, base)
    told: dict[str, Json] = {"verdict": verdict(outcome), "packets": [packet.json() for packet in packets]}
    return _written(arguments, text, told, "read {}, then add it to the pull request")


def _written(arguments: Arguments, text: str, told: dict[str, Json], then: str) -> int:
    """Write the report to its file or to standard output."""
    target = arguments.value("out")
    if target:
        write_new(target, text.encode())
    if arguments.flag("json"):
        return show_json(arguments, {**told, "out": target, "text": "" if target else text})
    if target:
        print(f"written to {escape(target)}")
        print(f"next: {then.format(escape(target))}")
    else:
        sys.stdout.write(text)
    return exits.OK


def _requirements(arguments: Arguments) -> int:
    """Report the matrix of requirements, packets, criteria and evidence as CSV."""
    from workpacket.cli.trace import examine
    from workpacket.report.audit_data import MATRIX_HEADS, matrix_rows
    from workpacket.report.terminal import csv_text

    criteria: dict[str, Sequence[Criterion]] = {}

    def keep(audited: AuditedPacket) -> None:
        criteria[audited.name] = audited.trace.criteria

    rows = list(matrix_rows(examine(keep)[1], criteria))
    listed: list[Json] = [dict(zip(MATRIX_HEADS, row, strict=True)) for row in rows]
    return _written(arguments, csv_text(MATRIX_HEADS, rows), {"requirements": listed}, "open {} in a spreadsheet")


def _changes(arguments: Arguments, repository: Repository, base: str) -> Iterator[PacketChange]:
    """Yield the packets whose logs contain events that the base does not."""
    facts = gather(repository, None, reader_identity(arguments, repository))
    changed = {}
    for name, packet in sorted(facts.packets.items()):
        before = log_at(arguments, repository, packet.log, base)
        new = [event for event in packet.state.history if event.id not in before.by_id]
        if new:
            changed[name] = (before, new)
    if not changed:
        return
    with open_approvals(repository, base, moment()) as approvals:
        signed = decisions(approvals)
    for name, (before, new) in changed.items():
        facts = gather(repository, [name], reader_identity(arguments, repository), QUESTIONS)
        packet = facts.packets[name]
        task = task_of(packet) or TaskView()
        yield PacketChange(
            id=name,
            title=task.title,
            before=fold(before).lane if before.events else "",
            lane=packet.lane,
            contract=covered(packet.log),
            changed=tuple(_contract_changes(repository, base, packet)),
            criteria=task.criteria,
            approvals=tuple(
                Signed(
                    one.gate,
                    one.decision,
                    one.approver,
                    one.key,
                    one.issued_at,
                    tuple(code for code, _ in one.refusals),
                )
                for one in signed.get(name, ())
            ),
            events=tuple(_told(repository, facts, event) for event in new),
            unmet=status_of(repository, facts, packet).unmet,
            waits_for_merge=waits_for_merge(facts, packet),
        )


def _told(repository: Repository, facts: Facts, event: LogEvent) -> str:
    proven = event.id in proven_events(repository, facts.policy.actors, [event])
    return f"{event.type} by {event.actor.id}{'' if proven else ' (claimed, not proven)'}, {event.at}"


def _contract_changes(repository: Repository, base: str, packet: PacketFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of the contract that the change rewrites."""
    before, after = _contract_on_base(repository, base, packet), _contract_here(packet)
    if before is not None and after is not None:
        yield from ((name, "; ".join(old), "; ".join(new)) for name, old, new in difference(before, after))


def _contract_here(packet: PacketFacts) -> Contract | None:
    document = packet.packet or packet.stub
    said = stated(document, packet.refinement) if document is not None else None
    return said if isinstance(said, Contract) else None


def _contract_on_base(repository: Repository, base: str, packet: PacketFacts) -> Contract | None:
    def then(source: Source | None) -> Source | None:
        data = read_file_at(repository, base, source.path) if source is not None else None
        return Source.from_bytes(source.path, data) if source is not None and data is not None else None

    written, stub, refinement = map(then, (packet.packet_source, packet.stub_source, packet.refinement_source))
    document = Packet(written) if written is not None else Stub(stub) if stub is not None else None
    if document is None:
        return None
    said = stated(document, Refinement(refinement) if refinement is not None else None)
    return said if isinstance(said, Contract) else None


COMMAND = Command(
    "report",
    _run,
    arguments="pr | requirements | waiting",
    description="""
`waiting` says what waits for a person, how long, and which leases end soon. With --notify, it also tells the webhook of
the policy and the command in WORKPACKET_NOTIFY, for example once a day.

`requirements` prints the requirements of the specification in force as CSV, with their packets, criteria and evidence.
Text that a spreadsheet would run as a formula has an apostrophe in front.

`pr` prints Markdown for the page of a pull request: whether the check passes, and if not, why; and for each packet that
the change moves, its lane, the changes of its contract, its criteria with their proofs, who approved it with which key,
and what it waits for. Text from the change itself is shown as code. The first line is a mark by which a later run finds
the comment to replace it.""",
    options=(
        Option("base", "pr: the revision to compare with (the base of the pull request)", value="REV"),
        Option("uncommitted", "pr: judge .GOV as it is in the work tree, unlike CI"),
        Option("out", "write to this file, which must not exist yet", value="FILE"),
        Option("within", "waiting: leases that expire within this many hours (default: 24)", value="HOURS"),
        Option("notify", "waiting: notify the webhook and the command"),
    ),
    examples=(
        "workpacket report pr --base origin/main",
        "workpacket report pr --base origin/main --out comment.md",
        "workpacket report requirements --out requirements.csv",
        "workpacket report waiting --notify",
    ),
)
