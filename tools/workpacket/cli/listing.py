"""The output of `list`, computed from the documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import cast

from workpacket.cli.cached_output import Output
from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, usage
from workpacket.cli.workspace import progress_bar
from workpacket.documents.summary import WorkSummary
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.lanes import LaneTable
from workpacket.model.wording import counted
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import Style, text_width
from workpacket.shell.cache import Cache
from workpacket.shell.checking.repository import known_or_examined
from workpacket.shell.configuration import lanes_here
from workpacket.shell.tree import Found

Entry = tuple[str, str, WorkSummary]


def list_work(arguments: Arguments, root: str, files: Sequence[Found], cache: Cache) -> Output:
    """List every file that the options select, by id."""
    table = lanes_here(root)
    results = known_or_examined(root, files, cache, progress_bar(), table)
    entries = [
        (found.kind, found.path, cast("WorkSummary", json.loads(result.summary)))
        for found, result in zip(files, results, strict=True)
        if result.summary
    ]
    wanted = _lanes(arguments, table)
    chosen = sorted(
        (entry for entry in _once(arguments, entries) if _fits(arguments, entry, wanted)),
        key=lambda entry: (entry[2]["id"], entry[1]),
    )
    unread = [found.path for found, result in zip(files, results, strict=True) if not result.summary]
    if arguments.flag("json"):
        data: dict[str, Json] = {"work": [_as_json(entry) for entry in chosen], "unreadable": [*unread]}
        return Output(render_envelope("list", exits.OK, [], data), exits.OK)
    note = f"not listed, because unreadable: {', '.join(map(escape, unread))}\n" if unread else ""
    return Output(_as_text(chosen, style_of(arguments)) + note, exits.OK)


def _once(arguments: Arguments, entries: Sequence[Entry]) -> list[Entry]:
    """Leave out stubs from which packets were made, unless stubs are asked for: a packet is in one lane."""
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
            raise usage(arguments.command, "invalid_value", f"unknown lane {word!r}; the lanes are {known}")
        tokens.update(lane.token for lane in named)
    return frozenset(tokens)


def _fits(arguments: Arguments, entry: Entry, lanes: frozenset[str]) -> bool:
    kind, _, work = entry
    return (
        (not arguments.words or any(fnmatchcase(work["id"], pattern) for pattern in arguments.words))
        and (not lanes or not lanes.isdisjoint(work["lanes"]))
        and arguments.value("kind", kind) == kind
        and arguments.value("base", work["base"]) == work["base"]
        and arguments.value("risk", work["risk"]).casefold() == work["risk"].casefold()
        and _depends_on(work, arguments.value("depends-on"))
    )


def _depends_on(work: WorkSummary, other: str) -> bool:
    return not other or any(mention[0] == other for mention in work["depends"])


def lane_shown(work: WorkSummary) -> str:
    """Return the lane, or the original text if it does not name one lane."""
    return work["lanes"][0] if len(work["lanes"]) == 1 else work["status"] or "-"


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


def _as_text(entries: Sequence[Entry], style: Style) -> str:
    rows = [
        (escape(work["id"]), escape(lane_shown(work)), kind, escape(" ".join(work["title"].split())))
        for kind, _, work in entries
    ]
    widths = [max((text_width(row[column]) for row in rows), default=0) for column in range(3)]
    room = style.columns - sum(widths) - 6 if style.columns else None
    lines = [_line(row, widths, room, style) for row in rows]
    return "\n".join([*lines, *([""] if lines else []), counted(len(rows), "packet")]) + "\n"


def _line(row: tuple[str, str, str, str], widths: Sequence[int], room: int | None, style: Style) -> str:
    name, lane, kind, title = row
    if room is not None and len(title) > room:
        title = title[: max(room - 1, 0)].rstrip() + "…" if room > 8 else ""
    cells = [text + " " * (width - text_width(text)) for text, width in zip((name, lane, kind), widths, strict=True)]
    return "  ".join([style.paint(cells[0], "code"), *cells[1:], title]).rstrip()
