"""Rules about the lanes and gates that a policy adds. The lanes are judged in `lifecycle.added_lanes`, for every
command.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.policy import PolicyDocument
from workpacket.lifecycle.gates import STANDARD
from workpacket.lifecycle.policy import declared_lanes, lane_faults
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.source import Node


class LifecycleGateUnfit(DocumentRule[PolicyDocument]):
    """Added gate with the name of an existing gate, or without approval rules

    Either a gate with that name already exists and has other rules, or the gate has no rules and could never be passed.

    Remedy: choose another name, and define in [approvals.gates.NAME] who may approve at the gate.
    """

    def check(self, document: PolicyDocument) -> Iterator[Problem]:
        table = document.at("lifecycle", "gates")
        ruled = document.at("approvals", "gates")
        names = ruled.mapping.keys() if ruled is not None else ()
        for name, gate in table.mapping.items() if table is not None else ():
            span = (gate.start, gate.end)
            if name in STANDARD:
                yield self.fault(span, f"the gate {name} already exists", hint="choose another name")
            elif name not in names:
                message = f"the gate {name} has no rules, so it could never be passed"
                yield self.fault(span, message, hint=f"add [approvals.gates.{name}]")


class ActorUnfit(DocumentRule[PolicyDocument]):
    """Agent without an operator, or person with one

    Work must be judged by a different person, so each agent has an operator: a person who is also an actor. Until the
    table is valid, no event is accepted.

    Remedy: give each agent an `operator` of kind `person`; do not give a person an operator.
    """

    def check(self, document: PolicyDocument) -> Iterator[Problem]:
        table = document.at("actors")
        actors = table.mapping if table is not None else {}
        people = {name for name, actor in actors.items() if actor.string_at("kind") == "person"}
        for name, actor in actors.items():
            operator = actor.get("operator")
            if actor.string_at("kind") == "agent":
                if operator is None:
                    yield self.fault(
                        _span(actor),
                        f"the agent {name} has no operator",
                        hint="add its `operator`, the person responsible for it",
                    )
                elif operator.text and operator.text not in people:
                    message = f"{operator.text}, the operator of {name}, is not a person in [actors]"
                    yield self.fault(
                        _span(operator), message, hint=f"add [actors.{operator.text}], or specify a different operator"
                    )
            elif operator is not None:
                yield self.fault(
                    _span(operator), f"{name} is a person, and a person has no operator", hint="remove the line"
                )


class LaneRule(DocumentRule[PolicyDocument]):
    def check(self, document: PolicyDocument) -> Iterator[Problem]:
        table = document.at("lifecycle", "lanes")
        if table is None:
            return
        for found in lane_faults(declared_lanes(table)):
            lane = table.mapping[found.token]
            said = lane.get(found.key) if found.key else None
            # The schema reports a setting that is missing or is not text.
            if found.code == self.code() and (found.key not in {"after", "before"} or (said is not None and said.text)):
                yield self.fault(_span(said or lane), found.message, hint=found.hint)


def _span(node: Node) -> tuple[int, int]:
    return node.start, node.end


class LaneNameMalformed(LaneRule):
    """Added lane with an invalid name

    Events, board entries and commands use the lane's token, and status lines use its title.

    Remedy: use capital letters, such as `QA` or `SECURITY_REVIEW`; the title consists of letters and spaces.
    """


class LaneBuiltIn(LaneRule):
    """Added lane with the name of a built-in lane

    A policy can add lanes between the built-in ones. It cannot change or remove built-in lanes or gates.

    Remedy: choose another name; `[lifecycle.gates]` adds gates.
    """


class LaneNameTaken(LaneRule):
    """Added lane with the name of a different lane

    The name would be ambiguous; case is ignored.

    Remedy: choose another name, title or section.
    """


class LaneNeighbourUnknown(LaneRule):
    """Added lane next to an unknown lane

    The position of the added lane is unknown.

    Remedy: specify lanes by their tokens; `workpacket policy show` lists the lanes in order.
    """


class LaneCycle(LaneRule):
    """Cycle of added lanes

    Packets could never reach these lanes, or never leave them.

    Remedy: put the first of these lanes after an existing lane, and the last before the next existing lane.
    """


class LaneUnreachable(LaneRule):
    """Unreachable added lane

    The lane's neighbors are not adjacent, or one of them does not refer to the lane, so packets could not reach it.

    Remedy: specify two adjacent lanes; if two added lanes are neighbors, make them refer to each other.
    """


class LanePlaceTaken(LaneRule):
    """Two added lanes after the same lane

    A command can move a packet from one lane to only one other lane.

    Remedy: put the second lane after the first, and give it as `before` in the first lane.
    """


class LaneBeforeGate(LaneRule):
    """Added lane between a lane and its own gate

    Activation makes a packet ready for dev, and a claim moves the packet to IN_PROGRESS under a lease; a packet in
    between would be neither.

    Remedy: put the lane after IN_PROGRESS, or add a gate or a checklist item instead.
    """


class LifecycleGateAstray(DocumentRule[PolicyDocument]):
    """Gate on a move out of a lane that the policy does not add

    The gate is applied to every move that can have one, so that a typo does not open the gate.

    Remedy: specify a lane in `[lifecycle.lanes]`, or the move by its command.
    """

    def check(self, document: PolicyDocument) -> Iterator[Problem]:
        lanes = declared_lanes(document.at("lifecycle", "lanes"))
        names = {f"advance {lane.token}" for lane in lanes}
        table = document.at("lifecycle", "gates")
        for gate in table.mapping.values() if table is not None else ():
            on = gate.get("on")
            move = (on.text or "") if on is not None else ""
            if on is not None and move.startswith("advance ") and move not in names:
                message = f"{move!r} is not a move: the policy does not add a lane with that name"
                yield self.fault((on.start, on.end), message, hint=_moves(names))


def _moves(names: set[str]) -> str:
    return f"write {' or '.join(sorted(names))}" if names else "add the lane to [lifecycle.lanes]"
