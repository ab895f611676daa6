"""`workpacket board`: the task board, drawn from the log; and hand edits taken over."""

from __future__ import annotations

from workpacket.cli.cached_output import run_cached
from workpacket.cli.options import Arguments, Command, Option, chosen

# As `cli.packet_command.ACTING`, which is too heavy for what only shows.
_KINDS = ("human", "agent", "ci")


def run(arguments: Arguments) -> int:
    action = chosen(arguments, ("show", "sync", "move", "export"))
    if action == "show":
        return run_cached(arguments, "board_view")
    if action == "export":
        from workpacket.cli.board_view import export

        return export(arguments)
    from workpacket.cli.board_moves import move_entry, sync_board

    return sync_board(arguments) if action == "sync" else move_entry(arguments)


COMMAND = Command(
    "board",
    "show the board, draw it anew, move an entry, or write a page",
    run,
    arguments="show | sync [WP_ID...] | move WP_ID LANE | export",
    description="""
`sync` makes status lines, board and registry say what the log says, and adds missing sections. With --adopt it takes
hand edits of the board over as moves, where these ask for nothing but a reason. `move` is such a move, typed.
`show` puts the lanes side by side on a terminal; `export` writes a page that needs neither network nor scripts.""",
    options=(
        Option("adopt", "take hand edits over as moves, instead of undoing them"),
        Option("at", "show it as of this day or revision", value="DATE|REV"),
        Option("out", "export: into this file, which must not exist yet; else to standard output", value="FILE"),
        Option("reason", "why, in words", value="TEXT"),
        Option("as", "who acts; else WORKPACKET_ACTOR, else git's user.name", value="NAME"),
        Option("kind", "what kind of actor that is", choices=_KINDS),
    ),
    examples=(
        "workpacket board show",
        "workpacket board export --out board.html",
        "workpacket board sync",
        "workpacket board sync --adopt",
        'workpacket board move WP-1-Parser-v1 BLOCKED --reason "no test data"',
    ),
)
