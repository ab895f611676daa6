"""What `check` is told about all logs, asked of folders of events without a command."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from approvals.gates import key_of
from git.scratch import git, make_repository
from ledger.stories import LATER, A, B, Story, rewritten
from workpacket.approvals.sshsig import EVENT_NAMESPACE
from workpacket.git.repository import find_repository
from workpacket.model.event_types import BEFORE_LANDING
from workpacket.model.events import encode_event, event_id
from workpacket.model.layout import LOG_FOLDER
from workpacket.model.plan import Moment
from workpacket.shell.judging import log_verification
from workpacket.shell.judging.log_verification import LogsSeen, Proven, digest_here, look_at_logs, verify_log

KETTLE, TAP = "WP-1-Kettle-v1", "WP-1-Tap-v1"
SOON = "2026-06-01T00:00:00Z"


def told(*kinds: str, packet: str = KETTLE) -> Story:
    story = Story(packet)
    story.tell(*kinds)
    return story


def laid_out(root: Path, *stories: Story, more: Mapping[str, bytes] | None = None) -> str:
    files = {event.path: event.encode() for story in stories for event in story.events}
    for path, data in {**files, **(more or {})}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return str(root)


def codes(seen: LogsSeen) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in seen.findings]


def test_without_a_log_there_is_nothing_to_say(tmp_path: Path) -> None:
    seen = look_at_logs(str(tmp_path))
    assert (seen.lanes, seen.findings, seen.named, seen.until) == ({}, [], (), "")
    assert (seen.by_clock, seen.by_people, seen.activated, seen.contracts) == (False, False, (), ())
    assert (dict(seen.passed), seen.attested) == ({}, frozenset())


def test_a_file_that_belongs_to_no_packet_is_reported_even_if_there_is_no_log(tmp_path: Path) -> None:
    stray = {f"{LOG_FOLDER}/notes.txt": b"x"}
    assert codes(look_at_logs(laid_out(tmp_path, more=stray), SOON)) == [
        ("log_foreign_file", f"{LOG_FOLDER}/notes.txt")
    ]
    seen = look_at_logs(laid_out(tmp_path, told("created")), SOON)
    assert (seen.lanes, [one.code for one in seen.findings]) == ({KETTLE: "STUB"}, ["log_foreign_file"])


def test_each_packet_is_in_the_lane_that_its_log_says(tmp_path: Path) -> None:
    seen = look_at_logs(laid_out(tmp_path, told("created", "blocked"), told("created", packet=TAP)), SOON)
    assert seen.lanes == {KETTLE: "", TAP: "STUB"}, "nothing was blocked in the lane that the event names"
    assert [one.path for one in seen.findings] == [told("created", "blocked").events[1].path]


def test_a_damaged_log_has_no_lane(tmp_path: Path) -> None:
    story = told("created", "noted")
    root = laid_out(tmp_path, story, more={story.events[1].path: story.events[1].encode() + b" "})
    seen = look_at_logs(root, SOON)
    assert (seen.lanes, codes(seen)) == ({KETTLE: ""}, [("event_edited", story.events[1].path)])


def test_a_fork_is_a_lane_and_a_finding(tmp_path: Path) -> None:
    story = told("created", "activated")
    ready = story.events[-1]
    for holder in ("ann", "bob"):
        story.add("claimed", after=(ready,), holder=holder)
    seen = look_at_logs(laid_out(tmp_path, story), SOON)
    assert seen.lanes == {KETTLE: "FORKED"}
    assert "packet_forked" in [one.code for one in seen.findings]


def renamed() -> Story:
    story = Story()
    story.add("created", title="Boil milk")
    story.add("activated")
    story.add("superseded", renamed=BEFORE_LANDING)
    return story


def test_what_a_renamed_packet_named_is_asked_of_its_other_id(tmp_path: Path) -> None:
    other = told("created", "activated", packet=TAP)
    seen = look_at_logs(laid_out(tmp_path, renamed(), other), SOON)
    assert seen.lanes == {TAP: "READY_FOR_DEV"}
    assert seen.named == ["r.md"]
    gone = [one for one in seen.findings if one.code == "approved_file_changed"]
    assert [(one.path, TAP in one.message) for one in gone] == [("r.md", True)]
    assert [log.packet for log in seen.contracts] == [TAP]


def test_the_moves_into_each_lane_are_counted(tmp_path: Path) -> None:
    story = told("created", "noted", "activated", "claimed", "released", "claimed")
    seen = look_at_logs(laid_out(tmp_path, story, told("created", packet=TAP)), SOON)
    assert dict(seen.passed) == {"STUB": 2, "READY_FOR_DEV": 2, "IN_PROGRESS": 2}


@pytest.mark.parametrize(("now", "ended"), [("2026-12-30T00:00:00Z", False), ("2027-01-01T00:00:00Z", True)])
def test_a_waiver_ends_by_the_time_that_is_given(tmp_path: Path, now: str, ended: bool) -> None:
    root = laid_out(tmp_path, told("created", "waived"))
    seen = look_at_logs(root, now)
    assert ("waiver_expired" in [one.code for one in seen.findings]) == ended
    assert seen.until == ("" if ended else LATER)


def test_without_a_time_the_clock_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_verification, "moment", lambda: Moment("2027-01-01T00:00:00Z", "", ""))
    assert "waiver_expired" in [
        one.code for one in look_at_logs(laid_out(tmp_path, told("created", "waived"))).findings
    ]


def test_the_first_waiver_to_end_says_until_when_the_answer_holds(tmp_path: Path) -> None:
    story = told("created", "waived")
    story.add("waived", expires_at="2026-09-01T00:00:00Z")
    seen = look_at_logs(laid_out(tmp_path, story, told("created", "waived", packet=TAP)), SOON)
    assert seen.until == "2026-09-01T00:00:00Z"


def test_what_needs_people_is_known(tmp_path: Path) -> None:
    signed = told("created")
    signed.add("activated", attest=(A,))
    other = told("created", "activated", packet=TAP)
    seen = look_at_logs(laid_out(tmp_path, signed, other), SOON)
    assert (sorted(seen.activated), seen.attested, seen.by_people) == ([KETTLE, TAP], frozenset({KETTLE}), True)


@pytest.mark.parametrize(
    ("kinds", "by_people"), [(("created",), False), (("created", "activated"), True), (("created", "waived"), False)]
)
def test_an_event_that_every_policy_gates_needs_people_without_naming_an_approval(
    tmp_path: Path, kinds: tuple[str, ...], by_people: bool
) -> None:
    seen = look_at_logs(laid_out(tmp_path, told(*kinds)), SOON)
    assert (seen.by_people, seen.attested) == (by_people, frozenset())


def test_only_packets_that_were_activated_are_named_as_such(tmp_path: Path) -> None:
    seen = look_at_logs(laid_out(tmp_path, told("created", "activated"), told("created", packet=TAP)), SOON)
    assert (list(seen.activated), seen.by_clock) == ([KETTLE], False)


def test_an_event_that_names_an_approval_needs_people(tmp_path: Path) -> None:
    story = told("created")
    story.add("noted", attest=(B,))
    assert look_at_logs(laid_out(tmp_path, story), SOON).by_people


def test_an_approval_of_something_else_attests_no_activation(tmp_path: Path) -> None:
    story = told("created", "activated")
    story.add("noted", attest=(B,))
    seen = look_at_logs(laid_out(tmp_path, story), SOON)
    assert (seen.attested, seen.by_people) == (frozenset(), True)


def test_a_log_without_a_contract_is_compared_with_none(tmp_path: Path) -> None:
    seen = look_at_logs(laid_out(tmp_path, told("created"), told("created", "activated", packet=TAP)), SOON)
    assert [log.packet for log in seen.contracts] == [TAP]


def test_a_file_in_the_place_of_a_log_is_reported_and_a_temporary_one_is_not(tmp_path: Path) -> None:
    more = {f"{LOG_FOLDER}/{TAP}": b"x", f"{LOG_FOLDER}/.workpacket-tmp-1": b"x"}
    seen = look_at_logs(laid_out(tmp_path, told("created"), more=more), SOON)
    assert [path for _, path in codes(seen)] == [f"{LOG_FOLDER}/{TAP}"]


def test_the_digest_of_a_file_is_that_of_its_bytes_here(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.md").write_bytes(b"a\n")
    assert digest_here(str(tmp_path), "a.md") == hashlib.sha256(b"a\n").hexdigest()
    assert digest_here(str(tmp_path), "folder") is None
    assert digest_here(str(tmp_path), "gone.md") is None


def test_the_digest_of_a_file_that_a_sparse_checkout_leaves_out_is_that_of_the_index(tmp_path: Path) -> None:
    make_repository(tmp_path)
    (tmp_path / "a.md").write_bytes(b"a\n")
    git(tmp_path, "add", "a.md")
    git(tmp_path, "update-index", "--skip-worktree", "a.md")
    (tmp_path / "a.md").unlink()
    assert digest_here(str(tmp_path), "a.md") == hashlib.sha256(b"a\n").hexdigest()


# --- log verify ---


def verified(
    root: Path, *stories: Story, more: Mapping[str, bytes] | None = None, base: str = ""
) -> log_verification.Verified:
    if not (root / ".git").exists():
        make_repository(root)
    laid_out(root, *stories, more=more)
    return verify_log(find_repository(root), base, SOON)


def test_each_packet_and_all_events_are_counted(tmp_path: Path) -> None:
    found = verified(tmp_path, told("created", "activated"), told("created", packet=TAP))
    assert [(one.packet, one.events) for one in found.packets] == [(KETTLE, 2), (TAP, 1)]
    assert (found.events, found.findings, found.checkpoints, found.log, dict(found.own)) == (3, (), (), None, {})
    assert found.signatures is None


def test_faults_of_all_packets_are_told_in_the_order_of_their_files(tmp_path: Path) -> None:
    kettle, tap = told("created", "noted"), told("created", "noted", packet=TAP)
    broken = {story.events[1].path: story.events[1].encode() + b" " for story in (tap, kettle)}
    found = verified(tmp_path, kettle, tap, more={**broken, f"{LOG_FOLDER}/notes.txt": b"x"})
    said = [(one.code, one.path) for one in found.findings]
    assert said == [
        ("event_edited", kettle.events[1].path),
        ("event_edited", tap.events[1].path),
        ("log_foreign_file", f"{LOG_FOLDER}/notes.txt"),
    ]


def test_a_log_that_the_base_has_otherwise_is_reported_with_a_base_only(tmp_path: Path) -> None:
    story = told("created", "noted")
    verified(tmp_path, story)
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "x")
    (tmp_path / story.events[1].path).unlink()
    assert [one.code for one in verified(tmp_path).findings] == []
    assert [one.code for one in verified(tmp_path, base="HEAD").findings] == ["log_file_deleted"]


def test_an_approval_that_the_base_has_is_missed(tmp_path: Path) -> None:
    path = f".GOV/attestations/{A}.dsse.json"
    verified(tmp_path, told("created"), more={path: b"{}"})
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "x")
    assert verified(tmp_path, base="HEAD").findings == ()
    (tmp_path / path).unlink()
    assert [(one.code, one.path) for one in verified(tmp_path, base="HEAD").findings] == [("log_file_deleted", path)]


def test_of_many_packets_none_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stories = [told("created", packet=f"WP-{number}-Kettle-v1") for number in range(1, 6)]
    monkeypatch.setattr(log_verification, "_BATCH", 2)
    one = verified(tmp_path, *stories)
    assert [each.packet for each in one.packets] == [story.packet for story in stories]
    assert one.events == 5
    monkeypatch.setattr(log_verification, "_WORTH_A_PROCESS", 5)
    monkeypatch.setattr(log_verification, "_PROCESSES", 1)
    assert verified(tmp_path) == one


def test_an_event_of_another_packet_is_a_fault_of_the_folder_that_has_it(tmp_path: Path) -> None:
    event = told("created", packet=TAP).events[0]
    wrong = f"{LOG_FOLDER}/{KETTLE}/{event.id}.json"
    found = verified(tmp_path, told("created"), more={wrong: event.encode()})
    assert [(one.code, one.path) for one in found.findings] == [("event_wrong_packet", wrong)]
    name, data = rewritten(event, packet=KETTLE)
    assert verified(tmp_path / "other", more={f"{LOG_FOLDER}/{KETTLE}/{name}": data}).findings == ()


def test_what_the_base_has_is_told_where_its_file_would_be(tmp_path: Path) -> None:
    path = f".GOV/attestations/{A}.dsse.json"
    story = told("created")
    verified(tmp_path, story, more={path: b"{}"})
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "x")
    (tmp_path / path).unlink()
    found = verified(tmp_path, more={f"{LOG_FOLDER}/notes.txt": b"x"}, base="HEAD")
    assert [one.path for one in found.findings] == [path, f"{LOG_FOLDER}/notes.txt"]


@pytest.mark.parametrize(
    ("packets", "cores", "in_two"), [(2, 2, False), (3, 2, True), (4, 8, True), (3, 1, False), (3, None, False)]
)
def test_many_packets_are_read_by_two_processes_where_there_are_two_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packets: int, cores: int | None, in_two: bool
) -> None:
    began: list[int] = []

    class Pool:
        """In place of processes."""

        def __init__(self, processes: int) -> None:
            began.append(processes)

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None: ...

        map = staticmethod(map)

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", Pool)
    monkeypatch.setattr(log_verification, "_WORTH_A_PROCESS", 3)
    monkeypatch.setattr(log_verification, "_PROCESSES", 2)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    found = verified(tmp_path, *(told("created", packet=f"WP-{number}-Kettle-v1") for number in range(packets)))
    assert (began, found.events) == ([2] if in_two else [], packets)


def test_signatures_are_judged_by_the_policy_of_the_base_that_is_named(tmp_path: Path) -> None:
    key = key_of("ann")
    policy = f'[actors.ann]\nkind = "person"\nkeys = ["{key.fingerprint}"]\n'
    story = told("created")
    signature = base64.b64encode(key.sign(story.events[0].encode(), namespace=EVENT_NAMESPACE)).decode()
    value = {**json.loads(story.events[0].encode()), "sig": signature}
    data = encode_event(value)
    event = {f"{LOG_FOLDER}/{KETTLE}/{event_id(data)}.json": data}
    wrong = encode_event({**value, "at": LATER})
    files = {".GOV/policy/policy.toml": policy.encode(), ".GOV/policy/revoked_keys": b""}
    verified(tmp_path, more={**files, **event})
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "x")
    repository = find_repository(tmp_path)
    first = git(tmp_path, "rev-parse", "HEAD")
    assert verify_log(repository, first, SOON, signatures=True).signatures == Proven(1, 0, 0, 0)
    laid_out(tmp_path, more={".GOV/policy/revoked_keys": f"{key.public_line}\n".encode()})
    git(tmp_path, "commit", "--quiet", "--all", "--message", "x")
    assert verify_log(repository, "", SOON, signatures=True).signatures == Proven(0, 1, 0, 0), "revoked on main"
    assert verify_log(repository, first, SOON, signatures=True).signatures == Proven(1, 0, 0, 0)
    (tmp_path / f"{LOG_FOLDER}/{KETTLE}/{event_id(data)}.json").unlink()
    laid_out(tmp_path, more={f"{LOG_FOLDER}/{KETTLE}/{event_id(wrong)}.json": wrong})
    assert verify_log(repository, first, SOON, signatures=True).signatures == Proven(0, 0, 0, 1), "signed otherwise"
