"""A log as a graph: what tampering, merging and time travel do to it."""

from __future__ import annotations

import pytest

import remembered
from ledger.stories import PACKET, A, B, Story, files_of, rewritten
from workpacket.ledger import log
from workpacket.ledger.log import Format, Log, each_event_decoded_once, join_events, read_log
from workpacket.model.event_types import BEFORE_LANDING
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import Problem


def codes(log: Log) -> list[str]:
    return sorted(finding.code for finding in log.findings)


def only(log: Log) -> Problem:
    (finding,) = log.findings
    return finding


def three() -> Story:
    story = Story()
    story.tell("created", "activated", "claimed")
    return story


def test_a_log_is_read_in_the_order_of_clock_and_id() -> None:
    story = three()
    log = read_log(PACKET, dict(reversed(story.files().items())))
    assert log.events == tuple(story.events)
    assert [event.clock for event in log.events] == [1, 2, 3]
    assert log.heads == (story.events[-1].id,)
    assert log.findings == ()
    assert log.sound


def test_an_event_is_decoded_once_by_who_asks_for_it_and_a_change_of_its_bytes_is_still_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log, "decode_event", remembered.really_decode)
    files = three().files()
    with each_event_decoded_once():
        first, again = read_log(PACKET, files), read_log(PACKET, files)
        assert all(one is other for one, other in zip(first.events, again.events, strict=True))
        last = first.heads[0]
        assert codes(read_log(PACKET, {**files, f"{last}.json": files[f"{last}.json"] + b" "})) == ["event_edited"]
        assert set(codes(read_log("WP-1-Other-v1", files))) == {"event_wrong_packet"}
    later = read_log(PACKET, files)
    assert later == first
    assert later.events[0] is not first.events[0]


def test_no_log_is_no_fault() -> None:
    log = read_log(PACKET, {})
    assert (log.events, log.heads, log.findings) == ((), (), ())


def test_two_branches_make_two_heads_and_the_next_event_joins_them() -> None:
    story = three()
    claimed = story.events[-1]
    left = story.add("evidence.recorded", after=(claimed,))
    right = story.add("waived", after=(claimed,))
    assert story.read().heads == tuple(sorted((left.id, right.id)))
    joined = story.add("submitted")
    assert joined.parents == tuple(sorted((left.id, right.id)))
    assert story.read().heads == (joined.id,)
    assert story.read().sound


def test_a_deleted_interior_event_is_missed_by_its_child() -> None:
    story = three()
    files = story.files()
    del files[f"{story.events[1].id}.json"]
    log = read_log(PACKET, files)
    assert only(log).code == "log_event_missing"
    assert only(log).path == story.events[2].path
    assert story.events[1].id in only(log).message
    assert [event.type for event in log.events] == ["created"]


def test_a_rehashed_interior_event_is_missed_under_its_old_id() -> None:
    story = three()
    files = files_of(story.events[0], story.events[2])
    name, data = rewritten(story.events[1], at="2025-12-31T00:00:00Z")
    assert codes(read_log(PACKET, {**files, name: data})) == ["log_event_missing"]


def test_what_follows_from_a_doubtful_event_is_not_replayed() -> None:
    story = three()
    story.tell("submitted", "verdict.given")
    files = files_of(story.events[0], *story.events[2:])
    assert codes(read_log(PACKET, files)) == ["log_event_missing"]
    assert [event.type for event in read_log(PACKET, files).events] == ["created"]


def test_a_deleted_beginning_leaves_no_beginning() -> None:
    story = three()
    log = read_log(PACKET, files_of(*story.events[1:]))
    assert codes(log) == ["log_event_missing", "log_no_genesis"]
    assert log.events == ()


def test_a_second_beginning_names_the_first() -> None:
    story = Story()
    story.add("created")
    story.add("created", after=(), at="2026-02-02T00:00:00Z")
    first, second = story.read().events
    finding = only(story.read())
    assert (finding.code, finding.path) == ("log_second_genesis", second.path)
    assert first.id in finding.message


def test_a_false_clock_is_found_whether_late_or_early() -> None:
    for clock in (2, 4, 9):
        story = three()
        name, data = rewritten(story.events[2], clock=clock)
        log = read_log(PACKET, {**files_of(*story.events[:2]), name: data})
        assert codes(log) == ([] if clock == 3 else ["log_false_clock"])
        assert "the event's parents require 3" in only(log).message


def test_a_false_clock_at_the_beginning_is_found() -> None:
    story = three()
    name, data = rewritten(story.events[0], clock=7)
    assert codes(read_log(PACKET, {name: data})) == ["log_false_clock", "log_no_genesis"]


def test_only_a_beginning_begins_and_it_does_nothing_else() -> None:
    story = three()
    orphan = rewritten(story.events[1], parents=[], clock=1)
    again = rewritten(story.events[0], parents=[story.events[2].id], clock=4)
    assert "cannot begin a log" in only(read_log(PACKET, {**story.files(), orphan[0]: orphan[1]})).message
    assert "can only begin a log" in only(read_log(PACKET, {**story.files(), again[0]: again[1]})).message
    adopted = rewritten(Story().add("adopted"), parents=[story.events[2].id], clock=4)
    assert "can only begin a log" in only(read_log(PACKET, {**story.files(), adopted[0]: adopted[1]})).message


def test_a_checkpoint_may_begin_its_log_and_follow_others() -> None:
    story = Story("_checkpoints")
    story.tell("checkpoint", "checkpoint")
    assert story.read().sound


def test_an_event_of_another_packet_is_left_out() -> None:
    story = three()
    stranger = Story("WP-9-Stranger-v1")
    stranger.add("created")
    log = read_log(PACKET, {**story.files(), **stranger.files()})
    assert codes(log) == ["event_wrong_packet"]
    assert len(log.events) == 3


def test_a_file_that_is_no_event_is_a_warning() -> None:
    story = three()
    for name in (".DS_Store", f"{A}.json.bak", f"{A.upper()}.json", f"{B}.JSON"):
        log = read_log(PACKET, {**story.files(), name: b"x"})
        assert (only(log).code, only(log).severity, log.sound) == ("log_foreign_file", "warning", True)


def test_everything_wrong_is_told_at_once_in_the_order_of_the_files() -> None:
    story = three()
    files = story.files()
    first, second, _third = files
    files[first], files[second] = files[second], files[first]
    files["notes.txt"] = b""
    log = read_log(PACKET, files)
    assert codes(log) == [
        "event_names_swapped",
        "event_names_swapped",
        "log_event_missing",
        "log_foreign_file",
        "log_no_genesis",
    ]
    assert [finding.path for finding in log.findings] == sorted(finding.path for finding in log.findings)
    assert not log.sound


def test_what_a_writer_saw_is_the_ancestry_of_the_heads_it_named() -> None:
    story = three()
    created, activated, _ = story.events
    side = story.add("waived", after=(activated,))
    log = story.read()
    assert log.ancestry([side.id]) == {created.id, activated.id, side.id}
    assert log.ancestry(["0" * 64]) == frozenset()
    joined = story.add("submitted")
    assert story.read().ancestry([joined.id]) == {event.id for event in story.events}


def test_the_log_as_it_was_at_an_event_or_a_time() -> None:
    story = three()
    created, activated, claimed = story.events
    log = story.read()
    assert log.as_of([activated.id]).events == (created, activated)
    assert log.until(activated.at).events == (created, activated)
    assert log.until("2020-01-01T00:00:00Z").events == ()
    assert log.until(claimed.at).events == log.events


def test_a_clock_going_backwards_does_not_tear_the_past_apart() -> None:
    story = three()
    early = story.add("submitted", at="2025-01-01T00:00:00Z")
    assert early not in story.read().until(story.events[1].at).events
    assert early in story.read().until(story.events[2].at).events
    later = story.add("verdict.given", at="2025-01-01T00:00:01Z")
    assert later not in story.read().until(story.events[1].at).events
    assert story.read().until(story.events[1].at).sound, "nothing in it rests on what is left out"


def test_an_event_that_joins_branches_follows_the_longer_one() -> None:
    story = three()
    _, activated, claimed = story.events
    side = story.add("waived", after=(activated,))
    further = story.add("submitted", after=(claimed,))
    joined = story.add("noted", after=(side, further))
    assert joined.clock == further.clock + 1 > side.clock + 1
    assert story.read().sound


def test_events_of_another_format_are_not_taken_from_those_that_were_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "decode_event", remembered.really_decode)
    (name, data), *_ = three().files().items()
    folder = f"{LOG_FOLDER}/{PACKET}"
    with each_event_decoded_once():
        assert not isinstance(remembered.really_decode(folder, name, data), Problem)
        older = remembered.really_decode(folder, name, data, form=Format(1))
    assert isinstance(older, Problem)
    assert older.code == "event_version_unknown"


# --- packets that were given another id ---


def renamed(title: str = "Boil milk") -> Story:
    """A draft of somebody else, with the same id, until it was given another one."""
    story = Story()
    story.add("created", title=title)
    story.add("activated")
    story.add("superseded", renamed=BEFORE_LANDING)
    return story


def test_a_renamed_packet_leaves_its_id_to_the_other_one() -> None:
    story, other = three(), renamed()
    both = join_events(PACKET, [*other.events, *story.events])
    assert (both.events, both.heads, both.findings) == (tuple(story.events), (story.events[-1].id,), ())
    assert set(both.renamed) == {event.id for event in other.events}
    assert set(both.stored) == {*story.events, *other.events}
    assert both.ancestry([other.events[1].id]) == {event.id for event in other.events[:2]}
    assert not both.is_renamed
    assert three().log().ancestry([story.events[1].id]) == {event.id for event in story.events[:2]}


def test_a_packet_that_was_renamed_and_has_no_namesake_keeps_its_log() -> None:
    alone = renamed().log()
    assert (len(alone.events), dict(alone.renamed), alone.findings) == (3, {}, ())
    assert alone.is_renamed
    assert alone.stored == alone.events
    assert not three().log().is_renamed


def test_of_packets_that_were_all_renamed_one_keeps_the_log() -> None:
    one, other = renamed(), renamed("Boil oil")
    both = join_events(PACKET, [*one.events, *other.events])
    assert (len(both.events), len(both.renamed), both.findings) == (3, 3, ())
    assert both.is_renamed


def test_a_packet_that_was_replaced_is_not_a_renamed_one() -> None:
    replaced = Story()
    replaced.add("created", title="Boil milk")
    replaced.tell("activated", "superseded")
    assert not replaced.log().is_renamed
    both = join_events(PACKET, [*three().events, *replaced.events])
    assert codes(both) == ["log_second_genesis"]
    assert dict(both.renamed) == {}


def test_what_is_renamed_on_one_branch_only_is_not_renamed() -> None:
    story = Story()
    created, activated = story.tell("created"), story.tell("activated")
    story.add("superseded", after=(activated,), renamed=BEFORE_LANDING, reason="one")
    story.add("noted", after=(activated,))
    assert not story.log().is_renamed
    story = Story()
    story.events = [created, activated]
    for reason in ("one", "two"):
        story.add("superseded", after=(activated,), renamed=BEFORE_LANDING, reason=reason)
    assert not story.log().is_renamed
    both = join_events(PACKET, [*story.events, *renamed("Boil oil").events])
    assert set(both.by_id) == {event.id for event in story.events}


def test_an_event_that_joins_two_packets_keeps_both() -> None:
    story, other = three(), renamed()
    joining = Story()
    joining.events = [*story.events, *other.events]
    joining.add("noted")
    assert codes(joining.log()) == ["log_second_genesis"]
    assert dict(joining.log().renamed) == {}


def test_a_verdict_is_about_the_last_submission_that_it_has_seen() -> None:
    """Also where another branch has handed in other work since."""
    story = three()
    first = story.add("submitted")
    verdict = story.add("verdict.given", after=(first,))
    beside = story.add("submitted", after=(first,))
    assert beside.clock == verdict.clock
    found = read_log(PACKET, story.files()).submission_before(verdict)
    assert found is not None
    assert found.id == first.id
    assert read_log(PACKET, story.files()).submission_before(story.events[2]) is None
