"""Kills one program again and again at random moments and lets it resume, until it is done; then judges what happened.

A process of its own, because it forks: every victim starts with all modules loaded, so that hundreds of kills take
seconds. What the victim was told is stored, and what it did to the world outside, is written to plain files that
survive a SIGKILL.

    kill_server.py play FOLDER SEED KILLS     kill at random moments, at least so often
    kill_server.py life FOLDER                one life without a kill; its exit status says how it ended
    kill_server.py judge FOLDER               settle what is in doubt, live to the end, judge
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from workpacket.runtime import NotDone, RunBlocked, Runtime, Settings
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.run import Run
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine

LONGEST = 0.008  # seconds a victim may live
SPARED = 14  # each so many-th life is spared, so that rounds come to an end on a slow machine too
STEPS = int(os.environ.get("KILL_STEPS", "40"))


class Outside:
    """The world: what was done to it, and what the program was told. Appended without buffering."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, file: str, line: str) -> None:
        descriptor = os.open(self.folder / file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)

    def lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []


def program(folder: Path) -> None:
    world = Outside(folder)
    runtime = Runtime.open(folder / "runs.db", Settings(actor="victim"))
    with runtime.run("victim", key="only") as run:
        for number in range(run_from(run), STEPS):
            value = run.step(f"work-{number}", work, world, number)
            world.write("told", f"step work-{number} {value}")
            receipt = run.effect(
                f"mail-{number}",
                send,
                world,
                number,
                key=f"mail-{number}",
                recovery="probe",
                probe=probe(world, number),
            )
            world.write("told", f"effect mail-{number} {receipt}")
            run.effect(f"bill-{number}", bill, world, number, key=f"bill-{number}")
            world.write("told", f"effect bill-{number} -")
            if number % 3 == 2:
                run.checkpoint({"next": number + 1})
    world.write("told", "completed")


def run_from(run: Run) -> int:
    cursor: Any = run.cursor({"next": 0})
    return int(cursor["next"])


def work(world: Outside, number: int) -> int:
    world.write("done", f"step work-{number}")
    return number * number


def send(world: Outside, number: int) -> str:
    world.write("done", f"effect mail-{number}")
    return f"receipt-{number}"


def bill(world: Outside, number: int) -> str:
    world.write("done", f"effect bill-{number}")
    return "-"


def probe(world: Outside, number: int) -> Any:
    def look() -> str:
        if f"effect mail-{number}" in world.lines("done"):
            return f"receipt-{number}"
        raise NotDone("not in the world")

    return look


def settle(folder: Path) -> None:
    """The person: looks at the world, and says of each bill in doubt whether it went out."""
    runtime = Runtime.open(folder / "runs.db", Settings(actor="person"))
    done = Outside(folder).lines("done")
    for record in runtime.state("victim@only").unknown_effects:
        if record.kind == "manual":
            happened = f"effect {record.step}" in done
            runtime.settle("victim@only", record.effect, "mark_done" if happened else "retry")
    runtime.close()


def victim(folder: Path) -> int:
    try:
        program(folder)
    except RunBlocked as blocked:
        return 3 if blocked.code == "effect_outcome_unknown" else 4
    except RuntimeFault:
        traceback.print_exc()  # the exit status does not say what was refused
        return 5
    return 0


def play(folder: Path, seed: int, kills: int) -> dict[str, Any]:
    chance = random.Random(seed)
    killed = lives = rounds = 0
    while killed < kills:
        rounds += 1
        place = folder / f"round-{rounds}"
        place.mkdir()
        ended = False
        while not ended:
            settle(place) if (place / "asked").exists() else None
            (place / "asked").unlink(missing_ok=True)
            lives += 1
            spared = lives % SPARED == 0 or killed >= kills
            code = one_life(place, None if spared else chance.uniform(0.0, LONGEST))
            killed += code is None
            if code == 3:
                (place / "asked").touch()
            elif code not in {None, 0}:
                raise AssertionError(f"the program ended with {code}")
            ended = code == 0
        judge(place)
    return {"kills": killed, "rounds": rounds}


def one_life(place: Path, seconds: float | None) -> int | None:
    """Its exit status; None if it was killed."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(victim(place))
        except BaseException:
            traceback.print_exc()
            os._exit(9)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def judge(place: Path) -> None:
    world = Outside(place)
    store = SQLiteStore(place / "runs.db")
    problems = examine(store)
    assert problems == (), problems
    events = [(event.type, event.values()) for event in store.read("victim@only")]
    store.close()
    stored = {f"step {d['step']}" for t, d in events if t == "step.completed"}
    stored |= {f"effect {d['step']}" for t, d in events if t in {"effect.succeeded", "effect.resolved"} and "step" in d}
    settled = {d["effect"] for t, d in events if t == "effect.resolved"}
    names = {d["effect"]: f"effect {d['step']}" for t, d in events if t == "effect.started"}
    stored |= {names[str(effect)] for effect in settled}
    told = {" ".join(line.split()[:2]) for line in world.lines("told") if line != "completed"}
    assert told <= stored, f"acknowledged and lost: {told - stored}"
    done = world.lines("done")
    for effect in {line for line in done if line.startswith("effect")}:
        assert done.count(effect) == 1, f"{effect} happened {done.count(effect)} times"
    succeeded = [d["effect"] for t, d in events if t == "effect.succeeded"]
    assert len(succeeded) == len(set(succeeded)), "an effect succeeded twice"
    flagged = {f"step {d['step']}" for t, d in events if t == "step.completed" and d.get("maybe_repeated")}
    repeated = {line for line in done if line.startswith("step") and done.count(line) > 1}
    assert repeated <= flagged, f"repeated without a word: {repeated - flagged}"


def live_to_the_end(place: Path) -> None:
    """Resume as often as it takes, answering what a person has to answer, and judge."""
    for _ in range(3):
        code = one_life(place, None)
        if code == 0:
            judge(place)
            return
        assert code == 3, f"the program ended with {code}"
        settle(place)
    raise AssertionError("the run does not come to an end")


if __name__ == "__main__":
    verb, folder = sys.argv[1], Path(sys.argv[2])
    if verb == "play":
        print(json.dumps(play(folder, int(sys.argv[3]), int(sys.argv[4]))))
    elif verb == "judge":
        live_to_the_end(folder)
    else:
        sys.exit(victim(folder))
