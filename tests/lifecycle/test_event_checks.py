"""What `check --base` holds against the events of a change, asked of histories without files or git.

Each test tells an honest history, changes one thing, and names everything that is said of it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ledger.stories import COMMIT, LATER, A, B, C, Story
from lifecycle.world import ADDED
from softkeys import SoftKey, shared_key
from workpacket.approvals.actors import Actors, KnownActor
from workpacket.approvals.event_signatures import EventSignatures
from workpacket.approvals.sshsig import EVENT_NAMESPACE
from workpacket.ledger.log import Log, join_events
from workpacket.lifecycle.change_checks import SubmittedWork
from workpacket.lifecycle.event_checks import (
    Around,
    EventObjection,
    judge_actors,
    judge_attested,
    judge_change,
)
from workpacket.lifecycle.policy import EvidencePolicy, LifecyclePolicy
from workpacket.lifecycle.review import Report
from workpacket.model.canonical import Json
from workpacket.model.event_types import BEFORE_LANDING
from workpacket.model.events import Actor, ChangedFile, LogEvent
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.model.layout import packet_paths
from workpacket.value import replace

PACKET, NEXT = "WP-1-Kettle-v1", "WP-1-Kettle-v2"
BOB, EVE, VICTOR = Actor("bob", "agent"), Actor("eve", "agent"), Actor("victor", "human")
SOON = "2026-01-02T00:00:00Z"
REPORT: Json = {"path": "report.md", "sha256": B}
DONE = SubmittedWork(("it boils",), ("src/",), ("src/boil.py",))
# What an honest writer says; bob works, victor judges.
_HONEST: dict[str, dict[str, Any]] = {
    "claimed": {"writer": BOB, "expires_at": SOON},
    "lease.renewed": {"writer": BOB, "expires_at": SOON},
    "released": {"writer": BOB},
    "submitted": {"writer": BOB},
    "verdict.given": {"writer": VICTOR, "report": REPORT},
}
WHOLE = ("created", "activated", "claimed", "submitted", "verdict.given", "merged")


class Tale(Story):
    """A history whose events are honest unless told otherwise."""

    def add(self, kind: str, **said: Any) -> LogEvent:
        return super().add(kind, **{**_HONEST.get(kind, {}), **said})


def tale(*kinds: str) -> Tale:
    told = Tale()
    told.tell(*kinds)
    return told


@dataclass
class Judging:
    """A change that is judged, and what is around it. `known` are the events that the base has."""

    told: Story
    known: Sequence[LogEvent] = ()
    governed: bool = True
    reports: Sequence[Report] = ()
    lanes: LaneTable = BUILT_IN
    files: dict[str, str] = field(default_factory=lambda: {"r.md": A, "report.md": B})
    around: dict[str, Any] = field(default_factory=dict)
    hours: int = 72

    def objections(self) -> list[tuple[str, str, str]]:
        usual: dict[str, Any] = {"dependencies": {}, "waivers": (), "contained": lambda _: True}
        usual |= {"submitted": lambda _: DONE, "open_points": tuple, "packets": (PACKET, NEXT)}
        around = Around(**{**usual, **self.around})
        judged = judge_change(
            self.told.log(),
            frozenset(event.id for event in self.known),
            self.files.get,
            lambda: around,
            clock=LATER,
            governed=self.governed,
            reports=self.reports,
            policy=LifecyclePolicy(lanes=self.lanes, lease_hours=self.hours),
        )
        return [(one.code, one.event.type, one.message) for one in judged]


def objections(told: Story, known: Sequence[LogEvent] = (), **around: Any) -> list[tuple[str, str, str]]:
    return Judging(told, known, around=around).objections()


def waiver(rule: str, target: str = "") -> LogEvent:
    said: dict[str, Any] = {"rule": rule, **({"target": target} if target else {})}
    return Story().add("waived", **said)


def test_nothing_is_held_against_an_honest_history() -> None:
    assert objections(tale(*WHOLE)) == []


# --- which events are judged ---


def forged() -> Tale:
    told = tale("created", "activated")
    told.add("merged", lane_from="READY_FOR_DEV")
    return told


ILLEGAL = ("move_illegal", "merged", "merged leads from READY_FOR_DEV to VALIDATED, which is not a valid transition")


def test_only_what_the_change_brings_is_judged() -> None:
    told = forged()
    assert objections(told) == [ILLEGAL]
    assert objections(told, told.events) == []
    told.add("reopened", lane_from="VALIDATED")
    again = "reopened leads from VALIDATED to IN_PROGRESS, which is not a valid transition"
    assert objections(told, told.events[:3]) == [("move_illegal", "reopened", again)]
    told = tale("created")
    told.add("noted")
    assert objections(told, told.events[:1]) == []


def beside(kind: str, **said: Any) -> list[tuple[str, str, str]]:
    """What is said of an event whose writer did not know that the packet was blocked on the base."""
    told = tale("created", "activated", "claimed")
    seen = told.events[-1]
    blocked = told.add("blocked")
    told.add(kind, after=(seen,), **said)
    told.add("unblocked", after=(blocked,))
    return objections(told, told.events[:4])


def test_a_judged_event_has_seen_every_move_of_the_base() -> None:
    blocked = tale("created", "activated", "claimed", "blocked").events[-1]
    unseen = f"it does not follow blocked by ann ({blocked.id[:12]}), which is on the base"
    for kind, said in (
        ("submitted", {}),
        ("amended", {}),
        ("noted", {"attest": (A,)}),
    ):
        assert beside(kind, **said) == [("move_beside_base", kind, f"{kind}: {unseen}")]
    assert beside("noted") == []
    assert beside("lease.renewed") == []


def test_what_the_base_has_besides_moves_need_not_be_seen() -> None:
    told = tale("created", "activated")
    ready = told.events[-1]
    noted = told.add("noted")
    told.add("claimed", after=(ready,))
    assert objections(told, (*told.events[:2], noted)) == []


def test_a_lease_is_renewed_by_who_has_it_even_if_nothing_moves() -> None:
    told = tale("created", "activated", "claimed")
    known = list(told.events)
    told.add("lease.renewed", writer=EVE)
    found = ("move_without_gate", "lease.renewed", "eve wrote lease.renewed while bob held the packet")
    assert objections(told, known) == [found]
    assert objections(told, known, waivers=(waiver("not_the_holder"),)) == []


@pytest.mark.parametrize("kind", ["submitted", "released", "lease.renewed"])
def test_an_event_dated_before_the_claim_does_not_make_the_lease_one_from_a_clock_ahead(kind: str) -> None:
    told = tale("created", "activated", "claimed")
    known = list(told.events)
    told.add(kind, writer=EVE, at="2025-12-01T00:00:00Z")
    found = ("move_without_gate", kind, f"eve wrote {kind} while bob held the packet")
    assert found in objections(told, known)


def test_a_lease_lasts_three_days_unless_the_policy_says_otherwise() -> None:
    told = tale("created", "activated")
    told.add("claimed", expires_at="2026-01-04T00:00:03Z")
    message = "its lease ends at 2026-01-04T00:00:03Z, more than 72 hours after 2026-01-01T00:00:02Z"
    assert objections(told) == [("move_without_gate", "claimed", message)]
    assert Judging(told, hours=73).objections() == []


def test_one_waiver_of_several_is_enough_and_any_other_lifts_nothing() -> None:
    told = tale("created", "activated", "claimed")
    told.add("verdict.given", writer=BOB, lane_from="IN_REVIEW")
    found = [message for _, _, message in objections(told)]
    assert "bob judged their own work" in found
    for rules, lifted in (
        (("verdict_by_coder", "hint"), True),
        (("hint", "verdict_by_coder"), True),
        (("hint",), False),
    ):
        waivers = tuple(map(waiver, rules))
        left = [message for _, _, message in objections(told, waivers=waivers)]
        assert ("bob judged their own work" not in left) is lifted


# --- moves that the table does not have ---


def move(kind: str, lane_from: str | None, lane_to: str, lanes: LaneTable = ADDED) -> list[str]:
    """What is said of an event that moves the packet so."""
    told = tale("created") if lane_from is not None else Tale()
    told.add(kind, lane_from=lane_from, lane_to=lane_to)
    found = Judging(told, lanes=lanes).objections()
    return [message for code, _, message in found if code == "move_illegal"]


@pytest.mark.parametrize(
    ("kind", "lane_from", "lane_to", "why"),
    [
        ("verdict.given", "IN_REVIEW", "MERGE_PENDING", ": it leaves out QA, UAT"),
        ("verdict.given", "IN_REVIEW", "VALIDATED", ": it leaves out QA, UAT, STAGING"),
        ("verdict.given", "IN_REVIEW", "IN_REVIEW", ""),
        ("verdict.given", "IN_REVIEW", "ABANDONED", ""),
        ("claimed", "FAIL", "IN_REVIEW", ""),
        ("merged", "IN_REVIEW", "VALIDATED", ""),
        ("reopened", "QA", "ELSEWHERE", ": the policy on the base does not define lane ELSEWHERE"),
        ("reopened", "NOWHERE", "ELSEWHERE", ": the policy on the base does not define lane NOWHERE"),
    ],
)
def test_a_move_without_a_row_says_what_it_skips(kind: str, lane_from: str, lane_to: str, why: str) -> None:
    said = f"{kind} leads from {lane_from} to {lane_to}, which is not a valid transition{why}"
    assert move(kind, lane_from, lane_to) == [said]


def test_a_packet_begins_as_a_stub() -> None:
    assert move("created", None, "IN_REVIEW") == [
        "created leads from None to IN_REVIEW, which is not a valid transition"
    ]


def test_added_lanes_are_those_of_the_base() -> None:
    assert move("verdict.given", "IN_REVIEW", "QA") == []
    unknown = "which is not a valid transition: the policy on the base does not define lane QA"
    assert move("verdict.given", "IN_REVIEW", "QA", BUILT_IN) == [
        f"verdict.given leads from IN_REVIEW to QA, {unknown}"
    ]


def test_a_blocked_packet_comes_back_to_where_it_was_blocked() -> None:
    told = tale("created", "activated", "claimed", "blocked", "unblocked")
    assert objections(told) == []
    told = tale("created", "activated", "claimed", "blocked")
    told.add("unblocked", lane_to="IN_REVIEW")
    assert objections(told) == [
        ("move_illegal", "unblocked", "unblocked leads from BLOCKED to IN_REVIEW, which is not a valid transition")
    ]


@pytest.mark.parametrize(
    ("governed", "lane", "refused"),
    [(True, "IN_PROGRESS", True), (True, "STUB", False), (False, "IN_PROGRESS", False)],
)
def test_a_packet_is_adopted_into_the_middle_only_where_there_are_no_logs(
    governed: bool, lane: str, refused: bool
) -> None:
    told = Tale()
    told.add("adopted", lane_to=lane)
    why = f"it was adopted as {lane}, but once packets have logs, work must start as a stub"
    assert Judging(told, governed=governed).objections() == [("move_illegal", "adopted", why)] * refused


# --- settlements of forks ---


def settled(*attest: str, **said: Any) -> list[tuple[str, str, str]]:
    """What is said of a settlement of a fork between a release and a signed FAIL."""
    told = tale("created", "activated")
    claimed = told.add("claimed")
    released = told.add("released", after=(claimed,))
    submitted = told.add("submitted", after=(claimed,))
    failed = told.add("verdict.given", after=(submitted,), lane_to="FAIL", verdict="FAIL", attest=(C,))
    moves = sorted((released.id, failed.id))
    told.add("fork.resolved", moves=moves, lane_to="READY_FOR_DEV", attest=attest, **said)
    found = objections(told)
    verdict = f"FAIL by victor ({failed.id[:12]})"
    return [(code, kind, message.replace(verdict, "the FAIL")) for code, kind, message in found]


def test_a_settlement_drops_a_signed_verdict_only_through_its_gate() -> None:
    message = "fork.resolved drops the signed verdict the FAIL without using gate resolve"
    assert settled() == [("move_without_gate", "fork.resolved", message)]
    assert settled(A) == []


def test_a_settlement_invents_no_holder() -> None:
    why = "fork.resolved: eve did not hold the packet on any of its branches"
    assert settled(A, holder="eve") == [("move_illegal", "fork.resolved", why)]


# --- standing packets ---


DAY, LATER_DAY = "2026-03-01", "2027-03-01"
ON_BASE, CHANGED = "the scope on the base says", "and no amendment changes it to"


@pytest.mark.parametrize(
    ("said", "here", "before", "message"),
    [
        ("", "", None, ""),
        ("", "", "", ""),
        (DAY, DAY, None, ""),
        (DAY, DAY, DAY, ""),
        (
            DAY,
            "",
            None,
            "{kind} says standing until 2026-03-01, but the scope of the packet says not a standing packet",
        ),
        ("", DAY, DAY, "{kind} says not a standing packet, but the scope of the packet says standing until 2026-03-01"),
        (
            LATER_DAY,
            LATER_DAY,
            DAY,
            f"{ON_BASE} standing until 2026-03-01, {CHANGED} standing until 2027-03-01",
        ),
        (
            DAY,
            DAY,
            "",
            f"{ON_BASE} not a standing packet, {CHANGED} standing until 2026-03-01",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["activated", "amended"])
def test_a_contract_says_whether_the_packet_is_a_standing_one(
    kind: str, said: str, here: str, before: str | None, message: str
) -> None:
    told = tale("created") if kind == "activated" else tale("created", "activated")
    known = list(told.events)
    told.add(kind, **({"standing": said} if said else {}))
    found = [("move_without_gate", kind, message.format(kind=kind))] if message else []
    assert objections(told, known, standing=lambda: (here, before)) == found


def test_no_other_event_says_so() -> None:
    told = tale("created", "activated")
    known = list(told.events)
    told.tell("claimed", "submitted")
    assert objections(told, known, standing=lambda: (DAY, DAY)) == []


# --- files that events name ---


def test_the_packet_of_a_submission_and_of_a_verdict_is_compared_with_the_commits() -> None:
    own, other = packet_paths(PACKET)[0], "src/boil.py"
    for kind, before in (("submitted", ()), ("verdict.given", ("submitted",)), ("blocked", ())):
        for path in (own, other):
            told = tale("created", "activated", "claimed", *before)
            told.add(kind, subjects=(ChangedFile(path, None, A),))
            message = f"it says that {path} was added or removed, but only the file's status may change"
            judged = path == own and kind != "blocked"
            assert objections(told) == [("event_subject_false", kind, message)] * judged


# --- gates ---


def activation(**said: Any) -> Tale:
    told = tale("created")
    told.add("activated", **said)
    return told


def ungated(message: str, kind: str) -> list[tuple[str, str, str]]:
    return [("move_without_gate", kind, message)]


def test_an_activation_names_the_refinement_that_is_here_and_a_contract() -> None:
    here = Judging(activation(), files={"r.md": B})
    assert here.objections() == ungated("r.md is not the approved refinement", "activated")
    told = activation()
    told.events[-1] = without(told.events[-1], "contract")
    assert objections(told) == ungated("the activation does not refer to a contract", "activated")


def without(event: LogEvent, key: str) -> LogEvent:
    """The event without one of its fields."""
    data = {name: value for name, value in event.data.items() if name != key}
    return event._replace(data=data)


def test_every_point_of_the_refinement_is_passed_or_waived() -> None:
    def points() -> list[str]:
        return ["Specific", "Tested"]

    found = [
        *ungated("'Specific' is not met in r.md", "activated"),
        *ungated("'Tested' is not met in r.md", "activated"),
    ]
    assert objections(activation(), open_points=points) == found
    lifted = (waiver("coverage_point_open", "Specific"),)
    assert objections(activation(), open_points=points, waivers=lifted) == found[1:]


def test_the_form_of_an_activation_is_that_of_the_document() -> None:
    other = ungated("the activation names a different form than the packet's document does", "activated")
    light = activation(form="light")
    assert objections(light) == other
    assert objections(activation(), light=True) == other
    assert objections(light, light=True) == []
    assert objections(light, light=True, light_unmet=lambda: ["it says nothing"]) == ungated(
        "it says nothing", "activated"
    )


def test_a_claim_waits_for_what_the_packet_depends_on() -> None:
    told = tale("created", "activated", "claimed")
    waits = {"WP-1-Tap-v1": False, "WP-1-Cup-v1": True}
    found = ungated("its dependency WP-1-Tap-v1 was not done", "claimed")
    assert objections(told, dependencies=waits) == found
    assert objections(told, dependencies=waits, waivers=(waiver("hint"),)) == found
    for rule in ("dependency_unmet", "dependency_unknown_lane"):
        assert objections(told, dependencies=waits, waivers=(waiver(rule),)) == []


def test_a_submission_proves_the_criteria_in_scope() -> None:
    told = tale("created", "activated", "claimed", "submitted")
    outside = replace(DONE, changed=("payroll/raise.py",))
    found = ungated("payroll/raise.py is outside the scope", "submitted")
    assert objections(told, submitted=lambda _: outside) == found
    assert objections(told, submitted=lambda _: outside, waivers=(waiver("outside_scope"),)) == []


def test_a_packet_is_replaced_by_another_that_exists() -> None:
    told = tale("created", "activated")
    told.add("superseded", by=NEXT)
    assert objections(told) == []
    assert objections(told, packets=(PACKET,)) == ungated(
        f"{NEXT} has no log, so it cannot replace {PACKET}", "superseded"
    )
    told = tale("created", "activated")
    told.add("superseded", by=PACKET)
    assert objections(told) == ungated(f"{PACKET} has no log, so it cannot replace {PACKET}", "superseded")


def test_a_packet_is_renamed_before_it_lands_and_not_after() -> None:
    told = tale("created")
    told.add("superseded", lane_from="STUB", by=NEXT, reason="x", renamed=BEFORE_LANDING)
    assert objections(told) == []
    assert objections(told, told.events[:1]) == ungated(
        "it renames a packet that has already been merged", "superseded"
    )
    assert objections(told, told.events) == []


def test_what_is_called_merged_is_here() -> None:
    asked: list[str] = []

    def contained(event: LogEvent) -> bool:
        asked.append(event.type)
        return False

    message = f"neither {COMMIT[:12]} nor an equivalent change is in this history"
    assert objections(tale(*WHOLE), contained=contained) == ungated(message, "merged")
    assert asked == ["merged"]


def verdict(**said: Any) -> Tale:
    told = tale("created", "activated", "claimed", "submitted")
    told.add("verdict.given", **said)
    return told


CHANGES = {"verdict": "CHANGES", "lane_to": "IN_PROGRESS"}
FAIL = {"verdict": "FAIL", "lane_to": "FAIL"}


@pytest.mark.parametrize("kind", ["evidence.recorded", "noted"])
def test_nobody_judges_what_they_worked_on_without_holding_it(kind: str) -> None:
    told, eve = tale("created", "activated", "claimed"), Actor("eve", "agent")
    told.add(kind, writer=eve)
    told.add("submitted")
    told.add("verdict.given", writer=eve)
    worked = kind != "noted"
    assert objections(told) == (ungated("eve judged their own work", "verdict.given") if worked else [])


def test_nobody_judges_what_they_held() -> None:
    told = verdict(writer=BOB)
    assert objections(told) == ungated("bob judged their own work", "verdict.given")
    assert objections(told, told.events[:4]) == ungated("bob judged their own work", "verdict.given")
    assert objections(told, waivers=(waiver("verdict_by_coder"),)) == []


def unreported(**said: Any) -> Tale:
    told = verdict(**said)
    told.events[-1] = without(told.events[-1], "report")
    return told


def test_a_verdict_has_a_report_unless_it_requests_changes() -> None:
    missing = ungated("the verdict has no report", "verdict.given")
    assert objections(unreported()) == missing
    assert objections(unreported(**FAIL)) == missing
    assert objections(unreported(**CHANGES)) == []
    assert objections(verdict(**CHANGES)) == []
    assert objections(unreported(), waivers=(waiver("report_missing"),)) == []


def test_a_reason_is_enough_for_a_light_packet() -> None:
    def judged(told: Tale) -> list[tuple[str, str, str]]:
        return objections(told, told.events[:4], light=True)

    assert judged(unreported(reason="it boils")) == []
    assert judged(unreported()) == ungated("the verdict has no report", "verdict.given")
    assert objections(unreported(reason="it boils")) == ungated("the verdict has no report", "verdict.given")


def test_the_report_is_the_one_of_this_verdict_or_of_a_later_one() -> None:
    other = ungated("report report.md is not the one submitted with the verdict", "verdict.given")
    assert Judging(verdict(), files={"r.md": A, "report.md": C}).objections() == other
    assert Judging(verdict(), files={"r.md": A}).objections() == other
    later = (Report("report.md", C, "2026-01-02T00:00:00Z"),)
    assert Judging(verdict(), files={"r.md": A, "report.md": C}, reports=later).objections() == []
    # Not even the request for changes may name another one.
    assert Judging(verdict(**CHANGES), files={"r.md": A, "report.md": C}).objections() == other


def test_a_pass_waits_for_the_replay_that_the_policy_requires() -> None:
    unmet: dict[str, Any] = {"unreplayed": lambda _: "nobody has run the proofs again"}
    found = ungated("nobody has run the proofs again", "verdict.given")
    assert objections(verdict(), **unmet) == found
    assert objections(verdict(), **unmet, waivers=(waiver("replay_missing"),)) == []
    assert objections(verdict(**FAIL), **unmet) == []
    assert objections(verdict(**CHANGES), **unmet) == []


# --- runs ---


RUNNING = "run run-1 is still working on WP-1-Kettle-v1 when {} was written"


def test_no_verdict_and_no_merge_while_a_run_is_active() -> None:
    told = tale("created", "activated", "claimed", "run.linked", "submitted", "verdict.given", "merged")
    assert objections(told) == [
        ("move_without_gate", kind, RUNNING.format(kind)) for kind in ("verdict.given", "merged")
    ]
    assert objections(told, waivers=(waiver("run_unfinished"),)) == []
    told = tale("created", "activated", "claimed", "run.linked", "submitted", "run.closed", "verdict.given", "merged")
    assert objections(told) == []
    assert objections(tale("created", "activated", "claimed", "run.linked", "released")) == []


def test_a_run_counts_if_the_writer_saw_it_or_the_base_has_it() -> None:
    told = tale("created", "activated", "claimed", "submitted")
    submitted = told.events[-1]
    linked = told.add("run.linked")
    told.add("verdict.given", after=(submitted,))
    assert objections(told) == []
    assert objections(told, (*told.events[:4], linked)) == ungated(RUNNING.format("verdict.given"), "verdict.given")


# --- who wrote it ---


KEYS = {actor.id: shared_key("ssh-ed25519", actor.id) for actor in (BOB, EVE, VICTOR)}
KNOWN = {
    "bob": KnownActor("bob", "agent", frozenset({KEYS["bob"].fingerprint}), operator="victor"),
    "eve": KnownActor("eve", "agent", frozenset({KEYS["eve"].fingerprint}), operator="ann"),
    "victor": KnownActor("victor", "person", frozenset({KEYS["victor"].fingerprint})),
}


def signed(event: LogEvent, key: SoftKey) -> LogEvent:
    blob = key.sign(event.signed_bytes(), namespace=EVENT_NAMESPACE)
    return event._replace(sig=base64.b64encode(blob).decode())


def written(log: Log, known: Sequence[LogEvent] = (), *, present: bool = True) -> list[tuple[str, str, str]]:
    signatures = EventSignatures(Actors(KNOWN, present=present))
    return told_of(judge_actors(log, frozenset(event.id for event in known), signatures))


def told_of(found: object) -> list[tuple[str, str, str]]:
    assert not isinstance(found, str)
    return [(one.code, one.event.type, one.message) for one in found if isinstance(one, EventObjection)]  # type: ignore[attr-defined]


def claims() -> list[LogEvent]:
    """A claim by each agent, one signed by its own key and one by another's."""
    told = Tale()
    created = told.add("created")
    one = told.add("claimed", after=(created,))
    other = told.add("claimed", writer=EVE, after=(created,))
    return [created, signed(one, KEYS["bob"]), signed(other, KEYS["bob"])]


def test_every_new_event_is_signed_by_its_writer() -> None:
    events = claims()
    log = join_events(PACKET, events)
    key = KEYS["bob"].fingerprint
    unsigned = ("event_unsigned", "created", f"created of {PACKET} by ann has no signature")
    stolen = ("actor_not_allowed", "claimed", f"{key} may act as bob, not as eve")
    assert sorted(written(log)) == [stolen, unsigned]
    assert written(log, events[:2]) == [stolen]
    assert written(log, events[2:]) == [unsigned]
    assert written(log, events) == []
    assert written(log, present=False) == []


def test_a_verdict_is_by_another_person_than_the_work_before_it() -> None:
    def judged(writer: Actor, *, seen: bool = True, kind: str = "verdict.given") -> list[tuple[str, str, str]]:
        told = Tale()
        created = told.add("created")
        claimed = told.add("claimed", after=(created,))
        event = told.add(kind, writer=writer, after=(claimed if seen else created,))
        log = join_events(PACKET, [created, claimed, signed(event, KEYS[writer.id])])
        return written(log, (created, claimed))

    why = "the verdict was not given by a different person: "
    ((code, kind, message),) = judged(VICTOR)
    assert (code, kind, message.startswith(why)) == ("move_without_gate", "verdict.given", True)
    assert judged(VICTOR, seen=False) == []
    assert judged(EVE) == []
    assert judged(VICTOR, kind="noted") == []


# --- what CI attests ---


def attested(known: Callable[[Story], Sequence[LogEvent]] = lambda _: (), **said: Any) -> list[tuple[str, str, str]]:
    told = tale("created", "activated", "claimed", "submitted")
    told.add("evidence.replayed", **said)
    known_ids = frozenset(event.id for event in known(told))
    return told_of(judge_attested(told.log(), known_ids, EvidencePolicy(replay="ci")))


def test_an_attestation_of_ci_is_verified_when_it_lands() -> None:
    ((code, kind, message),) = attested(attestation="{}")
    assert (code, kind, bool(message)) == ("replay_attestation_invalid", "evidence.replayed", True)
    assert attested(lambda told: told.events, attestation="{}") == []
    assert attested() == []
