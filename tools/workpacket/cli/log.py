"""`workpacket log verify`: whether the log is what was written."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from workpacket.cli.looking import looking
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.model import exits
from workpacket.model.findings import Finding
from workpacket.report.catalogue import catalogue
from workpacket.report.door import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.log_verifying import verify_log


def run(arguments: Arguments) -> int:
    if arguments.words[:1] != ["verify"]:
        raise usage(arguments.command, "missing_argument", "it knows one thing to do: verify")
    findings, events = verify_log(looking(), arguments.value("base"))
    wanted = set(arguments.words[1:])
    findings = [one for one in findings if not wanted or wanted & set(one.path.split("/"))]
    status = exit_of(findings)
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("log", status, findings, {"events": events}))
        return status
    for one in findings:
        print(f"{escape(one.path)}: {one.severity}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")
    print(f"{events} events, {len(findings)} findings")
    print(f"next: {f'workpacket explain {findings[0].code}' if findings else 'workpacket status'}")
    return status


def exit_of(findings: Sequence[Finding]) -> int:
    """The gravest status of the errors; forks are no damage and no error of the log."""
    errors = [catalogue()[one.code].exit_code for one in findings if one.severity == "error"]
    return max(errors, default=exits.OK)


COMMAND = Command(
    "log",
    "verify that the log is what was written",
    run,
    arguments="verify [WP_ID...]",
    description="""
Finds what was edited, renamed, removed or made up within a log. With --base also what is missing at its end, or was
replaced: nothing that the base holds may be changed or gone.""",
    options=(Option("base", "compare with this revision", value="REV"),),
    examples=("workpacket log verify", "workpacket log verify --base origin/main"),
)
