"""`workpacket runtime runs export`, `import`, `back-up` and `restore`: copy runs, LangGraph threads and whole stores,
move them to another store, or take over the threads of other savers.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from workpacket.cli.open_store import answer, one_run
from workpacket.cli.options import Arguments, usage
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.terminal import escape
from workpacket.runtime.errors import LogDamaged, RuntimeFault, VersionConflict
from workpacket.runtime.langgraph import THREADS, require_langgraph
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.place import is_postgres, store_path, store_url
from workpacket.runtime.stores.sqlite.access import code_of
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.stores.transfer import export_lines, import_lines

SQLITE = b"SQLite format 3\0"  # how a database file begins


def export_raw(arguments: Arguments) -> int:
    if store_url():
        raise usage(arguments.command, "conflicting_options", "--raw requires a file; use pg_dump on a server")
    if arguments.value("format") or arguments.flag("move"):
        other = "format" if arguments.value("format") else "move"
        raise usage(arguments.command, "conflicting_options", f"--raw and --{other} cannot be used together")
    return _write(arguments, _raw_lines(), {"store": str(store_path(Path.cwd()))})


def export(arguments: Arguments, runtime: Runtime) -> int:
    run = one_run(runtime, arguments)
    if arguments.flag("move"):
        return _move(arguments, runtime, run)
    if arguments.value("format"):
        from workpacket.runtime.stores.transfer import cloudevent_lines

        return _write(arguments, cloudevent_lines(runtime.store, run), {"run": run})
    return _write(arguments, export_lines(runtime.store, run), {"run": run})


def _move(arguments: Arguments, runtime: Runtime, run: str) -> int:
    """Export a run for another store to continue. The move is recorded before the file is written: if the export fails,
    no store continues the run until the command is repeated.
    """
    target = arguments.value("out")
    if not target:
        raise usage(arguments.command, "missing_argument", "--move requires --out FILE")
    if arguments.value("format"):
        raise usage(arguments.command, "conflicting_options", "--move and --format cannot be used together")
    if "@" not in run and not run.startswith(THREADS):
        raise usage(arguments.command, "invalid_value", f"only a run or a LangGraph thread can be moved, not {run}")

    def lines() -> Iterator[str]:
        yield from export_lines(runtime.store, run, runtime.hand_over(run, os.path.abspath(target)))

    goes_on = run.startswith(THREADS) or runtime.state(run).status != "completed"
    then = f"where the run is to continue: workpacket runtime runs import {shlex.quote(target)}" if goes_on else ""
    return _write(arguments, lines(), {"run": run, "moved": goes_on}, then)


def _raw_lines() -> Iterable[str]:
    """Yield the database file as SQL, read by SQLite itself, in case the store's own reader refuses the file."""
    import sqlite3

    path = store_path(Path.cwd())
    if not path.exists():
        raise WorkpacketError("checkpoint_missing", f"store {path} not found", path=str(path))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield from connection.iterdump()
    except sqlite3.Error as error:
        raise RuntimeFault(f"{path}: {error}", code=code_of(error)) from None


def back_up(arguments: Arguments) -> int:
    """Copy the whole store while programs go on working."""
    target, path = _backup_of(arguments), store_path(Path.cwd())
    from workpacket.runtime.stores.sqlite.repair import back_up as back_up_file

    if not path.exists():
        raise WorkpacketError("checkpoint_missing", f"store {path} not found", path=str(path))
    with closing(SQLiteStore(path)) as store:
        count, problems = len(store.heads()), back_up_file(store, target)
    text = f"{counted(count, 'run')} backed up to {escape(str(target))}\n"
    return _told(arguments, text, {"output": str(target), "runs": count}, problems,
                 then=f"to restore it: workpacket runtime runs restore {shlex.quote(str(target))}")  # fmt: skip


def restore(arguments: Arguments) -> int:
    """Replace the whole store with a backup."""
    source, path = _backup_of(arguments), store_path(Path.cwd())
    from workpacket.runtime.stores.sqlite.repair import restore as restore_file

    if not source.is_file():
        raise usage(arguments.command, "invalid_value", f"{source} is not a file")
    done = restore_file(path, source, 10.0, damaged=arguments.flag("yes"))
    text = f"{escape(str(source))} restored\n"
    text += f"the store before: {escape(str(done.kept))}\n" if done.kept else ""
    text += "".join(
        f"{escape(loss.row.name)}: had {loss.had or '?'} events, has {loss.row.version}\n" for loss in done.losses
    )
    lost: list[Json] = [{"run": loss.row.name, "had": loss.had, "has": loss.row.version} for loss in done.losses]
    data: dict[str, Json] = {"restored": str(source), "kept": str(done.kept or ""), "lost": lost}
    return _told(arguments, text, data, done.problems, then="workpacket runtime doctor")


def _backup_of(arguments: Arguments) -> Path:
    if store_url():
        message = "only a store in a file is backed up here; on a server, use its own tools, such as pg_dump"
        raise usage(arguments.command, "conflicting_options", message)
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "expected one file: the backup")
    return Path(arguments.words[0])


def _told(arguments: Arguments, text: str, data: dict[str, Json], problems: Sequence[Problem], *, then: str) -> int:
    text += "".join(f"{problem.code}: {escape(problem.message)}\n" for problem in problems)
    data["problems"] = [{"code": problem.code, "message": problem.message} for problem in problems]
    status = max((catalogue()[problem.code].exit_code for problem in problems), default=0)
    return answer(arguments, text, data, status=status, then=then)


def _write(arguments: Arguments, lines: Iterable[str], data: dict[str, Json], then: str = "") -> int:
    target = arguments.value("out")
    if not target:
        if arguments.flag("json"):
            return answer(arguments, "", {**data, "lines": list(lines)})
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return 0
    with open(target, "x", encoding="utf-8") as file:
        try:
            count = sum(bool(file.write(f"{line}\n")) for line in lines)
            file.flush()
            os.fsync(file.fileno())  # after a move, the run exists only in this file
        except BaseException:
            os.unlink(target)  # half of a run is of no use, and the name is free for the next try
            raise
    data |= {"output": target, "count": count}
    return answer(arguments, f"{count} lines written to {escape(target)}\n", data, then=then)


def import_(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "expected one file, or the URL of a PostgresSaver")
    where = arguments.words[0]
    if is_postgres(where):
        return _import_threads(arguments, runtime)
    with open(where, "rb") as file:
        content = file.read(len(SQLITE))
        if content == SQLITE:
            return _import_threads(arguments, runtime)
        content += file.read()
    if arguments.all_of("thread"):
        raise usage(arguments.command, "conflicting_options", "--thread applies only to the database of another saver")
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise LogDamaged("import", 0, "the file is not UTF-8") from None
    try:
        run = import_lines(runtime.store, lines)
    except VersionConflict as conflict:
        hint = "import it into a different store: the names of pruned runs are not reused"
        raise RuntimeFault(conflict.message, code="view_conflict", hint=hint) from None
    show = "tail" if run.startswith(THREADS) else "show"
    return answer(
        arguments,
        f"{escape(run)} taken over\n",
        {"run": run},
        then=f"workpacket runtime runs {show} {shlex.quote(run)}",
    )


def _import_threads(arguments: Arguments, runtime: Runtime) -> int:
    """Take over threads from a SqliteSaver file or a PostgresSaver server."""
    require_langgraph()
    from workpacket.runtime.langgraph.taken_over import taken_over, threads_at

    with threads_at(arguments.words[0]) as source:
        found = [*taken_over(source, runtime.store, runtime.settings, arguments.all_of("thread"))]
    text, status = "", 0
    taken: list[Json] = []
    left: list[Json] = []
    for thread, stream, checkpoints, fault in found:
        if fault is None:
            text += f"{escape(thread)} imported as {escape(stream)} ({checkpoints} checkpoints)\n"
            taken.append({"run": stream, "checkpoints": checkpoints})
        else:
            text += f"{escape(thread)} left: {escape(fault.message)} ({fault.code})\n"
            left.append({"thread": thread, "code": fault.code, "message": fault.message, "hint": fault.way_out})
            status = status or catalogue()[fault.code].exit_code
    then = next((f"workpacket runtime runs tail {shlex.quote(one.stream)}" for one in found if one.fault is None), "")
    data: dict[str, Json] = {"threads": taken, "left": left}
    return answer(arguments, text or "no threads\n", data, status=status, then=then)
