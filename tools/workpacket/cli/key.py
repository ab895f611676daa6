"""`workpacket key`: a key for approvals, and whether a program could use it."""

from __future__ import annotations

from workpacket.cli.approve import BASE_OPTION
from workpacket.cli.options import Arguments, Command, Option, chosen

SUBCOMMANDS = ("init", "doctor", "list")


def run(arguments: Arguments) -> int:
    from workpacket.cli import keys

    return {"init": keys.init, "doctor": keys.doctor, "list": keys.list_keys}[chosen(arguments, SUBCOMMANDS)](arguments)


COMMAND = Command(
    "key",
    "make, try and list the keys that approve",
    run,
    arguments="init [PATH]|doctor|list",
    description="""
`init` makes a key for approvals only, with a passphrase, that is never added to an agent. `doctor` tries to sign as a
rogue program would and says whether one could approve. `list` shows whom the policy of the base trusts.""",
    options=(
        Option("principal", "init: the name in allowed_signers; git's user.email unless told", value="NAME"),
        BASE_OPTION,
    ),
    examples=(
        "workpacket key init",
        "workpacket key init ~/.ssh/approvals --principal ann@example.org",
        "workpacket key doctor",
        "workpacket key list --json",
    ),
)
