"""`workpacket verdict`: a validator judges the work."""

from __future__ import annotations

import hashlib
import os

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import ACTING, REASON, packet_command, words_of
from workpacket.cli.team_claims import sync_team_claim
from workpacket.errors import WorkpacketError
from workpacket.lifecycle.review import verdict
from workpacket.lifecycle.transitions import choices
from workpacket.model.canonical import Json
from workpacket.shell.approvals.gate_queries import verdict_question
from workpacket.shell.governing.execution import here
from workpacket.shell.work_done import relative_place


def run(arguments: Arguments) -> int:
    choice = words_of(arguments, 2, "WP_ID and a verdict")[1].upper()
    if choice not in choices("verdict"):
        raise usage(arguments.command, "invalid_value", f"{choice!r} is none of {', '.join(choices('verdict'))}")
    report = _report(arguments.value("report"))
    status = packet_command(
        arguments,
        lambda facts, packet: verdict(
            facts,
            packet,
            choice,
            report=report,
            reference=arguments.value("reference"),
            reason=arguments.value("reason"),
        ),
        words=2,
        questions=(verdict_question(choice),),
    )
    return sync_team_claim(arguments, status)


def _report(path: str) -> Json:
    """The validator's report as it is now."""
    if not path:
        return None
    repository = here()
    place = relative_place(repository, os.path.abspath(path)).replace(os.sep, "/")
    if os.path.isabs(place):
        raise WorkpacketError(
            "path_outside_repository", f"{path} lies outside the repository", hint=str(repository.root)
        )
    try:
        with open(path, "rb") as stream:
            return {"path": place, "sha256": hashlib.sha256(stream.read()).hexdigest()}
    except FileNotFoundError as error:
        raise WorkpacketError("path_not_found", f"there is no report {path}") from error


COMMAND = Command(
    "verdict",
    "judge work that is in review",
    run,
    arguments="WP_ID PASS|FAIL|CHANGES|OUTDATED_ONLY",
    description="Nobody judges their own work, and a verdict comes with a report.",
    options=(
        Option("report", "the validator's report, a file of the repository", value="FILE"),
        Option("reference", "where it is said what is to be changed", value="PLACE"),
        REASON,
        *ACTING,
    ),
    examples=(
        "workpacket verdict WP-1-Parser-v1 PASS --report docs/reports/parser.md --as validator-1",
        "workpacket verdict WP-1-Parser-v1 CHANGES --reference docs/reports/parser.md#3",
    ),
)
