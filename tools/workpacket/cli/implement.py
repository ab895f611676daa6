"""`implement`, and what `show`, `why` and `claim` do with a spec-kitty work package: what the package is waiting for,
who takes it, and its branch and work tree.

A package's file is its only record, so its lane and its history change there. A package whose file has no lane is
shown, but not moved: newer versions of spec-kitty record the lane elsewhere.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Sequence
from typing import Final

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, actor_of, is_package_id, refuse, unmet_json, words_of
from workpacket.cli.read_only import show_json
from workpacket.documents.document import value_of
from workpacket.documents.structured import read_front_matter
from workpacket.documents.work_package import WorkPackage, scoped
from workpacket.git.repository import (
    Repository,
    add_branch,
    add_worktree,
    commit_of,
    is_ignored,
    list_worktrees,
    local_branches,
)
from workpacket.lifecycle.starter_documents import MISSIONS
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.lanes import SATISFYING, UNJUDGED
from workpacket.model.plan import FileChange, Plan
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.report.terminal import escape, unmet_lines
from workpacket.shell.actor import moment
from workpacket.shell.governing.execution import here
from workpacket.shell.transactions.transaction import writing
from workpacket.shell.tree import link_on_the_way, read_bytes
from workpacket.text.source import MARKDOWN, Plain, Source
from workpacket.text.yaml_edit import CannotEdit, append_item, set_scalar, yaml_text
from workpacket.value import Value

_NAME: Final = re.compile(r"(?:(?P<mission>[A-Za-z0-9][A-Za-z0-9._-]{0,76})--)?(?P<short>WP[0-9]{2,9})\Z")
READY: Final = "READY_FOR_DEV"
UNDER_WAY: Final = "IN_PROGRESS"
# Missions have no policy of ours; what landed without a verdict is done there too.
_DONE: Final = frozenset({*SATISFYING, UNJUDGED})
_TAKEN: Final = "doing"
# The lanes of packages whose work is on the target branch.
_MERGED: Final = frozenset({"done", "approved"})


class MissionPackage(Value):
    """One work package. `lane` is its lane token, or '' if the file has no token or an unknown one."""

    document: WorkPackage
    id: str
    lane: str
    depends: tuple[tuple[str, str], ...]  # with their lanes

    @property
    def branch(self) -> str:
        return self.id.replace("--", "-")

    @property
    def worktree(self) -> str:
        return f".worktrees/{self.branch}"

    @property
    def waiting(self) -> tuple[tuple[str, str], ...]:
        """The dependencies that are not done yet."""
        return tuple(one for one in self.depends if one[1] not in _DONE)

    def as_json(self, unmet: Sequence[Json], command: str) -> dict[str, Json]:
        title, status = self.document.title, self.document.lane
        return {
            "id": self.id,
            "title": title.value if title is not None else "",
            "lane": self.lane,
            "status": status.value if status is not None else "",
            "path": self.document.path,
            "depends": [{"id": name, "lane": lane} for name, lane in self.depends],
            "subtasks": [text.value for text in self.document.subtasks],
            "branch": self.branch,
            "worktree": self.worktree,
            "unmet": [*unmet],
            "next": command,
        }


def package_named(root: str, word: str) -> MissionPackage:
    """Return the package; raise an error if there is none, or if several missions have a package with this short id."""
    found = _files_of(root, word)
    if not found:
        raise WorkpacketError("packet_unknown", f"there is no work package {word}", hint="workpacket list")
    ids = [scoped(document.own_id, document.mission) for document in found]
    if len(set(ids)) > 1:
        raise WorkpacketError("packet_ambiguous", f"several missions have a {word}", hint=f"name {' or '.join(ids)}")
    names = [scoped(text.value, found[0].mission) for text in found[0].dependencies]
    lanes = {name: [_token(document) for document in _files_of(root, name)] for name in names}
    return MissionPackage(found[0], ids[0], _token(found[0]), tuple((name, (*lanes[name], "")[0]) for name in names))


def _files_of(root: str, word: str) -> list[WorkPackage]:
    match = _NAME.match(word)
    if match is None:
        return []
    pattern = f"{MISSIONS}/{glob.escape(match['mission'] or '') or '*'}/tasks/{match['short']}*.md"
    paths = [path.replace(os.sep, "/") for path in sorted(glob.glob(pattern, root_dir=root))]
    return [document for path in paths if (document := _read(root, path)).file_id == match["short"]]


def _read(root: str, path: str) -> WorkPackage:
    if link_on_the_way(root, path):
        raise WorkpacketError("file_unreadable", "it is behind a symbolic link", path=path)
    try:
        return WorkPackage(Source.from_bytes(path, read_bytes(root, path, MARKDOWN.size)))
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=path) from error


def _token(document: WorkPackage) -> str:
    named = document.lanes.named(document.lane.value) if document.lane is not None else ()
    return named[0].token if len(named) == 1 else ""


def claim_unmet(package: MissionPackage, base: str = "", lanes: Sequence[str] = (READY,)) -> tuple[Problem, ...]:
    """Return what prevents the package from being taken.

    A package that starts from the branch of `base` does not wait for `base`.
    """
    place = Location(package.document.path)
    found = []
    if package.lane not in lanes:
        status = package.document.lane
        message = f"{package.id} is {status.value}" if status is not None else f"{package.id} has no lane in its file"
        found.append(
            Problem(
                "wrong_lane",
                f"{message}; only a planned package can be claimed",
                place,
                f"workpacket show {package.id}",
            )
        )
    for name, lane in package.waiting:
        if name != base:
            short = name.rpartition("--")[2]
            build = f"workpacket packet implement {package.id} --on {short}"
            hint = f"workpacket why {name}; or build on its branch: {build}"
            found.append(Problem("dependency_unmet", f"{name} is {lane or 'missing'}; it must be done", place, hint))
    return tuple(found)


def take(repository: Repository, package: MissionPackage, actor: str) -> tuple[str, ...]:
    """Write the lane and the history into the file; return the changed paths."""
    document = package.document
    now = moment()
    try:
        data = _taken(document, actor, now.now)
    except CannotEdit as error:
        raise WorkpacketError("file_unreadable", str(error), path=document.path) from error
    with writing(repository, "claim") as transaction:
        return transaction.apply(Plan("claim", now.tx, (FileChange(document.path, document.source.digest, data),)))


def _taken(document: WorkPackage, actor: str, now: str) -> bytes:
    front = read_front_matter(document.source)
    text = yaml_text(document.source, start=front.start, end=front.end)
    text = text.edited(set_scalar(text, ("lane",), _TAKEN))
    history = text.root.get("history")
    if history is not None and history.items:
        text = text.edited(append_item(text, ("history",), _entry(history.items[-1].plain(), actor, now)))
    return text.source.encode()


def _entry(last: Plain, actor: str, now: str) -> Plain:
    """Return an entry in the same form as the last one; several forms are in use."""
    known = last if isinstance(last, dict) else {}
    values: dict[str, Plain] = {
        "event": "claimed", "timestamp": now, "at": now, "actor": actor, "agent": actor, "lane": _TAKEN,
        "action": "Claimed",
    }  # fmt: skip
    return {key: values[key] for key in known if key in values} or {"timestamp": now, "actor": actor, "lane": _TAKEN}


def make_place(repository: Repository, package: MissionPackage, base: MissionPackage | None) -> None:
    """Create the branch and the work tree if they are missing, starting at the base's branch or else at HEAD."""
    branches = local_branches(repository)
    if package.branch not in branches:
        start = base.branch if base is not None else "HEAD"
        if base is not None and start not in branches and value_of(base.document.lane) in _MERGED:
            start = "HEAD"  # the branch of a finished package is merged and deleted
        elif base is not None and start not in branches:
            hint = f"workpacket packet implement {base.id}"
            raise WorkpacketError("unknown_revision", f"{base.id} has no branch {start}", hint=hint)
        add_branch(repository, package.branch, commit_of(repository, start))
    if all(tree.branch != package.branch for tree in list_worktrees(repository)):
        add_worktree(repository, repository.root / package.worktree, package.branch)


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
