"""`workpacket runtime doctor`: check whether runs are safe here, and whether their store is intact.

`workpacket runtime store`: manage the tables on a server, and access to them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workpacket.cli.checking import style_of
from workpacket.cli.open_store import answer, open_runtime, refuse, refusing, require_url
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.git.repository import find_repository, is_ignored
from workpacket.git.run import run_git
from workpacket.model.canonical import Json
from workpacket.model.layout import LOG_FOLDER
from workpacket.model.wording import counted
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import CheckRow, render_checks
from workpacket.report.terminal import escape
from workpacket.runtime.attempts.starter import orphans_of
from workpacket.runtime.commit_checkpoint import SIDECARS
from workpacket.runtime.errors import LogDamaged, PayloadErased, RedactionFailed, RuntimeFault
from workpacket.runtime.holders import SystemClock
from workpacket.runtime.langgraph import THREADS, said_in
from workpacket.runtime.records.events import KINDS, Event
from workpacket.runtime.records.jcs import SEALED, value_of
from workpacket.runtime.records.redaction import Redactor, clean_data
from workpacket.runtime.records.state import fold
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Inspectable, Store, problems_of
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.place import OUTSIDE_GIT, POSTGRES, require_driver, store_path, store_url, work_tree_of
from workpacket.runtime.stores.sqlite.files import file_system_of
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine, suitability

if TYPE_CHECKING:
    from workpacket.runtime.stores.postgres.reader import Right


RIGHTS: dict[str, Right] = {"reader": "reader", "writer": "writer", "keeper": "keeper"}
TAKES = {"show": 0, "upgrade": 0, "partition": 0, "let-in": 2, "shut-out": 1}


def run(arguments: Arguments) -> int:
    path = store_path(Path.cwd())
    place = str(path)
    try:
        if store_url():
            place, rows = _at_url()
        else:
            rows = [*_repaired(arguments, path), *_rows(path, accept_rollback=arguments.flag("accept-rollback"))]
    except RuntimeFault as fault:
        return refuse(arguments, fault)
    bad = [row for row in rows if row.result == "block"]
    status = max((catalogue()[row.code].exit_code for row in bad), default=0)
    data: dict[str, Json] = {
        "store": place,
        "checks": [
            {"check": row.name, "result": row.result, "code": row.code, "details": list(row.details)} for row in rows
        ],
    }
    then = catalogue()[bad[0].code].remedy if bad else ""
    return answer(arguments, render_checks(rows, style_of(arguments)), data, status=status, then=then)


def _repaired(arguments: Arguments, path: Path) -> list[CheckRow]:
    if not arguments.flag("repair-index") or not path.exists():
        return []
    from workpacket.runtime.stores.sqlite.repair import rebuild

    done = rebuild(path, SystemClock().now(), 10.0)
    found = [f"{counted(done.whole, 'whole run')}; the file before: {done.kept}"]
    lacking = [f"{escape(run)} is damaged: restore it from a backup, or start a new run" for run in done.damaged]
    return [CheckRow("rebuilt", "warn" if lacking else "pass", "log_damaged" if lacking else "", [*found, *lacking])]


def _rows(path: Path, *, accept_rollback: bool) -> Iterator[CheckRow]:
    folder = next(folder for folder in path.parents if folder.exists())
    yield _row("file system", [("storage_unsuitable", found.message) for found in suitability(folder / "x")],
               f"{file_system_of(folder) or 'unknown'} at {folder}")  # fmt: skip
    yield _row("ignored by git", _ignored(), str(path))
    yield _sidecars_ignored()
    if not path.exists():
        yield CheckRow("store", "not_applicable", "", ["there is no store yet; the first run creates it"])
        yield from _links(Runtime(MemoryStore()))
        return
    store = SQLiteStore(path, timeout=2.0, accept_rollback=accept_rollback)
    try:
        yield _row(
            "store", [(found.code, found.message) for found in examine(store)], counted(len(store.heads()), "run")
        )
        if store.losses:
            lost = [f"{loss.row.name}: had {loss.had or '?'} events, has {loss.row.version}" for loss in store.losses]
            yield CheckRow("accepted loss", "warn", "store_rolled_back", lost)
        yield from _about_runs(store)
        yield from _links(Runtime(store))
    finally:
        store.close()


def _at_url() -> tuple[str, list[CheckRow]]:
    """Return the rows that do not concern a file. The address is shown without its password."""
    with open_runtime() as runtime:
        store = runtime.store
        described = store if isinstance(store, Inspectable) else None
        checks = [] if described is None else list(described.checks())
        rows = [_row(check.name, [(p.code, p.message) for p in check.problems], check.found) for check in checks]
        rows.append(
            _row("store", [(p.code, p.message) for p in problems_of(store)], counted(len(store.heads()), "run"))
        )
        shown = f"{store_url().partition('://')[0]}://" if described is None else described.shown
        return shown, [*rows, *_about_runs(store), *_links(runtime)]


def _about_runs(store: Store) -> Iterator[CheckRow]:
    holders = [f"{lease.stream}: {lease.holder}" for lease in store.leases()]
    yield CheckRow("leases", "pass", "", holders)
    yield _row("left-over programs", [("orphan_alive", found) for found in _orphans(store)])
    yield _row("secrets", [("redaction_failed", found) for found in _secrets(store)])


def _links(runtime: Runtime) -> Iterator[CheckRow]:
    """Check whether the logs and the store agree on each run of a packet."""
    tree = work_tree_of(Path.cwd())
    if tree is None or not (tree / LOG_FOLDER).is_dir():
        return
    from workpacket.bridges.run_links import differing_ends, disagreements
    from workpacket.cli.runs import choice_about

    repository = find_repository(tree)
    found = [f"{one.message}: {choice_about(one)}" for one in disagreements(repository, runtime)]
    yield CheckRow("links to packets", "warn" if found else "pass", "run_links_disagree" if found else "", found)
    yield _row("ends of runs", [("log_damaged", one) for one in differing_ends(repository, runtime.store)])


def _row(name: str, problems: list[tuple[str, str]], well: str = "") -> CheckRow:
    if problems:
        return CheckRow(name, "block", problems[0][0], [message for _, message in problems])
    return CheckRow(name, "pass", "", [well] if well else [])


def _ignored() -> list[tuple[str, str]]:
    """Check that git ignores a store that was created inside the work tree before the repository existed; otherwise git
    would commit it.
    """
    tree = work_tree_of(Path.cwd())
    if tree is None or not (tree / OUTSIDE_GIT).exists():
        return []
    # Not check-ignore: it refuses literal pathspecs, and `run_git` sets those.
    answered = run_git(tree, "ls-files", "--others", "--ignored", "--exclude-standard", "--", str(OUTSIDE_GIT))
    return [] if answered.text else [("dirty_worktree", f"git does not ignore {OUTSIDE_GIT}")]


def _sidecars_ignored() -> CheckRow:
    """Check that sidecars are ignored: a committed view becomes outdated. A run never commits its own sidecars, but
    people might.
    """
    name = "sidecars ignored by git"
    tree = work_tree_of(Path.cwd())
    if tree is None:
        return CheckRow(name, "not_applicable", "", [])
    if is_ignored(find_repository(tree), f"{SIDECARS}/0.json"):
        return CheckRow(name, "pass", "", [SIDECARS])
    return CheckRow(
        name,
        "warn",
        "dirty_worktree",
        [f"{SIDECARS} is not ignored by git: workpacket init adds /.runr/ to .gitignore"],
    )


def _orphans(store: Store) -> list[str]:
    """Return programs that are still working for a run that no longer has a holder."""
    held = {lease.stream for lease in store.leases()}
    found: list[str] = []
    for stream, last in store.newest("runs"):
        if last is not None and last.type in {"run.started", "attempt.started"} and stream not in held:
            try:
                found += [f"{stream}: {orphan}" for orphan in orphans_of(fold(store.read(stream)))]
            except LogDamaged:
                continue  # the check of the store has already reported it
    return found


def _secrets(store: Store) -> list[str]:
    """Return records that contain a secret that only the current rules and environment recognize."""
    redactor = Redactor.from_environment(os.environ)
    found: list[str] = []
    for head in store.heads():
        try:
            for event, payload in _stored(store, head.stream):
                if _names_hold_secret(redactor, event) or (
                    payload is not None and _holds_secret(redactor, event, payload)
                ):
                    found.append(f"{head.stream}, version {event.version}")
        except LogDamaged:
            continue  # the check of the store has already reported it
    return found


def _stored(store: Store, stream: str) -> Iterator[tuple[Event, bytes | None]]:
    """Yield the events of a stream with what each one adds, except those whose payload was erased."""
    if stream.startswith(THREADS):
        yield from said_in(store, stream)
        return
    for event in store.read(stream):
        with suppress(PayloadErased):
            yield event, store.payload(event)


def _names_hold_secret(redactor: Redactor, event: Event) -> bool:
    """Whether anything other than the payload contains a secret: names, keys, the actor, or the record's data."""
    texts = (event.stream, event.actor, event.key or "")
    if any(redactor.clean_text(text) != text for text in texts):
        return True
    kind, data = KINDS.get(event.type), {name: value for name, value in event.values().items() if name != "dropped"}
    try:
        return kind is not None and clean_data(kind, data, redactor) != data
    except RedactionFailed:
        return True


def _holds_secret(redactor: Redactor, event: Event, payload: bytes) -> bool:
    if event.stream.startswith(THREADS):
        text = payload.decode("utf-8", "surrogateescape")
        return redactor.clean_text(text) != text
    if payload.startswith(SEALED):
        return False
    return redactor.clean_value(value_of(payload), payload.decode("utf-8"))[1] > 0


DOCTOR = Command(
    "doctor",
    run,
    description="""
Verifies the whole store: pages, hashes, index, acknowledged events. Also checks the file system, the write lock,
programs left running by dead attempts, stored secrets, and whether git would commit the store. If WORKPACKET_STORE
names a server: its version, durability and clock, and your rights there are checked.""",
    options=(
        Option("accept-rollback", "a backup was restored: accept that acknowledged events are lost"),
        Option("repair-index", "rebuild everything derived from the events, and keep the damaged file"),
    ),
    examples=("workpacket runtime doctor", "workpacket runtime doctor --json"),
)


@refusing
def _store(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    if len(arguments.words) != TAKES[action]:
        code = "missing_argument" if len(arguments.words) < TAKES[action] else "unexpected_argument"
        raise usage(arguments.command, code, f"`store {action}` takes {TAKES[action] or 'no'} words")
    if action == "let-in" and arguments.words[1] not in RIGHTS:
        raise usage(
            arguments.command, "invalid_value", f"invalid right {arguments.words[1]!r}: expected {', '.join(RIGHTS)}"
        )
    url = require_url(arguments)
    if url.partition("://")[0] not in POSTGRES:
        raise usage(arguments.command, "invalid_value", "`store` manages tables on PostgreSQL: postgresql://...")
    require_driver()
    from workpacket.runtime.stores.postgres.access import PostgresAccess, address_of_url
    from workpacket.runtime.stores.postgres.migrations import (
        SCHEMA_VERSION,
        migrate,
        partition,
        partitions,
        schema_version,
    )
    from workpacket.runtime.stores.postgres.reader import let_in, shut_out

    access = PostgresAccess(address_of_url(url), connections=1)
    access.open()
    try:
        said = ""
        if action == "upgrade":
            made = migrate(access)
            said = f"{made} migration{'s' * (made != 1)} made\n"
        elif action == "partition":
            said = "partitions made\n" if partition(access) else "there are partitions already\n"
        elif action == "let-in":
            role, right = arguments.words
            let_in(access, role, RIGHTS[right])
            said = f"{escape(role)} is a {right} now\n"
        elif action == "shut-out":
            known = shut_out(access, arguments.words[0])
            said = f"{escape(arguments.words[0])} {'is shut out' if known else 'did not have access'}\n"
        present, parts = schema_version(access), partitions(access)
    finally:
        access.close()
    shown = access.address.shown
    data: dict[str, Json] = {
        "store": shown, "schema_version": present, "known_version": SCHEMA_VERSION, "partitions": parts,
    }  # fmt: skip
    divided = f", {parts} partition{'s' * (parts != 1)}" if parts else ""
    then = "workpacket runtime store upgrade" if present < SCHEMA_VERSION else ""
    return answer(arguments, f"{said}{shown}: version {present} of {SCHEMA_VERSION}{divided}\n", data, then=then)


ACTIONS = ("show", "upgrade", "partition", "let-in", "shut-out")


STORE = Command(
    "store",
    _store,
    arguments="show | upgrade | partition | let-in ROLE reader|writer|keeper | shut-out ROLE",
    description="""
For the owner of the store that WORKPACKET_STORE names. `upgrade` creates the tables, or upgrades them to the version of
this program; older versions of the program are then refused. `partition` divides the large tables, which is worth it
above about 100 GB. `let-in` grants an existing role a right in the project of
the URL, `shut-out` revokes it.""",
    examples=(
        "workpacket runtime store show",
        "workpacket runtime store upgrade",
        "workpacket runtime store partition",
        "workpacket runtime store let-in ci writer",
        "workpacket runtime store shut-out ci",
    ),
)

DECLARED = {command.name: command for command in (DOCTOR, STORE)}
