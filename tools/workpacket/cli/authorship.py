"""Who wrote a change: the declarations of a session, `trailers` for commits, and `trace PATH:LINE`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import DECLARING, declared
from workpacket.cli.read_only import all_facts, open_for_reading, show_json
from workpacket.errors import WorkpacketError
from workpacket.lifecycle.authorship import FIELDS, UNDECLARED, Declared, trailers
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import whose_branch
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.report.escape import escape
from workpacket.shell.governed_files import packet_called
from workpacket.shell.work_done import branch_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.git.repository import Repository
    from workpacket.lifecycle.authorship import Assistance
    from workpacket.shell.work_done import LineOrigin


def _run_trailers(arguments: Arguments) -> int:
    repository = open_for_reading()
    said, target = declared(arguments), arguments.value("into")
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "expected one packet")
    facts = all_facts(repository)
    name = _asked(arguments, str(repository.root), facts, branch_here(repository))
    lines = trailers(name, facts.packets[name].log.events, said or Declared()) if name else []
    if target and lines:
        from workpacket.git.objects import add_trailers

        add_trailers(repository, os.path.abspath(target), lines)
    if arguments.flag("json"):
        return show_json(arguments, {"id": name, "trailers": [*lines], "into": target})
    if not target:
        print("\n".join(map(escape, lines)))
    return exits.OK


def _asked(arguments: Arguments, root: str, facts: Facts, branch: str) -> str:
    """Return the given packet, or that of this branch.

    With --into, the packet may be missing, because a hook must not stop commits.
    """
    if arguments.words:
        name = packet_called(root, arguments.words[0]).text
        if name not in facts.packets:
            raise WorkpacketError("packet_unknown", f"there is no packet {name}", hint="workpacket list shows all")
        return name
    name = whose_branch(facts, branch)
    if name not in facts.packets and not arguments.flag("into"):
        raise usage(arguments.command, "missing_argument", "this branch belongs to no packet: give a WP_ID")
    return name if name in facts.packets else ""


_TRAILERS: Final = Command(
    "trailers",
    _run_trailers,
    arguments="[WP_ID]",
    description="""
Prints `Work-Packet: WP_ID`, and an `Assisted-by: HARNESS:MODEL` for each harness and model that `claim` and `submit`
recorded. Put these lines at the end of a commit message, or of the text of a pull request, so that a squash keeps them;
`trace PATH:LINE` reads them. Without an id, the packet of the current branch is used.

With --into, the lines are added to the file of a commit message. In .git/hooks/prepare-commit-msg:
exec workpacket trace trailers --into "$1"

Undeclared harnesses and models are never guessed.""",
    options=(Option("into", "add the lines to this file, unless it already has them", value="FILE"), *DECLARING),
    examples=(
        "workpacket trace trailers WP-1-Parser-v1",
        "workpacket trace trailers --harness Codex --model gpt-5-4 --into .git/COMMIT_EDITMSG",
    ),
)

DECLARED: Final = {_TRAILERS.name: _TRAILERS}

_PLACE: Final = re.compile(r"(?P<path>.+):(?P<line>[1-9][0-9]*)\Z", re.DOTALL)


def asked_line(words: list[str]) -> tuple[str, int] | None:
    """Return the path and the line, if the argument is PATH:LINE."""
    found = _PLACE.match(words[0]) if len(words) == 1 else None
    return (found["path"], int(found["line"])) if found is not None else None


def trace_line(arguments: Arguments, path: str, line: int) -> int:
    """Show who wrote a line: commit, packets, contract, approvers, judges, harness."""
    from workpacket.lifecycle.authorship import assistance
    from workpacket.shell.work_done import line_origin, packets_of_commit

    repository = open_for_reading()
    origin = line_origin(repository, path, line)
    facts = all_facts(repository)
    said = assistance(origin.author, origin.message)
    known = list(packets_of_commit(repository, facts.packets, origin)) if origin.commit else []
    rows = [_row(repository, facts, name, _how(name, known, said)) for name in dict.fromkeys((*known, *said.packets))]
    if arguments.flag("json"):
        data: dict[str, Json] = {
            "path": path,
            "line": line,
            "commit": origin.commit,
            "author": origin.author,
            "assistants": [*said.assistants],
            "sessions": [*said.sessions],
            "written_for": [*rows],
        }
        return show_json(arguments, data)
    for text in _told(path, line, origin, said, rows):
        print(escape(text))
    return exits.OK


def _how(name: str, known: list[str], said: Assistance) -> str:
    sources = (("log", name in known), ("trailer", name in said.packets))
    return " and ".join(source for source, holds in sources if holds)


def _row(repository: Repository, facts: Facts, name: str, how: str) -> dict[str, Json]:
    """Return what the log and the approvals say about one packet. A trailer may name a packet that does not exist."""
    from workpacket.shell.approvals.facts import open_approvals
    from workpacket.shell.audit import decisions

    packet = facts.packets.get(name)
    with open_approvals(repository, None, facts.moment, name) as approvals:
        signed = decisions(approvals).get(name, ())
    approvers = {
        each.approver
        for each in signed
        if each.decision == "approve" and each.gate in {"activation", "amendment", "standing"} and not each.refusals
    }
    return {
        "packet": name,
        "lane": packet.lane if packet is not None else "",
        "how": how,
        "approvers": sorted(approvers),
        **_of_log(packet),
    }


def _of_log(packet: PacketFacts | None) -> dict[str, Json]:
    from workpacket.lifecycle.authorship import declared_in

    events = packet.log.events if packet is not None else ()
    contract, coder, judges = "", "", []
    said = Declared()
    for event in events:
        contract = event.text("contract") or contract
        if event.type in {"claimed", "submitted"}:
            coder, told = event.actor.id, declared_in(event)
            said = told if told.data() or event.type == "claimed" else said
        if event.type == "verdict.given":
            judges.append(f"{event.text('verdict')} by {event.actor.id}")
    told_of: dict[str, Json] = {key: getattr(said, key) for key in FIELDS}
    return {"contract": contract, "coder": coder, "verdicts": [*judges], **told_of}


def _told(path: str, line: int, origin: LineOrigin, said: Assistance, rows: list[dict[str, Json]]) -> Iterator[str]:
    if not origin.commit:
        yield f"{path}:{line} is not committed"
        return
    author, title = origin.author.partition(" <")[0], origin.message.partition("\n")[0]
    yield f"{path}:{line}  {origin.commit[:12]}  {author}  {title}"
    for row in rows:
        yield from _told_of(row)
    if not rows:
        yield f"  packet      {UNDECLARED}"
    yield f"  assistants  {', '.join(said.assistants) + ' (the commit says so)' if said.assistants else UNDECLARED}"
    yield from (f"  session     {each} (the commit says so)" for each in said.sessions)


def _told_of(row: dict[str, Json]) -> Iterator[str]:
    unknown = "" if row["lane"] else ", which has no log here"
    yield f"  packet      {row['packet']} {row['lane']} (by {row['how']}){unknown}"
    yield f"    contract  {row['contract'] or 'not recorded'}"
    approvers, verdicts = row["approvers"], row["verdicts"]
    yield (
        f"    approved  by {', '.join(map(str, approvers))}"
        if isinstance(approvers, list) and approvers
        else "    approved  not signed"
    )
    yield (
        f"    judged    {', '.join(map(str, verdicts))}"
        if isinstance(verdicts, list) and verdicts
        else "    judged    not yet"
    )
    harness = f"{row['harness'] or UNDECLARED} {row['harness_version']}".strip()
    session = f", session {row['session']}" if row["session"] else ""
    marked = " (declared)" if row["harness"] or row["model"] else ""
    yield f"    done by   {row['coder'] or 'not claimed'}"
    yield f"    with      {harness}, model {row['model'] or UNDECLARED}{session}{marked}"
