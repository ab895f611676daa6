"""`workpacket init`: begin to govern a repository."""

from __future__ import annotations

import sys
from typing import cast

from workpacket.cli.governing import conclude
from workpacket.cli.instructions import instructions, skills
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.lifecycle.policy import POLICY_PATH, LifecyclePolicy
from workpacket.model import exits
from workpacket.plans.beginning import Item, Seen, check, compare, init, paths_of_interest
from workpacket.plans.dialects import DIALECTS, Dialect
from workpacket.plans.ignoring import also_ignoring
from workpacket.plans.starting import GROUPS
from workpacket.report.door import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.base.policy import lifecycle_of
from workpacket.shell.governing.commanding import Carried, here
from workpacket.shell.governing.starter_files import look_around, read_package
from workpacket.shell.ignored import not_ignored
from workpacket.shell.keys.own_key import default_path
from workpacket.shell.moment import moment
from workpacket.shell.transactions.transaction import writing


def run(arguments: Arguments) -> int:
    if arguments.words:
        raise usage(arguments.command, "unexpected_argument", "it takes options only")
    repository = here()
    package = read_package(instructions(), skills())
    paths = paths_of_interest(package)
    wanted = [group for group in GROUPS if arguments.flag(group)]
    # None, or one of the choices that the option takes.
    dialect = cast("Dialect | None", arguments.value("dialect") or None)
    if arguments.flag("check"):
        seen = look_around(str(repository.root), paths)
        return _say(arguments, compare(package, seen, wanted, dialect, _policy(seen)))
    with writing(repository, "init") as transaction:
        seen = look_around(str(repository.root), paths)
        items = compare(package, seen, wanted, dialect, _policy(seen))
        planned = init(items, moment(), has_key=default_path().exists())
        planned = also_ignoring(planned, *not_ignored(repository))
        changed = transaction.apply(planned.plan)
    return conclude(arguments, Carried(planned, changed, transaction.finished))


def _policy(seen: Seen) -> LifecyclePolicy:
    """The policy that lies beside the files; what it becomes on the base, they are written for."""
    return lifecycle_of(seen.files.get(POLICY_PATH) or b"")


def _say(arguments: Arguments, items: list[Item]) -> int:
    findings = list(check(items))
    failed = any(finding.severity == "error" for finding in findings)
    status = exits.FINDINGS if failed else exits.OK
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("init", status, findings, {"checked": len(items)}))
        return status
    for one in findings:
        print(f"{one.severity}: {escape(one.path)}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")
    print(f"{len(items)} files compared, {len(findings)} not as init writes them")
    print(f"next: {'workpacket init' if failed else 'workpacket status'}")
    return status


COMMAND = Command(
    "init",
    "begin to govern a repository",
    run,
    description="""
Writes policy, board, registry, protocols of the roles, a specification to fill in, and a section of AGENTS.md that
tells agents how to work here; and what the dialect has besides. Called again, it writes what is missing and brings up
to date what nobody edited; everything else is left as it is. Packets without a log are taken over by `adopt`.

Dialects: `handshake` has recipes for just and templates; `spec-kitty` the words of its lanes and a template of a work
package; `plain` nothing besides. Without the option it is the one that the repository shows, else handshake.""",
    options=(
        Option("dialect", "what is written besides, and in whose words", choices=DIALECTS),
        Option("check", "write nothing; fail if something is missing or out of date"),
        Option("skills", "also skills for agents, below .agents/skills"),
        Option("pre-commit", "also .pre-commit-config.yaml; it installs no hook"),
        Option("workflow", "also .github/workflows/workpacket.yml"),
        Option("vscode", "also .vscode/settings.json and the schemas that it names"),
    ),
    examples=("workpacket init", "workpacket init --dialect plain --skills", "workpacket init --check"),
)
