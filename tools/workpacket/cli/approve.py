"""`workpacket approve`: a person's yes or no to named bytes, signed with a key that no agent has."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.approving import approve

    return approve(arguments)


KEY_OPTION = Option("key", "the key to sign with: a private key, or a .pub file of an agent or token", value="PATH")
BASE_OPTION = Option("base", "the revision whose policy is in force", value="REV")

COMMAND = Command(
    "approve",
    "approve or reject a packet at a gate, with a signature",
    run,
    arguments="[WP_ID]",
    description="""
The whole text is shown, with its digest in six words and what has changed since it was last approved. Whoever has read
it types the words asked for, and ssh-keygen signs. At the gate `activation` the USER fields of the refinement are
filled in first; refinement and envelope are written together. What that gate would refuse whoever signs is listed
instead of asked for, with exit status 3; a text that you have approved already is not signed twice. A change of
`.GOV/policy` is approved as `policy`, at the gate `policy`. Without a terminal nothing is signed; `--statement-out`
writes what is to be signed elsewhere, and `--attach` takes it back together with the FILE.sig that ssh-keygen has
made.""",
    options=(
        Option("gate", "the gate; activation unless told", value="GATE"),
        Option("decision", "what to say; approve unless told", choices=("approve", "reject")),
        KEY_OPTION,
        Option("role", "the role to speak in, where the gate asks for one of several", value="ROLE"),
        Option("verdict", "at the gate verdict: which one", choices=("PASS", "FAIL", "CHANGES", "OUTDATED_ONLY")),
        Option("rule", "at the gates waiver and override: the code of the rule", value="CODE"),
        Option("until", "and when that ends: 2026-01-31T12:00:00Z", value="INSTANT"),
        Option("reason", "and why, in the words that the event will hold", value="TEXT"),
        Option("target", "and for which one only, such as the dependency", value="TEXT"),
        Option("days", "how long it may wait to be used: 1 to 30 days, 14 unless told", value="N"),
        Option("statement-out", "write what is to be signed into FILE, and sign nothing", value="FILE"),
        Option("attach", "take a statement that was signed elsewhere: FILE, and its signature FILE.sig", value="FILE"),
        BASE_OPTION,
    ),
    examples=(
        "workpacket approve WP-1-Parser-v1",
        "workpacket approve WP-1-Parser-v1 --gate verdict --verdict PASS",
        "workpacket approve policy --gate policy",
        "workpacket approve WP-1-Parser-v1 --statement-out statement",
        "ssh-keygen -Y sign -n workpacket-approval@v1 -f KEY statement",
        "workpacket approve --attach statement",
    ),
)
