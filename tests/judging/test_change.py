"""What judging a change asks of the repository around its log: dependencies, waivers, landings, standing packets."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ledger.stories import A, Story
from lifecycle.governed import TOKENS_COUNT, Governed, govern
from lifecycle.world import packet_text
from softkeys import shared_key
from workpacket.approvals.sshsig import EVENT_NAMESPACE
from workpacket.git.repository import find_repository
from workpacket.ledger.log import Log
from workpacket.lifecycle.event_checks import Around
from workpacket.model.events import encode_event, event_id
from workpacket.problem import WorkpacketError
from workpacket.shell.approvals import event_approvals
from workpacket.shell.base import read_base_policy
from workpacket.shell.governed_files import LogsOnDemand, find_governed
from workpacket.shell.judging import change
from workpacket.shell.judging.change import SKEW, ahead, judge
from workpacket.value import replace

pytestmark = pytest.mark.share(4)

NAME, SONG = "WP-1-Greeting-v1", "WP-1-Song-v1"
PACKET = f".GOV/task_packets/{NAME}.md"
STANDING = '\n[approvals.gates.standing]\nroles = ["approver"]\nthreshold = 1\nseparation = []\n'
SIGNED, NOBODY_APPROVES = TOKENS_COUNT + STANDING, ""
NAMED = '\n[actors.ann]\nkind = "person"\nkeys = ["{key}"]\n'
OTHER = "e" * 40
REFINED = "The function greet takes a name and returns a greeting with it. A test calls it with two names."


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    return govern(tmp_path, monkeypatch, capsys)


def told(governed: Governed, story: Story) -> None:
    """The story, as the log of its packet."""
    for event in story.events:
        governed.write(event.path, event.encode().decode())


def around(governed: Governed, *stories: Story, name: str = NAME) -> Around:
    repository = find_repository(governed.root)
    logs = {story.packet: story.log() for story in stories}
    policy = replace(read_base_policy(repository, "HEAD").lifecycle, satisfied_by=("VALIDATED",))
    found = find_governed(str(governed.root))
    return change.around(repository, "HEAD", found, LogsOnDemand(found, logs), name, policy)


def codes(governed: Governed, base: str = "HEAD", **how: bool) -> list[str]:
    found = judge(find_repository(governed.root), base, **how)
    return sorted(one.code for one in found if one.severity == "error")


# --- clocks ---


def test_a_new_event_may_be_five_minutes_ahead_and_no_more() -> None:
    assert SKEW.total_seconds() == 300
    story = Story()
    story.add("created", at="2026-01-01T00:05:00Z")
    late = story.add("noted", at="2026-01-01T00:05:01Z")
    now = "2026-01-01T00:00:00Z"
    (found,) = ahead([story.log()], frozenset(), now)
    assert (found.code, found.location.path) == ("event_ahead", late.path)
    assert list(ahead([story.log()], frozenset({late.id}), now)) == []


# --- dependencies ---


Landed = Callable[[Mapping[str, Log]], object]
DONE = ("created", "activated", "claimed", "submitted", "verdict.given", "merged")


def nothing(_: Mapping[str, Log]) -> object:
    return ()


def always(_: Mapping[str, Log]) -> object:
    return ("something",)


@pytest.mark.parametrize(
    ("needed", "packet", "kinds", "landed", "done"),
    [
        (SONG, SONG, DONE, nothing, True),
        ("WP-1-Song", SONG, DONE, nothing, True),
        ("WP-1-Son", SONG, DONE, tuple, False),
        (SONG, "WP-1-Dance-v1", DONE, tuple, False),
        (SONG, SONG, (*DONE, "noted"), nothing, True),
        (SONG, SONG, DONE[:5], tuple, True),
        (SONG, SONG, DONE[:5], nothing, False),
        (SONG, SONG, DONE[:4], tuple, False),
        (SONG, SONG, DONE[:3], always, False),
    ],
)
def test_a_dependency_was_done_if_any_revision_of_it_was(
    governed: Governed,
    monkeypatch: pytest.MonkeyPatch,
    needed: str,
    packet: str,
    kinds: tuple[str, ...],
    landed: Landed,
    done: bool,
) -> None:
    governed.begin()
    own, other = Story(NAME), Story(packet)
    own.add("created", dependencies=[])
    own.add("activated", dependencies=[needed])
    other.tell(*kinds)
    for story in (own, other):
        told(governed, story)
    monkeypatch.setattr(change, "landed", lambda _, __, waiting, ___: landed(waiting))
    assert around(governed, own, other).dependencies == {needed: done}


# --- waivers ---


def test_a_waiver_lifts_something_while_it_is_approved_and_has_not_ended(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    governed.begin()
    story = Story(NAME)
    story.add("created")
    noted = story.add("waived", rule="noted", expires_at="2027-01-01T00:00:00Z")
    assert not noted.attest
    for rule, until in (("approved", "2027"), ("refused", "2027"), ("ended", "2025")):
        story.add("waived", rule=rule, expires_at=f"{until}-01-01T00:00:00Z", attest=(A,))
    told(governed, story)
    monkeypatch.setattr(event_approvals, "lifts", lambda _, event: event.text("rule") != "refused")
    assert [event.text("rule") for event in around(governed, story).waivers] == ["approved"]
    bare = Story(NAME)
    bare.add("created")
    bare.add("waived", rule="noted", expires_at="2027-01-01T00:00:00Z")
    told(governed, bare)
    (governed.root / story.events[-1].path).unlink()
    monkeypatch.setattr(event_approvals, "lifts", lambda _, __: True)
    assert [event.text("rule") for event in around(governed, bare).waivers] == ["approved", "refused"]


# --- landings ---


def contained(
    governed: Governed, patch: pytest.MonkeyPatch, proof: Any = "tree", *, faults: bool = False, **named: Any
) -> bool:
    """Whether the second of two submissions is on the branch, while a third one is beside it. `named` is the commit
    that the event calls merged, if it is another one.
    """
    governed.begin()
    story = Story(NAME)
    claimed = story.tell("created", "activated", "claimed")
    story.add("submitted", commit="c" * 40)
    story.add("verdict.given", verdict="CHANGES", lane_to="IN_PROGRESS")
    story.tell("submitted", "verdict.given")
    merged = story.add("merged", **named)
    beside = claimed
    for _ in range(9):
        beside = story.add("noted", after=(beside,))
    last = story.add("submitted", after=(beside,), commit=OTHER)
    assert story.log().events[-1] == last
    told(governed, story)

    def found(*_: object) -> Found:
        if isinstance(proof, WorkpacketError):
            raise proof
        return Found(proof)

    patch.setattr(change, "containment", found)
    patch.setattr(change, "merge_faults", lambda *_: ["it differs"] * faults)
    return around(governed, story).contained(merged)


class Found:
    def __init__(self, proof: str) -> None:
        self.proof = proof


def test_what_was_submitted_last_is_here_as_it_was_judged(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert contained(governed, monkeypatch)


def test_what_is_not_here_or_not_as_it_was_judged_did_not_land(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not contained(governed, monkeypatch, faults=True)


def test_an_earlier_submission_may_lack_what_the_verdict_asked_for(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not contained(governed, monkeypatch, commit="c" * 40)


@pytest.mark.parametrize("proof", ["", WorkpacketError("commit_missing", "it is not here")], ids=["absent", "unknown"])
def test_what_cannot_be_found_did_not_land(
    governed: Governed, monkeypatch: pytest.MonkeyPatch, proof: str | WorkpacketError
) -> None:
    assert not contained(governed, monkeypatch, proof)


# --- what the files say ---


def scoped(*scope: str) -> str:
    text = packet_text(NAME, "Ready for Dev").decode()
    return text.replace("  - `src/`\n", "".join(f"  - {entry}\n" for entry in scope))


UNTIL = "Standing until 2026-12-31"


@pytest.mark.parametrize(
    ("before", "here", "policy", "found"),
    [
        (("`src/`",), (UNTIL, "`src/`"), SIGNED, ("2026-12-31", "")),
        ((UNTIL,), ("`src/`",), SIGNED, ("", "2026-12-31")),
        ((), (UNTIL,), SIGNED, ("2026-12-31", None)),
        ((UNTIL,), (UNTIL,), TOKENS_COUNT, None),
        ((UNTIL,), (UNTIL,), NOBODY_APPROVES, ("2026-12-31", "2026-12-31")),
        ((UNTIL,), (), SIGNED, ("", "2026-12-31")),
    ],
)
def test_the_last_day_of_a_standing_packet_is_in_its_scope(
    governed: Governed, before: tuple[str, ...], here: tuple[str, ...], policy: str, found: object
) -> None:
    governed.begin(policy=policy)
    if before:
        governed.write(PACKET, scoped(*before))
    governed.commit("base")
    (governed.root / PACKET).unlink(missing_ok=True)
    if here:
        governed.write(PACKET, scoped(*here))
    story = Story(NAME)
    story.add("created")
    told(governed, story)
    assert around(governed, story).standing() == found


def test_points_of_the_refinement_that_are_open_are_asked_for(governed: Governed) -> None:
    governed.begin()
    assert list(around(governed, Story(NAME)).open_points()) == []
    governed.stub(NAME)
    governed.refine(NAME)
    governed.replace(f".GOV/refinements/{NAME}.md", "Specific: [x] PASS", "Specific: [ ] PASS")
    assert list(around(governed, Story(NAME)).open_points()) == ["Specific"]


@pytest.mark.parametrize(("setting", "required"), [("required", True), ("off", False)])
def test_whether_each_criterion_needs_a_proof_is_said_by_the_policy(
    governed: Governed, monkeypatch: pytest.MonkeyPatch, setting: str, required: bool
) -> None:
    governed.begin(policy=f'{TOKENS_COUNT}\n[evidence]\ntests = "{setting}"\n')
    asked: list[bool] = []
    monkeypatch.setattr(change, "submitted_work", lambda *_, required: asked.append(required))
    around(governed, Story(NAME)).submitted(Story(NAME).add("created"))
    assert asked == [required]


def test_a_light_packet_is_judged_by_the_specification_in_force(governed: Governed) -> None:
    governed.done("init")
    governed.done(
        "new", "Greet the user", "--criterion", "It greets.", "--scope", "src/", "--requirement", "It says hello.",
        "--refinement", REFINED,
    )  # fmt: skip
    name = "WP-1-Greet-The-User-v1"
    governed.commit("a packet")
    assert list(around(governed, Story(name), name=name).light_unmet()) == []
    (specification,) = (governed.root / ".GOV/spec").glob("*.md")
    postponed = re.sub("^## .*$", "## Roadmap", specification.read_text("utf-8"), count=1, flags=re.MULTILINE)
    specification.write_text(postponed, "utf-8")
    (unmet,) = around(governed, Story(name), name=name).light_unmet()
    assert "is in the roadmap, not in the main body" in unmet


# --- the whole ---


def adopted(governed: Governed, *kinds: str) -> Story:
    """A packet whose log is on the base, and then these events, which the change brings."""
    governed.write(PACKET, packet_text(NAME, "Ready for Dev").decode())
    story = Story(NAME)
    story.tell("created", "activated")
    told(governed, story)
    governed.commit("base")
    for kind in kinds:
        story.add(kind)
    told(governed, story)
    return story


LANES = "".join(f'\n[lifecycle.lanes.{name}]\nafter = "NOWHERE"\nbefore = "IN_REVIEW"\n' for name in ("QA", "UAT"))


def test_lanes_that_do_not_fit_are_named_once_if_the_change_moves_anything(governed: Governed) -> None:
    governed.begin(policy=TOKENS_COUNT + LANES)
    story = adopted(governed, "noted")
    governed.commit("a note")
    assert codes(governed, "HEAD~1").count("base_lanes_unfit") == 0
    story.add("claimed", expires_at="2026-01-01T12:00:00Z")
    told(governed, story)
    governed.commit("a move")
    assert codes(governed, "HEAD~1").count("base_lanes_unfit") == 1


def test_the_commit_is_judged_and_not_the_work_tree(governed: Governed) -> None:
    governed.begin()
    adopted(governed, "noted")
    assert "not_committed" in codes(governed)
    assert "not_committed" not in codes(governed, worktree=True)


@pytest.mark.parametrize(("renamed", "objections"), [({}, 0), ({"renamed": "before landing"}, 1)])
def test_a_packet_that_was_renamed_takes_over_from_no_other(
    governed: Governed, renamed: dict[str, Any], objections: int
) -> None:
    governed.begin()
    own, other = adopted(governed), Story(SONG)
    other.add("created")
    other.add("superseded", lane_from="STUB", by="WP-1-Dance-v1", **renamed)
    own.add("superseded", by=SONG)
    for story in (own, other):
        told(governed, story)
    governed.commit("superseded")
    found = [one.message for one in judge(find_repository(governed.root), "HEAD~1") if NAME in one.message]
    assert sum(SONG in message for message in found) == objections, found


COVERED = '\n[coverage]\nmode = "required"\n'


def test_tables_that_nobody_approves_are_not_weakened(governed: Governed) -> None:
    governed.begin(policy=COVERED)
    governed.commit("base")
    assert "policy_unguarded" not in codes(governed)
    policy = ".GOV/policy/policy.toml"
    governed.replace(policy, 'mode = "required"', 'mode = "off"')
    governed.commit("weaker")
    assert codes(governed, "HEAD~1").count("policy_unguarded") == 1
    governed.replace(policy, 'mode = "off"', 'mode = "required"\n# a remark')
    governed.commit("a remark")
    assert "policy_unguarded" not in codes(governed, "HEAD~2")
    (governed.root / policy).unlink()
    governed.commit("gone")
    assert "policy_unguarded" in codes(governed, "HEAD~1")
    governed.write(policy, COVERED)
    governed.commit("back")
    assert "policy_unguarded" not in codes(governed, "HEAD~1"), "a base without a policy has no tables"


def test_a_new_root_of_trust_may_replace_them(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    governed.begin(policy=COVERED)
    governed.replace(".GOV/policy/policy.toml", 'mode = "required"', 'mode = "off"')
    governed.commit("weaker")

    class Root:
        replaced = True

    monkeypatch.setattr(change, "root_of_trust", lambda _: Root())
    assert "policy_unguarded" not in codes(governed, "HEAD~1")


def signed_by(governed: Governed, *, approves: bool = False, revoked: bool = False) -> list[str]:
    """The codes about an event that ann has signed with a key that the policy lists for her."""
    key = shared_key("ssh-ed25519", "ann")
    governed.begin(policy=TOKENS_COUNT + NAMED.format(key=key.fingerprint))
    if approves:
        governed.write(".GOV/policy/allowed_signers", key.line("ada@example.org") + "\n")
    if revoked:
        governed.write(".GOV/policy/revoked_keys", " ".join(key.line("x").split()[-2:]) + "\n")
    story = adopted(governed)
    event = story.add("noted", at="2026-02-01T00:00:00Z")
    blob = key.sign(event.signed_bytes(), namespace=EVENT_NAMESPACE)
    value = {**event.json(), "sig": base64.b64encode(blob).decode()}
    data = encode_event(value)
    governed.write(f".GOV/log/{NAME}/{event_id(data)}.json", data.decode())
    governed.commit("a note")
    return [code for code in codes(governed, "HEAD~1") if "key" in code or "event" in code]


def test_an_event_is_signed_by_a_key_for_events_that_is_not_revoked(governed: Governed) -> None:
    assert signed_by(governed) == []


def test_a_key_that_approves_signs_no_events(governed: Governed) -> None:
    assert signed_by(governed, approves=True) == ["approval_key_in_event"]


def test_a_revoked_key_signs_no_events(governed: Governed) -> None:
    assert signed_by(governed, revoked=True) == ["actor_key_unknown"]
