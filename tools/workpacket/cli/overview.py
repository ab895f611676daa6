"""The output of `status`, `next`, `board show` and `board export`, computed from all packets."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from workpacket.cli.options import Arguments, usage
from workpacket.cli.read_only import (
    all_facts,
    asking_files,
    listed_facts,
    open_for_reading,
    output,
    reader_identity,
    unseen_landings,
)
from workpacket.cli.show import cache_dependencies, claims_of_others, runs_of
from workpacket.cli.views import EXPORTS
from workpacket.cli.workspace import AGE, Output, is_governed
from workpacket.documents.register_table import entry_line
from workpacket.git.objects import list_tree, read_objects
from workpacket.git.repository import Repository, local_branches
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import read_log
from workpacket.lifecycle.authorship import CLAIMED, signatures_in, signatures_shown
from workpacket.lifecycle.board_sync import hand_edits
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.gates import ends_unjudged, lease_held
from workpacket.lifecycle.glance import Glance, glance_at
from workpacket.lifecycle.next_steps import Ready, ready
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.event_types import FORKED
from workpacket.model.lanes import UNJUDGED, lane_words
from workpacket.model.layout import LOG_FOLDER, REANCHORED_PATH
from workpacket.model.wording import age, counted
from workpacket.report.board import Card, Column, columns, render_board, render_page
from workpacket.report.json_report import render_envelope
from workpacket.report.runs import mark
from workpacket.report.terminal import Role, Style, escape, wrap
from workpacket.shell.cache import Cache
from workpacket.shell.governed_files import packets_elsewhere
from workpacket.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.claim_refs import RemoteClaim

_NO_LANES = (FORKED, "no log")


def compute(arguments: Arguments, cache: Cache) -> Output:
    """Return the output of the command."""
    by_command = {"board": _show_board, "next": _show_next, "status": _show_status}
    return by_command[arguments.command.name](arguments, cache)


def _show_board(arguments: Arguments, cache: Cache) -> Output:
    """Return the output of `board show`."""
    repository = open_for_reading()
    facts = listed_facts(repository, cache)
    cards = [card for card, _ in cards_of(arguments, repository, facts)]
    if not all(card.title for card in cards):
        # Logs that `adopt` began name no titles.
        titles = _titles()
        cards = [card if card.title else replace(card, title=titles.get(card.id, "")) for card in cards]
    # In the full form, the title may be a paragraph.
    cards = [replace(card, title=_shortened(card.title)) for card in cards]
    lasts, also = cache_dependencies({card.id: card.runs for card in cards})
    claims = claims_of_others(repository, facts.packets, facts.moment.now)
    until = min((claim.expires_at for claim in claims if claim.expires_at), default="")
    if arguments.flag("json"):
        lanes: dict[str, Json] = {card.id: card.lane for card in cards}
        runs: dict[str, Json] = {card.id: [run.as_json() for run in card.runs] for card in cards if card.runs}
        signatures: dict[str, Json] = {card.id: card.signatures for card in cards}
        data: dict[str, Json] = {"lanes": lanes, "runs": runs, "signatures": signatures}
        return output(repository, render_envelope("board", exits.OK, [], data), lasts=lasts, also=also)

    style = arguments.style(sys.stdout)
    board = columns(_marked(cards, facts), facts.policy.lanes)
    shown = render_board(board, style) if style.columns is not None else _plain(board)
    unknown = sum(not packet.lane for packet in facts.packets.values())
    then = f"{unknown} packets have no log: workpacket adopt\n" if unknown else ""
    others = _elsewhere(packets_elsewhere(repository), claims, style)
    then += "".join(f"{line}\n" for line in others)
    then += f"who acted: {CLAIMED}\n" if cards and not facts.policy.actors.present else ""
    return output(repository, f"{shown}\n{then}next: workpacket next\n", lasts=lasts, until=until, also=also)


def _marked(cards: Iterable[Card], facts: Facts) -> list[Card]:
    """Return the cards with their signatures as text, or without signatures if no policy says whose keys count."""
    present = facts.policy.actors.present
    return [replace(card, signatures=signatures_shown(card.signatures) if present else "") for card in cards]


_LONGEST_TITLE: Final = 100


def _shortened(title: str) -> str:
    if len(title) <= _LONGEST_TITLE:
        return title
    return f"{title[:_LONGEST_TITLE].rpartition(' ')[0] or title[:_LONGEST_TITLE]} …"


def cards_of(
    arguments: Arguments, repository: Repository, facts: Facts, *, published: bool = False
) -> Iterator[tuple[Card, str]]:
    """Yield every packet with a lane, ordered by id, with the time of its last event. `published`: leave out
    information that is valid only here and now, such as the running process.
    """
    from workpacket.cli.show import log_at

    at = arguments.value("at")
    runs = {} if at else runs_of(with_runs(facts), facts.policy.temporal_ui, ask_store=not published)
    signed = facts.policy.actors.present
    for name, packet in sorted(facts.packets.items()):
        glance = packet.glance
        if at:
            log = log_at(arguments, repository, packet.log, at)
            glance = glance_at(log, fold(log))
        if glance.lane:
            lane = glance.lane if at else packet.lane
            said = _UNJUDGED_NOTE if lane == UNJUDGED else card_note(glance, signed=signed)
            known = packet.verified and not at and not published
            words = signatures_in(glance, facts.policy.actors, verified=known)
            yield Card(name, lane, said, glance.title or "", runs.get(name, ()), words), glance.last


_UNJUDGED_NOTE: Final = "not judged"


def with_runs(facts: Facts) -> dict[str, PacketState]:
    return {name: packet.state for name, packet in sorted(facts.packets.items()) if packet.glance.runs}


def card_note(glance: Glance, *, signed: bool) -> str:
    """Return a note that does not depend on the clock, so that a cached or published board remains correct.

    `signed` says whether the policy names actors.
    """
    lease = glance.lease
    if glance.lane == "IN_PROGRESS" and lease is not None and lease.holder:
        until = f", until {lease.expires_at}" if lease.expires_at else ""
        return f"{lease.holder}{until}{_claimed(glance, signed=signed)}"
    if glance.lane == "BLOCKED" and len(glance.moves) == 1:
        return " / until: ".join(filter(None, (glance.moves[0].reason, glance.moves[0].until)))
    return f"by {glance.superseded_by}" if glance.superseded_by else ""


def _claimed(glance: Glance, *, signed: bool) -> str:
    """Return the note that the holder's identity is not verified. Lists do not verify signatures; they only report when
    one is missing."""
    return "" if signed and glance.lease_signed else f" ({CLAIMED})"


def _entry(card: Card) -> str:
    remark = "; ".join(filter(None, (_UNJUDGED_NOTE if card.lane == UNJUDGED else "", card.signatures)))
    return entry_line(card.id, card.lane, remark) + (f" - {mark(card.runs)}" if card.runs else "")


def _plain(board: tuple[Column, ...]) -> str:
    """Return the board in the board file's format, for output that is not a terminal."""
    lines: list[str] = []
    for column in board:
        lines += [f"## {column.heading}", *map(_entry, column.cards), ""]
    return "\n".join(lines)


def export(arguments: Arguments) -> int:
    repository = open_for_reading()
    titles = _titles()
    facts = all_facts(repository)
    found = [
        (replace(card, title=titles.get(card.id, card.title)), at)
        for card, at in cards_of(arguments, repository, facts, published=True)
    ]
    target = arguments.value("out")
    form = _export_form(arguments, target)
    cards = [card for card, _ in found]
    board = columns(_marked(cards, facts) if form == "html" else cards, facts.policy.lanes)
    if form == "html":
        page = render_page(board, max((at for _, at in found), default=""))
    else:
        page = _table(board, {card.id: at for card, at in found}, form)
    if target:
        from workpacket.cli.workspace import write_new

        write_new(target, page.encode())
    if arguments.flag("json"):
        data: dict[str, Json] = {"out": target, **({} if target else {"page": page})}
        sys.stdout.write(render_envelope("board", exits.OK, [], data))
    elif target:
        print(f"{counted(len(found), 'packet')} written to {escape(target)}")
        print(f"next: open {escape(target)}" + (" in a browser" if form == "html" else ""))
    else:
        sys.stdout.write(page)
    return exits.OK


def _export_form(arguments: Arguments, target: str) -> str:
    """Return the requested format, or else the one implied by the file name, or else HTML."""
    ending = os.path.splitext(target)[1].lower().removeprefix(".")
    return arguments.value("format") or (ending if ending in EXPORTS else "html")


def _table(board: Sequence[Column], latest: Mapping[str, str], form: str) -> str:
    """Return a row for each packet, in board order."""
    rows = [
        (card.id, card.lane, column.name, card.title, card.note, latest[card.id], card.signatures)
        for column in board
        for card in column.cards
    ]
    if form == "csv":
        from workpacket.report.terminal import csv_text

        return csv_text(_TABLE_HEADS, rows)
    import json

    listed = [{name: escape(text) for name, text in zip(_TABLE_HEADS, row, strict=True)} for row in rows]
    return json.dumps({"packets": listed}, indent=2, ensure_ascii=False) + "\n"


_TABLE_HEADS: Final = ("id", "lane", "section", "title", "note", "last_event", "signatures")


def _titles() -> dict[str, str]:
    """Return the summary of each packet, or of its stub; unchanged summaries come from the cache of `check`."""
    import json

    from workpacket.cli.workspace import open_workspace, progress_bar
    from workpacket.shell.checking import known_or_examined
    from workpacket.shell.configuration import lanes_here
    from workpacket.shell.tree import find_documents

    workspace = open_workspace()
    work = [found for found in find_documents(workspace.root) if found.kind in ("stub", "packet")]
    work.sort(key=lambda found: found.kind == "packet")
    cache = workspace.open_cache()
    try:
        results = known_or_examined(workspace.root, work, cache, progress_bar(), lanes_here(workspace.root))
    finally:
        cache.close()
    summaries = [json.loads(result.summary) for result in results if result.summary]
    return {summary["id"]: " ".join(summary["title"].split()) for summary in summaries if summary["title"]}


def _show_status(arguments: Arguments, cache: Cache) -> Output:
    repository = open_for_reading()
    facts = listed_facts(repository, cache, documents=True)
    counts = Counter(packet.lane or "no log" for packet in facts.packets.values())
    me, asked = reader_identity(arguments, repository).id, asking_files(arguments, repository)
    held = _held(facts)
    merged = unseen_landings(repository, facts)
    waiting = [one for one in waiting_packets(facts) if one.id not in merged]
    edits = [f"{packet.id} (line {line}: {token}, log: {packet.lane})" for packet, token, line in hand_edits(facts)]
    rows = ready(facts)
    runs = runs_of(with_runs(facts), facts.policy.temporal_ui)
    steady, also = cache_dependencies(runs)
    steady, also = steady and asked is not None, [*also, *(asked or ())]
    # Leases end without a change of any file.
    leases = [packet.glance.lease for name, packet in facts.packets.items() if name in held]
    roots, elsewhere = _new_roots(str(repository.root)), packets_elsewhere(repository)
    claims = claims_of_others(repository, facts.packets, facts.moment.now)
    ends = (lease.expires_at for lease in (*leases, *claims) if lease is not None and lease.expires_at)
    until = min(ends, default="")
    if arguments.flag("json"):
        lanes: dict[str, Json] = dict(counts)
        listed: list[Json] = [*edits]
        names: list[Json] = [row.id for row in rows]
        holding: dict[str, Json] = dict(held)
        data: dict[str, Json] = {"lanes": lanes, "held": holding, "hand_edits": listed, "ready": names}
        data["reanchored"] = [*roots]
        data |= _elsewhere_json(elsewhere, claims)
        data["waiting"] = [{"id": one.id, "for": one.need, "since": one.since, "detail": one.detail} for one in waiting]
        data["runs"] = {name: [run.as_json() for run in its] for name, its in runs.items()}
        return output(repository, render_envelope("status", exits.OK, [], data), lasts=steady, until=until, also=also)
    style = arguments.style(sys.stdout)
    states = _states_elsewhere(repository, elsewhere)
    mergeable = {name: branch for name, (branch, state) in states.items() if ends_unjudged(state, facts.policy)}
    begun = elsewhere.keys() | {claim.packet for claim in claims}
    drafts = [name for name in _drafts(facts) if name not in begun]
    own = [name for name, holder in held.items() if holder.removesuffix(f" ({CLAIMED})") == me]
    told = [*_waits(facts, waiting, me, merged), *_mergeable(facts, mergeable), *_not_started(facts, drafts)]
    told += [_holding(facts, name, "" if name in own else holder) for name, holder in held.items()]
    told += [("run", escape(run.sentence), "path") for its in runs.values() for run in its]
    told += [("hand edit", escape(edit), "warning") for edit in edits]
    told += [("note", escape(sentence), "info") for sentence in roots]
    lines = _counts(facts, counts)
    lines += (line for head, text, role in told for line in _headed(head, text, role, style))
    shown = {name: f"{branch}{_lane_of(states.get(name))}" for name, branch in elsewhere.items()}
    lines += _elsewhere({name: branch for name, branch in shown.items() if name not in mergeable}, claims, style)
    if own or mergeable:
        merging = f"git diff {facts.target_here}...{next(iter(mergeable.values()), '')}"
        then = f"workpacket show {own[0]}" if own else merging
    else:
        then = _next(facts, counts, drafts, edited=bool(edits), work=any(row.id not in begun for row in rows))
    lines.append(f"next: {then}")
    return output(repository, "\n".join(lines) + "\n", lasts=steady, until=until, also=also)


_Told = tuple[str, str, "Role"]


def _counts(facts: Facts, counts: Counter[str]) -> list[str]:
    known = facts.policy.lanes.tokens
    tokens = (*known, *sorted(counts.keys() - {*known, *_NO_LANES}), *_NO_LANES)
    return [f"{counts[token]:6}  {escape(lane_words(token))}" for token in tokens if counts[token]]


def _waits(facts: Facts, waiting: Sequence[_Waiting], me: str, merged: frozenset[str]) -> Iterator[_Told]:
    for one in sorted(waiting, key=lambda one: one.by == me):
        whose = " from someone else" if one.by == me else ""
        about = _about(facts, one.id, one.detail)
        yield one.need + whose, f"{one.id} for {AGE}{one.since}{AGE}{about}", "warning"
    if merged:
        yield f"merged on {facts.target_here}", f"{', '.join(sorted(merged))}; their lanes are shown there", "info"


def _mergeable(facts: Facts, branches: Mapping[str, str]) -> Iterator[_Told]:
    for name, branch in branches.items():
        command = f"git merge --no-ff --no-edit {escape(branch)}"
        yield "ready to merge", f"{name}{_about(facts, name)}, on {facts.target_here}: {command}", "warning"


def _not_started(facts: Facts, drafts: Sequence[str]) -> Iterator[_Told]:
    for name in drafts[:_MOST_NAMED]:
        yield "not started", f"{name}{_about(facts, name)}", "path"
    if len(drafts) > _MOST_NAMED:
        more = counted(len(drafts) - _MOST_NAMED, "other draft")
        yield "not started", f"{more}: workpacket list --lane STUB", "path"


def _holding(facts: Facts, name: str, holder: str) -> _Told:
    """Say who holds the packet and until when; without a `holder`, the reader holds it."""
    lease = facts.packets[name].glance.lease
    end = f", {_until(lease.expires_at)}" if lease is not None and lease.expires_at else ""
    by = f" by {escape(holder)}" if holder else ""
    return "held" if holder else "you hold", f"{name}{by}{_about(facts, name)}{end}", "path"


_MOST_NAMED: Final = 5


def _drafts(facts: Facts) -> list[str]:
    """Return the light packets that no one has started."""
    return [name for name, packet in sorted(facts.packets.items()) if packet.lane == "STUB" and packet.light]


def _about(facts: Facts, name: str, detail: str = "") -> str:
    """Return the title of a packet and the other information about it, on one line."""
    title = (facts.packets[name].glance.title or "") if name in facts.packets else ""
    return escape(f"{detail and f': {detail}'}{title and f' ({title})'}")


def _elsewhere(branches: Mapping[str, str], claims: Sequence[RemoteClaim], style: Style) -> list[str]:
    """Return the lines about packets that were moved on other branches or claimed by other clones."""
    named = [f"{name} ({escape(branch)})" for name, branch in sorted(branches.items())]
    held = [f"{one.packet} ({escape(one.holder)}, {_until(one.expires_at)})" for one in claims]
    lines: list[str] = []
    for head, listed in (("on other branches", named), ("Claimed in other clones", held)):
        more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
        text = f"{counted(len(listed), 'packet')}: {', '.join(listed[:_MOST_NAMED])}{more}"
        lines += _headed(head, text, "info", style) if listed else []
    return lines


def _elsewhere_json(branches: Mapping[str, str], claims: Sequence[RemoteClaim]) -> dict[str, Json]:
    return {
        "elsewhere": [{"id": name, "branch": branch} for name, branch in sorted(branches.items())],
        "claims": [
            {"id": one.packet, "holder": one.holder, "until": one.expires_at, "seen": one.seen} for one in claims
        ],
    }


def _until(end: str) -> str:
    return f"until {end}" if end else "without an end"


def _headed(head: str, text: str, role: Role, style: Style) -> list[str]:
    """Return `head: text`, wrapped for the terminal; the lines that follow are indented. The text is sanitized."""
    columns = style.columns
    first, *rest = wrap(text, columns - 2, max(columns - len(head) - 2, 1)) if columns else [text]
    return [f"{style.paint(head, role)}: {first}".rstrip(), *(f"  {line}" for line in rest)]


class _Waiting(NamedTuple):
    """A packet that cannot move on until someone acts, and since when; `by` lists those who must not be the one to
    act."""

    id: str
    need: str
    since: str
    detail: str
    by: str = ""


def waiting_packets(facts: Facts) -> Iterator[_Waiting]:
    """Yield what is waiting for a person, longest first. Times are taken from the log, so that the output can be
    cached."""
    found = []
    for name, packet in facts.packets.items():
        glance = packet.glance
        lane, moves = facts.policy.lanes.lane(packet.lane), glance.moves
        if glance.forked:
            latest = max(move.at for move in moves)
            found.append(
                _Waiting(name, "needs `workpacket packet resolve`", latest, "moved independently on two branches")
            )
        elif packet.lane == "STUB" and glance.presented:
            found.append(_Waiting(name, "needs an approval", glance.presented, "its refinement was presented"))
        elif lane is not None and lane.waits_for and moves:
            by = moves[0].actor if packet.lane == "IN_REVIEW" else ""
            if packet.lane == "BLOCKED":
                detail = card_note(glance, signed=True)
            elif by and ends_unjudged(glance, facts.policy):
                found.append(_Waiting(name, "requires a merge, but no verdict", moves[0].at, ""))
                continue
            else:
                detail = f"submitted by {by}" if by else ""
            found.append(_Waiting(name, lane.waits_for, moves[0].at, detail, by))
    return iter(sorted(found, key=lambda one: (one.since, one.id)))


# Leases that end within this time are reported.
_SOON: Final = "24"


def waiting_report(arguments: Arguments) -> int:
    """Report who is needed for what; with --notify, notify them."""
    hours = arguments.value("within") or _SOON
    if not hours.isdecimal():
        raise usage(arguments.command, "invalid_value", f"invalid --within {hours!r}: expected a number of hours")
    repository = open_for_reading()
    facts = all_facts(repository)
    waiting, now = list(waiting_packets(facts)), facts.moment.now
    ends = list(leases_ending(facts, int(hours)))
    notes = _notify(repository, facts, waiting, ends) if arguments.flag("notify") else []
    if arguments.flag("json"):
        listed: list[Json] = [
            {"id": one.id, "for": one.need, "since": one.since, "detail": one.detail} for one in waiting
        ]
        ending: list[Json] = [{"id": name, "holder": holder, "ends": at} for name, holder, at in ends]
        data: dict[str, Json] = {"waiting": listed, "leases": ending, "notes": [*notes]}
        sys.stdout.write(render_envelope("report", exits.OK, [], data))
        return exits.OK
    lines = [
        f"{one.need}: {one.id} for {age(one.since, now)}{escape(one.detail and f': {one.detail}')}" for one in waiting
    ]
    lines += [f"lease expires in {age(now, at)}: {name}, held by {escape(holder)}" for name, holder, at in ends]
    lines += [f"note: {escape(note)}" for note in notes]
    print("\n".join(lines or ["no packet is waiting for a person"]))
    print("next: workpacket status")
    return exits.OK


def leases_ending(facts: Facts, hours: int) -> Iterator[tuple[str, str, str]]:
    """Yield the packets with leases that expire within the given number of hours: id, holder and time."""
    from datetime import datetime, timedelta

    now = facts.moment.now
    soon = datetime.fromisoformat(now) + timedelta(hours=hours)
    for name, packet in sorted(facts.packets.items()):
        lease, holder = packet.glance.lease, lease_held(packet.glance, now)
        if packet.lane != "IN_PROGRESS" or lease is None or not (holder and lease.expires_at):
            continue
        if datetime.fromisoformat(lease.expires_at) <= soon:
            yield name, holder, lease.expires_at


def _notify(
    repository: Repository, facts: Facts, waiting: Sequence[_Waiting], ends: Sequence[tuple[str, str, str]]
) -> list[str]:
    from workpacket.shell.base import read_base_policy
    from workpacket.shell.notify import Need, tell

    lanes = facts.policy.lanes
    kinds = {"verdict": "review", "unblocking": "question"}
    needs = []
    for one in waiting:
        packet = facts.packets[one.id]
        lane = lanes.lane(packet.lane)
        word = lane.needs if lane is not None else ""
        word = "approval" if packet.lane == "STUB" else word
        needs.append(
            Need(packet.glance.heads[0], kinds.get(word, word or "question"), one.id, one.since, "", one.detail)
        )
    needs += [Need(f"{name}-{at}", "lease_end", name, at, holder) for name, holder, at in ends]
    return tell(read_base_policy(repository).lifecycle.webhook, needs, os.environ)


def _new_roots(root: str) -> list[str]:
    """Return new roots of trust.

    The code that reads the record is imported only if there is a record, and most repositories have none.
    """
    if not os.path.lexists(os.path.join(root, REANCHORED_PATH)):
        return []
    from workpacket.shell.approvals.check import roots_here

    return roots_here(root)


def _held(facts: Facts) -> dict[str, str]:
    now = facts.moment.now
    found = {name: lease_held(packet.glance, now) for name, packet in sorted(facts.packets.items())}
    working = (name for name, holder in found.items() if holder and facts.packets[name].lane == "IN_PROGRESS")
    signed = facts.policy.actors.present
    return {name: found[name] + _claimed(facts.packets[name].glance, signed=signed) for name in working}


def _next(facts: Facts, counts: Counter[str], drafts: Sequence[str], *, edited: bool, work: bool) -> str:
    """Return the next read-only command to suggest: a command that only reads never suggests writing."""
    if not facts.packets:
        return "workpacket help new" if is_governed() else "workpacket help init"
    if counts["no log"]:
        return "workpacket help adopt"
    if edited:
        return "workpacket check"
    if work:
        return "workpacket next"
    stubs = [name for name, packet in sorted(facts.packets.items()) if packet.lane == "STUB" and not packet.light]
    return f"workpacket why {(*drafts, *stubs)[0]}" if drafts or stubs else "workpacket list"


def _states_elsewhere(repository: Repository, elsewhere: Mapping[str, str]) -> dict[str, tuple[str, PacketState]]:
    """Return the branch and the state of the first few packets that local branches have moved on."""
    commits, found = local_branches(repository), {}
    local = [(name, branch) for name, branch in sorted(elsewhere.items()) if branch in commits]
    for name, branch in local[:_MOST_READ]:
        entries = list_tree(repository, commits[branch], f"{LOG_FOLDER}/{name}")
        contents = read_objects(repository, [entry.object_id for entry in entries])
        events = {entry.path.rpartition("/")[2]: contents[entry.object_id] for entry in entries}
        found[name] = branch, fold(read_log(name, events))
    return found


# Each of them takes two calls of git.
_MOST_READ: Final = 20


def _lane_of(found: tuple[str, PacketState] | None) -> str:
    return f", {lane_words(found[1].lane)}" if found is not None and found[1].lane not in {"", "STUB"} else ""


def _show_next(arguments: Arguments, cache: Cache) -> Output:
    repository = open_for_reading()
    agent = arguments.value("for")
    facts, elsewhere = listed_facts(repository, cache, documents=True), packets_elsewhere(repository)
    claims = claims_of_others(repository, facts.packets, facts.moment.now)
    # Work that others have begun would be done a second time.
    begun = elsewhere.keys() | {claim.packet for claim in claims}
    rows = [row for row in ready(facts, agent) if row.id not in begun]
    if arguments.flag("json"):
        text = _next_json(rows, _elsewhere_json(elsewhere, claims))
    else:
        drafts = [name for name in _drafts(facts) if name not in begun]
        text = _next_text(rows, drafts, _elsewhere(elsewhere, claims, arguments.style(sys.stdout)))
    until = min((claim.expires_at for claim in claims if claim.expires_at), default="")
    # The work of an agent depends on the time, because leases end.
    return output(repository, text, lasts=not agent, until=until)


def _next_json(rows: list[Ready], elsewhere: Mapping[str, Json]) -> str:
    listed: list[Json] = [
        {
            "id": row.id,
            "lane": row.lane,
            "next": row.command,
            "risk": row.risk,
            "waiting": row.waiting,
            "since": row.since,
        }
        for row in rows
    ]
    return render_envelope("next", exits.OK, [], {"ready": listed, **elsewhere})


def _next_text(rows: list[Ready], drafts: Sequence[str], others: list[str]) -> str:
    lines = []
    for row in rows:
        waiting = f"  {row.waiting} wait for it" if row.waiting else ""
        lines.append(f"{row.id}  {row.lane}  {row.risk or '-'}  since {row.since}{waiting}")
    if rows:
        then = rows[0].command
    else:
        # Work packages have no log; the list shows those that no one has begun.
        other = "list --kind work_package --lane READY_FOR_DEV" if is_governed(["kitty-specs"]) else "status"
        then = f"workpacket why {drafts[0]}" if drafts else f"workpacket {other}"
        then = then if is_governed() else "workpacket help init"
        left = f"; not started: {', '.join(drafts[:_MOST_NAMED])}" if drafts else ""
        lines.append(f"nothing is ready{left}")
    lines += [*others, f"next: {then}"]
    return "\n".join(lines) + "\n"
