"""Kills a program that uses every method of a run, again and again, and starts it again until it ends; then once more.

A second process, the person, answers its questions, settles what is in doubt and sends the signals that it waits for;
it is killed too. A process of its own, because it forks. `kill_every_use.py FOLDER SEED KILLS` prints what it saw; an
assertion fails if a run does not end, an answer is another one, or something is done twice that must not be.

With a further number, the runs are stored on a PostgreSQL server of this process, which is killed that many times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postgres.server import Server
from runtime.run_uses import ASYNC_OUTSIDE, ASYNC_USES, OUTSIDE, USES, async_performed, lasting, performed
from workpacket.runtime import RunBlocked, Runtime, Settings
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.stores.contract import contents_of
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine

RUN = "all@once"
SPARED = 12  # each so many-th life is spared, so that rounds come to an end on a slow machine too
LIVES = 400  # a run that has not ended after so many never will
# They come first: who takes a cursor goes on from there, and what it did between cursor and checkpoint is behind it.
GOING_ON = ("cursor", "checkpoint", "checkpoint in a loop")
ONCE = ("by hand", "by probe")  # what no recovery may do a second time
SENT = {"from outside", "in"}
AWAY = {"store_busy", "lease_lost"}  # what a program may be told when its server was killed
PATIENCE = 0.005  # seconds between two looks of the person
LOOK = 0.0005  # seconds between two looks whether a life has ended


class Machine:
    """A store on disk or, if the folder names one, on a server, and a world outside that survives a SIGKILL."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runtime: Runtime | None = None

    @property
    def runtime(self) -> Runtime:
        if self._runtime is None:
            settings = Settings(actor="victim", redactor=Redactor())
            self._runtime = Runtime.open(self._where, settings)
        return self._runtime

    @property
    def _where(self) -> str | Path:
        url = self.folder / "url"
        return url.read_text() if url.exists() else self.folder / "runs.db"

    def problems(self) -> Sequence[object]:
        """Everything that is wrong with the store."""
        store = self.runtime.store
        return examine(store) if isinstance(store, SQLiteStore) else contents_of(store)

    def note(self, what: Any) -> Any:
        descriptor = os.open(self.folder / "world", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{json.dumps(what)}\n".encode())
        os.close(descriptor)
        return what

    def noted(self) -> list[Any]:
        path = self.folder / "world"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def was_noted(self, what: Any) -> bool:
        return what in self.noted()

    def attend(self) -> None:
        """The person: answers questions, says of each effect in doubt whether it happened, and sends signals."""
        if self.runtime.store.head(RUN) is None:
            return
        _, questions = self.runtime.waiting(RUN)
        for question in questions:
            if question.kind == "outcome":
                happened = question.name == "by-hand" and self.was_noted("by hand")
                self.runtime.settle(RUN, question.digest, "mark_done" if happened else "retry")
            elif not question.denied_by:
                self.runtime.confirm(RUN, question.digest, yes=not question.question.startswith("No?"))
        for wait in self.runtime.state(RUN).open_waits:
            if wait.signal in SENT:
                self.runtime.signal(RUN, wait.signal, f"for {wait.step}", key=wait.step)


def victim(folder: Path, uses: list[str], program: Any) -> int:
    machine = Machine(folder)
    try:
        answers = program(machine, uses)
    except RunBlocked as blocked:
        if blocked.code not in {"effect_outcome_unknown", "needs_confirmation"}:
            raise
        return 3
    except RuntimeFault as fault:
        if fault.code not in AWAY or not (folder / "url").exists():
            raise
        return 4
    (folder / "answers").write_text(json.dumps(answers, sort_keys=True))
    return 0


def person(folder: Path) -> int:
    """A process that attends to the run until it is killed."""
    child = os.fork()
    if child == 0:
        try:
            machine = Machine(folder)
            while True:
                try:
                    machine.attend()
                except RuntimeFault as fault:
                    # Settled in the meantime by the program itself, or the server was killed.
                    if not isinstance(fault, RunBlocked) and fault.code not in AWAY:
                        raise
                time.sleep(PATIENCE)
        except BaseException:
            traceback.print_exc()
            os._exit(9)
    return child


def dismissed(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the person ended with {os.WEXITSTATUS(status)}"


def undisturbed(folder: Path, uses: list[str], program: Any) -> float:
    """Run the program to its end, with a person who answers it; return the seconds of its longest life."""
    attending, longest = person(folder), 0.0
    code: int | None = 3
    while code == 3:
        began = time.monotonic()
        code = life(folder, uses, program, None)
        longest = max(longest, time.monotonic() - began)
    dismissed(attending)
    assert code == 0, f"{folder}: the program ended with {code}"
    return longest


def life(
    folder: Path, uses: list[str], program: Any, seconds: float | None, server: Server | None = None
) -> int | None:
    """Its exit status; None if it was killed. With a server, that one is killed instead, and started again."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(victim(folder, uses, program))
        except BaseException:
            traceback.print_exc()
            os._exit(9)
    ends = None if seconds is None else time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if ends is not None and time.monotonic() >= ends:
            ends = None
            if server is None:
                os.kill(child, signal.SIGKILL)
            else:
                server.stop()
                server.start()
        time.sleep(LOOK)
    _, status = ended
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def place_for(folder: Path, name: str, server: Server | None) -> Path:
    place = folder / name
    place.mkdir()
    if server is not None:
        (place / "url").write_text(server.url(workpacket_project=name))
    return place


def play(folder: Path, seed: int, kills: int, server: Server | None = None, of_server: int = 0) -> dict[str, int]:
    chance = random.Random(seed)
    faces = (([*USES, *OUTSIDE], performed), ([*ASYNC_USES, *ASYNC_OUTSIDE], async_performed))
    expected, longest = [], []
    for number, (uses, program) in enumerate(faces):
        place = place_for(folder, f"undisturbed-{number}", server)
        longest.append(undisturbed(place, uses, program))
        expected.append(lasting(json.loads((place / "answers").read_text())))
    killed = lives = rounds = persons = servers = 0
    while killed < kills or servers < of_server:
        face = rounds % 2
        uses, program = faces[face]
        chance.shuffle(uses)
        uses.sort(key=lambda use: use not in GOING_ON)
        place = place_for(folder, f"round-{rounds}", server)
        rounds += 1
        code: int | None = None
        attending = person(place)
        for _ in range(LIVES):
            lives += 1
            spared = lives % SPARED == 0 or killed >= kills
            # The kills of the server are spread over those of the program.
            struck = server if servers * kills <= killed * of_server and servers < of_server else None
            seconds = chance.uniform(0.0, longest[face])
            code = life(place, uses, program, None if spared and struck is None else seconds, struck)
            servers += struck is not None
            killed += code is None
            assert code in ({None, 0, 3, 4} if server else {None, 0, 3}), f"{place}: the program ended with {code}"
            if code == 0:
                break
            if chance.random() < 0.2:
                dismissed(attending)
                persons += 1
                attending = person(place)
        dismissed(attending)
        assert code == 0, f"{place}: the run does not come to an end"
        judge(place, uses, program, expected[face])
    return {"kills": killed, "persons": persons, "lives": lives, "rounds": rounds, "servers": servers}


def judge(place: Path, uses: list[str], program: Any, expected: dict[str, Any]) -> None:
    answers = json.loads((place / "answers").read_text())
    wrong = {name: answer for name, answer in lasting(answers).items() if answer != expected[name]}
    assert wrong == {}, f"{place}: other answers than undisturbed: {wrong}"
    machine = Machine(place)
    done = machine.noted()
    times = {what: done.count(what) for what in ONCE}
    assert times == dict.fromkeys(ONCE, 1), f"{place}: not done exactly once: {times}"
    assert not machine.problems()
    head = machine.runtime.store.head(RUN)
    machine.runtime.close()
    assert life(place, uses, program, None) == 0, f"{place}: a finished run does not end when started again"
    again = json.loads((place / "answers").read_text())
    # Where the cursor stood is known of the last attempt that wrote; one killed behind its end was not asked again.
    assert {**again, "repeated": []} == {**answers, "repeated": []}, f"{place}: asked again, it answers {again}"
    machine = Machine(place)
    assert machine.runtime.store.head(RUN) == head, f"{place}: asked again, it wrote"
    machine.runtime.close()
    assert [what for what in ONCE if machine.noted().count(what) != 1] == []


if __name__ == "__main__":
    chosen = (Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    if len(sys.argv) == 4:
        print(json.dumps(play(*chosen)))
    else:
        owned = Server()
        try:
            owned.start()
            print(json.dumps(play(*chosen, owned, int(sys.argv[4]))))
        finally:
            owned.remove()
