"""`workpacket worker`: does the runs of a queue, with the functions of a module of yours."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from workpacket.cli.open_store import answer, number_of, refuse, server_runtime, with_links
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.failures import reason_of

if TYPE_CHECKING:
    from workpacket.runtime.queue.worker import Worker


def run(arguments: Arguments) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "name the tasks: MODULE:TASKS")
    lease = number_of(arguments, "lease", 30)
    idle = number_of(arguments, "idle", 1)
    if not lease or not idle:
        raise usage(arguments.command, "invalid_value", "--lease and --idle take more than 0 seconds")
    tasks = _tasks(arguments)
    try:
        with server_runtime(arguments, lease_seconds=lease) as runtime:
            from workpacket.runtime.queue.offering import queue_of
            from workpacket.runtime.queue.worker import Worker

            worker = Worker(runtime, queue_of(runtime.store, arguments.value("queue", "default")), tasks, idle=idle)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _ender(worker))
            done = worker.work(until_empty=arguments.flag("until-empty"))
    except RuntimeFault as fault:
        return refuse(arguments, fault)
    except KeyboardInterrupt:
        return reason_of("user_stopped").exit_code
    return with_links(runtime, answer(arguments, f"{done} run{'s' * (done != 1)} done\n", {"done": done}))


def _ender(worker: Worker) -> Any:
    """The first signal lets the run end at its next boundary, the second does not wait for that."""

    def end(_: int, __: FrameType | None) -> None:
        if worker.stopping:
            raise KeyboardInterrupt
        worker.stop()

    return end


def _tasks(arguments: Arguments) -> Mapping[str, Any]:
    module, colon, name = arguments.words[0].partition(":")
    if not (module and colon and name):
        raise usage(arguments.command, "invalid_value", f"the tasks are named MODULE:TASKS, not {arguments.words[0]!r}")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise usage(arguments.command, "invalid_value", f"{arguments.words[0]}: {error}") from None
    if not isinstance(found, Mapping) or not all(callable(task) for task in found.values()):
        raise usage(arguments.command, "invalid_value", f"{arguments.words[0]} is no mapping of names to functions")
    return found


COMMAND = Command(
    "worker",
    "do the runs that are offered in a queue",
    run,
    arguments="MODULE:TASKS",
    description="""
TASKS is a mapping in MODULE, from the name of a run to the function that does it; MODULE is found from the present
folder. SIGTERM or Ctrl-C ends the worker at the next boundary of its run, which another worker goes on with at once; a
second one ends it in the middle of a step.""",
    options=(
        Option("queue", "which queue (default)", value="QUEUE"),
        Option("lease", "how long a worker that says nothing keeps its run (30)", value="SECONDS"),
        Option("idle", "how long to wait between two looks at an empty queue (1)", value="SECONDS"),
        Option("until-empty", "end when there is nothing to do"),
    ),
    examples=("workpacket worker jobs:TASKS", "workpacket worker jobs:TASKS --until-empty"),
)
