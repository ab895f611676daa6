"""The output of `list` and `search`, computed from the documents; some options of `list` also consult the log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, usage
from workpacket.cli.workspace import Output, progress_bar
from workpacket.documents.document import stem_of
from workpacket.documents.summary import WorkSummary
from workpacket.git.objects import TextMatch, grep
from workpacket.git.repository import find_repository
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.lanes import LaneTable, lane_words
from workpacket.model.layout import LOG_FOLDER, PACKETS, REFINEMENTS
from workpacket.model.wording import counted, next_line
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import Style, escape, text_width
from workpacket.shell.cache import Cache, RestsOn
from workpacket.shell.checking import known_or_examined
from workpacket.shell.configuration import lanes_here
from workpacket.shell.governed_files import LOG_STATE
from workpacket.shell.tree import Found
from workpacket.value import replace

Entry = tuple[str, str, WorkSummary]
T = TypeVar("T")


def list_work(arguments: Arguments, root: str, files: Sequence[Found], cache: Cache) -> Output:
    """List every file that the options select, ordered by id."""
    table = lanes_here(root)
    entries, unread = _read(root, files, cache, table)
    light = _read_lanes_of_log(entries, cache)
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
    shown, more = _limited(arguments, chosen)
    rests_on = light | (RestsOn((LOG_STATE,), clock=True) if by_log is not None else RestsOn())
    if arguments.flag("json"):
        data: dict[str, Json] = {"work": [_as_json(entry) for entry in shown], "unreadable": [*unread], "more": more}
        return Output(render_envelope("list", exits.OK, [], data), exits.OK, rests_on)
    note = f"not listed because unreadable: {', '.join(map(escape, unread))}\n" if unread else ""
    if entries and arguments.words and not chosen:
        words = escape(" ".join(arguments.words))
        note += f"no selected id matches {words}; `workpacket search {words}` searches the full text\n"
    return Output(_as_text(shown, style_of(arguments), more) + note, exits.OK, rests_on)


def _read(root: str, files: Sequence[Found], cache: Cache, table: LaneTable) -> tuple[list[Entry], list[str]]:
    """Return the entries in the documents, and the paths of unreadable documents."""
    results = known_or_examined(root, files, cache, progress_bar(), table)
    entries = [
        (found.kind, found.path, cast("WorkSummary", json.loads(result.summary)))
        for found, result in zip(files, results, strict=True)
        if result.summary
    ]
    return entries, [found.path for found, result in zip(files, results, strict=True) if not result.summary]


def _read_lanes_of_log(entries: Sequence[Entry], cache: Cache) -> RestsOn:
    """Fill in the lanes of light packets, whose documents do not state one; return the files that the lanes depend
    on."""
    if not any(work["form"] == LIGHT_FORM for kind, _, work in entries if kind == "packet"):
        return RestsOn()
    from workpacket.cli.read_only import listed_facts, output
    from workpacket.shell.governing.execution import here

    repository = here()
    packets = listed_facts(repository, cache).packets
    for kind, _, work in entries:
        packet = packets.get(work["id"])
        if kind == "packet" and work["form"] == LIGHT_FORM and packet is not None and packet.lane:
            work["lanes"], work["status"] = [packet.lane], packet.lane
    return output(repository, "").rests_on


def _limited(arguments: Arguments, chosen: Sequence[T]) -> tuple[Sequence[T], int]:
    """Return as many entries as requested, and the number of remaining entries."""
    text = arguments.value("limit")
    if not text:
        return chosen, 0
    if not text.isdecimal() or not int(text):
        raise usage(arguments.command, "invalid_value", f"invalid --limit {text!r}: expected a positive number")
    return chosen[: int(text)], max(len(chosen) - int(text), 0)


def _by_log(arguments: Arguments) -> frozenset[str] | None:
    """Return the packets that the log selects by holder, lane and time; None if no option requires the log."""
    holder, since = arguments.value("holder"), arguments.value("since")
    if not (holder or since or arguments.flag("mine") or arguments.flag("blocked")):
        return None
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


class _Match(NamedTuple):
    """A match. `rank` is 0 if the id contains every word, 1 if id and title together do, otherwise 2."""

    rank: int
    entry: Entry
    lines: Sequence[TextMatch]


_LINES_SHOWN = 2


def search_work(arguments: Arguments, root: str, files: Sequence[Found], cache: Cache) -> Output:
    """Find the packets that contain all the words."""
    words = tuple(word.casefold() for given in arguments.words for word in given.split())
    if not words:
        raise usage(arguments.command, "missing_argument", "expected at least one WORD")
    table = lanes_here(root)
    entries, unread = _read(root, files, cache, table)
    found = _matches(_once(arguments, entries), words, _in_texts(root, entries, words))
    shown, more = _limited(arguments, sorted(found, key=lambda match: (match.rank, match.entry[2]["id"])))
    rests_on = RestsOn((LOG_STATE, f"{REFINEMENTS}/")) | _read_lanes_of_log([match.entry for match in shown], cache)
    if arguments.flag("json"):
        data: dict[str, Json] = {
            "found": [
                {
                    **{key: value for key, value in _as_json(match.entry).items() if key in _FOUND},
                    "lines": [{"path": one.path, "line": one.line, "text": one.text} for one in match.lines],
                }
                for match in shown
            ],
            "unreadable": [*unread],
            "more": more,
        }
        return Output(render_envelope("search", exits.OK, [], data), exits.OK, rests_on)
    lines: list[str] = []
    for match in shown:
        work = match.entry[2]
        title = escape(" ".join(work["title"].split()))
        lines.append(f"{escape(work['id'])}  {escape(lane_shown(work))}  {title}".rstrip())
        for one in match.lines[:_LINES_SHOWN]:
            place = "log" if one.path.startswith(LOG_FOLDER) else f"{escape(one.path)}:{one.line}"
            lines.append(f"    {place}: {_cut(one.text, words)}")
    lines.append(_counted_packets(len(shown), more))
    if unread:
        lines.append(f"not searched because unreadable: {', '.join(map(escape, unread))}")
    lines.append(next_line(f"workpacket show {shown[0].entry[2]['id']}" if shown else "workpacket list"))
    return Output("\n".join(lines) + "\n", exits.OK, rests_on)


_FOUND = frozenset({"id", "kind", "path", "lanes", "title"})


def _matches(
    entries: Sequence[Entry], words: tuple[str, ...], texts: Mapping[str, list[TextMatch]]
) -> Iterator[_Match]:
    for entry in entries:
        work = entry[2]
        name, title = work["id"].casefold(), work["title"].casefold()
        lines = texts.get(work["id"], [])
        bodies = [line.text.casefold() for line in lines]
        if not all(word in name or word in title or any(word in body for body in bodies) for word in words):
            continue
        in_name = all(word in name for word in words)
        rank = 0 if in_name else 1 if all(word in name or word in title for word in words) else 2
        yield _Match(rank, entry, lines)


def _in_texts(root: str, entries: Sequence[Entry], words: tuple[str, ...]) -> dict[str, list[TextMatch]]:
    """Return, by packet, the lines with at least one of the words: in its documents, its refinement and its log."""
    owners = {path: work["id"] for _, path, work in entries}
    found: dict[str, list[TextMatch]] = {}
    folders = (PACKETS, REFINEMENTS, LOG_FOLDER, *sorted({os.path.dirname(path) for path in owners} - {PACKETS}))
    for match in grep(find_repository(Path(root)), words, folders):
        folder, _, name = match.path.rpartition("/")
        if not folder.startswith(LOG_FOLDER):
            found.setdefault(owners.get(match.path) or stem_of(name), []).append(match)
        elif said := _said_by(match.text, words):
            found.setdefault(folder.rpartition("/")[2], []).append(replace(match, text=said))
    return found


def _said_by(line: str, words: tuple[str, ...]) -> str:
    """Return the text in an event that contains one of the words; '' if only its keys, hashes or signature contain
    one."""
    try:
        event = json.loads(line)
        actor, data = event["actor"]["id"], event["data"]
        head, said = f"{event['at'][:10]} {event['type']} by {actor}", [*_strings_in(data)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    named = next((text for text in said if any(word in text.casefold() for word in words)), "")
    known = any(word in head.casefold() for word in words)
    return f"{head}: {named}" if named else head if known else ""


def _strings_in(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(item)
    elif isinstance(value, str) and value:
        yield value


_ROOM = 100


def _cut(text: str, words: tuple[str, ...]) -> str:
    """Return the part of a line around the first matching word."""
    line = " ".join(text.split())
    at = min((place for word in words if (place := line.casefold().find(word)) >= 0), default=0)
    start = max(at - _ROOM // 3, 0) if len(line) > _ROOM else 0
    return f"{'…' if start else ''}{escape(line[start : start + _ROOM])}{'…' if len(line) > start + _ROOM else ''}"


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


def lane_shown(work: WorkSummary) -> str:
    """Return the lane, or the original text if it does not identify exactly one lane."""
    return lane_words(work["lanes"][0]) if len(work["lanes"]) == 1 else work["status"] or "-"


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


def _counted_packets(count: int, more: int) -> str:
    return counted(count, "packet") + (f", {more} more without --limit" if more else "")


def _as_text(entries: Sequence[Entry], style: Style, more: int) -> str:
    rows = [
        (escape(work["id"]), escape(lane_shown(work)), kind, escape(" ".join(work["title"].split())))
        for kind, _, work in entries
    ]
    widths = [max((text_width(row[column]) for row in rows), default=0) for column in range(3)]
    room = style.columns - sum(widths) - 6 if style.columns else None
    lines = [_line(row, widths, room, style) for row in rows]
    return "\n".join([*lines, *([""] if lines else []), _counted_packets(len(rows), more)]) + "\n"


def _line(row: tuple[str, str, str, str], widths: Sequence[int], room: int | None, style: Style) -> str:
    name, lane, kind, title = row
    if room is not None and len(title) > room:
        title = title[: max(room - 1, 0)].rstrip() + "…" if room > 8 else ""
    cells = [text + " " * (width - text_width(text)) for text, width in zip((name, lane, kind), widths, strict=True)]
    return "  ".join([style.paint(cells[0], "code"), *cells[1:], title]).rstrip()
