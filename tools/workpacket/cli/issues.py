"""`workpacket new --from SOURCE`: make a packet for each open issue of another tool, but never two for the same
issue."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final

from workpacket.cli.options import Arguments, usage
from workpacket.cli.packet_command import actor_of, conclude, scope_of
from workpacket.cli.workspace import open_workspace
from workpacket.documents.issues import (
    EXPORT,
    Issue,
    from_json,
    from_lines,
    from_list,
    from_task,
    from_text,
    identity_of,
    is_task,
    lanes_of_mission,
)
from workpacket.documents.packet import LightText
from workpacket.git.objects import commit_paths
from workpacket.git.repository import Repository
from workpacket.lazy_pattern import lazy_pattern
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
from workpacket.text.source import MARKDOWN, Source

# The programs of forges, which know who asks: prefix, then the words before and after the number, and for another
# repository.
_FORGES: Final = {
    "gh": (("gh", "issue", "view"), ("--json", "number,title,body,url,state"), "--repo"),
    "glab": (("glab", "issue", "view"), ("--output", "json"), "--repo"),
}
_SECONDS: Final = 60
_ADDRESS: Final = lazy_pattern(
    r"https?://[^/\s]+/(?P<place>[\w./-]+?)(?P<gitlab>/-)?/(?:issues|work_items)/(?P<number>[0-9]+)/?(?:#.*)?"
)
_LONGEST_LINK: Final = 200

IdOf = Callable[[str], WorkPacketId]


def make_packets(arguments: Arguments, repository: Repository, governed: GovernedFiles, form: str, id_of: IdOf) -> int:
    """Make a packet for each open issue that has none.

    Each is a separate transaction, so a second call continues where the first one stopped.
    """
    issues = _issues(arguments)
    known = _made_before(governed)
    made: list[tuple[str, Issue]] = []
    changed: list[str] = []
    commit = arguments.flag("commit")
    before = [issue for issue in issues if identity_of(issue.link) in known]
    for issue in _in_order(issues):
        if issue.done or identity_of(issue.link) in known:
            continue
        wp_id = id_of(issue.title)
        first = [known[other] for other in issue.after if other in known]
        known[identity_of(issue.link)] = wp_id.text
        carried = _make(arguments, repository, governed, form, wp_id, issue, first)
        if not isinstance(carried.answer, Planned):
            return conclude(arguments, carried, wp_id.text)
        made.append((wp_id.text, issue))
        commit = commit or carried.commit
        changed += (path for path in carried.changed if path not in changed)
    if commit and changed:
        commit_paths(repository, f"workpacket new --from {arguments.value('from')}", changed)
    ended = sum(issue.done and issue not in before for issue in issues)
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
    arguments: Arguments,
    repository: Repository,
    governed: GovernedFiles,
    form: str,
    wp_id: WorkPacketId,
    issue: Issue,
    first: Sequence[str],
) -> Carried:
    why = arguments.value("why") or issue.why
    scope = scope_of(arguments) or [f"`{path}`" for path in issue.scope if path.isprintable() and "`" not in path]
    risk, proof = arguments.value("risk"), arguments.value("prove")
    alike = [name for name in governed.known if WorkPacketId.parse(name).base == wp_id.base]
    actor = actor_of(arguments, repository)

    def decide(facts: Facts) -> Answer:
        if form == LIGHT_FORM:
            criteria = [(one, proof, "") for one in issue.criteria]
            return new_light(
                facts,
                NewPacket(
                    wp_id,
                    LightText(issue.title, why, criteria, scope, risk=risk, dependencies=first),
                    link=issue.link,
                ),
            )
        criteria_only, source = list(issue.criteria), ("issue", issue.link)
        text = NewStub(
            wp_id, issue.title, why, "", criteria_only, scope, dependencies=first, source=source, risk_tier=risk
        )
        return new(facts, text)

    return carry_out(repository, "new", [*alike, wp_id.text], actor, decide)


def _in_order(issues: Sequence[Issue]) -> list[Issue]:
    """Return the issues in their original order, except that each one comes after those that must be done first, unless
    they wait for each other.
    """
    by_identity = {identity_of(issue.link): issue for issue in issues}
    ordered: dict[str, Issue] = {}
    begun: set[str] = set()
    waiting = [*reversed(by_identity)]
    while waiting:
        name = waiting[-1]
        left = [] if name in begun else [one for one in by_identity[name].after if one in by_identity.keys() - begun]
        begun.add(name)
        if left:
            waiting += reversed(left)
        else:
            ordered.setdefault(waiting.pop(), by_identity[name])
    return [*ordered.values()]


def _made_before(governed: GovernedFiles) -> dict[str, str]:
    """Return the packets made from issues, keyed by the identity of the issue."""
    found = {}
    for name in governed.known:
        for event in governed.packet(WorkPacketId.parse(name)).log.events:
            source = event.data.get("source") if event.type == "created" else None
            if isinstance(source, dict) and source.get("kind") == "issue":
                found[identity_of(str(source.get("name")))] = name
    return found


def _issues(arguments: Arguments) -> list[Issue]:
    origin = arguments.value("from")
    meant = _issue_meant(origin)
    if meant:
        what = f"--from takes the number of an issue, not {origin}"
        raise usage(arguments.command, "invalid_value", what, f"workpacket new --from {meant}")
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
                f"the link for {issue.title!r} is longer than 200 characters or contains control characters",
            )
    return found


def _issue_meant(origin: str) -> str:
    """Return the --from value for the issue given by an address or a bare number; '' for anything else."""
    address = _ADDRESS.fullmatch(origin)
    if address is not None:
        return f"{'glab' if address['gitlab'] else 'gh'}:{address['place']}#{address['number']}"
    return f"gh:{origin[1:]} or glab:{origin[1:]}" if origin.startswith("#") and origin[1:].isdecimal() else ""


def _folder(folder: str) -> list[Issue] | Problem:
    """Read a folder: one of beads or of Backlog.md, one spec-kitty mission or all missions, or just tasks."""
    lines = os.path.join(folder, _BEADS)
    if os.path.isfile(lines):
        return from_lines(_source(lines, EXPORT.size))
    below = os.path.join(folder, "tasks")
    missions = sorted(os.path.join(folder, name, "tasks") for name in os.listdir(folder))
    folders = [below] if os.path.isdir(below) else [*filter(os.path.isdir, missions)] or [folder]
    issues: list[Issue] = []
    for path in (path for tasks in folders for path in _texts_below(tasks)):
        source = _source(path, MARKDOWN.size)
        if not is_task(source.text):
            continue
        found = _task(path, source)
        if isinstance(found, Problem):
            return found
        issues += found
    if not issues:
        return Problem("path_not_found", f"{folder} has no tasks: none of its files has front matter with an id")
    return issues


_BEADS: Final = "issues.jsonl"


def _texts_below(folder: str) -> list[str]:
    """Return the Markdown files, including those in subfolders: spec-kitty once had a folder for each lane."""
    found = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".md")]
    return sorted(found)


def _task(path: str, source: Source) -> list[Issue] | Problem:
    """Read a task. A spec-kitty mission may say in `status.json` which of its tasks are done."""
    mission = os.path.join(path.rpartition("/tasks/")[0], "status.json")
    if "/tasks/" not in path or not os.path.isfile(mission):
        return from_task(source)
    lanes = lanes_of_mission(_source(mission, EXPORT.size))
    return lanes if isinstance(lanes, Problem) else from_task(source, lanes)


def _file(path: str) -> list[Issue] | Problem:
    if path.endswith(".jsonl"):
        return from_lines(_source(path, EXPORT.size))
    if path.endswith(".json"):
        return from_json(_source(path, EXPORT.size))
    source = _source(path, MARKDOWN.size)
    if source.text.startswith("---\n"):
        return _task(path, source)
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
    """Run the forge's own command-line client, which uses the account that the user is logged in to."""
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
