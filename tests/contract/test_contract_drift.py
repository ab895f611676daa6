"""Which contract holds in a log, and what of files and events does not fit it: on logs that no disk holds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.packet import Packet
from workpacket.documents.stub import Stub
from workpacket.ledger.fold import in_force, setting_events
from workpacket.ledger.log import EventWriter, Log, NewLogEvent, join_events, next_event
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.contract_drift import (
    contract_before,
    contract_findings,
    contract_unmet,
    covered,
    difference,
    parts,
    terms_of,
)
from workpacket.lifecycle.facts import PacketFacts
from workpacket.model.canonical import Json
from workpacket.model.events import Actor, LogEvent
from workpacket.model.ids import WorkPacketId
from workpacket.text.source import Source
from workpacket.value import replace

WP = "WP-1-Parser-v1"
WRITER = EventWriter(Actor("ann", "human"), "2026-03-01T08:00:00Z", "0190a5de-ac96-774b-bcce-b302099a8057", "test")
A, B, C = "a" * 64, "b" * 64, "c" * 64
STUB = Stub(
    Source("stub.md", f"# Stub\n\n## STUB_METADATA\n- WP_ID: {WP}\n\n## INTENT (DRAFT)\n- What: Read\n- Why: Must\n")
)
PACKET = Packet(
    Source(
        "packet.md", f"# Packet\n\n## METADATA\n- WP_ID: {WP}\n- **Status:** x\n\n## SCOPE\n- What: Read\n- Why: Must\n"
    )
)


def contract_of(document: Stub | Packet) -> Contract:
    said = stated(document, None)
    assert isinstance(said, Contract)
    return said


SAID = contract_of(STUB).digest


class Told:
    """A log in the making."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []
        self.add("created", {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Parser"}, after=[])

    def add(self, kind: str, data: dict[str, Json], after: Sequence[LogEvent] | None = None) -> LogEvent:
        upon = self.events[-1:] if after is None else after
        event = next_event(WRITER, WP, NewLogEvent(kind, data), after=upon)
        self.events.append(event)
        return event

    def move(self, kind: str, lanes: str, data: dict[str, Json], after: Sequence[LogEvent] | None = None) -> LogEvent:
        origin, _, target = lanes.partition(" ")
        return self.add(kind, {"lane_from": origin, "lane_to": target, **data}, after)

    def activated(self, contract: str = A) -> LogEvent:
        pinned: Json = {"path": "refinement.md", "sha256": "1" * 64}
        more: dict[str, Json] = {"contract": contract} if contract else {}
        return self.move("activated", "STUB READY_FOR_DEV", {"refinement": pinned, "checklist": [], **more})

    def claimed(self, after: Sequence[LogEvent] | None = None) -> LogEvent:
        lease: dict[str, Json] = {"holder": "coder", "lease": "l", "expires_at": "2026-03-02T08:00:00Z"}
        return self.move("claimed", "READY_FOR_DEV IN_PROGRESS", lease, after)

    def submitted(self, after: Sequence[LogEvent] | None = None) -> LogEvent:
        proof: Json = [{"criterion": "x", "result": "met"}]
        return self.move("submitted", "IN_PROGRESS IN_REVIEW", {"commit": "d" * 40, "evidence": proof}, after)

    def amended(self, previous: str | None, contract: str, after: Sequence[LogEvent] | None = None) -> LogEvent:
        return self.add("amended", {"previous": previous, "contract": contract, "reason": "x"}, after)

    @property
    def log(self) -> Log:
        log = join_events(WP, self.events)
        assert log.sound, log.findings
        return log


def messages(told: Told, stub: Stub | None = None, packet: Packet | None = None) -> list[str]:
    found = list(contract_findings(told.log, stub, packet, None))
    assert {one.code for one in found} <= {"contract_changed"}
    return [one.message for one in found]


def test_a_stub_has_no_contract_in_force() -> None:
    told = Told()
    assert (in_force(told.log), covered(told.log), contract_before(told.log)) == (frozenset(), "", "")
    assert messages(told, STUB) == []


def test_an_activation_of_before_names_none_and_nothing_is_asked() -> None:
    told = Told()
    told.activated("")
    assert (in_force(told.log), covered(told.log)) == (frozenset(), "approved: refinement only")
    assert messages(told, STUB, PACKET) == []


def test_the_activation_names_the_first() -> None:
    told = Told()
    told.activated(SAID)
    assert (in_force(told.log), covered(told.log)) == (frozenset({SAID}), SAID)
    assert messages(told, STUB, PACKET) == []
    assert messages(told) == []


def test_each_file_that_says_another_is_named() -> None:
    told = Told()
    told.activated(A)
    found = list(contract_findings(told.log, STUB, PACKET, None))
    assert [(one.code, one.path) for one in found] == [
        ("contract_changed", "stub.md"),
        ("contract_changed", "packet.md"),
    ]
    assert {one.message for one in found} == {f"it states contract {SAID[:12]}, but {A[:12]} was approved"}
    assert all(one.hint.endswith(f"workpacket packet amend {WP}") for one in found)


def test_a_file_without_a_contract_is_named_with_the_reason() -> None:
    told = Told()
    told.activated(SAID)
    twice = Packet(Source("packet.md", f"{PACKET.source.text}- Why: Perhaps\n"))
    assert messages(told, STUB, twice) == [
        f"packet.md: field Why of SCOPE appears twice; the approved contract is {SAID[:12]}"
    ]


def test_an_amendment_takes_the_place_of_what_it_has_seen() -> None:
    told = Told()
    first = told.activated(A)
    second = told.amended(A, B)
    third = told.amended(B, SAID)
    assert in_force(told.log) == {SAID}
    assert setting_events(told.log) == (third,)
    assert in_force(told.log, [second.id]) == {B}
    assert in_force(told.log, [first.id]) == {A}
    assert in_force(told.log, []) == frozenset()
    assert messages(told, STUB, PACKET) == []


def test_two_amendments_beside_each_other_hold_both() -> None:
    told = Told()
    first = told.activated(A)
    told.amended(A, B, [first])
    told.amended(A, C, [first])
    assert in_force(told.log) == {B, C}
    assert covered(told.log) == f"{B} and {C}"
    assert messages(told, STUB) == [
        f"{WP} was amended on two branches, so it has two current contracts: {B[:12]} and {C[:12]}"
    ]
    (found,) = contract_findings(told.log, STUB, None, None)
    assert found.path == setting_events(told.log)[-1].path
    told.amended(B, SAID, told.events[-2:])
    assert messages(told, STUB) == []


def test_the_same_activation_on_two_branches_is_a_fork_and_no_amendment() -> None:
    told = Told()
    created = told.events[-1]
    told.activated(SAID)
    activated = told.move(
        "activated",
        "STUB READY_FOR_DEV",
        {**told.events[-1].data, "refinement": {"path": "refinement.md", "sha256": "2" * 64}},
        [created],
    )
    told.submitted([told.claimed([activated])])
    assert len(setting_events(told.log)) == 2
    assert messages(told, STUB) == []


def test_the_same_amendment_on_two_branches_is_one_contract() -> None:
    told = Told()
    first = told.activated(A)
    claimed = told.claimed([first])
    told.amended(A, SAID, [first])
    told.amended(A, SAID, [claimed])
    assert messages(told, STUB) == []


def test_an_amendment_names_what_held() -> None:
    told = Told()
    told.activated(A)
    told.amended(B, SAID)
    assert messages(told, STUB) == ["it claims to replace a contract that was not the current one"]


def test_the_first_amendment_of_an_older_packet_names_what_it_likes() -> None:
    told = Told()
    told.activated("")
    told.amended(B, SAID)
    assert contract_before(told.log) == B
    assert messages(told, STUB) == []
    told = Told()
    told.activated("")
    told.amended(None, SAID)
    assert contract_before(told.log) == ""


def test_what_a_stub_says_when_it_is_created_was_approved_by_no_one() -> None:
    told = Told()
    told.events.clear()
    told.add("created", {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Parser", "contract": C}, after=[])
    assert in_force(told.log) == frozenset()
    told.activated("")
    told.amended(B, SAID)
    assert (contract_before(told.log), in_force(told.log)) == (B, frozenset({SAID}))


def test_what_is_being_judged_is_not_amended() -> None:
    told = Told()
    told.activated(A)
    told.claimed()
    told.submitted()
    told.amended(A, SAID)
    assert messages(told, STUB) == [f"it replaces the contract while {WP} is IN_REVIEW"]


def test_what_was_blocked_is_amended_as_in_the_lane_before() -> None:
    told = Told()
    told.activated(A)
    told.claimed()
    told.move("blocked", "IN_PROGRESS BLOCKED", {"reason": "x", "until": "later"})
    told.amended(A, SAID)
    assert messages(told, STUB) == []
    told = Told()
    told.activated(A)
    told.claimed()
    told.submitted()
    told.move("blocked", "IN_REVIEW BLOCKED", {"reason": "x", "until": "later"})
    told.amended(A, SAID)
    assert messages(told, STUB) == [f"it replaces the contract while {WP} is IN_REVIEW, in which it was blocked"]


def test_a_submission_that_had_not_seen_the_amendment_is_named() -> None:
    told = Told()
    told.activated(A)
    claimed = told.claimed()
    submitted = told.submitted([claimed])
    amended = told.amended(A, SAID, [claimed])
    assert messages(told, STUB) == [
        "submitted uses the contract from before an amendment that its writer did not know about"
    ]
    told.move("reopened", "IN_REVIEW IN_PROGRESS", {"reason": "x"}, [submitted, amended])
    assert messages(told, STUB) == []


def test_a_verdict_and_a_merge_that_had_not_seen_the_amendment_are_named() -> None:
    told = Told()
    told.activated(A)
    claimed = told.claimed()
    told.amended(A, SAID)
    submitted = told.submitted([claimed])
    told.move("verdict.given", "IN_REVIEW MERGE_PENDING", {"verdict": "PASS"}, [submitted])
    assert [said.partition(" ")[0] for said in messages(told, STUB)] == ["verdict.given"]
    merged: dict[str, Json] = {"commit": "d" * 40, "target": "main", "target_commit": "d" * 40, "proof": "commit"}
    told.move("merged", "MERGE_PENDING VALIDATED", merged)
    assert [said.partition(" ")[0] for said in messages(told, STUB)] == ["merged"]


def test_a_submission_that_has_seen_the_amendment_is_no_fault() -> None:
    told = Told()
    told.activated(A)
    told.claimed()
    told.amended(A, SAID)
    told.submitted()
    assert messages(told, STUB) == []


def test_a_command_asks_about_its_packet() -> None:
    told = Told()
    facts = PacketFacts(WorkPacketId.parse(WP), told.log, STUB.source, PACKET.source)
    assert contract_unmet(facts) == ()
    told.activated(A)
    facts = PacketFacts(WorkPacketId.parse(WP), told.log, STUB.source, PACKET.source)
    assert [one.path for one in contract_unmet(facts)] == ["stub.md", "packet.md"]


def test_a_claim_beside_an_amendment_is_no_fault() -> None:
    told = Told()
    first = told.activated(A)
    told.claimed([first])
    told.amended(A, SAID, [first])
    assert messages(told, STUB) == []


def test_all_that_a_contract_says_has_a_part() -> None:
    named = contract_of(PACKET)
    full = replace(named, title="t", criteria=("c",), scope=("s",), out_of_scope=("o",), risk="r", dependencies=("d",))
    said = dict(parts(full))
    assert said == {
        "packet": (WP,),
        "form": (),
        "title": ("t",),
        "what": ("Read",),
        "why": ("Must",),
        "criteria": ("c",),
        "evidence demanded": (),
        "scope": ("s",),
        "out of scope": ("o",),
        "risk": ("r",),
        "dependencies": ("d",),
        "refinement": (),
        "specification": (),
    }


DEMANDS = """## QUALITY_GATE
### DONE_MEANS
- One
  - PROVED_BY: `make one`
  - TESTS: b, a
  - PATHS: src/
- Two
  - EXEMPT: nobody can tell
"""


def test_evidence_that_is_demanded_is_shown_with_its_criterion() -> None:
    contract = contract_of(Packet(Source("packet.md", f"{PACKET.source.text}\n{DEMANDS}")))
    assert dict(parts(contract))["evidence demanded"] == (
        "for One: command: make one; tests: a, b; paths: src/",
        "for Two: exempt: nobody can tell",
    )


FIELDS = ("title", "what", "why", "risk")
LISTS = ("criteria", "scope", "out_of_scope", "dependencies")


@given(st.sampled_from([*FIELDS, *LISTS]), st.text(min_size=1, max_size=20))
def test_every_difference_of_two_contracts_is_shown(field: str, text: str) -> None:
    """A contract that differs in anything differs in a part, so that no one signs what was not shown."""
    before = contract_of(PACKET)
    value = text if field in FIELDS else (text,)
    after = replace(before, **{field: value})
    changed = {name for name, _, _ in difference(before, after)}
    assert bool(changed) == (before.digest != after.digest)
    assert list(difference(before, before)) == []


# --- what events repeat of the contract ---


def repeated(**terms: Json) -> Told:
    told = Told()
    pinned: Json = {"path": "refinement.md", "sha256": "1" * 64}
    said: dict[str, Json] = {"refinement": pinned, "checklist": [], "contract": SAID, **terms}
    told.move("activated", "STUB READY_FOR_DEV", said)
    return told


def test_an_event_repeats_the_contract_as_it_is() -> None:
    assert messages(repeated(**terms_of(contract_of(STUB))), STUB, PACKET) == []
    assert terms_of(contract_of(STUB)) == {"title": "Read", "dependencies": [], "risk": ""}


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"title": "Write"}, "activated says that the title is 'Write', but the contract says 'Read'"),
        ({"risk": "LOW"}, "activated says that the risk is 'LOW', but the contract says ''"),
        (
            {"dependencies": ["WP-1-A-v1", "WP-1-B-v1"]},
            "activated says that the dependencies are WP-1-A-v1, WP-1-B-v1, but the contract says none",
        ),
    ],
)
def test_an_event_that_says_something_else_of_the_contract_is_named(terms: dict[str, Json], message: str) -> None:
    told = repeated(**terms)
    (found,) = contract_findings(told.log, STUB, PACKET, None)
    assert (found.code, found.message, found.path) == ("contract_changed", message, told.events[-1].path)
    assert messages(told, None, PACKET) == [message], "whichever document there is"
    assert messages(told) == []


def test_the_title_is_the_last_one_that_the_log_names() -> None:
    told = Told()
    told.events.clear()
    told.add("created", {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Parser", "title": "Write"}, after=[])
    told.activated(SAID)
    assert messages(told, STUB, PACKET) == ["created says that the title is 'Write', but the contract says 'Read'"]
    told.events.pop()
    pinned: Json = {"path": "refinement.md", "sha256": "1" * 64}
    said: dict[str, Json] = {"refinement": pinned, "checklist": [], "contract": SAID, "title": "Read"}
    told.move("activated", "STUB READY_FOR_DEV", said)
    assert messages(told, STUB, PACKET) == []


def test_of_what_the_stub_once_said_only_the_title_is_compared() -> None:
    told = Told()
    told.events.clear()
    begun: dict[str, Json] = {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Parser", "title": "Read"}
    told.add("created", {**begun, "risk": "HIGH", "dependencies": ["WP-1-A-v1"]}, after=[])
    told.activated(SAID)
    assert messages(told, STUB, PACKET) == []


def test_a_long_title_and_risk_are_cut_off_in_events() -> None:
    long = replace(contract_of(STUB), title="a  b" + "c" * 3000, risk="d" * 300)
    assert terms_of(long) == {"title": "a b" + "c" * 1997, "dependencies": [], "risk": "d" * 200}


def test_terms_are_compared_with_the_contract_that_the_documents_agree_on() -> None:
    told = repeated(title="Write")
    other = Stub(Source("stub.md", STUB.source.text.replace("What: Read", "What: Write")))
    assert [one.partition(",")[0] for one in messages(told, other, PACKET)] == [
        messages(told, other)[0].partition(",")[0],
        "activated says that the title is 'Write'",
    ]
