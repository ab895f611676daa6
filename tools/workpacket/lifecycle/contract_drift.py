"""Whether stub and packet still say the contract that was approved, and whether amendments replaced what held.

The log names contracts by their digest: `activated` the first, `amended` each that took its place. What the files say
is free until then, and progress (status, evidence, notes) stays free afterwards: it is not part of the contract. The
log of a packet that was activated before there were contracts names none, and nothing is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from workpacket.ledger.fold import SETS_CONTRACT, in_force, setting_events, standing
from workpacket.ledger.log import Log
from workpacket.lifecycle.transitions import AMENDABLE
from workpacket.model.events import LogEvent
from workpacket.problem import Location, Problem

# Every command asks which contract holds; only where files are compared with it are they taken apart.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.packet import Packet
    from workpacket.documents.refinement import Refinement
    from workpacket.documents.stub import Stub
    from workpacket.lifecycle.contract import Contract
    from workpacket.lifecycle.facts import PacketFacts

_JUDGED: Final = frozenset({"submitted", "verdict.given", "merged"})
_SHORT: Final = 12


def contract_before(log: Log) -> str:
    """What held in a log that names no contract before its first amendment; '' where it was never amended."""
    first = next((event for event in log.events if event.type in SETS_CONTRACT and event.text("contract")), None)
    return (first.text("previous") or "") if first is not None else ""


def contract_findings(
    log: Log, stub: Stub | None, packet: Packet | None, refinement: Refinement | None
) -> Iterator[Problem]:
    """Every way in which files and log do not say one contract."""
    setting = setting_events(log)
    if not setting:
        return
    from workpacket.lifecycle.contract import stated

    yield from _false_amendments(log)
    hint = f"restore what was approved, or have it amended: workpacket amend {log.packet}"
    digests = sorted(in_force(log))
    if len(digests) > 1:
        named = " and ".join(digest[:_SHORT] for digest in digests)
        message = f"{log.packet} was amended on two branches, and two contracts hold: {named}"
        yield Problem("contract_changed", message, Location(setting[-1].path), hint)
        return
    yield from _judged_beside(log, setting)
    for document in (stub, packet):
        if document is None:
            continue
        said = stated(document, refinement)
        if isinstance(said, str):
            message = f"{said}; the contract {digests[0][:_SHORT]} was approved"
            yield Problem("contract_changed", message, Location(document.path), hint)
        elif said.digest != digests[0]:
            message = f"it says the contract {said.digest[:_SHORT]}, and {digests[0][:_SHORT]} was approved"
            yield Problem("contract_changed", message, Location(document.path), hint)


def contract_unmet(packet: PacketFacts) -> tuple[Problem, ...]:
    """The same of the packet that a command is about. Nothing is taken apart where the log names no contract."""
    if not setting_events(packet.log):
        return ()
    return tuple(contract_findings(packet.log, packet.stub, packet.packet, packet.refinement))


def covered(log: Log) -> str:
    """What was approved, for outputs: the digest of a contract, or that it was the refinement only; '' for a stub."""
    held = sorted(in_force(log))
    if held:
        return " and ".join(held)
    return "approved: refinement only" if any(event.type == "activated" for event in log.events) else ""


def _false_amendments(log: Log) -> Iterator[Problem]:
    """Amendments of another contract than the one that held, or of work that was being judged."""
    for event in log.events:
        if event.type != "amended":
            continue
        before = in_force(log, event.parents)
        previous = event.text("previous")
        if before and previous not in before:
            message = "it says that it replaces another contract than the one that was approved before it"
            yield Problem("contract_changed", message, Location(event.path))
        stand = standing(log.as_of(event.parents))
        lane = stand.came_from or stand.lane
        if lane not in AMENDABLE:
            blocked = ", in which it was blocked" if stand.came_from else ""
            message = f"it replaces the contract while {log.packet} is {lane or 'in no lane'}{blocked}"
            yield Problem("contract_changed", message, Location(event.path))


def _judged_beside(log: Log, setting: Sequence[LogEvent]) -> Iterator[Problem]:
    """What was submitted or judged on one branch while the contract was amended on another."""
    amended = [event for event in setting if event.type == "amended"]
    for move in standing(log).latest if amended else ():
        known = log.ancestry((move.id,))
        beside = [event for event in amended if event.id not in known and move.id not in log.ancestry((event.id,))]
        if move.type in _JUDGED and beside:
            message = f"{move.type} rests on the contract before the amendment, which its writer had not seen"
            yield Problem("contract_changed", message, Location(move.path), f"workpacket reopen {log.packet}")


def difference(before: Contract, after: Contract) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The parts that are not the same: name, the texts before, the texts after."""
    earlier = dict(parts(before))
    for name, texts in parts(after):
        if texts != earlier[name]:
            yield name, earlier[name], texts


def parts(contract: Contract) -> Iterator[tuple[str, tuple[str, ...]]]:
    """All that the contract says, by the names under which a person reads it. Title is shown where it differs."""
    yield "packet", (contract.packet,)
    yield "title", (contract.title,) if contract.title != contract.what else ()
    yield "what", (contract.what,) if contract.what else ()
    yield "why", (contract.why,) if contract.why else ()
    yield "criteria", contract.criteria
    yield "evidence demanded", tuple(_demands(contract))
    yield "scope", contract.scope
    yield "out of scope", contract.out_of_scope
    yield "risk", (contract.risk,) if contract.risk else ()
    yield "dependencies", contract.dependencies
    for name, pinned in (("refinement", contract.refinement), ("specification", contract.spec)):
        yield name, (pinned.path, f"sha256 {pinned.sha256}") if pinned is not None else ()


def _demands(contract: Contract) -> Iterator[str]:
    for demand in contract.evidence:
        told = [f"command: {demand.command}"] if demand.command else []
        told += [f"tests: {', '.join(demand.tests)}"] if demand.tests else []
        told += [f"paths: {', '.join(demand.paths)}"] if demand.paths else []
        told += [f"exempt: {demand.exempt}"] if demand.exempt is not None else []
        yield f"for {demand.criterion}: {'; '.join(told)}"
