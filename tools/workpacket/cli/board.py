"""`workpacket board`: the task board, drawn from the log; and hand edits taken over."""

from __future__ import annotations

import sys

from workpacket.cli.governing import ACTING, actor_of, conclude, refuse
from workpacket.cli.looking import NOBODY, looking, show_json
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.show import log_at
from workpacket.documents.register_text import entry_line
from workpacket.ledger.fold import fold
from workpacket.lifecycle.unmet import Unmet
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.lanes import SECTIONS, lane_of_token, lanes_named
from workpacket.plans.drafting import Planned, Refused
from workpacket.plans.facts import Facts
from workpacket.plans.syncing import hand_edits, move_to, sync
from workpacket.shell.gathering import gather
from workpacket.shell.governed_files import find_governed, packet_named
from workpacket.shell.governing import Carried, carry_out, here
from workpacket.shell.work_done import branch_here


def run(arguments: Arguments) -> int:
    actions = {"show": _show, "sync": _sync, "move": _move}
    action = actions.get(arguments.words[0]) if arguments.words else None
    if action is None:
        raise usage(arguments.command, "missing_argument", f"it needs one of {', '.join(actions)}")
    return action(arguments)


def _show(arguments: Arguments) -> int:
    repository = looking()
    facts = gather(repository, None, NOBODY)
    at = arguments.value("at")
    lanes = {
        name: fold(log_at(arguments, repository, packet.log, at)).lane if at else packet.lane
        for name, packet in sorted(facts.packets.items())
    }
    if arguments.flag("json"):
        shown: dict[str, Json] = {name: lane for name, lane in lanes.items() if lane}
        return show_json(arguments, {"lanes": shown})
    for section in SECTIONS[1:]:
        print(f"## {section.heading}")
        for name, token in lanes.items():
            lane = lane_of_token(token)
            if lane is not None and lane.section == section.key:
                print(entry_line(name, token))
        print()
    print("next: workpacket board sync")
    return exits.OK


def _sync(arguments: Arguments) -> int:
    repository = here()
    if arguments.flag("adopt"):
        return _adopt(arguments)
    carried = carry_out(repository, "board sync", None, actor_of(arguments, repository), sync, during_merge=True)
    return conclude(arguments, carried)


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


def _move(arguments: Arguments) -> int:
    if len(arguments.words) != 3:
        raise usage(arguments.command, "missing_argument", "it needs a WP_ID and a lane")
    name = packet_named(find_governed(str(here().root)), arguments.words[1]).text
    lanes = lanes_named(arguments.words[2].replace("_", " "))
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


COMMAND = Command(
    "board",
    "show the board, draw it anew, or move an entry",
    run,
    arguments="show | sync [WP_ID...] | move WP_ID LANE",
    description="""
`sync` makes status lines, board and registry say what the log says, and adds missing sections. With --adopt it takes
hand edits of the board over as moves, where these ask for nothing but a reason. `move` is such a move, typed.""",
    options=(
        Option("adopt", "take hand edits over as moves, instead of undoing them"),
        Option("at", "show it as of this day or revision", value="DATE|REV"),
        Option("reason", "why, in words", value="TEXT"),
        *ACTING,
    ),
    examples=(
        "workpacket board sync",
        "workpacket board sync --adopt",
        'workpacket board move WP-1-Parser-v1 BLOCKED --reason "no test data"',
    ),
)
