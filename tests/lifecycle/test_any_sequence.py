"""Whatever is tried, in whatever order, with hand edits in between: the gates hold and the board follows the log.

Here plans are made and carried out in memory, thousands of them; `upsets` does it with real commands, which are killed,
and with damage to the log, and asks `check` after each step. tests/proof/lifecycle runs that at length.
"""

from __future__ import annotations

from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ledger.stories import verify_tree
from lifecycle.moves import MOVES, move
from lifecycle.upsets import Upsets, as_often
from lifecycle.world import ADDED, WITH_LANES, WITHOUT_LANES, adopted, errors
from workpacket.ledger.verify import Vouching
from workpacket.lifecycle.board_sync import hand_edits, move_to, sync
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import is_legal
from workpacket.model.events import LogEvent

NAMES = ("WP-1-A-v1", "WP-1-B-v1")
ACTORS = ("ann", "bob")


class AnySequence(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.edited: set[str] = set()

    @initialize(policy=st.sampled_from((WITHOUT_LANES, WITH_LANES)))
    def begin(self, policy: LifecyclePolicy) -> None:
        lanes = {NAMES[0]: "READY_FOR_DEV", NAMES[1]: "IN_REVIEW", "WP-1-Successor-v9": "READY_FOR_DEV"}
        self.world = adopted(lanes, policy)
        self.world.do(sync)

    @rule(kind=st.sampled_from(MOVES), name=st.sampled_from(NAMES), actor=st.sampled_from(ACTORS))
    def try_to_move(self, kind: str, name: str, actor: str) -> None:
        before = dict(self.world.files)
        answer = self.world.do(move(kind, name), actor)
        if isinstance(answer, Planned):
            # A lease that is renewed moves nothing, so nothing is drawn.
            if any(event.moves_lane for event in answer.plan.events):
                self.edited.discard(name)
        else:
            assert self.world.files == before

    @rule(kind=st.sampled_from(MOVES), name=st.sampled_from(NAMES))
    def die_before_the_commit(self, kind: str, name: str) -> None:
        move(kind, name)(self.world.facts())

    @rule(name=st.sampled_from(NAMES), token=st.sampled_from(ADDED.tokens))
    def type_another_token(self, name: str, token: str) -> None:
        if self.world.policy.lanes.lane(token) is None:
            return  # a word that names no lane here, which a rule of the board says
        self.world.hand_edit(name, token)
        if token == self.world.state(name).lane:
            self.edited.discard(name)
        else:
            self.edited.add(name)

    @rule()
    def draw_anew(self) -> None:
        self.world.do(sync)
        self.edited.clear()

    @rule()
    def adopt_hand_edits(self) -> None:
        for packet, token, _ in list(hand_edits(self.world.facts())):
            name = packet.id.text
            answer = self.world.do(partial(adopt_one, name, token))
            if isinstance(answer, Planned):
                assert self.world.state(name).lane == token
                self.edited.discard(name)

    @invariant()
    def hand_edits_are_seen_and_nothing_else_is(self) -> None:
        assert {packet.id.text for packet, _, _ in hand_edits(self.world.facts())} == self.edited

    @invariant()
    def the_board_says_what_the_log_says(self) -> None:
        board = self.world.board()
        assert all(board[name] == self.world.state(name).lane for name in NAMES if name not in self.edited)

    @invariant()
    def the_log_is_sound_and_every_move_legal(self) -> None:
        logs = {path: data for path, data in self.world.files.items() if path.startswith(".GOV/log/")}
        assert not errors(verify_tree(logs, lambda _event: Vouching()))
        for name in NAMES:
            events = [event for event in self.world.state(name).history if event.moves_lane]
            for before, event in zip([None, *events], events, strict=False):
                came_from = before.lane_from if before is not None else None
                lanes = self.world.policy.lanes
                assert is_legal(event.type, event.lane_from, event.lane_to, came_from=came_from, lanes=lanes)

    @invariant()
    def no_gate_is_passed_without_its_evidence(self) -> None:
        for name in NAMES:
            holders: set[str] = set()
            for event in self.world.state(name).history:
                holders |= {event.text("holder") or ""}
                assert_has_evidence(event, holders)


def adopt_one(name: str, token: str, facts: Facts) -> Answer:
    return move_to(facts, facts.packets[name], token, reason="r", branch="work")


def assert_has_evidence(event: LogEvent, holders: set[str]) -> None:
    if event.type == "submitted":
        assert event.data["evidence"]
    if event.type == "verdict.given":
        assert event.actor.id not in holders
        assert event.data.get("report") or event.text("reference")


# What goes wrong is told as it happened: to make a history of real commands shorter takes minutes.
TestUpsets = Upsets.TestCase
TestUpsets.settings = as_often(examples=3, steps=10)

TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
