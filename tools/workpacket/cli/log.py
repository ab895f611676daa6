"""`workpacket log`: whether the log is what was written, and checkpoints that vouch for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from workpacket.cli.governing import ACTING
from workpacket.cli.looking import looking
from workpacket.cli.options import Arguments, Command, Option, chosen
from workpacket.ledger.checkpoints import Reach, reach
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.findings import Finding
from workpacket.report.catalogue import catalogue
from workpacket.report.door import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.judging.log_verifying import verify_log
from workpacket.shell.judging.partial_tree import judged_in_part


def run(arguments: Arguments) -> int:
    if chosen(arguments, ("verify", "checkpoint")) == "checkpoint":
        from workpacket.cli.log_checkpoint import checkpoint

        return checkpoint(arguments)
    from workpacket.shell.moment import moment

    repository = looking()
    verified = verify_log(repository, arguments.value("base"), moment().now)
    wanted = set(arguments.words[1:])
    found = [one for one in verified.findings if not wanted or wanted & set(one.path.split("/"))]
    findings = judged_in_part(str(repository.root), found)
    rows = [row for row in reach(verified.logs, verified.checkpoints) if not wanted or row.packet in wanted]
    status = exit_of(findings)
    if arguments.flag("json"):
        packets: list[Json] = [row_json(row) for row in rows]
        data: dict[str, Json] = {"events": verified.events, "packets": packets}
        sys.stdout.write(render_envelope("log", status, findings, data))
        return status
    say(findings)
    print(f"{verified.events} events, {len(findings)} findings")
    if verified.checkpoints:
        print("\n".join(vouched_lines(rows, in_full=bool(wanted))))
    print(f"next: {f'workpacket explain {findings[0].code}' if findings else 'workpacket status'}")
    return status


def say(findings: Iterable[Finding]) -> None:
    for one in findings:
        print(f"{escape(one.path)}: {one.severity}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")


def vouched_lines(rows: Sequence[Reach], *, in_full: bool) -> list[str]:
    """How much of the log is vouched for, by whom; of packets that were asked for, one by one."""
    if in_full:
        return [
            f"{escape(row.packet)}: {row.vouched} of {row.events} events vouched for"
            + (f" by {escape(row.by)} (checkpoint {row.checkpoint[:12]})" if row.by else "")
            for row in rows
        ]
    whose = ", ".join(dict.fromkeys(row.by for row in rows if row.by))
    counted = f"{sum(row.vouched for row in rows)} of {sum(row.events for row in rows)}"
    return [f"{counted} events of packets vouched for" + (f" by {escape(whose)}" if whose else "")]


def row_json(row: Reach) -> Json:
    return {
        "packet": row.packet,
        "events": row.events,
        "vouched": row.vouched,
        "checkpoint": row.checkpoint,
        "vouched_by": row.by,
    }


def exit_of(findings: Sequence[Finding]) -> int:
    """The gravest status of the errors; forks are no damage and no error of the log."""
    errors = [catalogue()[one.code].exit_code for one in findings if one.severity == "error"]
    return max(errors, default=exits.OK)


COMMAND = Command(
    "log",
    "verify that the log is what was written, or vouch for it",
    run,
    arguments="verify [WP_ID...] | checkpoint",
    description="""
`verify` finds what was edited, renamed, removed or made up within a log, and what is missing at its end though a
signed checkpoint names it; it says how much of the log such checkpoints vouch for. With --base also what is missing or
replaced since: nothing that the base holds may be changed or gone.

`checkpoint` records the heads of all logs as HEAD holds them, and signs that. It is for CI on the protected branch: the
key has to stand in allowed_signers for workpacket-checkpoint@v1, and its owner has to have the role `ci`.""",
    options=(
        Option("base", "compare with this revision, and take the policy from it", value="REV"),
        Option("key", "the key to sign a checkpoint with; a .pub file if an agent holds it", value="PATH"),
        *ACTING,
    ),
    examples=(
        "workpacket log verify",
        "workpacket log verify --base origin/main",
        "workpacket log checkpoint --key /run/secrets/ci_key --as ci",
    ),
)
