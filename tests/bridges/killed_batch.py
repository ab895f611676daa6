"""`workpacket runtime batch` in a process that kills itself before or after the n-th thing that lasts."""

from __future__ import annotations

import os
import sys

from struck import strike
from workpacket.bridges import batch_acts
from workpacket.bridges.foreign import StreamLog
from workpacket.cli.main import main
from workpacket.shell.transactions.transaction import Transaction

number, when, *words = sys.argv[1:]
strike(int(number), when, ((StreamLog, "append"), (Transaction, "apply"), (batch_acts, "commit_with_staged")))
owner = ["--owner", str(os.getpid())] if words[0] == "begin" else []
sys.exit(main(["runtime", "batch", *words, *owner]))
