"""Appends and says after each append that it is stored: the program whose writes are recorded for the loss of power.

recorder_program.py FOLDER [NORMAL]     NORMAL is the control: the durability everybody forgets to ask for
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from workpacket.runtime.stores.sqlite import access as sqlite_access
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.testing import STREAM, Writer

folder = Path(sys.argv[1])
if sys.argv[2:] == ["NORMAL"]:
    kept = [pragma for pragma in sqlite_access._PRAGMAS if pragma[0] != "synchronous"]
    sqlite_access._PRAGMAS = (("synchronous", "NORMAL", 1), *kept)
told = os.open(folder / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
store = SQLiteStore(folder / "store" / "runs.db")
with store.access.reading as db:
    db.execute("PRAGMA wal_autocheckpoint = 30")  # so that the log is reused within the recording
lease = store.acquire(STREAM, "recorder", 3600)
writer = Writer("recorder")
for _ in range(12):
    store.append(writer.request("checkpoint", fence=lease.token))
    os.write(told, b".")
store.close()
os.write(told, b"closed")
