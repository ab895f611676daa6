"""A session that is killed in the middle: python session_program.py STORE WHERE."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from workpacket.runtime import Runtime, Settings
from workpacket.runtime.model_sessions.session import ModelRun, open_session

STORE, WHERE = Path(sys.argv[1]), sys.argv[2]
UP = STORE.with_name("up")  # the program of the session is at work


def die(here: str) -> None:
    if here == WHERE:
        os.kill(os.getpid(), signal.SIGKILL)


def model() -> Iterator[str]:
    for number in range(6):
        if number == 4:
            die("mid-chunk")
        yield f"{number} "


def ask(answer: ModelRun) -> str:
    print(f"partial {answer.partial!r}", flush=True)
    for _ in answer.chunks(model()):
        pass
    return answer.text


def send(text: str) -> str:
    die("mid-tool")
    with STORE.with_name("outbox").open("a") as file:
        file.write(f"{text}\n")
    die("after-effect")
    return "sent"


with (
    Runtime.open(STORE, Settings(actor="tester")) as runtime,
    open_session(runtime, "s", model="m", every=2) as session,
):
    session.add("user", "count")
    answer = session.model_run(ask)
    session.checkpoint(state={"note": "x" * 40_000} if WHERE == "oversize" else {"note": "small"})
    if WHERE == "orphan":
        session.program("p", [sys.executable, "-c", f"import time; open({str(UP)!r}, 'w').close(); time.sleep(60)"])
    print(session.tool("c1", send, answer.content), flush=True)
    die("oversize")
