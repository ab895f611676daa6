"""What `check --base` says of the packet's file in a submission or a verdict: the bytes before it and after it."""

from __future__ import annotations

import hashlib

import pytest

from ledger.stories import PACKET, Story
from lifecycle.world import packet_text
from workpacket.lifecycle.change_checks import subject_faults
from workpacket.model.events import ChangedFile

PATH = f".GOV/task_packets/{PACKET}.md"
OTHER = b"# Not a packet at all\n"


def version(status: str, added: str = "") -> bytes:
    return packet_text(PACKET, status) + added.encode()


WORKED, REVIEWED, FINISHED = version("In Progress"), version("In Review"), version("Validated")
REWRITTEN = version("In Review", "\nAnd a new criterion.\n")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def faults(
    before: bytes | None, after: bytes | None, committed: tuple[bytes, ...], lane: str = "IN_REVIEW"
) -> list[str]:
    """What is said of an event with these files, if commits have those."""
    story = Story()
    story.tell("created", "activated", "claimed", "evidence.recorded")
    story.add("submitted", lane_to=lane)
    subject = ChangedFile(PATH, *(None if data is None else digest(data) for data in (before, after)))
    return list(subject_faults(story.log(), subject, {digest(data): data for data in committed}))


def no_commit_has(data: bytes) -> str:
    return f"no commit contains {PATH} with the content {digest(data)[:12]}, which the event gives as the new version"


def never_had(data: bytes) -> str:
    return f"{PATH} never had the content {digest(data)[:12]}, which the event gives as the old version"


DIFFERS = f"the versions of {PATH} in the event differ in more than the status"
NOT_CHANGED = f"it says that {PATH} was added or removed, but only the file's status may change"


@pytest.mark.parametrize(("before", "after"), [(None, REVIEWED), (REVIEWED, None), (None, None)])
def test_a_submission_neither_adds_nor_removes_the_packet(before: bytes | None, after: bytes | None) -> None:
    assert faults(before, after, (WORKED, REVIEWED)) == [NOT_CHANGED]


def test_both_versions_are_in_commits_and_differ_only_in_the_status() -> None:
    assert faults(WORKED, REVIEWED, (WORKED, REVIEWED)) == []
    assert faults(WORKED, REWRITTEN, (WORKED, REWRITTEN)) == [DIFFERS]


def test_a_version_that_no_commit_has_is_one_of_another_lane() -> None:
    assert faults(WORKED, REVIEWED, (REVIEWED,)) == []
    assert faults(version("IN_PROGRESS"), REVIEWED, (REVIEWED,)) == []
    assert faults(WORKED, REVIEWED, (FINISHED,)) == [], "several moves were committed together"
    assert faults(WORKED, REVIEWED, (OTHER, FINISHED)) == []


def test_bytes_that_the_packet_never_had_are_refused() -> None:
    assert faults(OTHER, REVIEWED, (REVIEWED,)) == [never_had(OTHER)]
    assert faults(WORKED, OTHER, (WORKED,)) == [no_commit_has(OTHER)]
    assert faults(WORKED, REWRITTEN, (WORKED, REVIEWED, FINISHED)) == [no_commit_has(REWRITTEN)]


def test_the_old_version_is_examined_although_only_a_later_one_was_committed() -> None:
    """An approval of a verdict is bound to the old version, and moves that are committed together do not hide it."""
    assert faults(REWRITTEN, REVIEWED, (FINISHED,)) == [never_had(REWRITTEN)]
    assert faults(REWRITTEN, REVIEWED, (REWRITTEN, FINISHED)) == [DIFFERS]


def test_a_file_without_a_status_has_one_version() -> None:
    assert faults(OTHER, OTHER, (OTHER,)) == []
    assert faults(OTHER, WORKED, (OTHER, WORKED)) == [DIFFERS]


def test_nothing_is_compared_where_no_commit_of_the_work_is_here() -> None:
    assert faults(WORKED, REVIEWED, ()) == []


@pytest.mark.parametrize("status", ["FIELD_TRIAL", "FIELD TRIAL", "Field Trial"])
def test_a_status_may_name_a_lane_of_the_repository(status: str) -> None:
    trial = version(status)
    assert faults(WORKED, trial, (FINISHED,), lane="FIELD_TRIAL") == []
    assert faults(WORKED, trial, (FINISHED,)) == [no_commit_has(trial)], "no event names such a lane"
