"""`workpacket audit`: is anything wrong, what, since when, who must act; as text, or as a report to keep."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option

FORMATS = ("text", "html", "json", "sarif", "markdown")


def run(arguments: Arguments) -> int:
    from workpacket.cli.auditing import report

    return report(arguments)


COMMAND = Command(
    "audit",
    "verify the whole repository and report: what is wrong, since when, who must act",
    run,
    description="""
Applies every rule, verifies every signature and the log, follows every packet from requirement to commit, and reports
what does not hold. With --out the report is written into a file, in the form that its ending says: .html, .json,
.sarif or .md. The page needs no network and no other file. The clock is not looked at: what expires is judged as of
the head commit, so the same repository gives the same bytes. Exits as `check` does.""",
    options=(
        Option("format", "how to write the report", choices=FORMATS),
        Option("out", "write it into this file, replacing an earlier report", value="FILE"),
    ),
    examples=(
        "workpacket audit",
        "workpacket audit --out audit.html",
        "workpacket audit --format sarif > audit.sarif",
    ),
)
