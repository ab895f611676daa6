"""`workpacket runtime progress`: the progress of a role in a feature, in one call and one line."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from workpacket.bridges.resumable import UnfinishedRole, unfinished_roles
from workpacket.bridges.role_acts import CLOSED, RoleDesk, adopt, notes_in, open_roles, reach, restore
from workpacket.bridges.role_facts import ArtifactChange, RoleFacts, RoleKey, changes, notes_here, scan_roles
from workpacket.cli.open_store import answer, open_runtime, owner_of, refusing
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.model.canonical import Json
from workpacket.report.escape import escape
from workpacket.runtime.holders import Caller, caller_named, caller_with
from workpacket.runtime.runtime import Runtime
from workpacket.shell.configuration import read_settings
from workpacket.shell.governing.execution import here
from workpacket.shell.judging.log_verification import look_at_logs
from workpacket.shell.transactions.transaction import Transaction, writing

_INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@refusing
def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    if action == "list":
        return _list(arguments)
    if action == "close":
        return _close(arguments, _words(arguments, "FEATURE")[0])
    return _write(arguments, action)


def _words(arguments: Arguments, *names: str, optional: int = 0) -> list[str]:
    most = len(names) + optional
    if not len(names) <= len(arguments.words) <= most:
        code = "missing_argument" if len(arguments.words) < len(names) else "unexpected_argument"
        raise usage(arguments.command, code, f"it takes {' '.join(names)}{' [TEXT]' if optional else ''}")
    return arguments.words


def _write(arguments: Arguments, action: str) -> int:
    optional = 0 if action in {"adopt", "restore"} else 1
    words = _words(arguments, "FEATURE", "AGENT", optional=optional)
    key = RoleKey(words[0], words[1], arguments.value("team"))
    repository = here()
    with writing(repository, "progress") as transaction, open_runtime(create=True) as runtime:
        desk = desk_of(arguments, repository, runtime, transaction, key)
        if action == "adopt":
            adopt(desk)
        elif action == "restore":
            restore(desk)
        else:
            artifacts = arguments.all_of("artifact")
            reach(desk, action, text="".join(words[2:]), phase=arguments.value("phase"), artifacts=artifacts)
        facts = desk.facts
    data: dict[str, Json] = {**_as_json(facts), "said": list(desk.said)}
    return answer(arguments, _line(facts, desk.said), data)


def desk_of(
    arguments: Arguments, repository: Repository, runtime: Runtime, transaction: Transaction, key: RoleKey
) -> RoleDesk:
    phases = read_settings(str(repository.root)).phases
    lanes = lanes_for(str(repository.root), (key.feature,))
    return RoleDesk(runtime, transaction, caller_of(arguments, key.agent), str(repository.root), key, lanes, phases)


def lanes_for(root: str, features: tuple[str, ...]) -> Mapping[str, str]:
    """Return the lanes of packets. The logs are read only if a feature could be a packet id, which saves time."""
    return look_at_logs(root).lanes if any(feature.casefold().startswith("wp") for feature in features) else {}


def caller_of(arguments: Arguments, agent: str) -> Caller:
    """Return the writer: agent#instance if an instance is given, otherwise the calling processes, whose end can be
    observed.
    """
    instance = arguments.value("instance") or os.environ.get("WORKPACKET_INSTANCE", "")
    if instance:
        if not _INSTANCE.match(instance):
            raise usage(arguments.command, "invalid_value", f"invalid instance name {instance!r}")
        return caller_named(f"{agent}#{instance}")
    return caller_with(owner_of(arguments))


def _close(arguments: Arguments, feature: str) -> int:
    """Complete every open checkpoint of the feature that is not in use; report the others."""
    repository = here()
    closed: list[str] = []
    left: list[str] = []
    with writing(repository, "progress") as transaction, open_runtime(create=True) as runtime:
        tree = transaction.workspace.work_tree
        for path, names in open_roles(notes_in(tree, feature), feature).items():
            try:
                desk = desk_of(arguments, repository, runtime, transaction, RoleKey(*names))
                reach(desk, CLOSED)
            except WorkpacketError as error:
                left.append(error.message if path in error.message else f"{path}: {error.message}")
            else:
                closed.append(path)
    text = f"{feature}: {len(closed)} closed{''.join(f'; {one}' for one in left)}\n"
    data: dict[str, Json] = {"feature": feature, "closed": list(closed), "left": list(left)}
    return answer(arguments, escape(text.rstrip()) + "\n", data)


def roles_here(repository: Repository, runtime: Runtime) -> tuple[list[RoleFacts], list[tuple[str, str]]]:
    """Return every role in the repository, without a lock, for read-only commands."""
    root = str(repository.root)
    notes = notes_here(root)
    features = tuple(note.feature.value for note in notes.values() if note.is_checkpoint and note.feature is not None)
    return scan_roles(runtime, notes, lanes_for(root, features))


def _list(arguments: Arguments) -> int:
    _words(arguments)
    repository = here()
    with open_runtime() as runtime:
        scanned, unread = roles_here(repository, runtime)
    team = arguments.value("team")
    roles = unfinished_roles(scanned, team)
    changed = {role.path: changes(str(repository.root), role.artifacts) for role in roles}
    text = (
        "".join(f"{escape(_listed(role, changed[role.path]))}\n" for role in roles) or "no role has unfinished work\n"
    )
    text += "".join(f"{escape(path)}: cannot be read ({code})\n" for path, code in unread)
    rows: list[Json] = [
        {
            "path": role.path,
            **role.fields._asdict(),
            "blocked_by": list(role.blocked_by),
            "changed_artifacts": [one.path for one in changed[role.path]],
        }
        for role in roles
    ]
    stray: list[Json] = [{"path": path, "code": code} for path, code in unread]
    return answer(arguments, text, {"team": team, "roles": rows, "unread": stray})


def _listed(role: UnfinishedRole, changed: tuple[ArtifactChange, ...]) -> str:
    stops = f" [{', '.join(role.blocked_by)}]" if role.blocked_by else ""
    stops += "".join(f"; {one.message}" for one in changed)
    fields = role.fields
    where = f"{fields.phase}, {fields.status}, {fields.last_action}"
    return f"{fields.feature} {fields.agent} ({fields.team}): {where}{stops}"


def _line(facts: RoleFacts, said: list[str]) -> str:
    fields = facts.fields
    line = f"{fields.feature} {fields.agent}: {fields.phase}, {fields.status}: {fields.last_action}"
    return "".join(f"{escape(one)}\n" for one in said) + f"{escape(line)}\n"


def _as_json(facts: RoleFacts) -> dict[str, Json]:
    artifacts: list[Json] = list(facts.state.artifacts)
    return {"path": facts.path, **facts.fields._asdict(), "version": facts.state.version, "artifacts": artifacts}


MILESTONES = ("claimed", "drafted", "review-requested", "review-approved", "blocked", "done", "note")
ACTIONS = (*MILESTONES, "list", "close", "adopt", "restore")


COMMAND = Command(
    "progress",
    run,
    arguments="MILESTONE FEATURE AGENT [TEXT] | list | close FEATURE | adopt FEATURE AGENT | restore FEATURE AGENT",
    description="""
A milestone is claimed, drafted, review-requested, review-approved, blocked, done or note. It is written to the log and
to docs/progress/FEATURE-AGENT.md: phase, status, last action, time, and one note. One writer holds a file until the
role is done, an hour has passed since its last milestone, or its process has ended. The digests of files named by path
in the text, and of each --artifact, are stored; `resume` shows which have changed since. `list` shows the roles that
are not done. `close` completes those of a finished feature. `adopt` accepts a file that contradicts the log, `restore`
rewrites its fields from the log.""",
    options=(
        Option("team", "the team of the role; list: show only this team", value="TEAM"),
        Option("phase", "the current phase of the work (default: unchanged)", value="PHASE"),
        Option("artifact", "a file that the role created, if the text does not name it", value="PATH", many=True),
        Option("instance", "the writer, if several have this role (default: the calling process)", value="NAME"),
        Option("owner", "the process that does the work (default: the caller)", value="PID"),
    ),
    examples=(
        "workpacket runtime progress claimed auth backend-eng --team build --phase implementation",
        'workpacket runtime progress blocked auth backend-eng "The schema of sessions is not decided"',
        "workpacket runtime progress drafted auth backend-eng --artifact docs/specs/auth.md",
        "workpacket runtime progress list --team build",
        "workpacket runtime progress close auth",
    ),
)
