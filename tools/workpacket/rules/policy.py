"""Rules about the gates that a policy adds to moves.

Rules about the lanes that a policy adds. What they find is found in `lifecycle.added_lanes`, for every command.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.policy import PolicyDocument
from workpacket.lifecycle.added_lanes import lane_faults
from workpacket.lifecycle.gates import STANDARD
from workpacket.lifecycle.policy import declared_lanes
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.node import Node


class LifecycleGateUnfit(DocumentRule[PolicyDocument]):
    """Added gate that has the name of another, or no rules of approval

    A gate of that name is asked about elsewhere already, on other terms; or nobody could ever pass it.

    Remedy: choose another name, and say in [approvals.gates.NAME] who passes it.
    """

    def check(self, document: PolicyDocument) -> Iterator[Problem]:
        table = document.at("lifecycle", "gates")
        ruled = document.at("approvals", "gates")
        names = ruled.mapping.keys() if ruled is not None else ()
        for name, gate in table.mapping.items() if table is not None else ():
            span = (gate.start, gate.end)
            if name in STANDARD:
                yield self.fault(span, f"{name} is a gate that there is already", hint="choose another name")
            elif name not in names:
                message = f"the gate {name} has no rules, so nobody could pass it"
                yield self.fault(span, message, hint=f"add [approvals.gates.{name}]")


class ActorUnfit(DocumentRule[PolicyDocument]):
    """Actor without a person behind it, or a person with one

    Who judges whose work is decided over people: behind each agent there is a person, who is an actor too. With a fault
    in the table no event passes.

    Remedy: give each agent an `operator` of kind `person`, and no person one.
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
                        _span(actor), f"the agent {name} has no operator", hint="name the person behind it"
                    )
                elif operator.text and operator.text not in people:
                    message = f"{operator.text}, the operator of {name}, is not a person of [actors]"
                    yield self.fault(_span(operator), message, hint=f"add [actors.{operator.text}], or name another")
            elif operator is not None:
                yield self.fault(_span(operator), f"{name} is a person, who has no operator", hint="remove the line")


class LaneRule(DocumentRule[PolicyDocument]):
    def check(self, document: PolicyDocument) -> Iterator[Problem]:
        table = document.at("lifecycle", "lanes")
        if table is None:
            return
        for found in lane_faults(declared_lanes(table)):
            lane = table.mapping[found.token]
            said = lane.get(found.key) if found.key else None
            # Of a setting that is missing, or no text, the schema speaks.
            if found.code == self.code() and (found.key not in {"after", "before"} or (said is not None and said.text)):
                yield self.fault(_span(said or lane), found.message, hint=found.hint)


def _span(node: Node) -> tuple[int, int]:
    return node.start, node.end


class LaneNameMalformed(LaneRule):
    """Added lane whose name nobody could write on a board

    Events, board entries and commands name the lane by its token, and status lines by its title.

    Remedy: name it in capital letters, like `QA` or `SECURITY_REVIEW`; give it a title of letters and blanks.
    """


class LaneBuiltIn(LaneRule):
    """Added lane that every repository has already

    A policy can make the way of a packet longer. It can take no lane from it, and none of the gates between them.

    Remedy: choose another name; gates are added by `[lifecycle.gates]`.
    """


class LaneNameTaken(LaneRule):
    """Added lane with the name of another

    Whoever writes the name, in whatever letters, would mean two lanes.

    Remedy: choose another name, title or section.
    """


class LaneNeighbourUnknown(LaneRule):
    """Added lane beside a lane that does not exist

    Nothing says where on the way the lane lies.

    Remedy: name lanes by their tokens; `workpacket policy show` lists the way.
    """


class LaneCycle(LaneRule):
    """Added lanes that lead back to themselves

    No work would ever come to them, or none would ever leave.

    Remedy: let the first come after a lane of the way, and the last before the next one.
    """


class LaneUnreachable(LaneRule):
    """Added lane off the way

    Its two neighbours do not follow one another, or one of them does not know of it: no work would come to it.

    Remedy: name two lanes that follow one another, and let added neighbours name each other.
    """


class LanePlaceTaken(LaneRule):
    """Two added lanes after the same one

    Work that leaves a lane by one command can come to one lane only.

    Remedy: put one after the other, and let the first say so in `before`.
    """


class LaneBeforeGate(LaneRule):
    """Added lane between a lane and its own gate

    Activation makes a packet ready for dev and a claim puts it in progress, under a lease: what is in between would be
    neither.

    Remedy: put the lane behind IN_PROGRESS, or add a gate or an item of the checklist instead.
    """


class LifecycleGateAstray(DocumentRule[PolicyDocument]):
    """Gate on a move out of a lane that the policy does not add

    It lies before every move that can bear a gate, so that a slip of the pen opens nothing.

    Remedy: name a lane of `[lifecycle.lanes]`, or the move as its command is typed.
    """

    def check(self, document: PolicyDocument) -> Iterator[Problem]:
        lanes = declared_lanes(document.at("lifecycle", "lanes"))
        names = {f"advance {lane.token}" for lane in lanes}
        table = document.at("lifecycle", "gates")
        for gate in table.mapping.values() if table is not None else ():
            on = gate.get("on")
            move = (on.text or "") if on is not None else ""
            if on is not None and move.startswith("advance ") and move not in names:
                message = f"{move!r} is no move: the policy adds no lane of that name"
                yield self.fault((on.start, on.end), message, hint=_moves(names))


def _moves(names: set[str]) -> str:
    return f"write {' or '.join(sorted(names))}" if names else "add the lane to [lifecycle.lanes]"
