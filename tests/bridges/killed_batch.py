"""`workpacket batch` in a process that kills itself before or after the n-th thing that lasts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from workpacket.bridges import batch_completing
from workpacket.bridges.stream_log import StreamLog
from workpacket.cli.main import main
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


for place, name in ((StreamLog, "append"), (Transaction, "apply"), (batch_completing, "commit_with_staged")):
    setattr(place, name, struck(getattr(place, name)))
owner = ["--owner", str(os.getpid())] if words[0] == "begin" else []
sys.exit(main(["batch", *words, *owner]))
