"""`workpacket new --from SOURCE`: make a packet for each open issue of another tool, and none twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from workpacket.cli.options import Arguments, usage
from workpacket.cli.packet_command import actor_of, conclude, scope_of
from workpacket.cli.workspace import open_workspace
from workpacket.documents.issues import Issue, from_json, from_lines, from_list, from_task, from_text
from workpacket.documents.packet import LightText
from workpacket.git.repository import Repository
from workpacket.lifecycle.backlog import NewStub, new
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.forms import NewPacket, new_light
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.ids import WorkPacketId
from workpacket.model.wording import counted, next_line
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import escape
from workpacket.shell.governed_files import GovernedFiles
from workpacket.shell.governing.execution import Carried, carry_out
from workpacket.shell.tree import read_bytes, refusal
from workpacket.text.source import DATA, MARKDOWN, Source

# The programs of forges, which know who asks: prefix, then the words before and after the number, and for another
# repository.
_FORGES: Final = {
    "gh": (("gh", "issue", "view"), ("--json", "number,title,body,url,state"), "--repo"),
    "glab": (("glab", "issue", "view"), ("--output", "json"), "--repo"),
}
_SECONDS: Final = 60
_LONGEST_LINK: Final = 200

IdOf = Callable[[str], WorkPacketId]


def make_packets(arguments: Arguments, repository: Repository, governed: GovernedFiles, form: str, id_of: IdOf) -> int:
    """Make a packet for each open issue that has none.

    Each is a separate transaction, so a second call continues where the first one stopped.
    """
    issues = _issues(arguments)
    known = _links(governed)
    made: list[tuple[str, Issue]] = []
    changed: list[str] = []
    before = [issue for issue in issues if issue.link in known]
    for issue in issues:
        if issue.done or issue.link in known:
            continue
        known.add(issue.link)
        wp_id = id_of(issue.title)
        carried = _make(arguments, repository, governed, form, wp_id, issue)
        if not isinstance(carried.answer, Planned):
            return conclude(arguments, carried, wp_id.text)
        made.append((wp_id.text, issue))
        changed += (path for path in carried.changed if path not in changed)
    ended = sum(issue.done and issue.link not in {one.link for one in before} for issue in issues)
    then = f"workpacket why {made[0][0]}" if made else "workpacket list"
    if arguments.flag("json"):
        listed: list[Json] = [{"id": name, "link": issue.link} for name, issue in made]
        data: dict[str, Json] = {"made": listed, "known": [one.link for one in before], "done": ended}
        data |= {"changed": [*changed], "next": then}
        sys.stdout.write(render_envelope("new", exits.OK, [], data))
        return exits.OK
    for name, issue in made:
        print(f"{name}  {escape(issue.title)}")
        print(f"  - from {escape(issue.link)}")
    print(f"{counted(len(made), 'packet')} created, {len(before)} already exist, {ended} already closed at the source")
    print(next_line(then))
    return exits.OK


def _make(
    arguments: Arguments, repository: Repository, governed: GovernedFiles, form: str, wp_id: WorkPacketId, issue: Issue
) -> Carried:
    why = arguments.value("why") or issue.why
    scope = scope_of(arguments)
    risk, proof = arguments.value("risk"), arguments.value("prove")
    alike = [name for name in governed.known if WorkPacketId.parse(name).base == wp_id.base]
    actor = actor_of(arguments, repository)

    def decide(facts: Facts) -> Answer:
        if form == LIGHT_FORM:
            criteria = [(one, proof, "") for one in issue.criteria]
            return new_light(
                facts, NewPacket(wp_id, LightText(issue.title, why, criteria, scope, risk=risk), link=issue.link)
            )
        criteria_only = list(issue.criteria)
        return new(
            facts,
            NewStub(wp_id, issue.title, why, "", criteria_only, scope, source=("issue", issue.link), risk_tier=risk),
        )

    return carry_out(repository, "new", [*alike, wp_id.text], actor, decide)


def _links(governed: GovernedFiles) -> set[str]:
    """Return the links of the issues that have packets."""
    found = set()
    for name in governed.known:
        for event in governed.packet(WorkPacketId.parse(name)).log.events:
            source = event.data.get("source") if event.type == "created" else None
            if isinstance(source, dict) and source.get("kind") == "issue":
                found.add(str(source.get("name")))
    return found


def _issues(arguments: Arguments) -> list[Issue]:
    origin = arguments.value("from")
    forge, colon, rest = origin.partition(":")
    if colon and forge in _FORGES:
        found = from_json(Source.from_bytes(origin, _asked(arguments, forge, rest)))
    elif os.path.isdir(origin):
        found = _folder(origin)
    else:
        found = _file(origin)
    if isinstance(found, Problem):
        raise WorkpacketError.of(found)
    for issue in found:
        if len(issue.link) > _LONGEST_LINK or not issue.link.isprintable():
            raise usage(
                arguments.command,
                "invalid_value",
                f"the link of {issue.title!r} is longer than 200 characters or contains control characters",
            )
    return found


def _folder(folder: str) -> list[Issue] | Problem:
    """Read a folder of tasks: the `tasks` folder of Backlog.md, or of a spec-kitty mission."""
    below = os.path.join(folder, "tasks")
    folder = below if os.path.isdir(below) else folder
    issues: list[Issue] = []
    names = sorted(
        name for name in os.listdir(folder) if name.endswith(".md") and name not in {"README.md", "tasks.md"}
    )
    if not names:
        return Problem("path_not_found", f"{folder} contains no tasks: none of its files ends with .md")
    for name in names:
        found = from_task(_source(os.path.join(folder, name), MARKDOWN.size))
        if isinstance(found, Problem):
            return found
        issues += found
    return issues


def _file(path: str) -> list[Issue] | Problem:
    if path.endswith(".jsonl"):
        return from_lines(_source(path, DATA.size))
    if path.endswith(".json"):
        return from_json(_source(path, DATA.size))
    source = _source(path, MARKDOWN.size)
    if source.text.startswith("---\n"):
        return from_task(source)
    listed = from_list(source)
    # A text without boxes at the margin is one issue, and its items are criteria.
    return from_text(source) if isinstance(listed, Problem) else listed


def _source(path: str, limit: int) -> Source:
    try:
        data = read_bytes(os.getcwd(), path, limit)
    except FileNotFoundError as error:
        raise WorkpacketError("path_not_found", f"{path} does not exist") from error
    except OSError as error:
        raise WorkpacketError("file_unreadable", refusal(error), path=path) from error
    if len(data) > limit:
        raise WorkpacketError("file_unreadable", f"it is larger than {limit:,} bytes", path=path)
    # Named from the repository, so that the link is the same wherever the command is typed.
    return Source.from_bytes(open_workspace().relative(path), data)


def _asked(arguments: Arguments, forge: str, rest: str) -> bytes:
    """Run the forge's own program, which uses its user's account."""
    before, after, other = _FORGES[forge]
    place, hash_sign, number = rest.rpartition("#")
    if not number.isdecimal() or place.startswith("-"):
        form = f"{forge}:NUMBER or {forge}:OWNER/NAME#NUMBER"
        raise usage(arguments.command, "invalid_value", f"--from takes {form}, not {forge}:{rest}")
    command = [*before, number, *after, *([other, place] if hash_sign else [])]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
    except FileNotFoundError as error:
        raise WorkpacketError("tool_missing", f"{forge} is not installed", hint=f"install {forge}") from error
    except subprocess.TimeoutExpired as error:
        raise WorkpacketError("tool_failed", f"{' '.join(command)} did not finish within {_SECONDS} s") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise WorkpacketError("tool_failed", f"{' '.join(command)} failed: {said[-1] if said else 'without a message'}")
    return done.stdout
