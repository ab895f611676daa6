"""From which commit a run goes on: the chain of sources, their order, and everything that is not believed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from git.scratch import commit, git, make_repository
from workpacket.bridges.commit_checkpoints import CommitBridge, CommitSelection, Selected
from workpacket.bridges.foreign import Foreign, bridge_named
from workpacket.git.repository import Repository
from workpacket.model.canonical import Json
from workpacket.runtime.records.state import Milestones, ReachedMilestone

RUN = "work@00000001"
SPECIFIC = f"chore(runr): checkpoint {RUN} milestone "
LEGACY = "chore(agent): checkpoint milestone "


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path)


def sidecar(repository: Repository, sha: str, index: int, *, mtime: int = 0, **more: Any) -> Path:
    values = {
        "schema_version": 1, "sha": sha, "run_id": RUN, "milestone_index": index, "milestone_title": "T",
        "created_at": "2026-01-31T09:30:00Z", **more,
    }  # fmt: skip
    path = repository.root / ".runr" / "checkpoints" / f"{sha}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))
    os.utime(path, ns=(mtime, mtime))
    return path


def select(repository: Repository, known: Milestones | None = None, *, legacy: bool = False) -> Selected:
    return CommitSelection(repository, RUN, known or Milestones(), legacy=legacy).select()


def test_a_repository_without_a_commit_has_nothing_to_select(repository: Repository) -> None:
    assert select(repository).source == "none"


def test_the_chain_is_sidecar_then_message_of_the_run_then_legacy_then_none(repository: Repository) -> None:
    root = repository.root
    legacy = commit(root, f"{LEGACY}9", a="1")
    specific = commit(root, f"{SPECIFIC}2", a="2")
    side = commit(root, "anything", a="3")
    path = sidecar(repository, side, 1)
    found = select(repository, legacy=True)
    assert (found.source, found.sha, found.milestone_index, found.relation) == ("sidecar", side, 1, "exact")
    path.unlink()
    found = select(repository, legacy=True)
    assert (found.source, found.sha, found.milestone_index) == ("git_log_run_specific", specific, 2)
    git(root, "reset", "-q", "--hard", legacy)
    found = select(repository, legacy=True)
    assert (found.source, found.sha, found.milestone_index) == ("git_log_legacy", legacy, 9)
    git(root, "commit", "-q", "--amend", "-m", "x")
    assert select(repository, legacy=True).source == "none"


def test_a_legacy_message_may_be_anybodys(repository: Repository) -> None:
    commit(repository.root, f"{LEGACY}9", a="1")
    found = select(repository)
    assert found.source == "none"
    assert "does not identify the run" in found.skipped[0]


def test_the_message_of_another_run_and_one_in_a_body_are_no_checkpoints(repository: Repository) -> None:
    commit(repository.root, "chore(runr): checkpoint other@00000001 milestone 9", a="1")
    commit(repository.root, f"Squashed\n\n{SPECIFIC}8\n\n    {LEGACY}7", a="2")
    commit(repository.root, f'Revert "{SPECIFIC}6"', a="3")
    assert select(repository, legacy=True).source == "none"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"index": 1}, {"index": 2}),
        ({"created_at": "2026-01-31T09:30:00Z"}, {"created_at": "2026-01-31T09:00:00-01:00"}),
        ({"mtime": 1_000_000_000}, {"mtime": 2_000_000_000}),
    ],
    ids=["milestone", "moment", "age"],
)
def test_the_highest_milestone_then_the_latest_moment_then_the_newest_file_wins(
    repository: Repository, first: dict[str, Any], second: dict[str, Any]
) -> None:
    shas = [commit(repository.root, "one", a="1"), commit(repository.root, "two", a="2")]
    for sha, more in zip(shas, (second, first), strict=True):  # the earlier commit has the later sidecar
        sidecar(repository, sha, more.pop("index", 0), **more)
    assert select(repository).sha == shas[0]


@pytest.mark.parametrize(
    "damage",
    ["{", "[]", '{"schema_version": 1, "schema_version": 1}', "\ud800", "x" * 300_000],
    ids=["open", "list", "twice", "surrogate", "large"],
)
def test_a_sidecar_that_is_invalid_is_named_and_passed_over(repository: Repository, damage: str) -> None:
    good = commit(repository.root, "one", a="1")
    sidecar(repository, good, 0)
    bad = sidecar(repository, "f" * 40, 5)
    bad.write_bytes(damage.encode("utf-8", "surrogatepass"))
    found = select(repository)
    assert (found.sha, found.milestone_index, found.skipped[1:]) == (good, 0, ())
    assert len(found.skipped) == 1
    assert "f" * 40 in found.skipped[0]


@pytest.mark.parametrize(
    ("field", "value"), [("schema_version", 2), ("sha", "e" * 40), ("milestone_index", "5"), ("created_at", "soon")]
)
def test_a_sidecar_of_a_newer_version_or_with_a_wrong_field_is_passed_over(
    repository: Repository, field: str, value: object
) -> None:
    head = commit(repository.root, "one", a="1")
    path = sidecar(repository, head, 5)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    found = select(repository)
    assert found.source == "none"
    assert len(found.skipped) == 1


def test_a_commit_that_is_not_here_is_passed_over_for_the_next_milestone(repository: Repository) -> None:
    head = commit(repository.root, "one", a="1")
    sidecar(repository, head, 0)
    sidecar(repository, "d" * 40, 1)
    found = select(repository)
    assert (found.sha, found.milestone_index) == (head, 0)
    assert "not in this history" in found.skipped[0]


def test_a_commit_whose_sha_has_changed_is_known_by_what_its_sidecar_says_of_it(repository: Repository) -> None:
    commit(repository.root, f"{SPECIFIC}0\n\nCheckpoint-Id: abc", a="1")
    sidecar(repository, "d" * 40, 0, checkpoint_id="abc")
    assert select(repository).relation == "rewritten"


def test_a_sidecar_against_its_commit_or_against_the_log_is_a_conflict(repository: Repository) -> None:
    head = commit(repository.root, f"{SPECIFIC}3", a="1")
    sidecar(repository, head, 99)
    assert "its commit claims milestone 3" in select(repository).conflicts[0]
    plain = commit(repository.root, "plain", a="2")
    known = Milestones(reached={3: ReachedMilestone("c", 3, head, "", True, 5)})
    sidecar(repository, head, 3)
    sidecar(repository, plain, 99)
    assert "is not in the log" in select(repository, known).conflicts[0]


def test_sidecars_of_other_runs_and_behind_a_link_are_left_alone(repository: Repository, tmp_path: Path) -> None:
    head = commit(repository.root, "one", a="1")
    sidecar(repository, head, 4, run_id="other")
    assert select(repository) == Selected("none")
    (repository.root / ".runr").rename(repository.root / "real")
    (repository.root / ".runr").symlink_to("real")
    assert select(repository) == Selected("none")


# ---- the bridge ------------------------------------------------------------------------------------------------------


def test_a_canonical_sidecar_is_byte_identical_after_reading_and_writing() -> None:
    sha = "a" * 40
    values: dict[str, Json] = {
        "schema_version": 1, "sha": sha, "run_id": "r", "milestone_index": 0, "milestone_title": "Tätigkeit",
        "created_at": "2026-01-31T09:30:00.250Z", "tier": "tier0", "somebody_elses": {"kept": [1, 1.5, None]},
    }  # fmt: skip
    data = CommitBridge().write([Foreign("commit", "", values)])
    (read,) = CommitBridge().read(f".runr/checkpoints/{sha}.json", data)
    assert isinstance(read, Foreign)
    assert (read.stream, CommitBridge().write([read])) == ("commit/r/0", data)
    assert isinstance(bridge_named("commit"), CommitBridge)


def test_a_sidecar_that_is_invalid_is_refused_whole_and_with_its_place() -> None:
    refused = CommitBridge().read(f".runr/checkpoints/{'a' * 40}.json", b'{"schema_version": 1,\n "sha": 7}')
    assert refused
    assert all(not isinstance(one, Foreign) for one in refused)
