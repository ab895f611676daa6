"""`implement`, and what `show`, `why` and `claim` do with a work package of spec-kitty instead of a packet."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from workpacket.bridges.missions import (
    READY,
    UNDER_WAY,
    MissionPackage,
    claim_unmet,
    make_place,
    package_named,
    take,
)
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, actor_of, is_package_id, refuse, unmet_json, unmet_lines, words_of
from workpacket.cli.read_only import show_json
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.git.revisions import is_ignored
from workpacket.model import exits
from workpacket.problem import Problem
from workpacket.report.escape import escape
from workpacket.shell.governing.execution import here


def show(arguments: Arguments) -> int:
    _, package = _package(arguments)
    unmet = claim_unmet(package)
    return _say(arguments, package, _command(package, unmet), unmet)


def why(arguments: Arguments) -> int:
    _, package = _package(arguments)
    unmet = claim_unmet(package)
    if unmet and arguments.flag("exit-code"):
        return refuse(arguments, package.id, unmet)
    return _say(arguments, package, _command(package, unmet), unmet, brief=True)


def claim(arguments: Arguments) -> int:
    repository, package = _package(arguments)
    unmet = claim_unmet(package)
    if unmet:
        return refuse(arguments, package.id, unmet)
    take(repository, package, actor_of(arguments, repository).id)
    _, package = _package(arguments)
    return _say(arguments, package, f"workpacket packet implement {package.id}", (), brief=True)


def _run(arguments: Arguments) -> int:
    """Take the package, unless someone else has it, and create its branch and work tree."""
    repository, package = _package(arguments)
    base = _base(arguments, repository, package)
    unmet = claim_unmet(package, base.id if base is not None else "", (READY, UNDER_WAY))
    if unmet:
        return refuse(arguments, package.id, unmet)
    make_place(repository, package, base)
    if not is_ignored(repository, f"{package.worktree}/x"):
        sys.stderr.write("note: git does not ignore .worktrees/; add the line .worktrees/ to .gitignore\n")
    if package.lane == READY:
        take(repository, package, actor_of(arguments, repository).id)
        _, package = _package(arguments)
    return _say(arguments, package, f"cd {package.worktree}", (), brief=True)


def _package(arguments: Arguments) -> tuple[Repository, MissionPackage]:
    repository = here()
    return repository, package_named(str(repository.root), words_of(arguments, 1, "WP_ID")[0])


def _base(arguments: Arguments, repository: Repository, package: MissionPackage) -> MissionPackage | None:
    word = arguments.value("on")
    if not word:
        return None
    if not is_package_id(word):
        raise WorkpacketError("packet_unknown", f"{word!r} is not the id of a work package", hint="workpacket list")
    mission = package.id.rpartition("--")[0]
    return package_named(str(repository.root), word if "--" in word else f"{mission}--{word}")


def _command(package: MissionPackage, unmet: Sequence[Problem]) -> str:
    if package.lane == UNDER_WAY:
        return f"workpacket packet implement {package.id}"
    return unmet[0].hint if unmet else f"workpacket claim {package.id}"


def _say(
    arguments: Arguments, package: MissionPackage, command: str, unmet: Sequence[Problem], *, brief: bool = False
) -> int:
    data = package.as_json([unmet_json(one) for one in unmet], command)
    if arguments.flag("json"):
        return show_json(arguments, data)
    print(f"{escape(package.id)} is {escape(str(data['status'])) or 'without a lane'}: {escape(str(data['title']))}")
    if not brief:
        rows = {
            "depends on": ", ".join(f"{name} ({lane or 'not there'})" for name, lane in package.depends),
            "subtasks": ", ".join(text.value for text in package.document.subtasks),
            "branch": package.branch,
            "work tree": package.worktree,
            "file": package.document.path,
        }
        for name, value in rows.items():
            if value:
                print(f"{name:<13}{escape(value)}")
    print("".join(unmet_lines(unmet, arguments.style(sys.stdout))), end="")
    print(f"next: {escape(command)}")
    return exits.OK


COMMAND = Command(
    "implement",
    _run,
    arguments="WP_ID",
    description="""
For work packages of spec-kitty, below `kitty-specs/`: claims the package, unless that was done, and creates its branch
and its work tree in `.worktrees/`. With --base they begin at the branch of the package that it builds on, which need
not be done. Repeated, it creates what is missing.""",
    options=(Option("on", "start from the branch of this work package", value="WP_ID"), *ACTING),
    examples=("workpacket packet implement WP07 --on WP05",),
)
