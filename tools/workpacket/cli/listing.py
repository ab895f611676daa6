"""The output of `list`, computed from the documents; some options also consult the log."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar, cast

from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, usage
from workpacket.cli.views import limited
from workpacket.cli.workspace import Output, progress_bar
from workpacket.documents.summary import WorkSummary
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.lanes import LaneTable, lane_words
from workpacket.model.layout import LOG_FOLDER
from workpacket.model.wording import counted
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import Style, escape, text_width
from workpacket.shell.cache import Cache, RestsOn
from workpacket.shell.checking import known_or_examined
from workpacket.shell.configuration import lanes_here
from workpacket.shell.governed_files import LOG_STATE
from workpacket.shell.tree import Found

Entry = tuple[str, str, WorkSummary]
T = TypeVar("T")


def list_work(arguments: Arguments, root: str, files: Sequence[Found], cache: Cache) -> Output:
    """List every file that the options select, ordered by id."""
    table = lanes_here(root)
    entries, unread = _read(root, files, cache, table)
    light, signatures = _read_log(root, entries, cache)
    wanted = _lanes(arguments, table)
    by_log = _by_log(arguments)
    chosen = sorted(
        (
            entry
            for entry in _once(arguments, entries)
            if _fits(arguments, entry, wanted) and (by_log is None or entry[2]["id"] in by_log)
        ),
        key=lambda entry: (entry[2]["id"], entry[1]),
    )
    shown, more = limited(arguments, chosen)
    rests_on = light | (RestsOn((LOG_STATE,), clock=True) if by_log is not None else RestsOn())
    if arguments.flag("json"):
        work: list[Json] = [{**_as_json(one), "signatures": signatures.by_id.get(one[2]["id"], "")} for one in shown]
        data: dict[str, Json] = {"work": work, "unreadable": [*unread], "more": more}
        return Output(render_envelope("list", exits.OK, [], data), exits.OK, rests_on)
    note = f"not listed because unreadable: {', '.join(map(escape, unread))}\n" if unread else ""
    if entries and arguments.words and not chosen:
        words = escape(" ".join(arguments.words))
        note += f"no selected id matches {words}; `workpacket search {words}` searches the full text\n"
    return Output(_as_text(shown, signatures, style_of(arguments), more) + note, exits.OK, rests_on)


def _read(root: str, files: Sequence[Found], cache: Cache, table: LaneTable) -> tuple[list[Entry], list[str]]:
    """Return the entries in the documents, and the paths of unreadable documents."""
    results = known_or_examined(root, files, cache, progress_bar(), table)
    entries = [
        (found.kind, found.path, cast("WorkSummary", json.loads(result.summary)))
        for found, result in zip(files, results, strict=True)
        if result.summary
    ]
    return entries, [found.path for found, result in zip(files, results, strict=True) if not result.summary]


class _Signatures(NamedTuple):
    """The word for the signatures of each packet; `mixed` if the policy says whose keys count, so the words differ."""

    by_id: Mapping[str, str]
    mixed: bool = False


def _read_log(root: str, entries: Sequence[Entry], cache: Cache) -> tuple[RestsOn, _Signatures]:
    """Fill in the lanes of light packets, whose documents do not state one; return the files that this depends on, and
    what the log says about signatures."""
    light = any(work["form"] == LIGHT_FORM for kind, _, work in entries if kind == "packet")
    if not light and not os.path.isdir(os.path.join(root, LOG_FOLDER)):
        return RestsOn(), _Signatures({})
    from workpacket.cli.read_only import files_of_base, listed_facts, output
    from workpacket.lifecycle.authorship import signatures_in
    from workpacket.shell.governing.execution import here

    repository = here()
    facts = listed_facts(repository, cache)
    packets, actors = facts.packets, facts.policy.actors
    for kind, _, work in entries:
        packet = packets.get(work["id"])
        if kind == "packet" and work["form"] == LIGHT_FORM and packet is not None and packet.lane:
            work["lanes"], work["status"] = [packet.lane], packet.lane
    said = {name: signatures_in(each.glance, actors, verified=each.verified) for name, each in packets.items()}
    if light:
        rests_on = output(repository, "").rests_on
    else:
        # Without actors, a packet with a log is unsigned, whatever its events are.
        rests_on = RestsOn((LOG_STATE if actors.present else LOG_FOLDER, *files_of_base(repository)))
    return rests_on, _Signatures(said, actors.present)


def _by_log(arguments: Arguments) -> frozenset[str] | None:
    """Return the packets that the log selects by holder, lane and time; None if no option requires the log."""
    holder, since = arguments.value("holder"), arguments.value("since")
    if not (holder or since or arguments.flag("mine") or arguments.flag("blocked")):
        return None
    if holder and arguments.flag("mine"):
        raise usage(arguments.command, "conflicting_options", "--mine cannot be combined with --holder")
    # Reading all logs takes longer than everything else that `list` does.
    from workpacket.cli.packet_command import actor_of
    from workpacket.cli.read_only import all_facts, open_for_reading
    from workpacket.lifecycle.gates import lease_held

    try:
        since = date.fromisoformat(since).isoformat() if since else ""
    except ValueError as error:
        message = f"invalid --since {since!r}: expected a date such as 2026-03-01"
        raise usage(arguments.command, "invalid_value", message) from error
    repository = open_for_reading()
    holders = {holder} if holder else set()
    holders |= {actor_of(arguments, repository).id} if arguments.flag("mine") else set()
    facts = all_facts(repository)
    return frozenset(
        name
        for name, packet in facts.packets.items()
        if (not holders or lease_held(packet.state, facts.moment.now) in holders)
        and (not arguments.flag("blocked") or packet.lane == "BLOCKED")
        and (not since or any(event.at >= since for event in packet.state.history))
    )


def _once(arguments: Arguments, entries: Sequence[Entry]) -> list[Entry]:
    """Leave out stubs that became packets, unless stubs are requested: a packet is in only one lane at a time."""
    if arguments.value("kind") == "stub":
        return list(entries)
    packets = {work["id"] for kind, _, work in entries if kind != "stub"}
    return [entry for entry in entries if entry[0] != "stub" or entry[2]["id"] not in packets]


def _lanes(arguments: Arguments, table: LaneTable) -> frozenset[str]:
    """Return the tokens of the requested lanes, which may be given by any of their names."""
    tokens: set[str] = set()
    for word in arguments.values("lane"):
        named = table.named(word.replace("_", " "))
        if not named:
            known = ", ".join(table.tokens)
            raise usage(arguments.command, "invalid_value", f"unknown lane {word!r}; known lanes: {known}")
        tokens.update(lane.token for lane in named)
    return frozenset(tokens)


def _fits(arguments: Arguments, entry: Entry, lanes: frozenset[str]) -> bool:
    kind, _, work = entry
    return (
        (not arguments.words or any(fnmatchcase(work["id"], pattern) for pattern in arguments.words))
        and (not lanes or not lanes.isdisjoint(work["lanes"]))
        and arguments.value("kind", kind) == kind
        and arguments.value("revisions-of", work["base"]) == work["base"]
        and arguments.value("risk", work["risk"]).casefold() == work["risk"].casefold()
        and _depends_on(work, arguments.value("depends-on"))
    )


def _depends_on(work: WorkSummary, other: str) -> bool:
    return not other or any(mention[0] == other for mention in work["depends"])


def _as_json(entry: Entry) -> dict[str, Json]:
    kind, path, work = entry
    depends: list[Json] = [mention[0] for mention in work["depends"]]
    lanes: list[Json] = list(work["lanes"])
    return {
        "id": work["id"],
        "base": work["base"],
        "kind": kind,
        "path": path,
        "lanes": lanes,
        "status": work["status"],
        "risk": work["risk"],
        "created": work["created"],
        "depends": depends,
        "title": work["title"],
    }


def _as_text(entries: Sequence[Entry], signatures: _Signatures, style: Style, more: int) -> str:
    """Return the rows. Without actors in the policy, no event is proven, and no column says so for each packet."""
    said = signatures.by_id if signatures.mixed else {}
    rows = []
    for kind, _, work in entries:
        # The original text, if it does not identify exactly one lane.
        lane = lane_words(work["lanes"][0]) if len(work["lanes"]) == 1 else work["status"] or "-"
        signed = (said.get(work["id"]) or "-",) if said else ()
        rows.append((escape(work["id"]), escape(lane), kind, *signed, escape(" ".join(work["title"].split()))))
    cells = 4 if said else 3
    widths = [max((text_width(row[column]) for row in rows), default=0) for column in range(cells)]
    room = style.columns - sum(widths) - 2 * cells if style.columns else None
    lines = [_line(row, widths, room, style) for row in rows]
    others = f", {more} more without --limit" if more else ""
    unsigned = "" if said or not signatures.by_id else ", unsigned"
    return "\n".join([*lines, *([""] if lines else []), counted(len(rows), "packet") + others + unsigned]) + "\n"


def _line(row: Sequence[str], widths: Sequence[int], room: int | None, style: Style) -> str:
    *shown, title = row
    if room is not None and len(title) > room:
        title = title[: max(room - 1, 0)].rstrip() + "…" if room > 8 else ""
    cells = [text + " " * (width - text_width(text)) for text, width in zip(shown, widths, strict=True)]
    return "  ".join([style.paint(cells[0], "code"), *cells[1:], title]).rstrip()
