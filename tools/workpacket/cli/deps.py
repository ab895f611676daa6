"""`workpacket deps`: dependencies that changed, and whether they were allowed to."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, subcommand

ACTIONS = ("check",)


def run(arguments: Arguments) -> int:
    subcommand(arguments, ACTIONS)
    from workpacket.cli.dependencies import check

    return check(arguments)


COMMAND = Command(
    "deps",
    "find dependencies that changed without leave",
    run,
    arguments="check",
    description="""
Compares lock files and manifests of the work tree with a commit; committed or not makes no difference. Direct
dependencies may only change if --allow, or [deps] of the policy as of that commit, names them. Another source, or other
content under the same version, is never allowed by a name. The exit status is 11 if something changed without leave, 17
if a file could not be read.""",
    options=(
        Option("base", "compare with this revision; else with where the branch left the default one", value="REV"),
        Option(
            "since", "compare with a checkpoint: a run, by its last milestone, or a Checkpoint-Id", value="CHECKPOINT"
        ),
        Option("allow", "dependencies that may change, `*` for any characters", value="NAME", many=True),
    ),
    examples=(
        "workpacket deps check",
        "workpacket deps check --base origin/main --allow 'zod,@org/*'",
        "workpacket deps check --since parser@00000001",
    ),
)
