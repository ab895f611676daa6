"""`workpacket runtime run`: runs whose steps are commands, for shell scripts and agents of any kind.

`workpacket runtime queue` and `workpacket runtime worker`: offer runs on a server, and execute them.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from workpacket.cli.open_store import (
    answer,
    number_of,
    open_runtime,
    owner_of,
    queue_runtime,
    refuse,
    refusing,
    with_links,
)
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.workspace import open_workspace
from workpacket.git.repository import find_repository, head_commit
from workpacket.model.canonical import Json
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.terminal import escape, escape_lines
from workpacket.runtime import scripted
from workpacket.runtime.attempts.session import Session
from workpacket.runtime.attempts.starter import RunRequest
from workpacket.runtime.errors import RunCancelled, RuntimeFault
from workpacket.runtime.holders import process_named
from workpacket.runtime.records.failures import reason_of
from workpacket.runtime.runtime import Runtime

if TYPE_CHECKING:
    from workpacket.runtime.queue import Worker


ANY = 2**31 - 1


@refusing
def run(arguments: Arguments) -> int:
    action = subcommand(arguments, RUN_ACTIONS)
    least = 2 if action == "step" else 1
    most = None if action == "step" else 1
    if len(arguments.words) < least or (most is not None and len(arguments.words) > most):
        needed = {"start": "expected a run name", "step": "expected a handle and a step name"}
        raise usage(arguments.command, "missing_argument", f"`run {action}` takes {needed.get(action, 'a handle')}")
    signal.signal(signal.SIGTERM, _interrupt)
    holder = process_named(owner_of(arguments) or os.getppid())
    with open_runtime(
        create=True, holder=holder, lease_seconds=scripted.LEASE_SECONDS, promise=arguments.flag("git")
    ) as runtime:
        try:
            status = _start(arguments, runtime) if action == "start" else _joined(arguments, action, runtime)
        except RuntimeFault as fault:
            status = refuse(arguments, fault)
        return with_links(runtime, status)


def _joined(arguments: Arguments, action: str, runtime: Runtime) -> int:
    word = arguments.words[0]
    if action == "milestone" and "#" not in word and runtime.store.head(word) is None:
        from workpacket.cli.milestones import select_foreign

        return select_foreign(arguments, word)
    session = scripted.join(runtime, arguments.words[0])
    try:
        return _ACTIONS[action](arguments, session)
    except RunCancelled as cancelled:
        session.end(cancelled)
        raise RuntimeFault(cancelled.reason or "the run was cancelled", code="run_cancelled") from None
    finally:
        session.leave()


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _start(arguments: Arguments, runtime: Runtime) -> int:
    packet = arguments.value("packet")
    if packet:
        require_packet(packet)
    request = RunRequest(packet=packet, inputs=inputs_of(arguments), fresh=arguments.flag("fresh"))
    if arguments.value("once"):
        request["key"] = arguments.value("once")
    if arguments.value("run"):
        request["begun_as"] = arguments.value("run")
    if arguments.flag("scope"):
        request["scope"] = arguments.values("scope")
    if arguments.flag("code-version"):
        request["code_version"] = arguments.value("code-version")
    if arguments.value("from"):
        request["checkpoint"] = arguments.value("from")
    if arguments.value("retry-token"):
        request["retry_token"] = arguments.value("retry-token")
    if arguments.flag("allow-deps"):
        request["allow_deps"] = arguments.values("allow-deps")
    head = _head()
    if head is not None:
        request["base_commit"] = head
    try:
        state, cursor = scripted.start(runtime, arguments.words[0], **request)
    except ValueError as error:
        raise usage(arguments.command, "invalid_value", str(error)) from None
    handle = scripted.handle_of(state)
    data: dict[str, Json] = {
        "handle": handle, "run": state.stream, "attempt": state.attempt, "state": state.status, "cursor": cursor,
        "steps": list(state.steps),
    }  # fmt: skip
    return answer(arguments, f"{handle}\n", data)


def _head() -> str | None:
    """Return the commit at which the run starts: later changes, committed or not, are relative to it."""
    try:
        return head_commit(find_repository(Path.cwd())) or ""
    except WorkpacketError:
        return None


def inputs_of(arguments: Arguments) -> dict[str, Json]:
    inputs: dict[str, Json] = {}
    for word in arguments.all_of("input"):
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise usage(arguments.command, "invalid_value", f"invalid --input {word!r}: expected NAME=VALUE")
        inputs[name] = value
    return inputs


def require_packet(packet: str) -> None:
    """Refuse a stub, because work can only start from a packet."""
    root = open_workspace().root
    folder = os.path.join(root, GOVERNANCE_FOLDER)
    if not os.path.isdir(folder):
        return
    if "/" in packet or not os.path.isfile(os.path.join(folder, "task_packets", f"{packet}.md")):
        stub = "/" not in packet and os.path.isfile(os.path.join(folder, "task_packets", "stubs", f"{packet}.md"))
        raise WorkpacketError(
            "packet_not_active",
            f"{packet} is only a stub" if stub else f"packet {packet} not found",
            hint=f"workpacket packet activate {packet}" if stub else "workpacket list",
        )


def _step(arguments: Arguments, session: Session) -> int:
    _, name, *argv = arguments.words
    given = arguments.flag("result")
    if given == bool(argv):
        raise usage(arguments.command, "missing_argument", "a step requires a program after `--`, or --result")
    try:
        if given:
            value, before = scripted.value_step(session, name, _json(arguments, "result"))
            return answer(arguments, f"{json.dumps(value)}\n", {"step": name, "done_before": before, "result": value})
        to_error = sys.stderr.buffer
        sinks = (to_error if arguments.flag("json") else sys.stdout.buffer, to_error)
        timeout = number_of(arguments, "timeout", 0) or None
        outcome, before = scripted.program_step(session, name, argv, sinks=sinks, timeout=timeout)
    except ValueError as error:
        raise usage(arguments.command, "invalid_value", str(error)) from None
    stored = scripted.as_json(outcome)
    shown = escape_lines(outcome["stdout"]["tail"]) if before else ""
    return answer(arguments, shown, {"step": name, "done_before": before, "result": stored})


def _checkpoint(arguments: Arguments, session: Session) -> int:
    cursor = _json(arguments, "cursor") if arguments.flag("cursor") else None
    if arguments.flag("commit"):
        from workpacket.cli.milestones import reach

        return reach(arguments, session, cursor)
    saved = session.checkpoint(cursor, arguments.value("name"), "run", {}, with_token=arguments.flag("token"))
    data: dict[str, Json] = {"checkpoint": saved.id, "version": saved.version, "token": saved.token}
    return answer(arguments, f"{saved.token or saved.id}\n", data)


def _milestone(arguments: Arguments, session: Session) -> int:
    from workpacket.cli.milestones import select

    return select(arguments, session)


def _json(arguments: Arguments, option: str) -> Json:
    try:
        return cast(Json, json.loads(arguments.value(option)))
    except ValueError as error:
        raise usage(arguments.command, "invalid_value", f"--{option} takes JSON: {error}") from None


def _stop(arguments: Arguments, session: Session) -> int:
    word = arguments.value("code")
    code = reason_of(word).code if word else ""
    if word and code == "unregistered" and word != code:
        from workpacket.report.explain import nearest_codes

        near = nearest_codes(word, catalogue())
        what = f"unknown stop reason {word!r}" + (f"; did you mean {near[0]}?" if near else "")
        raise usage(arguments.command, "unknown_code", what)
    scripted.stop(session, code, arguments.value("note"))
    run = session.state.stream
    then = f"workpacket resume {shlex.quote(run)} --plan" if code else ""
    status = reason_of(code).exit_code if code else 0
    data: dict[str, Json] = {"run": run, "state": session.state.status, "reason": code}
    return answer(arguments, f"{run} {session.state.status}{f': {code}' if code else ''}\n", data, status=status,
                  then=then)  # fmt: skip


_ACTIONS = {"step": _step, "checkpoint": _checkpoint, "milestone": _milestone, "stop": _stop}


RUN_ACTIONS = ("start", "step", "checkpoint", "milestone", "stop")


RUN = Command(
    "run",
    run,
    arguments="start NAME | step HANDLE STEP [-- PROGRAM...] | checkpoint HANDLE | milestone HANDLE | stop HANDLE",
    description="""
`start` begins the run of that name, or continues the unfinished one, and prints a handle for the other commands.
`step` runs a program once: if it is repeated, in this attempt or a later one, it prints the stored result instead.
`checkpoint --commit` commits the work as a milestone of the run, once; `milestone` prints the number of the
last one whose commit is verified to be here, or -1. With --packet the run is recorded in the log of the packet, which
cannot get a verdict while the run is unfinished. The exit status of `run` is that of the stop reason: see `workpacket
explain CODE`.
""",
    options=(
        Option("packet", "start: the work packet that the run belongs to", value="WP_ID"),
        Option("once", "start: a key; a second run with the same key is not started", value="KEY"),
        Option("run", "start: continue a run that another tool began, under the same id", value="ID"),
        Option("input", "start: an input that the results depend on", value="NAME=VALUE", many=True),
        Option("scope", "start: a path that the run may change", value="PATH", many=True),
        Option("code-version", "start: the version of the script; a changed version must be confirmed", value="TEXT"),
        Option("from", "start: resume only from this checkpoint", value="CHECKPOINT"),
        Option("retry-token", "start: the token of a checkpoint, valid for one attempt", value="TOKEN"),
        Option(
            "allow-deps",
            "start: dependencies that are allowed to change; `*` matches any characters",
            value="NAME",
            many=True,
        ),
        Option("fresh", "start: start a new run even if there is an unfinished one"),
        Option("owner", "the process that owns the run; $$ in a script (default: the caller)", value="PID"),
        Option("timeout", "step: stop the program after this many seconds", value="SECONDS"),
        Option("result", "step: record this result instead of running a program", value="JSON"),
        Option("cursor", "checkpoint: where to continue from here", value="JSON"),
        Option("name", "checkpoint: its name", value="TEXT"),
        Option("git", "checkpoint: require the same commit and a clean work tree on resume"),
        Option("commit", "checkpoint: commit the run's changes as a milestone, and print the commit"),
        Option(
            "milestone",
            "checkpoint: the number of the milestone, counted from 0 (default: the next one)",
            value="NUMBER",
        ),
        Option("tier", "checkpoint --commit: the tier of verification that passed, for the sidecar", value="TEXT"),
        Option(
            "verification", "checkpoint --commit: a command that passed, for the sidecar", value="COMMAND", many=True
        ),
        Option("legacy", "milestone: attribute commit messages without a run to this run"),
        Option("token", "checkpoint: also print a token that can start one retry from here"),
        Option("code", "stop: the reason for stopping early; if omitted, the run is finished", value="CODE"),
        Option("note", "stop: a comment to store with the reason", value="TEXT"),
    ),
    examples=(
        "run=$(workpacket runtime run start nightly --owner $$)",
        'workpacket runtime run step "$run" fetch -- curl --fail -o data.json https://example.org/data',
        'workpacket runtime run checkpoint "$run" --cursor \'{"page": 7}\'',
        'workpacket runtime run checkpoint "$run" --commit --milestone 0 --name "Read front matter"',
        'workpacket runtime run stop "$run"',
        'workpacket runtime run stop "$run" --code verification_failed',
    ),
)


@refusing
def _queue(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    return {"offer": _offer, "list": _list, "revive": _revive}[action](arguments)


def _offer(arguments: Arguments) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "`queue offer` requires the name of the run")
    if arguments.value("packet"):
        require_packet(arguments.value("packet"))
    priority = arguments.value("priority", "0")
    if not priority.lstrip("-").isdigit() or abs(int(priority)) > ANY:
        raise usage(arguments.command, "invalid_value", f"invalid --priority {priority!r}: expected a whole number")
    with queue_runtime(arguments) as runtime:
        from workpacket.runtime.queue import Offer, queue_of

        offer = Offer(
            arguments.words[0],
            packet=arguments.value("packet"),
            key=arguments.value("once"),
            inputs=inputs_of(arguments),
            priority=int(priority),
            delay=number_of(arguments, "delay", 0),
            lane=arguments.value("pool") or None,
            limit=int(number_of(arguments, "limit", 1)),
            max_tries=int(number_of(arguments, "tries", 5)),
        )
        try:
            offered = queue_of(runtime.store, arguments.value("queue", "default")).offer(offer)
        except ValueError as error:
            raise usage(arguments.command, "invalid_value", str(error)) from None
    return answer(arguments, f"{escape(offered)}\n", {"run": offered}, then="workpacket runtime queue list")


def _list(arguments: Arguments) -> int:
    with queue_runtime(arguments) as runtime:
        from workpacket.runtime.queue import queue_of

        jobs = queue_of(runtime.store, arguments.value("queue", "default")).jobs()
    text = "".join(
        f"{job.id:>6}  {job.state:8} {escape(job.stream)}"
        + (f"  {job.reason}: {escape(job.detail)}" if job.reason else "")
        + "\n"
        for job in jobs
    )
    listed: list[Json] = [
        {"job": job.id, "run": job.stream, "state": job.state, "priority": job.priority, "tries": job.tries,
         "reason": job.reason, "detail": job.detail}
        for job in jobs
    ]  # fmt: skip
    dead = next((job for job in jobs if job.state == "dead"), None)
    return answer(arguments, text or "nothing waits\n", {"jobs": listed},
                  then=f"workpacket runtime runs show {shlex.quote(dead.stream)}" if dead else "")  # fmt: skip


def _revive(arguments: Arguments) -> int:
    if len(arguments.words) != 1 or not arguments.words[0].isdigit():
        raise usage(arguments.command, "missing_argument", "`queue revive` requires the number of a job")
    number = int(arguments.words[0])
    with queue_runtime(arguments) as runtime:
        from workpacket.runtime.queue import queue_of

        if not queue_of(runtime.store, arguments.value("queue", "default")).revive(number):
            raise usage(arguments.command, "invalid_value", f"dead job {number} does not exist")
    return answer(arguments, f"job {number} is waiting again\n", {"job": number}, then="workpacket runtime queue list")


ACTIONS = ("offer", "list", "revive")


QUEUE = Command(
    "queue",
    _queue,
    arguments="offer NAME | list | revive JOB",
    description="""
The queue is on the server given in WORKPACKET_STORE. Finished jobs are removed; jobs that failed permanently are kept,
with the reason, until they are revived.""",
    options=(
        Option("queue", "the name of the queue", value="QUEUE"),
        Option("packet", "offer: the work packet that the run belongs to", value="WP_ID"),
        Option("once", "offer: a key; offering a run again with the same key does not execute it again", value="KEY"),
        Option("input", "offer: an input that the results depend on", value="NAME=VALUE", many=True),
        Option("priority", "offer: runs with a higher number start first (default: 0)", value="N"),
        Option("delay", "offer: wait at least this many seconds", value="SECONDS"),
        Option("pool", "offer: the run's pool, in which at most --pool-size runs are active at a time", value="NAME"),
        Option("pool-size", "offer: the size of the pool (default: 1)", value="N"),
        Option("tries", "offer: the number of failures after which the job is dead (default: 5)", value="N"),
    ),
    examples=(
        "workpacket runtime queue offer import --once 2026-10 --input month=10 --pool bank --pool-size 2",
        "workpacket runtime queue list",
        "workpacket runtime queue revive 17",
    ),
)


@refusing
def work(arguments: Arguments) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "expected the tasks: MODULE:TASKS")
    lease = number_of(arguments, "lease", 30)
    idle = number_of(arguments, "idle", 1)
    if not lease or not idle:
        raise usage(arguments.command, "invalid_value", "--lease and --idle must be greater than 0")
    tasks = _tasks(arguments)
    try:
        with queue_runtime(arguments, lease_seconds=lease) as runtime:
            from workpacket.runtime.queue import Worker, queue_of

            worker = Worker(runtime, queue_of(runtime.store, arguments.value("queue", "default")), tasks, idle=idle)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _ender(worker))
            done = worker.work(until_empty=arguments.flag("until-empty"))
    except KeyboardInterrupt:
        return reason_of("user_stopped").exit_code
    return with_links(runtime, answer(arguments, f"{done} run{'s' * (done != 1)} done\n", {"done": done}))


def _ender(worker: Worker) -> Any:
    """Handle signals: the first stops the run at its next step boundary, and the second stops it immediately."""

    def end(_: int, __: FrameType | None) -> None:
        if worker.stopping:
            raise KeyboardInterrupt
        worker.stop()

    return end


def _tasks(arguments: Arguments) -> Mapping[str, Any]:
    module, colon, name = arguments.words[0].partition(":")
    if not (module and colon and name):
        raise usage(arguments.command, "invalid_value", f"invalid tasks {arguments.words[0]!r}: expected MODULE:TASKS")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise usage(arguments.command, "invalid_value", f"{arguments.words[0]}: {error}") from None
    if not isinstance(found, Mapping) or not all(callable(task) for task in found.values()):
        raise usage(arguments.command, "invalid_value", f"{arguments.words[0]} is not a mapping of names to functions")
    return found


WORKER = Command(
    "worker",
    work,
    arguments="MODULE:TASKS",
    description="""
TASKS is a mapping in MODULE, from the name of a run to the function that executes it; MODULE is imported from the
current folder. SIGTERM or Ctrl-C stops the worker at the next boundary of its run, which another worker can resume
immediately; a second signal stops it in the middle of a step.""",
    options=(
        Option("queue", "the name of the queue", value="QUEUE"),
        Option("lease", "how long an unresponsive worker keeps its run, in seconds (default: 30)", value="SECONDS"),
        Option("idle", "how many seconds to wait before checking an empty queue again (default: 1)", value="SECONDS"),
        Option("until-empty", "exit when the queue is empty"),
    ),
    examples=("workpacket runtime worker jobs:TASKS", "workpacket runtime worker jobs:TASKS --until-empty"),
)


DECLARED = {command.name: command for command in (RUN, QUEUE, WORKER)}
