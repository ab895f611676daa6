"""Less common moves: advance, reopen, block, unblock, supersede, rename, abandon, override, waive, resolve, amend,
reapprove.

`amend` replaces the approved contract with another one that is approved in the same way. `reapprove` replaces approvals
that no longer count. An event names its envelopes and is never rewritten. Therefore another event names the new
envelopes, for the same gate and on the same terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from workpacket.approvals.facts import Verdict
from workpacket.ledger.fold import LaneReplay, in_force
from workpacket.ledger.log import join_events
from workpacket.lifecycle.activation import terms_in_event
from workpacket.lifecycle.change_checks import dropped_verdicts
from workpacket.lifecycle.claims import close_all
from workpacket.lifecycle.contract import Contract, demands_unmet, stated
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import (
    AMENDMENT_GATE,
    CONSUMING,
    RESOLVE_GATE,
    approval_asked,
    approval_unmet,
    reminders,
    satisfying,
    standing_until,
    terms_of,
)
from workpacket.lifecycle.moves import Answer, Draft, Planned, added_unmet, move, packet_missing
from workpacket.lifecycle.projections import project, withdraw
from workpacket.lifecycle.transitions import (
    AMENDABLE,
    Transition,
    advancing,
    forward_command,
    lane_retired,
    move_unmet,
    target_of,
    transition,
)
from workpacket.model.canonical import Json
from workpacket.model.event_types import BEFORE_LANDING, FULL_FORM, LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.model.layout import packet_paths, refinement_paths, stub_path
from workpacket.problem import Location, Problem
from workpacket.value import Value, replace


def advance(facts: Facts, packet: PacketFacts, *, to: str = "", reason: str = "") -> Answer:
    """Move from a lane that the policy adds to the next one. `to` is the expected next lane."""
    name, lanes = packet.id.text, facts.policy.lanes
    row = advancing(packet.lane, lanes)
    unmet = move_unmet(packet.state, row, lanes)
    if not unmet and to not in {"", row.target}:
        message = f"{name} moves from {packet.lane} to {row.target}, not to {to}"
        return (Problem("advance_elsewhere", message, hint=f"workpacket packet advance {name} --to {row.target}"),)
    unmet = unmet or tuple(added_unmet(facts, packet, row))
    if unmet:
        return unmet
    draft = Draft(row.command, facts)
    move(draft, packet, row.event, row.target, {"reason": reason} if reason else {})
    project(draft, {name: row.target})
    then = forward_command(name, row.target, lanes)
    return Planned(draft.plan(), f"{name} is {row.target}", then, {"id": name, "lane": row.target})


def reopen(facts: Facts, packet: PacketFacts, *, reason: str) -> Answer:
    return _turn(facts, packet, "reopen", reason=reason)


def block(facts: Facts, packet: PacketFacts, *, reason: str, until: str) -> Answer:
    return _turn(facts, packet, "block", remark=reason, reason=reason, until=until)


def unblock(facts: Facts, packet: PacketFacts, *, reason: str = "") -> Answer:
    return _turn(facts, packet, "unblock", **({"reason": reason} if reason else {}))


def abandon(facts: Facts, packet: PacketFacts, *, reason: str) -> Answer:
    return _turn(facts, packet, "abandon", reason=reason)


def supersede(facts: Facts, packet: PacketFacts, *, by: PacketFacts, reason: str = "") -> Answer:
    name = packet.id.text
    if by is packet or not by.lane:
        message = f"{by.id} cannot replace {name}" + ("" if by.lane else ": it has no log")
        return (Problem("successor_unfit", message, hint=f"workpacket show {by.id}"),)
    return _turn(facts, packet, "supersede", by=by.id.text, **({"reason": reason} if reason else {}))


def rename_packet(facts: Facts, packet: PacketFacts, to: WorkPacketId, *, landed: bool) -> Answer:
    """Give the packet a different id, under which it is a draft again. `landed`: its log is on the base.

    Its events contain the old id, so they remain in the log of that id.
    """
    name, new = packet.id.text, to.text
    unmet = tuple(_rename_unmet(facts, packet, to, landed=landed))
    if unmet:
        return unmet
    renamed = PacketFacts(to, join_events(new, ()))
    draft = Draft("rename", replace(facts, packets={**facts.packets, new: renamed}))
    moved = [
        (packet.packet_source, packet_paths(new)[0]),
        (packet.stub_source, stub_path(new)),
        (packet.refinement_source, refinement_paths(new)[0]),
    ]
    for source, path in moved:
        if source is not None:
            draft.put(path, None, _with_id(source.text, packet.id, to))
            draft.remove(source)
    said = packet.state.history[0].data
    data: dict[str, Json] = {key: said[key] for key in ("form", "title") if key in said}
    created: dict[str, Json] = {"base": to.base, "source": {"kind": "packet", "name": name}, **data}
    move(draft, renamed, "created", "STUB", created)
    reason = f"its new id is {new}"
    move(draft, packet, "superseded", "SUPERSEDED", {"by": new, "reason": reason, "renamed": BEFORE_LANDING})
    notes = close_all(draft, packet, "superseded")
    if not packet.light or facts.policy.packets.board:
        project(draft, {new: "STUB"}, notes=() if packet.light else ("stub",))
        withdraw(draft, name)
    notes += tuple(
        f"{other.id} depends on {name}: if it refers to this packet, edit {other.packet_path} or {other.stub_path}"
        for other in facts.packets.values()
        if name in other.dependencies()
    )
    branch = packet.state.assignment.branch
    then = f"workpacket start {new}{f' --branch {branch}' if branch else ''}"
    then = then if packet.light else f"workpacket refine {new}"
    told: dict[str, Json] = {"id": new, "renamed": name, "lane": "STUB"}
    return Planned(draft.plan(), f"{name} is now {new}, a draft", then, told, notes)


def _with_id(text: str, old: WorkPacketId, new: WorkPacketId) -> str:
    """Return the text with the new id, and with the new base where the text contains the base alone."""
    text = re.sub(rf"{re.escape(old.text)}(?![\w-]|\.\d)", new.text, text)
    return re.sub(rf"(?<![\w-]){re.escape(old.base)}(?![\w-]|\.\d)", new.base, text)


def _rename_unmet(facts: Facts, packet: PacketFacts, to: WorkPacketId, *, landed: bool) -> Iterator[Problem]:
    name = packet.id.text
    taken = next((known for known in facts.known if known.casefold() == to.key), "")
    if taken:
        yield Problem("packet_exists", f"{taken} already exists", hint=f"workpacket show {taken}")
    if landed:
        message = f"{name} is on {facts.target_branch}, where others refer to it by this id"
        yield Problem("packet_landed", message, hint=f"workpacket new TITLE, then: workpacket packet supersede {name}")
    yield from move_unmet(packet.state, transition("supersede", lanes=facts.policy.lanes), facts.policy.lanes)
    approved = packet.refinement is not None and not packet.refinement.awaits_answers
    if not packet.light and (packet.lane != "STUB" or approved):
        message = f"{name} was approved under this id, which is part of what was signed"
        yield Problem(
            "wrong_lane", message, hint="from this branch, remove the commits that approve the packet, then rename it"
        )


def _turn(facts: Facts, packet: PacketFacts, command: str, *, remark: str | None = None, **data: Json) -> Answer:
    name = packet.id.text
    lanes = facts.policy.lanes
    row = transition(command, lanes=lanes)
    unmet = move_unmet(packet.state, row, lanes) or tuple(added_unmet(facts, packet, row))
    if unmet:
        return unmet
    target = target_of(row, packet.state)
    draft = Draft(command, facts)
    move(draft, packet, row.event, target, data)
    notes: tuple[str, ...] = ()
    if command == "block":
        notes = reminders(packet.state, f"to resume it, first run: workpacket packet unblock {name}")
    elif command in {"supersede", "abandon"}:
        notes = close_all(draft, packet, row.event)
    shown = {name: " ".join(remark.split())} if remark is not None else None
    project(draft, {name: target}, remarks=shown)
    told: dict[str, Json] = {"id": name, "lane": target}
    return Planned(draft.plan(), f"{name} is {target}", forward_command(name, target, lanes), told, notes)


def waive(
    facts: Facts,
    packet: PacketFacts,
    *,
    rule: str,
    reason: str,
    expires_at: str,
    target: str = "",
    override: bool = False,
) -> Answer:
    """Record that an entitled person has waived a rule for a limited time, with a signature."""
    name = packet.id.text
    if not packet.state.history:
        return (Problem("log_absent", f"{name} has no log", hint="workpacket adopt"),)
    command, kind = ("override", "overridden") if override else ("waive", "waived")
    gate = CONSUMING[kind]
    terms = {"rule": rule, "until": expires_at, "reason": reason, "target": target}
    given = facts.approvals[gate]
    unmet = tuple(approval_unmet(given, name, terms))
    if unmet:
        return unmet
    draft = Draft(command, facts)
    if packet.packet_source is not None:
        draft.is_about(packet.packet_source)
    data: dict[str, Json] = {"rule": rule, "reason": reason, "expires_at": expires_at}
    data |= {"target": target} if target else {}
    draft.happened(packet, kind, data, satisfying(given))
    said = f"{rule} is {kind} for {name} until {expires_at}"
    return Planned(draft.plan(), said, f"workpacket why {name}", {"id": name, **data})


def note(facts: Facts, packet: PacketFacts, text: str) -> Answer:
    """Add a remark, such as a correction, to the log of a packet in any lane."""
    name = packet.id.text
    if not packet.state.history:
        return (Problem("log_absent", f"{name} has no log", hint="workpacket adopt"),)
    draft = Draft("note", facts)
    draft.happened(packet, "noted", {"text": text})
    return Planned(draft.plan(), f"noted for {name}", f"workpacket log show {name}", {"id": name, "text": text})


def resolve(facts: Facts, packet: PacketFacts, *, lane: str, reason: str) -> Answer:
    """Settle a fork by choosing the lane of one of the conflicting moves."""
    name, state, lanes = packet.id.text, packet.state, facts.policy.lanes
    if not state.forked:
        message = f"{name} is not forked; it is {state.lane or 'without a log'}"
        return (Problem("not_forked", message, hint=forward_command(name, state.lane, lanes)),)
    claimed = {move.lane_to or "" for move in state.latest_moves}
    if lane in claimed and lanes.lane(lane) is None:
        return (lane_retired(name, lane),)
    if lane not in claimed:
        message = f"the conflicting moves lead to {', '.join(sorted(claimed))}, not to {lane}"
        return (Problem("fork_lane_unknown", message, hint=f"workpacket log show {name}"),)
    replay = LaneReplay(packet.log)
    origin = replay.blocked_in(move.id for move in state.latest_moves)
    unmet = tuple(_resolve_unmet(facts, packet, replay, lane, origin))
    if unmet:
        return unmet
    draft = Draft("resolve", facts)
    moves: list[Json] = [*sorted(move.id for move in state.latest_moves)]
    data: dict[str, Json] = {"moves": moves, "reason": reason}
    chosen = [move for move in state.latest_moves if move.lane_to == lane]
    data |= {key: value for key in ("holder", "lease", "expires_at") if (value := chosen[-1].text(key))}
    if lane == "BLOCKED":
        data["came_from"] = origin
    given = facts.approvals.get(RESOLVE_GATE)
    move(draft, packet, "fork.resolved", lane, data, satisfying(given) if given is not None else ())
    project(draft, {name: lane})
    return Planned(draft.plan(), f"{name} is {lane}", forward_command(name, lane, lanes), {"id": name, "lane": lane})


def _resolve_unmet(
    facts: Facts, packet: PacketFacts, replay: LaneReplay, lane: str, origin: str | None
) -> Iterator[Problem]:
    name = packet.id.text
    if lane == "BLOCKED" and origin is None:
        message = f"{name} was blocked in several lanes, so the lane to return to is ambiguous"
        yield Problem("fork_lane_unknown", message, hint=f"workpacket log show {name}")
    given = facts.approvals.get(RESOLVE_GATE)
    if given is not None:
        yield from approval_unmet(given, name, {"lane": lane})
        return
    for verdict in dropped_verdicts(replay, packet.state.heads, lane):
        said = f"{verdict.text('verdict')} by {verdict.actor.id}"
        message = (
            f"moving to {lane} drops the signed verdict {said}; this requires gate {RESOLVE_GATE}, which the "
            "policy does not define"
        )
        hint = f"choose the lane of the verdict for {name}, or add [approvals.gates.{RESOLVE_GATE}] to the policy"
        yield Problem("approval_missing", message, hint=hint)


def amend(facts: Facts, packet: PacketFacts, show: Callable[[Contract], str], *, reason: str) -> Answer:
    """Plan the amendment. `show` prints the differences from the current contract, which may exist only in git."""
    name = packet.id.text
    row = Transition("amend", "amended", AMENDABLE, packet.lane)
    unmet = move_unmet(packet.state, row, facts.policy.lanes) or _judged_before(packet)
    if unmet:
        return unmet
    contract = _amended(packet)
    if isinstance(contract, Problem):
        return (contract,)
    standing = standing_until(contract.scope) is not None
    asked = approval_asked(facts.policy, light=contract.form == LIGHT_FORM, standing=standing)
    given = facts.approvals[AMENDMENT_GATE] if asked else None
    signed = approval_unmet(given, name) if given is not None else ()
    unmet = (*demands_unmet(contract, facts.policy.evidence, packet.packet_path), *signed)
    if unmet:
        return unmet
    draft = Draft("amend", facts)
    for path, source in ((packet.stub_path, packet.stub_source), (packet.refinement_path, packet.refinement_source)):
        draft.rests_on(path, source)
    if packet.packet_source is not None:
        draft.is_about(packet.packet_source)
    held = sorted(in_force(packet.log))
    data: dict[str, Json] = {"previous": held[0] if held else None, "reason": reason, **terms_in_event(contract)}
    data |= {"form": contract.form} if contract.form != FULL_FORM else {}
    # A light packet contains its refinement.
    if contract.form == LIGHT_FORM:
        refined = (packet.packet_path, packet.packet_source)
    else:
        refined = (packet.refinement_path, packet.refinement_source)
    if refined[1] is not None:
        data["refinement"] = {"path": refined[0], "sha256": refined[1].digest}
    if facts.specification is not None:
        data["spec"] = {"path": facts.specification.path, "sha256": facts.specification.digest}
    draft.happened(packet, "amended", data, satisfying(given) if given is not None else ())
    said = f"{name} now has the contract {contract.digest[:12]}"
    told: dict[str, Json] = {"id": name, "contract": contract.digest, "previous": held[0] if held else None}
    then = forward_command(name, packet.lane, facts.policy.lanes)
    return Planned(draft.plan(), said, then, told, shown=show(contract))


def _judged_before(packet: PacketFacts) -> tuple[Problem, ...]:
    """Refuse to amend a packet that was blocked in review or later: it would return to review with a verdict on a
    different contract.
    """
    origin = packet.state.came_from
    if origin is None or origin in AMENDABLE:
        return ()
    message = f"{packet.id} was blocked in {origin}, where its contract is under review"
    reopen = f"workpacket packet reopen {packet.id} --reason TEXT"
    hint = f"workpacket packet unblock {packet.id}, then have it sent back, or: {reopen}"
    return (Problem("wrong_lane", message, hint=hint),)


def _amended(packet: PacketFacts) -> Contract | Problem:
    """Return the contract that both packet and stub state, if it differs from the current one."""
    document = packet.packet
    if document is None:
        return packet_missing(packet)
    contract = stated(document, packet.refinement)
    other = stated(packet.stub, packet.refinement) if packet.stub is not None else contract
    for said in (contract, other):
        if isinstance(said, str):
            return Problem("contract_unreadable", said, Location(packet.packet_path), f"edit {packet.packet_path}")
    if contract != other:
        message = "stub and packet state different contracts"
        hint = f"write the same contract into {packet.stub_path} and {packet.packet_path}"
        return Problem("contract_changed", message, Location(packet.packet_path), hint)
    assert isinstance(contract, Contract)
    if in_force(packet.log) == {contract.digest}:
        message = f"the files still state the current contract, {contract.digest[:12]}"
        return Problem("contract_unchanged", message, hint=f"workpacket packet contract {packet.id}")
    return contract


class Withdrawn(Value):
    """A gate that an event passed with approvals that no longer count, and the gate's verdict on the current
    approvals."""

    event: LogEvent
    gate: str
    replaces: tuple[str, ...]
    verdict: Verdict


def terms_to_type(event: LogEvent, gate: str) -> dict[str, str]:
    """Return the terms of the event as options of `approve`: a report by its path, without its digest."""
    terms = terms_of(event, gate)
    path, digest, _ = terms.get("report", "").rpartition(" sha256:")
    return {**terms, "report": path if digest else ""} if "report" in terms else terms


def reapprove(facts: Facts, packet: PacketFacts, withdrawn: Sequence[Withdrawn], *, reason: str) -> Answer:
    name = packet.id.text
    if not withdrawn:
        message = f"no event of {name} has lost an approval that counted"
        return (Problem("reapproval_needless", message, hint=f"workpacket approvals list {name}"),)
    unmet = [
        each for one in withdrawn for each in approval_unmet(one.verdict, name, terms_to_type(one.event, one.gate))
    ]
    if unmet:
        return tuple(dict.fromkeys(unmet))
    draft = Draft("reapprove", facts)
    if packet.packet_source is not None:
        draft.is_about(packet.packet_source)
    for one in withdrawn:
        replaces: list[Json] = [*sorted(one.replaces)]
        data: dict[str, Json] = {"gate": one.gate, "event": one.event.id, "replaces": replaces, "reason": reason}
        draft.happened(packet, "reapproved", data, satisfying(one.verdict))
    gates: list[Json] = [*dict.fromkeys(one.gate for one in withdrawn)]
    said = f"{name} has new approvals at {', '.join(dict.fromkeys(one.gate for one in withdrawn))}"
    return Planned(draft.plan(), said, "workpacket check", {"id": name, "gates": gates})
