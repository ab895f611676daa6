"""`resume` without an id, or with that of work that an agent does: what would go on, and letting it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from urllib.parse import unquote

from workpacket.bridges.batch_acts import begin, complete
from workpacket.bridges.batch_desk import BatchDesk
from workpacket.bridges.resumable import Resumable
from workpacket.bridges.role_acts import RESUMED, reach
from workpacket.bridges.role_facts import RoleKey
from workpacket.cli.batching import caller_of
from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments
from workpacket.cli.progressing import caller_of as role_caller
from workpacket.cli.progressing import desk_of
from workpacket.cli.scanning import scan
from workpacket.cli.store_door import answer, open_runtime
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.report.catalogue import catalogue
from workpacket.report.unfinished import StopRow, WorkRow, render_refusal, render_task, render_work
from workpacket.runtime.at_work import Caller
from workpacket.runtime.errors import RunBlocked
from workpacket.shell.governing.commanding import here
from workpacket.shell.transactions.transaction import writing


def carry_on(arguments: Arguments) -> int:
    """Everything, or the one that is named; listed, or done where `--yes` or the person says so."""
    with open_runtime() as runtime:
        found = scan(runtime, arguments.value("team"), lambda agent: _caller(arguments, agent))
    if arguments.words:
        found = [_named(found, arguments.words[0])]
    chosen = _chosen(arguments, found)
    if not chosen:
        return _listed(arguments, found)
    text, status = "", 0
    rows: list[Json] = []
    for one in chosen:
        row = one.as_json()
        try:
            said = [*(doubt.message for doubt in one.doubts), *_do(arguments, one)]
        except WorkpacketError as error:  # the others go on all the same
            status = status or catalogue()[error.code].exit_code
            text += render_refusal(one.id, error.code, error.message)
            rows.append({**row, "refused": error.code, "said": [error.message]})
        else:
            text += render_task(one.id, said, one.task, one.command)
            rows.append({**row, "said": list(said)})
    left: list[Json] = [one.as_json() for one in found if one not in chosen]
    return answer(arguments, text, {"resumed": rows, "unfinished": left}, status=status)


def _caller(arguments: Arguments, agent: str) -> Caller:
    return role_caller(arguments, agent) if agent else caller_of(arguments)


def _named(found: Sequence[Resumable], word: str) -> Resumable:
    for one in found:
        if one.id == word:
            return one
    raise WorkpacketError("checkpoint_missing", f"{word} is not unfinished", hint="workpacket resume")


def _chosen(arguments: Arguments, found: Sequence[Resumable]) -> list[Resumable]:
    """What is to be done now. Of what is stopped nothing is: its code names what has to come first."""
    ready = [one for one in found if one.goes_on]
    if arguments.words and not ready and arguments.flag("yes"):
        stop = found[0].stops[0]
        message = f"{found[0].id}: {'; '.join(f'{one.code}: {one.message}' for one in found[0].stops)}"
        raise RunBlocked(message, code=stop.code, hint=stop.command or catalogue()[stop.code].remedy)
    if arguments.flag("plan") or arguments.flag("no") or not ready:
        return []
    if arguments.flag("yes"):
        return ready
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or arguments.flag("json"):
        return []
    return _asked(arguments, ready)


def _asked(arguments: Arguments, ready: list[Resumable]) -> list[Resumable]:
    sys.stderr.write(render_work([_row(one) for one in ready], (), style_of(arguments), numbered=True))
    sys.stderr.write("go on with which? a number, 'all', or nothing: ")
    sys.stderr.flush()
    word = sys.stdin.readline().strip().casefold()
    if word == "all":
        return ready
    return [ready[int(word) - 1]] if word.isdecimal() and 1 <= int(word) <= len(ready) else []


def _listed(arguments: Arguments, found: Sequence[Resumable]) -> int:
    ready = [_row(one) for one in found if one.goes_on]
    stopped = [_row(one) for one in found if not one.goes_on]
    text = render_work(ready, stopped, style_of(arguments)) if found else "nothing is unfinished\n"
    then = "workpacket resume --yes, or workpacket resume ID --plan" if found else ""
    return answer(arguments, text, {"unfinished": [one.as_json() for one in found]}, then=then)


def _row(one: Resumable) -> WorkRow:
    stops = [StopRow(stop.code, stop.message, stop.command or catalogue()[stop.code].remedy) for stop in one.stops]
    doubts = [StopRow(doubt.code, doubt.message, doubt.choice) for doubt in one.doubts]
    return WorkRow(one.id, one.where, one.why, one.command, tuple(stops), tuple(doubts))


def _do(arguments: Arguments, one: Resumable) -> list[str]:
    """Let it go on: what to say. A program's work is its program's; an agent's is leased and recorded here."""
    if one.kind not in {"batch", "role"}:
        return []
    repository = here()
    with writing(repository, "resume") as transaction, open_runtime(create=True) as runtime:
        if one.kind == "role":
            feature, team, agent = (unquote(part) for part in one.id.split("/")[1:])
            role = desk_of(arguments, repository, runtime, transaction, RoleKey(feature, agent, team))
            reach(role, RESUMED)
            return role.said
        folder = one.id.partition("/")[2]
        batch = BatchDesk(repository, runtime, transaction, folder, caller_of(arguments))
        if one.task:
            begin(batch)
        else:
            complete(batch)
        return batch.said
