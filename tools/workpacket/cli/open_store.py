"""Shared by the commands about runs: open the store, find runs by an id prefix, and answer as text or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, cast

from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, usage
from workpacket.git.repository import Repository, find_repository
from workpacket.model.canonical import Json
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.runs import painted_next_line
from workpacket.report.terminal import escape, render_failure
from workpacket.runtime.commit_checkpoint import OWN_FOLDERS, GitObserver
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.jcs import stored_text
from workpacket.runtime.runtime import NO_VALUE, NoValue, Runtime, Settings
from workpacket.runtime.stores.contract import Store, Witness
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.place import VARIABLE, store_path, store_url

if TYPE_CHECKING:
    from workpacket.bridges.run_links import RunLinks
    from workpacket.bridges.signed_answers import SignedAnswers
    from workpacket.runtime.records.events import AnswerToJudge, JudgedAnswer

P = ParamSpec("P")


def open_runtime(
    *, create: bool = False, holder: str = "", lease_seconds: float = 30.0, promise: bool = False
) -> Runtime:  # fmt: skip
    """Return the runtime for this folder. Read-only commands do not create a store."""
    repository = _repository(needed=promise)
    observers = () if repository is None else (GitObserver(repository, own=OWN_FOLDERS, promise=promise),)
    witness = _witness(repository)
    settings = Settings(
        holder=holder,
        lease_seconds=lease_seconds,
        observers=observers,
        witness=witness,
        verifier=None if repository is None else CommandVerifier(repository),
    )
    if not create and not store_url() and not store_path(Path.cwd()).exists():
        return Runtime(MemoryStore(), settings)
    return Runtime.open(None, settings)


def require_url(arguments: Arguments) -> str:
    """Return the URL of the store, for features that an SQLite file lacks: queues and permissions."""
    url = store_url()
    if not url:
        raise usage(arguments.command, "missing_argument", f"{VARIABLE} must contain a server URL: postgresql://...")
    return url


def queue_runtime(arguments: Arguments, *, lease_seconds: float = 30.0) -> Runtime:
    require_url(arguments)
    return open_runtime(create=True, lease_seconds=lease_seconds)


def _repository(*, needed: bool) -> Repository | None:
    try:
        return find_repository(Path.cwd())
    except WorkpacketError:
        if needed:
            raise
        return None


def _witness(repository: Repository | None) -> Witness | None:
    """Return the witness that records runs in the logs, if there are logs."""
    if repository is None or not os.path.isdir(os.path.join(repository.root, LOG_FOLDER)):
        return None
    return CommandLinks(repository)


class CommandVerifier:
    """Imports `bridges.signed_answers` only when an answer must be judged or signed."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    @cached_property
    def answers(self) -> SignedAnswers:
        from workpacket.bridges.signed_answers import SignedAnswers

        return SignedAnswers(self._repository)

    def judge(self, answer: AnswerToJudge) -> JudgedAnswer:
        return self.answers.judge(answer)


class CommandLinks:
    """Imports `bridges.run_links` only when a run of a packet starts or ends.

    `left` collects what could not be written.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.left: list[WorkpacketError] = []

    def links(self) -> RunLinks:
        from workpacket.bridges.run_links import RunLinks

        return RunLinks(self.repository, self.left.append)

    def begins(self, store: Store, stream: str, packet: str) -> None:
        self.links().begins(store, stream, packet)

    def ended(self, store: Store, stream: str, packet: str) -> None:
        self.links().ended(store, stream, packet)


def with_links(runtime: Runtime, status: int) -> int:
    """Report what could not be written to the logs; the exit status is then nonzero."""
    witness = runtime.settings.witness
    for left in witness.left if isinstance(witness, CommandLinks) else ():
        sys.stdout.flush()
        sys.stderr.write(f"note: {escape(left.message)} ({left.code})\n  -> {escape(left.hint)}\n")
        status = status or catalogue()[left.code].exit_code
    return status


def run_named(runtime: Runtime, word: str) -> str:
    """Return the id of the run: as given, or the only one with this prefix."""
    if runtime.store.head(word) is not None:
        return word
    found = [head.stream for head in runtime.store.heads(word, limit=4)]
    if len(found) == 1:
        return found[0]
    if found:
        raise WorkpacketError(
            "checkpoint_missing",
            f"{word!r} could be {', '.join(found)}",
            hint="more than one run matches: specify one of them",
        )
    raise WorkpacketError("checkpoint_missing", f"run {word!r} does not exist", hint="workpacket runtime runs list")


def json_value(arguments: Arguments) -> Json | NoValue:
    """Return the value of --value, which is JSON."""
    if not arguments.all_of("value"):
        return NO_VALUE
    try:
        value: Json = json.loads(arguments.value("value"))
        stored_text(value)
    except (ValueError, RecursionError) as error:
        raise usage(
            arguments.command, "invalid_value", f"invalid --value: not JSON that the store accepts: {error}"
        ) from None
    return value


def one_run(runtime: Runtime, arguments: Arguments) -> str:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "expected one run")
    return run_named(runtime, arguments.words[0])


def answer(arguments: Arguments, text: str, data: Mapping[str, Json], *, status: int = 0, then: str = "") -> int:
    """Print the answer in the requested format, with the `next:` line."""
    if arguments.flag("json"):
        sys.stdout.write(render_envelope(arguments.command.name, status, [], {**data, "next": then}))
        return status
    sys.stdout.write(text)
    if then:
        sys.stdout.write(painted_next_line(then, style_of(arguments)))
    return status


def refuse(arguments: Arguments, fault: RuntimeFault) -> int:
    """Print a stop reason as the answer (what stopped, the facts, and the usual choice), and return the exit status for
    its code.
    """
    reason = catalogue()[fault.code]
    hint = fault.way_out or reason.remedy
    shown = WorkpacketError(fault.code, fault.message, hint=hint)
    if arguments.flag("json"):
        data: dict[str, Json] = {"facts": fault.details, "next": hint}
        sys.stdout.write(render_envelope(arguments.command.name, reason.exit_code, [shown.problem], data))
    else:
        sys.stdout.flush()
        colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        sys.stderr.write(render_failure(shown, style_of(arguments)._replace(colour=colour)))
    return reason.exit_code


def refusing(act: Callable[P, int]) -> Callable[P, int]:
    """Wrap a command, or part of one, so that it reports the stop reason if it is stopped."""

    @wraps(act)
    def answered(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return act(*args, **kwargs)
        except RuntimeFault as fault:
            return refuse(cast("Arguments", args[0]), fault)

    return answered


def owner_of(arguments: Arguments) -> int:
    """Return the process id given with --owner; 0 without it."""
    word = arguments.value("owner")
    if word and not word.isdecimal():
        raise usage(arguments.command, "invalid_value", f"invalid --owner {word!r}: expected a process id")
    return int(word or 0)


def moment_of(micros: int) -> str:
    return datetime.fromtimestamp(micros // 1_000_000, UTC).isoformat(" ")[:19]  # half the time of strftime


def number_of(arguments: Arguments, option: str, default: float) -> float:
    """Return the value of an option that takes a non-negative number."""
    word = arguments.value(option)
    if not word:
        return default
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise usage(arguments.command, "invalid_value", f"invalid --{option} {word!r}: expected a number")
    return number
