"""A command about runs in a process that kills itself before or after the n-th thing that lasts, in log or store."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from workpacket.cli.main import main
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.shell.transactions.transaction import Transaction

number, when, *words = sys.argv[1:]
calls: list[str] = []


def struck(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        calls.append(function.__name__)
        here = len(calls) == int(number)
        if here and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **named)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return call


for place, name in (
    (SQLiteStore, "append"),
    (SQLiteStore, "acquire"),
    (SQLiteStore, "release"),
    (Transaction, "apply"),
):
    setattr(place, name, struck(getattr(place, name)))
owner = ["--owner", str(os.getpid())] if words[0] == "run" else []
sys.exit(main([*words, *owner]))
