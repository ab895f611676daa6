"""A command about runs in a process that kills itself before or after the n-th thing that lasts, in log or store."""

from __future__ import annotations

import os
import sys

from struck import strike
from workpacket.cli.main import main
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.shell.transactions.transaction import Transaction

number, when, *words = sys.argv[1:]
of_store = [(SQLiteStore, name) for name in ("append", "acquire", "release")]
strike(int(number), when, (*of_store, (Transaction, "apply")))
owner = ["--owner", str(os.getpid())] if words[:2] == ["runtime", "run"] else []
sys.exit(main([*words, *owner]))
