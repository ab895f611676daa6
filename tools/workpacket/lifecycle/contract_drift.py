"""Check that stub and packet still state the approved contract, and that each amendment replaced the contract that was
current.

The log identifies contracts by their digest: `activated` records the first one, and `amended` records each replacement.
Until activation the files may change freely. Progress (status, evidence, notes) may change afterwards too, because it
is not part of the contract. The log of a packet that was activated before contracts existed records none, so it is not
checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from workpacket.ledger.fold import SETS_CONTRACT, in_force, setting_events, standing
from workpacket.ledger.log import Log
from workpacket.lifecycle.transitions import AMENDABLE
from workpacket.model.canonical import Json
from workpacket.model.event_types import FULL_FORM
from workpacket.model.events import LogEvent
from workpacket.problem import Location, Problem

# Every command asks for the contract in force; the files are parsed only to compare them with it.
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
    """Return the contract that was current before the first amendment; '' if the log records none or has no
    amendment."""
    first = next((event for event in log.events if event.type in SETS_CONTRACT and event.text("contract")), None)
    return (first.text("previous") or "") if first is not None else ""


def contract_findings(
    log: Log, stub: Stub | None, packet: Packet | None, refinement: Refinement | None
) -> Iterator[Problem]:
    """Report every disagreement between files and log about the contract."""
    setting = setting_events(log)
    if not setting:
        return
    from workpacket.lifecycle.contract import stated

    yield from _false_amendments(log)
    hint = f"restore the approved text, or have the change approved: workpacket packet amend {log.packet}"
    digests = sorted(in_force(log))
    if len(digests) > 1:
        named = " and ".join(digest[:_SHORT] for digest in digests)
        message = f"{log.packet} was amended on two branches, so it has two current contracts: {named}"
        yield Problem("contract_changed", message, Location(setting[-1].path), hint)
        return
    yield from _judged_beside(log, setting)
    agreed: Contract | None = None
    for document in (stub, packet):
        if document is None:
            continue
        said = stated(document, refinement)
        if isinstance(said, str):
            message = f"{said}; the approved contract is {digests[0][:_SHORT]}"
            yield Problem("contract_changed", message, Location(document.path), hint)
        elif said.digest != digests[0]:
            message = f"it states contract {said.digest[:_SHORT]}, but {digests[0][:_SHORT]} was approved"
            yield Problem("contract_changed", message, Location(document.path), hint)
        else:
            agreed = said
    if agreed is not None:
        yield from _false_terms(log, setting[-1], agreed)


def terms_of(contract: Contract) -> dict[str, Json]:
    """Return the terms that events repeat from the contract, so that lists and boards need not read the documents."""
    title, dependencies = " ".join(contract.title.split())[:2000], [*contract.dependencies]
    return {"title": title, "dependencies": dependencies, "risk": contract.risk[:200]}


def _false_terms(log: Log, setting: LogEvent, contract: Contract) -> Iterator[Problem]:
    """Report an event that contradicts the contract, because lists, boards and `next` show what the event says. The
    title is the last one recorded in an event.
    """
    titles = [event for event in log.events if event.text("title") is not None]
    for name, said in terms_of(contract).items():
        event = titles[-1] if name == "title" and titles else setting
        if name in event.data and event.data[name] != said:
            message = f"{event.type} says that the {_TERMS[name]} {_shown(event.data[name])}, but the contract says "
            yield Problem("contract_changed", f"{message}{_shown(said)}", Location(event.path))


_TERMS: Final = {"title": "title is", "dependencies": "dependencies are", "risk": "risk is"}


def _shown(said: Json) -> str:
    return ", ".join(map(str, said)) or "none" if isinstance(said, list) else repr(said)


def contract_unmet(packet: PacketFacts) -> tuple[Problem, ...]:
    """Report these disagreements for one packet. Nothing is parsed if the log records no contract."""
    if not setting_events(packet.log):
        return ()
    return tuple(contract_findings(packet.log, packet.stub, packet.packet, packet.refinement))


def covered(log: Log) -> str:
    """Return what was approved, for display: the digest of a contract, or a note that only the refinement was approved;
    return '' for a stub.
    """
    held = sorted(in_force(log))
    if held:
        return " and ".join(held)
    return "approved: refinement only" if any(event.type == "activated" for event in log.events) else ""


def _false_amendments(log: Log) -> Iterator[Problem]:
    """Report amendments to a contract other than the current one, and amendments to work that was being judged."""
    for event in log.events:
        if event.type != "amended":
            continue
        before = in_force(log, event.parents)
        previous = event.text("previous")
        if before and previous not in before:
            message = "it claims to replace a contract that was not the current one"
            yield Problem("contract_changed", message, Location(event.path))
        stand = standing(log.as_of(event.parents))
        lane = stand.came_from or stand.lane
        if lane not in AMENDABLE:
            blocked = ", in which it was blocked" if stand.came_from else ""
            message = f"it replaces the contract while {log.packet} is {lane or 'in no lane'}{blocked}"
            yield Problem("contract_changed", message, Location(event.path))


def _judged_beside(log: Log, setting: Sequence[LogEvent]) -> Iterator[Problem]:
    """Report work that was submitted or judged on one branch while the contract was amended on a different one."""
    amended = [event for event in setting if event.type == "amended"]
    for move in standing(log).latest if amended else ():
        known = log.ancestry((move.id,))
        beside = [event for event in amended if event.id not in known and move.id not in log.ancestry((event.id,))]
        if move.type in _JUDGED and beside:
            message = f"{move.type} uses the contract from before an amendment that its writer did not know about"
            yield Problem("contract_changed", message, Location(move.path), f"workpacket packet reopen {log.packet}")


def difference(before: Contract, after: Contract) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Yield the parts that differ: the name, the texts before and the texts after."""
    earlier = dict(parts(before))
    for name, texts in parts(after):
        if texts != earlier[name]:
            yield name, earlier[name], texts


def parts(contract: Contract) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every part of the contract under the name that a person sees. The title is shown only if it differs."""
    yield "packet", (contract.packet,)
    yield "form", (contract.form,) if contract.form != FULL_FORM else ()
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
