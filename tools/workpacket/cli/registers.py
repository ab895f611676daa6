"""Commands that write the board and the registry: generate them from the log, adopt hand edits, and merge versions for
git.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

from workpacket.cli.options import Arguments, Command, chosen, usage
from workpacket.cli.packet_command import ACTING, actor_of, conclude, refuse
from workpacket.cli.read_only import NOBODY, open_for_reading, show_json
from workpacket.git.repository import Repository
from workpacket.lifecycle.board_sync import hand_edits, move_to, sync
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.projections import in_force
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.problem import Problem
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.base import read_base_policy
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.execution import Carried, carry_out, gather, here
from workpacket.shell.governing.merge_driver import merge, unmerged
from workpacket.shell.work_done import branch_here
from workpacket.value import replace


def sync_board(arguments: Arguments) -> int:
    repository = here()
    if arguments.flag("adopt"):
        return _adopt(arguments)
    carried = carry_out(repository, "board sync", None, actor_of(arguments, repository), sync, during_merge=True)
    return conclude(arguments, to_go_on(repository, carried))


def to_go_on(repository: Repository, carried: Carried) -> Carried:
    """During a merge, say that the next step is to finish the merge."""
    waiting = unmerged(repository)
    if waiting is None or not isinstance(carried.answer, Planned):
        return carried
    return replace(carried, answer=replace(carried.answer, then=waiting.then))


def _adopt(arguments: Arguments) -> int:
    """Record each hand edit as a move; list edits that are not moves, without applying them."""
    repository = here()
    actor = actor_of(arguments, repository)
    facts = gather(repository, None, actor)
    wanted = arguments.words[1:]
    edits = [(packet.id.text, token, line) for packet, token, line in hand_edits(facts)]
    chosen = [edit for edit in edits if not wanted or edit[0] in wanted]
    unmet: list[Problem] = []
    done: list[str] = []
    for name, token, line in chosen:
        reason = arguments.value("reason") or f"hand edit of the task board, line {line}"
        answer = _moved(arguments, name, token, reason).answer
        if not isinstance(answer, Planned):
            unmet += [replace(one, message=f"{name}: {one.message}") for one in answer]
        else:
            done.append(name)
            sys.stderr.write(f"{answer.said}\n")
    if unmet:
        adopted: list[Json] = [*done]
        return refuse(arguments, "hand edits", unmet, {"adopted": adopted})
    return conclude(arguments, carry_out(repository, "board sync", None, actor, sync, during_merge=True))


def move_entry(arguments: Arguments) -> int:
    if len(arguments.words) != 3:
        raise usage(arguments.command, "missing_argument", "give a WP_ID and a lane")
    repository = here()
    name = packet_called(str(repository.root), arguments.words[1]).text
    table = read_base_policy(repository).lifecycle.lanes
    lanes = table.named(arguments.words[2].replace("_", " "))
    if len(lanes) != 1:
        problem = "ambiguous" if lanes else "unknown"
        what = f"{problem} lane {arguments.words[2]!r}; the lanes are {', '.join(table.tokens)}"
        raise usage(arguments.command, "invalid_value", what)
    carried = _moved(arguments, name, lanes[0].token, arguments.value("reason") or "moved on the board")
    return conclude(arguments, carried, name)


def _moved(arguments: Arguments, name: str, lane: str, reason: str) -> Carried:
    repository = here()
    branch = branch_here(repository)

    def decide(facts: Facts) -> Answer:
        return move_to(facts, facts.packets[name], lane, reason=reason, branch=branch)

    return carry_out(repository, "board move", [name], actor_of(arguments, repository), decide)


def _run_registry(arguments: Arguments) -> int:
    action = chosen(arguments, ("show", "audit", "sync"))
    if action == "sync":
        repository = here()
        draw = partial(sync, board=False)
        actor = actor_of(arguments, repository)
        carried = carry_out(repository, "registry sync", None, actor, draw, during_merge=True)
        return conclude(arguments, to_go_on(repository, carried))
    if action == "audit":
        from workpacket.cli.trace import audit_registry

        return audit_registry(arguments)
    return _show(arguments)


def _show(arguments: Arguments) -> int:
    facts = gather(open_for_reading(), None, NOBODY)
    bases = sorted({packet.id.base for packet in facts.packets.values()})
    rows = [row for base in bases if (row := in_force(facts, base, {}, {})) is not None]
    if arguments.flag("json"):
        listed: list[Json] = [
            {"base": row.base, "id": row.id, "path": row.path, "lane": row.lane.token} for row in rows
        ]
        return show_json(arguments, {"bases": listed})
    for row in rows:
        print(f"{row.base}  {row.id}  {row.lane.token}  {row.path}")
    print("next: workpacket board registry audit")
    return exits.OK


_REGISTRY = Command(
    "registry",
    _run_registry,
    arguments="show|audit|sync",
    options=ACTING,
    examples=("workpacket board registry show", "workpacket board registry audit", "workpacket board registry sync"),
)


# git's own default.
_MARKER = 7


def _run_merge_driver(arguments: Arguments) -> int:
    words = arguments.words
    if len(words) not in {4, 5} or not (words[4:] or ["7"])[0].isdecimal():
        raise usage(arguments.command, "missing_argument", "expected the words that git passes: %O %A %B %P %L")
    base, ours, theirs, path = words[:4]
    versions = (Path(base).read_bytes(), Path(ours).read_bytes(), Path(theirs).read_bytes())
    merged = merge(here(), path, versions, int(words[4]) if words[4:] else _MARKER)
    # Git created this file only for us, and reads the result of the merge from it.
    Path(ours).write_bytes(merged.data)
    status = exits.FINDINGS if merged.contradicts else exits.OK
    if arguments.flag("json"):
        data: dict[str, Json] = {"path": path, "contradicts": merged.contradicts, "doubt": merged.doubt or ""}
        sys.stdout.write(render_envelope("merge-driver", status, [], data))
        return status
    if merged.doubt:
        sys.stderr.write(f"workpacket: {escape(path)}: merged without the log: {escape(merged.doubt)}\n")
        sys.stderr.write("next: workpacket board sync\n")
    return status


_MERGE_DRIVER = Command(
    "merge-driver",
    _run_merge_driver,
    arguments="BASE OURS THEIRS PATH [MARKER_SIZE]",
    description="""
Git calls it if `.GOV/.gitattributes` says `merge=workpacket` and the driver is configured in the clone:

    git config merge.workpacket.driver 'workpacket board merge-driver %O %A %B %P %L'

The logs of both sides decide where entries are; text written by people is kept from both. Without the driver, git
merges these files like any others, and `workpacket board sync` corrects the result.""",
    examples=("git config merge.workpacket.driver 'workpacket board merge-driver %O %A %B %P %L'",),
)


DECLARED: Final = {command.name: command for command in (_REGISTRY, _MERGE_DRIVER)}
