"""`workpacket queue` and `workpacket worker`: offering runs on a server, and executing them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from workpacket.cli.open_store import answer, number_of, refusing, server_runtime, with_links
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.run_command import inputs_of, require_packet
from workpacket.model.canonical import Json
from workpacket.report.escape import escape
from workpacket.runtime.records.failures import reason_of

if TYPE_CHECKING:
    from workpacket.runtime.queue.worker import Worker

ANY = 2**31 - 1


@refusing
def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    return {"offer": _offer, "list": _list, "revive": _revive}[action](arguments)


def _offer(arguments: Arguments) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "`queue offer` requires the name of the run")
    if arguments.value("packet"):
        require_packet(arguments.value("packet"))
    priority = arguments.value("priority", "0")
    if not priority.lstrip("-").isdigit() or abs(int(priority)) > ANY:
        raise usage(arguments.command, "invalid_value", f"--priority must be a whole number, not {priority!r}")
    with server_runtime(arguments) as runtime:
        from workpacket.runtime.queue.offering import Offer, queue_of

        offer = Offer(
            arguments.words[0],
            packet=arguments.value("packet"),
            key=arguments.value("key"),
            inputs=inputs_of(arguments),
            priority=int(priority),
            delay=number_of(arguments, "delay", 0),
            lane=arguments.value("lane") or None,
            limit=int(number_of(arguments, "limit", 1)),
            max_tries=int(number_of(arguments, "tries", 5)),
        )
        try:
            run = queue_of(runtime.store, arguments.value("queue", "default")).offer(offer)
        except ValueError as error:
            raise usage(arguments.command, "invalid_value", str(error)) from None
    return answer(arguments, f"{escape(run)}\n", {"run": run}, then="workpacket queue list")


def _list(arguments: Arguments) -> int:
    with server_runtime(arguments) as runtime:
        from workpacket.runtime.queue.offering import queue_of

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
                  then=f"workpacket runs show {dead.stream}" if dead else "")  # fmt: skip


def _revive(arguments: Arguments) -> int:
    if len(arguments.words) != 1 or not arguments.words[0].isdigit():
        raise usage(arguments.command, "missing_argument", "`queue revive` requires the number of a job")
    number = int(arguments.words[0])
    with server_runtime(arguments) as runtime:
        from workpacket.runtime.queue.offering import queue_of

        if not queue_of(runtime.store, arguments.value("queue", "default")).revive(number):
            raise usage(arguments.command, "invalid_value", f"there is no dead job {number}")
    return answer(arguments, f"job {number} waits again\n", {"job": number}, then="workpacket queue list")


ACTIONS = ("offer", "list", "revive")


QUEUE = Command(
    "queue",
    run,
    arguments="offer NAME | list | revive JOB",
    description="""
The queue is on the server that WORKPACKET_STORE names. Finished jobs are removed; jobs that failed for good stay, with
the reason, until they are revived.""",
    options=(
        Option("queue", "which queue (default)", value="QUEUE"),
        Option("packet", "offer: the work packet the run belongs to", value="WP_ID"),
        Option("key", "offer: an idempotency key; a run offered again is not done twice", value="KEY"),
        Option("input", "offer: what the results depend on", value="NAME=VALUE", many=True),
        Option("priority", "offer: runs with a higher number come first (default: 0)", value="N"),
        Option("delay", "offer: wait at least this many seconds", value="SECONDS"),
        Option("lane", "offer: at most --limit runs of one lane are active at a time", value="LANE"),
        Option("limit", "offer: the limit of the lane (default: 1)", value="N"),
        Option("tries", "offer: how often it may fail (default: 5)", value="N"),
    ),
    examples=(
        "workpacket queue offer import --key 2026-10 --input month=10 --lane bank --limit 2",
        "workpacket queue list",
        "workpacket queue revive 17",
    ),
)


@refusing
def work(arguments: Arguments) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "name the tasks: MODULE:TASKS")
    lease = number_of(arguments, "lease", 30)
    idle = number_of(arguments, "idle", 1)
    if not lease or not idle:
        raise usage(arguments.command, "invalid_value", "--lease and --idle must be more than 0 seconds")
    tasks = _tasks(arguments)
    try:
        with server_runtime(arguments, lease_seconds=lease) as runtime:
            from workpacket.runtime.queue.offering import queue_of
            from workpacket.runtime.queue.worker import Worker

            worker = Worker(runtime, queue_of(runtime.store, arguments.value("queue", "default")), tasks, idle=idle)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _ender(worker))
            done = worker.work(until_empty=arguments.flag("until-empty"))
    except KeyboardInterrupt:
        return reason_of("user_stopped").exit_code
    return with_links(runtime, answer(arguments, f"{done} run{'s' * (done != 1)} done\n", {"done": done}))


def _ender(worker: Worker) -> Any:
    """The first signal ends the run at its next boundary, the second at once."""

    def end(_: int, __: FrameType | None) -> None:
        if worker.stopping:
            raise KeyboardInterrupt
        worker.stop()

    return end


def _tasks(arguments: Arguments) -> Mapping[str, Any]:
    module, colon, name = arguments.words[0].partition(":")
    if not (module and colon and name):
        raise usage(arguments.command, "invalid_value", f"give the tasks as MODULE:TASKS, not {arguments.words[0]!r}")
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
TASKS is a mapping in MODULE, from the name of a run to the function that does it; MODULE is found from the present
folder. SIGTERM or Ctrl-C ends the worker at the next boundary of its run, which another worker goes on with at once; a
second one ends it in the middle of a step.""",
    options=(
        Option("queue", "which queue (default)", value="QUEUE"),
        Option("lease", "how long a silent worker keeps its run, in seconds (default: 30)", value="SECONDS"),
        Option("idle", "seconds to wait before checking an empty queue again (default: 1)", value="SECONDS"),
        Option("until-empty", "exit when the queue is empty"),
    ),
    examples=("workpacket worker jobs:TASKS", "workpacket worker jobs:TASKS --until-empty"),
)


DECLARED = {command.name: command for command in (QUEUE, WORKER)}
