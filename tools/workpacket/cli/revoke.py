"""`workpacket revoke`: permanently revokes an approval or a rejection."""

from __future__ import annotations

from workpacket.cli.approve import BASE_OPTION, BROWSER_OPTION, KEY_OPTION
from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.approve import revoke

    return revoke(arguments)


COMMAND = Command(
    "revoke",
    run,
    arguments="ENVELOPE",
    description="""
ENVELOPE is the digest of the envelope, or its beginning, as `workpacket approvals list` shows it. A revocation comes
from the approver, from someone with a role at the gate, or from an operator, and cannot itself be revoked.""",
    options=(
        KEY_OPTION,
        BROWSER_OPTION,
        Option("statement-out", "write what is to be signed into FILE, and sign nothing", value="FILE"),
        BASE_OPTION,
    ),
    examples=("workpacket revoke 3f9a1c", "workpacket revoke 3f9a1c --statement-out statement"),
)
