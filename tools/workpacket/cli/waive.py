"""`workpacket waive`, and `override`: a person lifts a condition, for a reason and for a time."""

from __future__ import annotations

import re

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required, words_of
from workpacket.lifecycle.gates import CONSUMING
from workpacket.lifecycle.side_moves import waive
from workpacket.report.catalogue import catalogue
from workpacket.shell.approvals.gate_queries import Question

_DAY = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\Z")


def run(arguments: Arguments) -> int:
    rule = words_of(arguments, 2, "WP_ID and the code of the condition")[1]
    if rule not in catalogue():
        raise usage(arguments.command, "unknown_code", f"there is no code {rule!r}; `workpacket why WP_ID` shows them")
    reason, day = required(arguments, "reason"), required(arguments, "until")
    if not _DAY.match(day):
        raise usage(arguments.command, "invalid_value", f"--until takes a day like 2026-12-31, not {day!r}")
    override = arguments.command.name == "override"
    kind, expires_at, target = "overridden" if override else "waived", f"{day}T23:59:59Z", arguments.value("target")
    terms = {"rule": rule, "until": expires_at, "reason": reason, "target": target}
    return packet_command(
        arguments,
        lambda facts, packet: waive(
            facts,
            packet,
            rule=rule,
            reason=reason,
            expires_at=expires_at,
            target=target,
            override=override,
        ),
        words=2,
        questions=(Question(CONSUMING[kind], terms),),
    )


def declare(name: str, summary: str) -> Command:
    return Command(
        name,
        summary,
        run,
        arguments="WP_ID CODE",
        description="""
Somebody with a role at its gate approves it first, in the same words: rule, end and reason are what they sign.""",
        options=(
            Option("until", "the last day on which it holds", value="YYYY-MM-DD"),
            Option("target", "only this one, such as the dependency", value="TEXT"),
            REASON,
            *ACTING,
        ),
        examples=(
            f'workpacket {name} WP-1-Parser-v1 dependency_unmet --until 2026-12-31 --reason "its interface is fixed"',
        ),
    )


COMMAND = declare("waive", "waive a condition of a gate, for a reason and for a time")
