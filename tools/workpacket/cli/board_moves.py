"""The parts of `board` that write: drawing anew, taking hand edits over, moving an entry."""

from __future__ import annotations

import sys

from workpacket.cli.options import Arguments, usage
from workpacket.cli.packet_command import actor_of, conclude, refuse
from workpacket.git.repository import Repository
from workpacket.lifecycle.board_sync import hand_edits, move_to, sync
from workpacket.lifecycle.drafts import Planned, Refused
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.transitions import Unmet
from workpacket.model.canonical import Json
from workpacket.shell.base import read_base_policy
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.commanding import Carried, carry_out, here
from workpacket.shell.governing.gathering import gather
from workpacket.shell.governing.merge_driver import unmerged
from workpacket.shell.work_done import branch_here
from workpacket.value import replace


def sync_board(arguments: Arguments) -> int:
    repository = here()
    if arguments.flag("adopt"):
        return _adopt(arguments)
    carried = carry_out(repository, "board sync", None, actor_of(arguments, repository), sync, during_merge=True)
    return conclude(arguments, to_go_on(repository, carried))


def to_go_on(repository: Repository, carried: Carried) -> Carried:
    """In the middle of a merge, what comes next is its end."""
    waiting = unmerged(repository)
    if waiting is None or not isinstance(carried.answer, Planned):
        return carried
    return replace(carried, answer=replace(carried.answer, then=waiting.then))


def _adopt(arguments: Arguments) -> int:
    """Each hand edit as the move that it stands for; those that are none are listed, and nothing of them is done."""
    repository = here()
    actor = actor_of(arguments, repository)
    facts = gather(repository, None, actor)
    wanted = arguments.words[1:]
    edits = [(packet.id.text, token, line) for packet, token, line in hand_edits(facts)]
    chosen = [edit for edit in edits if not wanted or edit[0] in wanted]
    unmet: list[Unmet] = []
    done: list[str] = []
    for name, token, line in chosen:
        reason = arguments.value("reason") or f"hand edit of the task board, line {line}"
        answer = _moved(arguments, name, token, reason).answer
        if isinstance(answer, Refused):
            unmet += [
                Unmet(one.code, f"{name}: {one.message}", one.command, one.path, one.line) for one in answer.unmet
            ]
        else:
            done.append(name)
            sys.stderr.write(f"{answer.said}\n")
    if unmet:
        adopted: list[Json] = [*done]
        return refuse(arguments, "hand edits", unmet, {"adopted": adopted})
    return conclude(arguments, carry_out(repository, "board sync", None, actor, sync, during_merge=True))


def move_entry(arguments: Arguments) -> int:
    if len(arguments.words) != 3:
        raise usage(arguments.command, "missing_argument", "it needs a WP_ID and a lane")
    repository = here()
    name = packet_called(str(repository.root), arguments.words[1]).text
    lanes = read_base_policy(repository).lifecycle.lanes.named(arguments.words[2].replace("_", " "))
    if len(lanes) != 1:
        raise usage(arguments.command, "invalid_value", f"{arguments.words[2]!r} names no lane")
    return conclude(
        arguments, _moved(arguments, name, lanes[0].token, arguments.value("reason") or "moved on the board")
    )


def _moved(arguments: Arguments, name: str, lane: str, reason: str) -> Carried:
    repository = here()
    branch = branch_here(repository)

    def decide(facts: Facts) -> Planned | Refused:
        return move_to(facts, facts.packets[name], lane, reason=reason, branch=branch)

    return carry_out(repository, "board move", [name], actor_of(arguments, repository), decide)
