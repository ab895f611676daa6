"""`workpacket evidence`: what the proofs of a packet printed, for those who review it."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, subcommand


def run(arguments: Arguments) -> int:
    subcommand(arguments, ("publish",))
    from workpacket.cli.publishing import publish

    return publish(arguments)


COMMAND = Command(
    "evidence",
    "write what the proofs of a packet printed for a pull request",
    run,
    arguments="publish WP_ID",
    description="""
The log holds of a proof its command, its exit code, and length and digest of what it printed; the end of that stays in
the clone where it was run. `publish` writes it as Markdown, for the text of a pull request. Secrets that are known by
their form, or as values of your environment, were taken out, and are looked for once more. Read it before you paste it:
what you publish is no longer yours to take back.""",
    options=(Option("out", "write into this new file instead of showing", value="FILE"),),
    examples=(
        "workpacket evidence publish WP-1-Parser-v1",
        "workpacket evidence publish WP-1-Parser-v1 --out ../evidence.md",
    ),
)
