"""`workpacket packet contract` shows the contract of a packet, and `workpacket packet amend` replaces it."""

from __future__ import annotations

import sys
from typing import Final

from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.cli.read_only import packet_facts, show_json
from workpacket.git.repository import Repository
from workpacket.ledger.fold import in_force
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.contract_drift import covered, difference, parts
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import AMENDMENT_GATE
from workpacket.lifecycle.moves import Answer
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.problem import WorkpacketError
from workpacket.report.approval_text import render_contract, render_difference
from workpacket.report.terminal import Style
from workpacket.shell.approvals.subject import contract_version
from workpacket.shell.governing.execution import Question, here


def _run_contract(arguments: Arguments) -> int:
    repository, _, packet = packet_facts(arguments)
    contract = _said(packet)
    held = sorted(in_force(packet.log))
    if arguments.flag("canonical"):
        sys.stdout.buffer.write(contract.encode())
        sys.stdout.flush()
        return exits.OK
    same = held == [contract.digest]
    if arguments.flag("json"):
        approved: list[Json] = [*held]
        said: dict[str, Json] = {"id": packet.id.text, "digest": contract.digest, "approved": approved}
        return show_json(arguments, {**said, "contract": contract.json()})
    style = style_of(arguments)
    sys.stdout.write(render_contract(parts(contract), contract.digest, style))
    if same:
        print("this is the approved contract")
    elif held:
        sys.stdout.write(_changes(repository, packet, contract, style))
        print(f"restore the approved contract, or: workpacket approve {packet.id} --gate {AMENDMENT_GATE}")
    elif words := covered(packet.log):
        print(words)
    print(f"next: workpacket why {packet.id}")
    return exits.OK


def _said(packet: PacketFacts) -> Contract:
    """Return the contract of the packet or, if there is no packet yet, of its stub."""
    document = packet.packet or packet.stub
    if document is None:
        raise WorkpacketError("contract_unreadable", f"{packet.id} has neither a packet nor a stub")
    said = stated(document, packet.refinement)
    if isinstance(said, str):
        raise WorkpacketError("contract_unreadable", said, path=document.path)
    return said


def _changes(repository: Repository, packet: PacketFacts, contract: Contract, style: Style) -> str:
    """Return the differences from the current contract, if a commit still contains it."""
    for digest in sorted(in_force(packet.log)):
        before = contract_version(repository, packet.id.text, digest)
        if before is not None:
            return render_difference(difference(before, contract), f"{digest[:12]}, which was approved", style)
    return "--- the approved contract is not in any commit\n"


def _run_amend(arguments: Arguments) -> int:
    from workpacket.lifecycle.side_moves import amend

    repository, reason = here(), required(arguments, "reason")

    def decide(facts: Facts, packet: PacketFacts) -> Answer:
        def show(contract: Contract) -> str:
            return _changes(repository, packet, contract, Style()).rstrip("\n")

        return amend(facts, packet, show, reason=reason)

    return packet_command(arguments, decide, questions=(Question(AMENDMENT_GATE),))


_ALL: Final = (
    Command(
        "contract",
        _run_contract,
        arguments="WP_ID",
        description="""
Shows the contract that a person approves, as stated in the packet or the stub (what and why, criteria, scope, risk,
dependencies, required evidence, refinement and specification), and how it differs from the approved contract.""",
        options=(Option("canonical", "print the exact bytes that the digest covers"),),
        examples=(
            "workpacket packet contract WP-1-Parser-v1",
            "workpacket packet contract WP-1-Parser-v1 --canonical | sha256sum",
        ),
    ),
    Command(
        "amend",
        _run_amend,
        arguments="WP_ID",
        description="""
First write the new contract into the stub and the packet, then have it approved at the gate `amendment`; if the policy
has no rules for that gate, those of `activation` apply. Work that is in review or already judged must be reopened
first.""",
        options=(REASON, *ACTING),
        examples=(
            "workpacket approve WP-1-Parser-v1 --gate amendment",
            'workpacket packet amend WP-1-Parser-v1 --reason "the format has a second version"',
        ),
    ),
)

DECLARED: Final = {command.name: command for command in _ALL}
