"""Makes the recorded histories: runs as a released version stored them, which every later version must still read.

    PYTHONPATH=tools:tests python -m runtime.histories FOLDER

writes one file per run in the export format, and beside it what the fold made of it then. Records of a schema version
that was released are never made anew: a new version gets a folder of its own. When a record gains a field within a
version, the file as it was keeps its content under another name (`refused_before_subjects`: `run.blocked` did not yet
name the subject of the question; `finished_before_arguments`: an effect with a key did not yet say what its arguments
were; `finished_before_shown` and `doubted_before_shown`: an effect did not yet say its key, and its arguments were not
stored; `interrupted_before_alone` and `asked_before_alone`: a step that may have been repeated did not yet say that no
other was called beside it), for it has to be read for ever; a test makes the others again to the byte.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from runtime.worlds import World
from workpacket.model.canonical import Json
from workpacket.runtime import NotDone, Retry, Run
from workpacket.runtime.attempts.effects import KEYED
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.starter import RunRequest
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.records.state import RunState
from workpacket.runtime.stores.transfer import export_lines


def finished(world: World) -> str:
    with world.runtime.run("finished", packet="WP-1-Example-v1", inputs={"month": "2026-10", "rate": 0.5}) as run:
        run.step("fetch", world.note, "rows")
        run.effect("mail", world.note, "mail", key="mail-1")
        run.checkpoint({"offset": 2}, name="middle", token=True)
        run.map("load", world.note, ["a", "b"], workers=1)
    return run.id


def interrupted(world: World) -> str:
    with world.crashing(world.runtime.run("interrupted", code_version="1", scope=["src", "docs"])) as run:
        run.step("first", world.note, "1")
        run.step("second", world.crash)
    with world.crashing(world.runtime.run("interrupted", code_version="1", scope=["src"])) as run:
        run.step("first", world.note, "1")
        run.step("second", world.note, "2")
        run.effect("send", world.crash)
    return run.id


def moved(world: World) -> str:
    with world.crashing(world.runtime.run("moved", key="1")) as run:
        run.step("first", world.note, "1")
        run.step("second", world.crash)
    world.runtime.hand_over(run.id, "moved.jsonl")
    return run.id


def retried(world: World) -> str:
    def flaky() -> str:
        world.note("try")
        if len(world.calls) < 3:
            raise NotDone("not yet")
        return "done"

    with world.runtime.run("retried", steps=9) as run:
        run.using(retry=Retry(attempts=5, first=0.1), version="7").step("flaky", flaky)
        world.calls.clear()
        run.using(retry=Retry(attempts=5, first=0.1)).effect("flaky effect", flaky)
    return run.id


def refused(world: World) -> str:
    with world.crashing(world.runtime.run("refused", inputs={"month": 10})) as run:
        token = run.checkpoint({"at": 1}, token=True).token
        world.crash()
    try:
        world.runtime.run("refused", inputs={"month": 11})
    except RuntimeFault as fault:
        world.runtime.confirm("refused@00000001", str(fault.details["subject"]), yes=True, note="looked at it")
    with world.crashing(world.runtime.run("refused", inputs={"month": 11}, retry_token=token)) as run:
        run.effect("doubtful", world.crash)
    (record,) = world.runtime.state(run.id).unknown_effects
    world.runtime.settle(run.id, record.effect, "mark_done", "it is in the outbox")
    world.runtime.cancel(run.id, "no longer needed")
    return run.id


def asked(world: World) -> str:
    """A program that was at work when its script died, a question nobody answered, and a result that was purged."""
    with world.crashing(world.runtime.run("asked")) as run:
        run.step("read", world.note, "a name that must go")
        run._session.recorder.record(RecordDraft("step.started", {"step": "convert", "processes": ["there/7/1/boot"]}))
        world.crash()
    with suppress(RuntimeFault), world.runtime.run("asked") as run:
        run.step("read", world.note, "a name that must go")
        run.step("convert", world.note, "rows")
        run.effect("send", world.note, "mail", confirm=True)
    world.runtime.purge(run.id, run.state.steps["read"].event.version, "it was personal")
    return run.id


def waited(world: World) -> str:
    """A timer that ended, two signals of which one was received, and a wait that still lasts."""
    with world.crashing(world.runtime.run("waited")) as run:
        run.sleep(5)
        for number in (1, 2):
            world.runtime.signal(run.id, "paid", {"number": number}, key=str(number))
        run.wait_for("paid", timeout=10)
        run.patched("new way")
        run._session.wait_for("delivered", None)
        world.crash()
    return run.id


def parented(world: World) -> str:
    """A child run that is done, and one that was interrupted after its checkpoint; both published something."""

    def month(run: Run, name: str) -> str:
        run.publish("read", 0)
        rows = run.step("read", world.note, name)
        run.publish("read", 1)
        run.checkpoint({"at": 1}, name="read")
        if name == "June":
            world.crash()
        return rows

    with world.crashing(world.runtime.run("parented")) as run:
        run.publish("year", 2026)
        run.child("month", month, "May")
        beside = threading.Thread(target=lambda: run.step("beside", world.note, "beside"))
        beside.start()
        beside.join()
        run.child("month", month, "June")
    return run.id


def milestones(world: World) -> str:
    """Checkpoint commits: one whose sidecar could not be written, and one that was announced and never made."""
    first: dict[str, Json] = {"checkpoint": "a" * 16, "milestone_index": 0}
    second: dict[str, Json] = {"checkpoint": "b" * 16, "milestone_index": 1}
    commit, tree = "1" * 40, "2" * 40
    cursor = b'{"cursor":{"at":1}}'
    with world.crashing(world.runtime.run("milestones", scope=["src"])) as run:
        session = run._session
        announced: dict[str, Json] = {**first, "base": "0" * 40, "milestone_title": "Read front matter"}
        session.recorder.record(RecordDraft("checkpoint.prepared", announced, cursor))
        made: dict[str, Json] = {
            **first,
            "commit": commit,
            "tree": tree,
            "changed": True,
            "found": False,
            "sidecar_written": False,
        }
        unwritten: dict[str, Json] = {
            "sha": commit,
            "path": f"/there/.runr/checkpoints/{commit}.json",
            "error": "Read-only file system",
        }
        session.checkpoint(
            {"at": 1}, "Read front matter", "commit",
            {"commit": commit, "tree": tree, "trailer": "a" * 16, "own": ["src"]},
            with_token=False,
            first=(RecordDraft("checkpoint_complete", made), RecordDraft("checkpoint_sidecar_write_failed", unwritten)),
        )  # fmt: skip
        selected: dict[str, Json] = {
            "source": "git_log_run_specific",
            "sha": commit,
            "milestone_index": 0,
            "relation": "exact",
        }
        session.recorder.record(RecordDraft("resume_checkpoint_selected", {**selected, "skipped": []}))
        session.recorder.record(RecordDraft("checkpoint.prepared", {**second, "base": commit}, cursor))
        world.crash()
    return run.id


def dependencies(world: World) -> str:
    """Leave for dependencies, a change that used it, and a second attempt that took less."""
    row: dict[str, Json] = {
        "path": "package.json", "format": "package.json",
        "direct": {"added": [{"name": "zod", "old": "", "new": "^3.0.0"}], "removed": [], "updated": []},
        "transitive": {"added": 0, "removed": 0, "updated": 0}, "diffstat": {"added": 1, "removed": 0},
        "new_packages": 0, "allowed": ["zod"], "violations": [],
    }  # fmt: skip
    changed: dict[str, Json] = {"base": "1" * 40, "allow": ["zod", "@org/*"], "lockfiles": [row], "warnings": []}
    request = RunRequest(base_commit="1" * 40, allow_deps=["zod", "@org/*"])
    with world.crashing(world.runtime.run("dependencies", **request)) as run:
        run._session.recorder.record(RecordDraft("lockfile_changed", changed))
        world.crash()
    with world.crashing(world.runtime.run("dependencies", allow_deps=["@org/a"])) as run:
        world.crash()
    return run.id


class Upper:
    """A codec of an author."""

    def encode(self, value: str) -> Json:
        return value.upper()

    def decode(self, stored: Json) -> str:
        return str(stored).lower()


def doubted(world: World) -> str:
    """A run that lost events: an effect stored before its arguments were, one in doubt, and receipts of three kinds."""
    args_hash = KEYED + jcs_hash("old")
    with world.crashing(world.runtime.run("doubted")) as run:
        old: dict[str, Json] = {"effect": jcs_hash([run.id, args_hash]), "step": "old", "kind": "manual",
                                "target": "old", "args_hash": args_hash}  # fmt: skip
        session = run._session
        session.recorder.record(RecordDraft("effect.started", {**old, "attempt": 1}))
        session.recorder.record(RecordDraft("effect.succeeded", {**old, "result_hash": jcs_hash("old")}, b'"old"'))
        session.recorder.record(RecordDraft("rolled_back", {"had": 9, "has": 3}))
        run.effect("old", world.note, "old", key="old")
        run.using(codec=Upper()).effect("coded", world.note, "coded", recovery="keyed", key="new", target="a")
        with suppress(RuntimeFault):
            run.effect("unkept", lambda: {world.note("unkept")}, recovery="idempotent")
        with suppress(RuntimeFault):
            run.effect("lost", world.note, "lost")
        world.crash()
    (record,) = world.runtime.state(run.id).unknown_effects
    world.runtime.settle(run.id, record.effect, "mark_done", "it is in the outbox", value={"id": 7})
    return run.id


HISTORIES: tuple[Callable[[World], str], ...] = (
    finished,
    interrupted,
    moved,
    retried,
    refused,
    asked,
    waited,
    parented,
    milestones,
    dependencies,
    doubted,
)


def summary(state: RunState) -> dict[str, Any]:
    """What a history means, in terms that outlive the shape of the state."""
    return {
        "status": state.status,
        "stop_code": state.stop_code,
        "name": state.name,
        "packet": state.packet,
        "attempt": state.attempt,
        "interrupted": state.interrupted,
        "scope": list(state.scope),
        "inputs": dict(state.inputs),
        "steps": sorted(state.steps),
        "effects": sorted([record.step, record.status] for record in state.effects.values()),
        "checkpoints": [point.name for point in state.checkpoints],
        "confirmations": sorted(state.confirmations.values()),
        "tokens_spent": len(state.tokens_spent),
        "blocks": list(state.blocks),
        "questions": sorted(one.text for one in state.questions.values() if one.kind != "change"),
        "in_flight": sorted(state.in_flight),
        "running": sorted(state.running),
        "waits": sorted([wait.step, wait.signal, wait.number] for wait in state.waits.begun.values()),
        "signals": {name: len(events) for name, events in state.waits.signals.items()},
        "published": sorted(state.published),
        "interleaved": sorted(state.interleaved),
        "milestones": {str(index): reached.commit for index, reached in state.milestones.reached.items()},
        "prepared": state.milestones.prepared.milestone_index if state.milestones.prepared else None,
        "base_commit": state.base_commit,
        "allow_deps": list(state.allow_deps),
        "version": state.version,
    }


def main(folder: Path) -> None:
    for history in HISTORIES:
        world = World()
        stream = history(world)
        lines = "".join(f"{line}\n" for line in export_lines(world.store, stream))
        (folder / f"{history.__name__}.jsonl").write_text(lines, "utf-8")
        expected = json.dumps(summary(world.runtime.state(stream)), indent=2, sort_keys=True)
        (folder / f"{history.__name__}.expected.json").write_text(f"{expected}\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
