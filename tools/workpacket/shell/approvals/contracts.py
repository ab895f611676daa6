"""The contract that a gate is about: that of the files, or the one named in the log.

Before activation it is the contract in stub and refinement; for an amendment, the one that packet and stub will have.
Every other gate is about the contract in force according to the log, whatever the files say. A log that names none is
older than contracts; then the contract in the packet counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from workpacket.approvals.policy import POLICY_GATE
from workpacket.documents.document import read_once
from workpacket.documents.packet import Packet
from workpacket.documents.refinement import Refinement
from workpacket.documents.stub import Stub
from workpacket.git.objects import read_objects
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.git.run import run_git
from workpacket.ledger.fold import in_force
from workpacket.ledger.log import Log
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.contract_drift import contract_before, contract_findings
from workpacket.lifecycle.gates import ACTIVATING, AMENDMENT_GATE
from workpacket.model.events import LogEvent
from workpacket.model.layout import packet_paths, refinement_paths, stub_path
from workpacket.problem import Problem
from workpacket.shell.approvals.subject import Reader
from workpacket.text.limits import MARKDOWN
from workpacket.text.source import Source
from workpacket.value import Value

# The gates of the events that define the contract in force.
_SETTING = ACTIVATING | {AMENDMENT_GATE}
# The number of commits searched for an earlier version of a contract, newest first.
_MOST = 500


class Documents(Value):
    """The files that state the contract of a packet."""

    stub: Stub | None
    packet: Packet | None
    refinement: Refinement | None


def documents_of(read: Reader, packet: str) -> Documents:
    stub, found, refinement = (
        next((source for path in paths if (source := _source(read, path)) is not None), None)
        for paths in ((stub_path(packet),), packet_paths(packet), refinement_paths(packet))
    )
    return Documents(
        read_once(Stub, stub) if stub is not None else None,
        read_once(Packet, found) if found is not None else None,
        read_once(Refinement, refinement) if refinement is not None else None,
    )


def _source(read: Reader, path: str) -> Source | None:
    data = read(path)
    return Source.from_bytes(path, data[: MARKDOWN.size + 1]) if data is not None else None


def contract_to_approve(read: Reader, log: Log, packet: str, gate: str) -> Contract | Problem:
    """Return the contract in the files, which would be approved now, or why there is none."""
    found = documents_of(read, packet)
    light = found.packet is not None and found.packet.light
    document = found.stub if gate in ACTIVATING and not light else found.packet or found.stub
    if document is None:
        message = f"{packet} has no {'stub' if gate in ACTIVATING else 'packet'}"
        return Problem("contract_unreadable", message)
    said = stated(document, found.refinement)
    if isinstance(said, str):
        return Problem("contract_unreadable", said)
    if gate in ACTIVATING:
        return said
    if gate == AMENDMENT_GATE:
        other = stated(found.stub, found.refinement) if found.stub is not None else said
        if isinstance(other, str):
            return Problem("contract_unreadable", other)
        message = "stub and packet state different contracts; write the same into both"
        return said if other == said else Problem("contract_changed", message)
    held = in_force(log) or frozenset({said.digest})
    message = "the files state a different contract from the one that was approved"
    return said if held == {said.digest} else Problem("contract_changed", message)


def contract_asked(read: Reader, log: Log, packet: str, gate: str, consumer: LogEvent | None) -> tuple[str | None, str]:
    """Return the digest that an approval at this gate must name, for this event or one yet to be written; or why there
    is none.
    """
    if gate == POLICY_GATE:
        return None, ""
    if consumer is not None and gate in _SETTING:
        named = consumer.text("contract")
        return named, "" if named else f"the event {consumer.type} names no contract"
    if gate not in _SETTING:
        held = in_force(log, log.heads if consumer is None else consumer.parents)
        if len(held) > 1:
            return None, f"{packet} was amended on two branches, so two contracts are in force"
        named = next(iter(held), "") or contract_before(log)
        if named:
            return named, ""
    said = contract_to_approve(read, log, packet, gate)
    return (None, said.message) if isinstance(said, Problem) else (said.digest, "")


def drift(read: Reader, log: Log) -> Iterator[Problem]:
    """Report differences between the contract in a packet's files and the one in its log. Nothing is read if the log
    names none.
    """
    if in_force(log):
        found = documents_of(read, log.packet)
        yield from contract_findings(log, found.stub, found.packet, found.refinement)


def contract_version(repository: Repository, packet: str, digest: str) -> Contract | None:
    """Return the contract with this digest from the commits; None if none of the latest commits has it."""
    if head_commit(repository) is None:
        return None
    paths = (stub_path(packet), *packet_paths(packet), *refinement_paths(packet))
    answer = run_git(repository.root, "log", "--all", f"--max-count={_MOST}", "--format=%H", "--", *paths)
    for commit in answer.text.split():
        versions = read_objects(repository, (f"{commit}:{path}" for path in paths))
        found = documents_of(partial(_version, versions, commit), packet)
        for document in (found.packet, found.stub):
            said = stated(document, found.refinement) if document is not None else ""
            if isinstance(said, Contract) and said.digest == digest:
                return said
    return None


def _version(versions: dict[str, bytes], commit: str, path: str) -> bytes | None:
    return versions.get(f"{commit}:{path}")
