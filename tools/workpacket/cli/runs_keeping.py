"""The part of `runs` that moves and keeps: export, import, prune, verify."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from workpacket.cli.options import Arguments, usage
from workpacket.cli.store_door import (
    answer,
    examine_any,
    number_of,
    one_run,
    open_runtime,
    refuse,
    run_named,
    with_links,
)
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.report.catalogue import catalogue
from workpacket.report.door import escape
from workpacket.runtime.catalog import removable
from workpacket.runtime.errors import LogDamaged, RuntimeFault, VersionConflict
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.health import stream_problems
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.place import server_url, store_path
from workpacket.runtime.stores.sqlite.access import code_of
from workpacket.runtime.stores.transfer import export_lines, import_lines

DAY = 86_400_000_000


def carry_out(arguments: Arguments, action: str) -> int:
    try:
        if action == "export" and arguments.flag("raw"):
            if server_url():
                raise usage(arguments.command, "conflicting_options", "--raw is for a file; a server has pg_dump")
            if arguments.value("format"):
                raise usage(arguments.command, "conflicting_options", "--raw interprets nothing, so it has no --format")
            return _write(arguments, _raw_lines(), {"store": str(store_path(Path.cwd()))})
        with open_runtime(create=action == "import") as runtime:
            actions = {"export": _export, "import": _import, "prune": _prune, "verify": _verify}
            return with_links(runtime, actions[action](arguments, runtime))
    except RuntimeFault as fault:
        return refuse(arguments, fault)


def _export(arguments: Arguments, runtime: Runtime) -> int:
    run = one_run(runtime, arguments)
    if arguments.value("format"):
        from workpacket.runtime.observing.cloudevents import cloudevent_lines

        return _write(arguments, cloudevent_lines(runtime.store, run), {"run": run})
    return _write(arguments, export_lines(runtime.store, run), {"run": run})


def _raw_lines() -> Iterable[str]:
    """The file as SQL, read by SQLite alone: our own reader may refuse it, which is when this is needed."""
    import sqlite3
    from contextlib import closing

    path = store_path(Path.cwd())
    if not path.exists():
        raise WorkpacketError("checkpoint_missing", f"there is no store at {path}", path=str(path))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield from connection.iterdump()
    except sqlite3.Error as error:
        raise RuntimeFault(f"{path}: {error}", code=code_of(error)) from None


def _write(arguments: Arguments, lines: Iterable[str], data: dict[str, Json]) -> int:
    target = arguments.value("output")
    if not target:
        if arguments.flag("json"):
            return answer(arguments, "", {**data, "lines": list(lines)})
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return 0
    with open(target, "x", encoding="utf-8") as file:
        count = sum(bool(file.write(f"{line}\n")) for line in lines)
    return answer(arguments, f"{count} lines written to {escape(target)}\n", {**data, "output": target, "count": count})


def _import(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "name one file")
    try:
        lines = Path(arguments.words[0]).read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise LogDamaged("import", 0, "the file is not UTF-8") from None
    try:
        run = import_lines(runtime.store, lines)
    except VersionConflict as conflict:
        hint = "import it where that run never was: one that was pruned keeps its name, so that no other gets it"
        raise RuntimeFault(conflict.message, code="view_conflict", hint=hint) from None
    show = "tail" if run.startswith(THREADS) else "show"
    return answer(arguments, f"{escape(run)} taken over\n", {"run": run}, then=f"workpacket runs {show} {run}")


def _prune(arguments: Arguments, runtime: Runtime) -> int:
    before = runtime.settings.clock.now() - int(number_of(arguments, "older-than", 30) * DAY)
    really = arguments.flag("yes")
    gone = runtime.prune(before) if really else removable(runtime.runs(), before)
    what = "removed" if really else "would be removed"
    text = "".join(f"{escape(run)} {what}\n" for run in gone) or "nothing to remove\n"
    data: dict[str, Json] = {"removed" if really else "would_remove": list(gone)}
    return answer(arguments, text, data, then="workpacket runs prune --yes" if gone and not really else "")


def _verify(arguments: Arguments, runtime: Runtime) -> int:
    store = runtime.store
    if isinstance(store, MemoryStore):
        return answer(arguments, "there is no store here\n", {"problems": [], "runs": 0})
    if arguments.words:
        problems, count = tuple(stream_problems(store, run_named(runtime, arguments.words[0]))), 1
    else:
        problems, count = examine_any(store), len(store.heads())
    status = max((catalogue()[problem.code].exit_code for problem in problems), default=0)
    text = "".join(f"{problem.code}: {escape(problem.message)}\n" for problem in problems)
    listed: list[Json] = [{"code": problem.code, "message": problem.message} for problem in problems]
    then = catalogue()[problems[0].code].remedy if problems else ""
    return answer(arguments, text or f"{count} run{'s' * (count != 1)} verified\n",
                  {"problems": listed, "runs": count}, status=status, then=then)  # fmt: skip
