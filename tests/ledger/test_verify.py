"""What a log does not show by itself shows against a base or a signed checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.stories import COMMIT, PACKET, Story, rewritten, verify_tree
from workpacket.ledger.log import Log, NewLogEvent, read_logs
from workpacket.ledger.verify import (
    Reach,
    Verifier,
    Vouching,
    checkpointed_heads,
    checkpoints_due,
    judge_checkpoints,
    named_heads,
    reach,
    signature_path,
    signatures_without_event,
    verify_append_only,
)
from workpacket.model.canonical import Json
from workpacket.model.event_types import BEFORE_LANDING, CHECKPOINT_LOG
from workpacket.model.events import LogEvent
from workpacket.model.layout import LARGEST_EVENT
from workpacket.model.plan import digest
from workpacket.problem import Problem
from workpacket.value import replace

OTHER = "WP-2-Stove-v1"


def trusting(_event: LogEvent) -> Vouching:
    return Vouching(by="ci@example.org")


def doubting(event: LogEvent) -> Vouching:
    return Vouching(fault="log_checkpoint_unsigned", message=f"nobody signed {event.id[:6]}")


def due_of(logs: Mapping[str, Log], verifier: Verifier = trusting) -> list[NewLogEvent]:
    named = named_heads(judge_checkpoints(logs, verifier))
    return checkpoints_due(reaches(logs, verifier), named, COMMIT)


def reaches(logs: Mapping[str, Log], verifier: Verifier) -> list[Reach]:
    """How much of each packet's log is covered, as `log verify` asks of one after the other."""
    named = named_heads(judge_checkpoints(logs, verifier))
    return [reach(log, named.get(name, ())) for name, log in logs.items() if name != CHECKPOINT_LOG]


def told(packet: str = PACKET) -> Story:
    story = Story(packet)
    story.tell("created", "activated", "claimed")
    return story


def tree(*stories: Story) -> dict[str, bytes]:
    return {event.path: event.encode() for story in stories for event in story.events}


def checkpoint_of(*stories: Story) -> Story:
    rows: list[Json] = [
        {"packet": s.packet, "heads": sorted(event.id for event in s.heads()), "events": len(s.events)} for s in stories
    ]
    story = Story("_checkpoints")
    story.add("checkpoint", logs=rows, commit=COMMIT)
    return story


def rows(happening: NewLogEvent) -> list[Any]:
    listed = happening.data["logs"]
    assert isinstance(listed, list)
    return listed


def codes(findings: list[Problem]) -> list[str]:
    return [finding.code for finding in findings]


def test_sound_logs_have_no_findings() -> None:
    stories = [told(), told(OTHER)]
    assert verify_tree(tree(*stories, checkpoint_of(*stories)), trusting) == []
    assert verify_tree({}, trusting) == []


def test_findings_of_all_logs_come_together_and_in_order() -> None:
    first, second = told(), told(OTHER)
    files = tree(first, second)
    del files[first.events[1].path]
    files[second.events[2].path] = b"{}\n"
    second_lane = Story("WP-3-Pan-v1")
    second_lane.tell("created", "claimed")
    found = verify_tree({**files, **tree(second_lane)}, trusting)
    assert sorted(codes(found)) == ["event_edited", "log_event_missing", "log_lane_gap"]
    assert found == sorted(found, key=lambda finding: finding.order)


def test_files_beside_the_folders_of_packets_are_foreign() -> None:
    story = told()
    deep = f".GOV/log/{PACKET}/deeper/{story.events[0].id}.json"
    _, stray = read_logs({**tree(story), ".GOV/log/README": b"", deep: b""})
    assert sorted((finding.code, finding.path) for finding in stray) == [
        ("log_foreign_file", ".GOV/log/README"),
        ("log_foreign_file", deep),
    ]


def test_a_cut_off_end_shows_only_against_a_checkpoint_or_a_base() -> None:
    story = told()
    whole = tree(story)
    cut = {path: data for path, data in whole.items() if path != story.events[-1].path}
    assert verify_tree(cut, trusting) == []
    found = verify_tree({**cut, **tree(checkpoint_of(story))}, trusting)
    assert codes(found) == ["log_truncated"]
    assert found[0].path == story.events[-1].path
    base = {path: digest(data) for path, data in whole.items()}
    assert codes(verify_append_only(base, {path: digest(data) for path, data in cut.items()})) == ["log_file_deleted"]


def test_an_end_that_was_consistently_replaced_shows_the_same_way() -> None:
    story = told()
    forged = Story()
    forged.events = story.events[:2]
    forged.add("abandoned", lane_from="READY_FOR_DEV")
    assert verify_tree(tree(forged), trusting) == []
    assert codes(verify_tree({**tree(forged), **tree(checkpoint_of(story))}, trusting)) == ["log_truncated"]


def test_a_whole_log_that_is_gone_is_truncated_too() -> None:
    story, other = told(), told(OTHER)
    found = verify_tree({**tree(other), **tree(checkpoint_of(story, other))}, trusting)
    assert codes(found) == ["log_truncated"]


def test_events_after_the_checkpoint_are_no_fault() -> None:
    story = told()
    checkpoint = checkpoint_of(story)
    story.tell("submitted", "verdict.given")
    assert verify_tree(tree(story, checkpoint), trusting) == []


def test_a_checkpoint_whose_signature_does_not_verify_is_named_and_not_believed() -> None:
    story = told()
    cut = Story()
    cut.events = story.events[:1]
    found = verify_tree(tree(cut, checkpoint_of(story)), doubting)
    assert codes(found) == ["log_checkpoint_unsigned"]
    assert found[0].message.startswith("nobody signed")


def test_a_checkpoint_names_the_heads_of_each_packet() -> None:
    story = told()
    (event,) = checkpoint_of(story).events
    assert list(checkpointed_heads(event)) == [(PACKET, (story.events[-1].id,))]


def test_a_checkpoint_is_due_for_what_has_changed_since_the_last() -> None:
    story, other = told(), told(OTHER)
    (due,) = due_of({PACKET: story.read(), OTHER: other.read()})
    assert (due.type, due.data["commit"]) == ("checkpoint", COMMIT)
    assert [row["packet"] for row in rows(due)] == [PACKET, OTHER]
    checkpoint = checkpoint_of(story, other)
    logs = {PACKET: story.read(), OTHER: other.read(), "_checkpoints": checkpoint.read()}
    assert due_of(logs) == []
    story.add("submitted")
    (due,) = due_of({**logs, PACKET: story.read()})
    assert rows(due) == [{"packet": PACKET, "heads": [story.events[-1].id], "events": 4}]


def test_a_signature_vouches_for_the_checkpoints_before_it_and_for_no_later_event() -> None:
    story, other = told(), told(OTHER)
    checkpoints = checkpoint_of(story)
    rows_of_other: list[Json] = [{"packet": OTHER, "heads": [other.events[-1].id], "events": 3}]
    checkpoints.add("checkpoint", logs=rows_of_other, commit=COMMIT)
    story.tell("released")
    logs = {PACKET: story.read(), OTHER: other.read(), "_checkpoints": checkpoints.read()}
    last = checkpoints.events[-1]

    def only_the_last(event: LogEvent) -> Vouching:
        return trusting(event) if event == last else doubting(event)

    judged = judge_checkpoints(logs, only_the_last)
    assert [each.by for each in judged] == ["ci@example.org"] * 2
    found = reaches(logs, only_the_last)
    assert [(row.packet, row.vouched, row.events) for row in found] == [(PACKET, 3, 4), (OTHER, 3, 3)]
    assert [row.vouched for row in reaches(logs, doubting)] == [0, 0]
    assert verify_tree(tree(story, other, checkpoints), only_the_last) == []
    cut = Story(PACKET)
    cut.events = story.events[:2]
    assert codes(verify_tree(tree(cut, other, checkpoints), only_the_last)) == ["log_truncated"]


def test_what_nobody_vouches_for_is_due_again() -> None:
    story = told()
    logs = {PACKET: story.read(), "_checkpoints": checkpoint_of(story).read()}
    assert due_of(logs) == []
    assert len(due_of(logs, doubting)) == 1


def test_a_log_without_a_valid_event_is_not_due() -> None:
    assert due_of({PACKET: read_logs({f".GOV/log/{PACKET}/{'0' * 64}.json": b"x"})[0][PACKET]}) == []


def test_what_two_checkpoints_name_is_covered_by_both() -> None:
    """A head that the later one does not name any more is covered by the earlier one still."""
    story = told()
    checkpoints = checkpoint_of(story)
    side = story.add("noted", after=(story.events[1],))
    checkpoints.add("checkpoint", logs=[{"packet": PACKET, "heads": [side.id], "events": 4}], commit=COMMIT)
    logs = {PACKET: story.read(), "_checkpoints": checkpoints.read()}
    (row,) = reaches(logs, trusting)
    assert (row.vouched, row.events, row.checkpoint) == (4, 4, checkpoints.events[-1].id)


def test_a_log_without_heads_is_not_named_again() -> None:
    story = told()
    logs = {PACKET: story.read(), "_checkpoints": checkpoint_of(story).read()}
    named = named_heads(judge_checkpoints(logs, trusting))
    assert PACKET in named
    assert checkpoints_due([replace(reach(story.read(), ()), heads=())], named, COMMIT) == []


def test_many_packets_take_several_checkpoints() -> None:
    log = told().read()
    due = checkpoints_due([replace(reach(log, ()), packet=f"WP-1-P{number}-v1") for number in range(2001)], {}, COMMIT)
    assert [len(rows(happening)) for happening in due] == [1000, 1000, 1]
    story = Story("_checkpoints")
    for happening in due:
        story.add("checkpoint", logs=rows(happening))
    assert max(len(data) for data in story.files().values()) < LARGEST_EVENT
    assert story.read().sound


def test_the_append_only_rule_covers_the_log_and_the_approvals_and_nothing_else() -> None:
    base = {
        f".GOV/log/{PACKET}/a.json": "1",
        ".GOV/attestations/b.dsse.json": "1",
        ".GOV/logbook.md": "1",
        "src/main.py": "1",
    }
    assert verify_append_only(base, base) == []
    assert verify_append_only(base, {**base, ".GOV/log/new.json": "2", "src/main.py": "2"}) == []
    changed = dict.fromkeys(base, "2")
    assert codes(verify_append_only(base, changed)) == ["log_file_modified", "log_file_modified"]
    assert codes(verify_append_only(base, {})) == ["log_file_deleted", "log_file_deleted"]


def test_a_forger_who_keeps_to_every_rule_but_one_is_found() -> None:
    """Each field of an interior event changed, the file rightly renamed: its child misses it."""
    story = told()
    victim = story.events[1]
    for changes in ({"at": "2020-01-01T00:00:00Z"}, {"tool": "x"}, {"actor": {"id": "eve", "kind": "human"}}):
        files = tree(story)
        del files[victim.path]
        name, data = rewritten(victim, **changes)
        files[f".GOV/log/{PACKET}/{name}"] = data
        assert codes(verify_tree(files, trusting)) == ["log_event_missing"]


def test_a_signature_without_its_checkpoint_is_named() -> None:
    """Whoever takes a checkpoint away would have to take its signature, too, which a base would miss."""
    point = checkpoint_of(told())
    logs, _ = read_logs(tree(point))
    own, other = f".GOV/checkpoints/{point.events[0].id}.sshsig", signature_path("0" * 64)
    assert signatures_without_event(logs, [own]) == []
    for known, paths in ((logs, [own, other]), ({}, [other])):
        (found,) = signatures_without_event(known, paths)
        assert (found.code, found.path) == ("log_checkpoint_missing", other)
        assert found.message == "the log has no checkpoint with this name"


def test_a_fault_is_named_at_the_signature_or_at_the_event_that_lacks_one() -> None:
    point = checkpoint_of(told())
    (event,) = point.events
    for code, path in (("log_checkpoint_unsigned", event.path), ("log_checkpoint_signer", signature_path(event.id))):
        poor = Vouching(fault=code, message="x")
        found = verify_tree(tree(told(), point), dict.fromkeys(point.events, poor).__getitem__)
        assert [(one.code, one.path) for one in found] == [(code, path)]


def test_a_broken_signature_is_a_fault_even_where_a_later_checkpoint_vouches() -> None:
    point = checkpoint_of(told())
    first = point.events[0]
    point.add("checkpoint", logs=[], commit=COMMIT)
    for broken, codes_found in ((True, ["log_checkpoint_invalid"]), (False, [])):
        poor = Vouching(fault="log_checkpoint_invalid", message="x", broken=broken)

        def judge(event: LogEvent, poor: Vouching = poor) -> Vouching:
            return poor if event == first else trusting(event)

        assert codes(verify_tree(tree(told(), point), judge)) == codes_found


def test_a_head_that_a_checkpoint_names_is_not_lost_when_its_packet_was_renamed() -> None:
    draft = Story()
    draft.add("created", title="Boil milk")
    checkpoint = checkpoint_of(draft)
    draft.add("superseded", lane_from="STUB", renamed=BEFORE_LANDING)
    assert verify_tree(tree(told(), draft, checkpoint), trusting) == []
