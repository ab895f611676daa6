"""Everything unfinished here: runs, sessions, batches, roles, steps, checkpoint commits. Reads only.

What cannot be read stops itself and nothing else: it is listed with the code that says why.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from workpacket.bridges.batch_facts import FOLDERS, gather, reader_of
from workpacket.bridges.commit_bridge import BRIDGE
from workpacket.bridges.commit_selection import CommitSelection, sidecar_files
from workpacket.bridges.foreign import Foreign
from workpacket.bridges.resumable import (
    Kind,
    Resumable,
    Stop,
    kept_back,
    of_batch,
    of_commits,
    of_role,
    of_run,
    of_session,
    of_step,
)
from workpacket.bridges.role_artifacts import changes
from workpacket.bridges.run_links import disagreements, packet_stop
from workpacket.bridges.unfinished import unfinished_roles
from workpacket.cli.progressing import roles_here
from workpacket.cli.runs_linking import choice_about
from workpacket.errors import WorkpacketError
from workpacket.git.changes import files_ending
from workpacket.git.repository import Repository, find_repository
from workpacket.runtime.at_work import Caller
from workpacket.runtime.model_sessions.recovery import assess
from workpacket.runtime.records.milestones import Milestones
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.step.history import History, identity_of
from workpacket.runtime.step.log import StepLog
from workpacket.runtime.step.model import checkpoint_of, is_checkpoint
from workpacket.shell.tree import link_on_the_way, read_bytes
from workpacket.text.limits import DATA

STEP_LOGS = ".events.jsonl"


def scan(runtime: Runtime, team: str, caller: Callable[[str], Caller]) -> list[Resumable]:
    """What goes on first, then what is stopped. With a team: its roles only, as a team resumes nobody else's work.

    `caller` names who asks, given a role ('' for a batch): what somebody holds who asks for it is not held back.
    """
    try:
        repository = find_repository(Path.cwd())
    except WorkpacketError:
        found = [] if team else list(_runs(runtime, None))
    else:
        found = list(_roles(repository, runtime, team, caller))
        if not team:
            found = [
                *_runs(runtime, repository),
                *_batches(repository, runtime, caller("")),
                *found,
                *_steps(repository),
            ]
            found += _commits(repository, runtime)
    return sorted(found, key=lambda one: not one.goes_on)


def _refused(kind: Kind, id_: str, error: WorkpacketError) -> Resumable:
    return Resumable(kind, id_, "nowhere", "it cannot be read", "", (Stop(error.code, error.message, error.hint),))


def _runs(runtime: Runtime, repository: Repository | None) -> Iterator[Resumable]:
    stop_of = cache(lambda packet: packet_stop(repository, packet) if repository is not None and packet else None)
    for line in runtime.runs():
        if line.liveness == "completed" and not line.attention:
            continue
        try:
            if line.name == "session":
                work = of_session(line, assess(runtime, line.id))
            else:
                state = runtime.state(line.id)
                decision, questions = runtime.waiting(line.id)
                work = of_run(line, decision, state.name, state.packet, questions)
            yield kept_back(work, stop_of(line.packet))
        except WorkpacketError as error:
            yield _refused("run", line.id, error)
    for one in disagreements(repository, runtime) if repository is not None else ():
        if one.what != "unlinked":  # that one is listed as what it is: unfinished
            stop = Stop("run_links_disagree", one.message, choice_about(one))
            yield Resumable("run", one.run, "nowhere", "log and store do not agree", "", (stop,))


def _scopes(root: str) -> Iterator[str]:
    """The folders of batch scopes, active and with tasks."""
    for above in FOLDERS:
        if link_on_the_way(root, above):
            continue
        try:
            with os.scandir(os.path.join(root, above)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        yield from (f"{above}/{name}" for name in names if os.path.lexists(f"{root}/{above}/{name}/tasks.yaml"))


def _batches(repository: Repository, runtime: Runtime, caller: Caller) -> Iterator[Resumable]:
    root = str(repository.root)
    read = reader_of(root)
    for folder in _scopes(root):
        try:
            facts, _ = gather(repository, runtime, read, folder)
        except WorkpacketError as error:
            yield _refused("batch", f"batch/{folder}", error)
        else:
            found = of_batch(facts, caller)
            if found is not None:
                yield found


def _roles(repository: Repository, runtime: Runtime, team: str, caller: Callable[[str], Caller]) -> Iterator[Resumable]:
    scanned, unread = roles_here(repository, runtime)
    for role in unfinished_roles(scanned, team, caller):
        yield of_role(role, changes(str(repository.root), role.artifacts))
    for path, code in unread:
        yield _refused("role", path, WorkpacketError(code, path, hint=f"workpacket check {path}"))


def _steps(repository: Repository) -> Iterator[Resumable]:
    root = str(repository.root)
    for path in files_ending(repository, STEP_LOGS):
        if link_on_the_way(root, path):
            continue
        try:
            log = StepLog(os.path.join(root, path)).read()
        except WorkpacketError as error:
            yield _refused("step", path, error)
            continue
        latest = {}
        for line in log.lines:
            if is_checkpoint(line.event):
                try:
                    checkpoint = checkpoint_of(line.event)
                except ValueError:
                    continue
                latest[identity_of(checkpoint)] = checkpoint
        for checkpoint in latest.values():
            try:
                wanted = History.of(log, checkpoint).wanted("")
            except WorkpacketError as error:
                yield of_step(path, checkpoint, [Stop(error.code, error.message, f"workpacket explain {error.code}")])
            else:
                if wanted is not None:
                    yield of_step(path, wanted, ())


def _commits(repository: Repository, runtime: Runtime) -> Iterator[Resumable]:
    """The run of another program whose sidecar is the newest; a sidecar does not say that its run is done."""
    newest: tuple[str, str] = ("", "")
    for path, _ in sidecar_files(repository):
        try:
            read = BRIDGE.read(path, read_bytes(str(repository.root), path, DATA.size))
        except OSError:
            continue
        for one in read:
            if isinstance(one, Foreign):
                newest = max(newest, (str(one.values.get("created_at") or ""), str(one.values.get("run_id") or "")))
    run = newest[1]
    if run and runtime.store.head(run) is None:
        yield of_commits(run, CommitSelection(repository, run, Milestones()).select())
