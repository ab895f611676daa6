"""A glance says what the state of the log says, and is the same after it was stored as text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ledger.stories import ALL_TYPES, LATER, Story
from workpacket.ledger.fold import fold, setting_events
from workpacket.ledger.log import Log
from workpacket.lifecycle.gates import ends_unjudged, lease_held, settles_by_landing
from workpacket.lifecycle.glance import glance_at, load_glance
from workpacket.lifecycle.policy import LifecyclePolicy

_LATER_TYPES = tuple(kind for kind in ALL_TYPES if kind not in ("created", "adopted", "checkpoint"))
_MOMENTS = ("2025-12-01T00:00:00Z", "2026-06-01T00:00:00Z", LATER, "2027-01-01T00:00:00Z")


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Logs with and without branches, whose moves may contradict each other."""
    story = Story()
    if draw(st.booleans()):
        story.add("created")
        for kind in draw(st.lists(st.sampled_from(_LATER_TYPES), max_size=12)):
            after = draw(st.sampled_from([None, tuple(story.events[-1:]), tuple(story.events[:1])]))
            story.add(kind, after=after)
    return story.log()


@given(logs())
def test_a_glance_is_the_same_after_it_was_stored(log: Log) -> None:
    glance = glance_at(log, fold(log))
    assert load_glance(json.loads(glance.dump())) == glance


@given(logs(), st.sampled_from(_MOMENTS))
def test_a_glance_says_what_the_state_says(log: Log, now: str) -> None:
    state = fold(log)
    glance = glance_at(log, state)
    policy = LifecyclePolicy()
    assert (glance.lane, glance.sound, glance.light, glance.forked, glance.heads) == (
        state.lane, state.sound, state.light, state.forked, state.heads,
    )  # fmt: skip
    assert lease_held(glance, now) == lease_held(state, now)
    assert settles_by_landing(glance, policy) == settles_by_landing(state, policy)
    assert ends_unjudged(glance, policy) == ends_unjudged(state, policy)
    assert [move.at for move in glance.moves] == [move.at for move in state.latest_moves]
    assert glance.open_runs == bool(state.open_runs)
    assert glance.runs or not any(run.closed is None for run in state.runs)
    assert glance.standing == any(event.text("standing") for event in setting_events(log))


def test_the_last_contract_says_what_a_packet_waits_for() -> None:
    story = Story()
    story.tell("created", "activated")
    assert glance_at(story.log(), fold(story.log())).dependencies == ()
    story.add("amended", dependencies=["WP-1-Tap-v1"], risk="HIGH")
    glance = glance_at(story.log(), fold(story.log()))
    assert (glance.dependencies, glance.risk, glance.title) == (("WP-1-Tap-v1",), "HIGH", "Boil water")


def test_a_log_that_names_no_dependencies_leaves_them_to_the_documents() -> None:
    story = Story()
    story.add("created")
    glance = glance_at(story.log(), fold(story.log()))
    assert (glance.dependencies, glance.risk) == (None, None)
