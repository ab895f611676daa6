"""`workpacket init`: begin to govern a repository."""

from __future__ import annotations

import os

from workpacket.cli.governing import conclude
from workpacket.cli.options import Arguments, Command
from workpacket.plans.ignoring import also_ignoring
from workpacket.plans.starting import init, starting_files
from workpacket.shell.governing import Carried, here
from workpacket.shell.ignored import not_ignored
from workpacket.shell.moment import moment
from workpacket.shell.own_key import default_path
from workpacket.shell.starter_files import gov_just
from workpacket.shell.transaction import writing


def run(arguments: Arguments) -> int:
    repository = here()
    now, recipes = moment(), gov_just()
    with writing(repository, "init") as transaction:
        present = {
            path: os.path.lexists(os.path.join(repository.root, path)) for path, _ in starting_files(now, recipes)
        }
        planned = init(now, present, recipes, has_key=default_path().exists())
        planned = also_ignoring(planned, *not_ignored(repository))
        changed = transaction.apply(planned.plan)
    return conclude(arguments, Carried(planned, changed, transaction.finished))


COMMAND = Command(
    "init",
    "begin to govern a repository",
    run,
    description="""
Writes policy, board, registry, a specification to fill in, protocols of the roles, templates, and recipes for just.
What is there already is left as it is; packets without a log are taken over by `adopt`.""",
    examples=("workpacket init",),
)
