"""`workpacket progress`: where a role stands in a feature, in one call and one line."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, subcommand

MILESTONES = ("claimed", "drafted", "review-requested", "review-approved", "blocked", "done", "note")
ACTIONS = (*MILESTONES, "list", "close", "adopt", "restore")


def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    from workpacket.cli.progressing import carry_out

    return carry_out(arguments, action)


COMMAND = Command(
    "progress",
    "write down, or list, where roles stand in the features they work on",
    run,
    arguments="MILESTONE FEATURE AGENT [TEXT] | list | close FEATURE | adopt FEATURE AGENT | restore FEATURE AGENT",
    description="""
A milestone is claimed, drafted, review-requested, review-approved, blocked, done or note. It is written to the log and
to docs/progress/FEATURE-AGENT.md: phase, status, last action, time, and one note. One writer holds a file until it is
done, for an hour after its last milestone, or until its process is gone. Of the files that the text names by their
path, and of each --artifact, the digest is kept; `resume` says which of them have changed since.
`list` shows the roles that are not done. `close` completes those of a feature that is. `adopt` takes a file that
contradicts the log for true, `restore` writes its fields anew from the log.""",
    options=(
        Option("team", "the team of the role; list: only this team", value="TEAM"),
        Option("phase", "the phase that the work is in now; else as before", value="PHASE"),
        Option("artifact", "a file that the role has made, if the text does not name it", value="PATH", many=True),
        Option("instance", "who of several with this role writes; else the process that called", value="NAME"),
        Option("owner", "the process that does the work; else the one that called", value="PID"),
    ),
    examples=(
        "workpacket progress claimed auth backend-eng --team build --phase implementation",
        'workpacket progress blocked auth backend-eng "The schema of sessions is not decided"',
        "workpacket progress drafted auth backend-eng --artifact docs/specs/auth.md",
        "workpacket progress list --team build",
        "workpacket progress close auth",
    ),
)
