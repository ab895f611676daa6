"""Gathering the facts of a command: the packets it is about, what they depend on, the registers, policy and clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workpacket import __version__
from workpacket.documents.spec_pointer import specification_places
from workpacket.git.repository import Repository
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.model.events import Actor
from workpacket.model.ids import WorkPacketId
from workpacket.model.layout import BOARD_PATH, LARGEST_SPECIFICATION, REGISTRY_PATH, SPEC_POINTER
from workpacket.problem import Problem
from workpacket.shell.approvals.gate_queries import Question, Said, added_questions, ask
from workpacket.shell.base import read_base_policy
from workpacket.shell.governed_files import GovernedFiles, find_governed
from workpacket.shell.moment import moment
from workpacket.shell.tree import read_bytes
from workpacket.text.source import Source


def gather(
    repository: Repository, names: Iterable[str] | None, actor: Actor, questions: Sequence[Question] = ()
) -> Facts:
    """The facts about these packets, `None` for all; with them come other revisions and what they depend on.

    The `questions` are put to the approvals about the packet that is named first.
    """
    governed = find_governed(str(repository.root))
    pointer = governed.read(SPEC_POINTER)
    # Where approvals are asked, they ask the base for its specification, which most likely lies where this one does.
    policy = read_base_policy(repository, ahead=specification_places(pointer) if questions else ())
    packets = _packets(governed, names) if names is not None else _all_packets(governed)
    specification = _specification(governed, pointer)
    asked = [packets[name] for name in (names or ()) if name in packets]
    now = moment()
    said = ask(repository, asked[0], (*questions, *added_questions(policy.lifecycle)), now) if asked else Said()
    return Facts(
        moment=now,
        actor=actor,
        tool=f"workpacket {__version__}",
        policy=policy.lifecycle,
        packets=packets,
        known=governed.known,
        board=governed.read(BOARD_PATH),
        registry=governed.read(REGISTRY_PATH),
        spec_pointer=pointer,
        specification=specification,
        refinement_faults={packet.id.text: _faults(packet, specification) for packet in asked},
        target_branch=policy.target_branch,
        approvals=said.verdicts,
        approved=said.approved,
    )


def _all_packets(governed: GovernedFiles) -> dict[str, PacketFacts]:
    """Without asking any of them what it depends on: whatever that is, it is among them."""
    return {name: governed.packet(WorkPacketId.parse(name)) for name in sorted(governed.known)}


def _packets(governed: GovernedFiles, names: Iterable[str]) -> dict[str, PacketFacts]:
    """The packets named, all revisions of their bases, and what the named ones depend on."""
    # Only what begins alike is taken apart: doing so with all names would be most of a command's time.
    alike: dict[str, list[str]] = {}
    for name in governed.known:
        alike.setdefault(_without_revision(name), []).append(name)
    found: dict[str, PacketFacts] = {}

    def take(wp_id: WorkPacketId) -> None:
        for name in alike.get(_without_revision(wp_id.text), ()):
            revision = WorkPacketId.parse(name)
            if name not in found and revision.base == wp_id.base:
                found[name] = governed.packet(revision)

    chosen = list(names)
    for name in chosen:
        take(WorkPacketId.parse(name))
    if len(found) == len(governed.known):
        return found
    for name in chosen:
        packet = found.get(name)
        for needed in packet.dependencies() if packet is not None else ():
            parsed_need = WorkPacketId.try_parse(needed)
            if parsed_need is not None:
                take(parsed_need)
    return found


def _without_revision(name: str) -> str:
    """The name up to its `-v3`. Asked of every name, so not by a pattern."""
    head, mark, number = name.rpartition("-v")
    return head if mark and number.isascii() and number.isdecimal() else name


def _specification(governed: GovernedFiles, pointer: Source | None) -> Source | None:
    """The specification in force, wherever below the repository the pointer says it lies."""
    for path in specification_places(pointer):
        try:
            return Source.from_bytes(path, read_bytes(governed.root, path, LARGEST_SPECIFICATION))
        except OSError:
            continue
    return None


def _faults(packet: PacketFacts, specification: Source | None) -> tuple[Problem, ...]:
    """What a strict check finds in the refinement. Only a stub is waiting for one."""
    refinement = packet.refinement
    if refinement is None or packet.lane != "STUB":
        return ()
    from workpacket.rules.by_kind import rules_for
    from workpacket.rules.engine import examine
    from workpacket.shell.governing.refinement_check import refinement_faults
    from workpacket.shell.shipped_schemas import schemas

    faults = examine(refinement, rules_for(refinement.kind), schemas())
    return refinement_faults(refinement, map(refinement.source.placed, faults), specification)
