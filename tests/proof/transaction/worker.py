"""The process that the proof kills: it applies the plan of `shell.crashes`, or recovers, in a real repository.

The line of the marker in the system-call trace tells where the program proper begins.
"""

import sys
from pathlib import Path

from shell.crashes import PLAN
from workpacket.git.repository import find_repository
from workpacket.problem import WorkpacketError
from workpacket.shell.transactions.transaction import writing

MARKER = Path("/workpacket-proof-marker")


def main(root: str, work: str) -> int:
    repository = find_repository(Path(root))
    MARKER.exists()
    try:
        with writing(repository, work) as transaction:
            if work == "apply":
                transaction.apply(PLAN)
    except WorkpacketError as error:
        sys.stdout.write(error.code)
        return 1
    sys.stdout.write("done")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
