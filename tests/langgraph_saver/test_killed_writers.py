"""A process is killed while its graph talks: every turn it was told is stored is there, and the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from langgraph_saver.worlds import graph, require_sound, thread
from workpacket.runtime.langgraph import WorkpacketSaver

PROGRAM = """
import sys
from langgraph_saver.worlds import graph, thread
from workpacket.runtime.langgraph import WorkpacketSaver
with WorkpacketSaver.open(sys.argv[1]) as saver:
    talk = graph(saver)
    for number in range(1000):
        said = talk.invoke({"number": number, "text": ["question"]}, thread("t"), durability="sync")
        print(len(said["text"]), flush=True)
"""


def test_what_a_killed_process_was_told_is_stored_is_there(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "runs.db", 0
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for turns in (3, 11):
        command = [sys.executable, "-c", PROGRAM, str(path)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(turns):
                acknowledged = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *(int(line) for line in child.stdout if line.endswith("\n"))])
        with WorkpacketSaver.open(path) as saver:
            talk = graph(saver)
            if talk.get_state(thread("t")).next:
                talk.invoke(None, thread("t"))
            texts = talk.get_state(thread("t")).values["text"]
            assert acknowledged <= len(texts) <= acknowledged + 2
            assert texts[1::2] == [f"answer {number}" for number in range(1, len(texts), 2)]
            require_sound(saver.store)
