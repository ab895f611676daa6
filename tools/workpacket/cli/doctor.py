"""`workpacket doctor`: is this a place where runs are safe, and is their store whole?"""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.diagnosis import carry_out

    return carry_out(arguments)


COMMAND = Command(
    "doctor",
    "examine the store of runs and the place it lies in",
    run,
    description="""
Reads the whole store and believes nothing: pages, hashes, index, what was acknowledged. Looks at the file system, the
write lock, programs left over from dead attempts, secrets that were stored, and whether git would commit the store.
Where WORKPACKET_STORE names a server: its version, whether it keeps what it acknowledges, its clock, our rights.""",
    options=(Option("accept-rollback", "a backup was restored: accept that acknowledged events are gone"),),
    examples=("workpacket doctor", "workpacket doctor --json"),
)
