"""Which events git took away, and where it still has them; asked of small repositories without a command."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from git.scratch import git, make_repository
from ledger.stories import TX, Story
from workpacket.git.repository import Repository
from workpacket.model.layout import LOG_FOLDER
from workpacket.model.plan import Moment, Plan
from workpacket.problem import WorkpacketError
from workpacket.shell.judging import lost_events as subject
from workpacket.shell.judging.lost_events import LostEvent, bring_back, lost_events

pytestmark = pytest.mark.share(4)

KETTLE, TAP = "WP-1-Kettle-v1", "WP-1-Tap-v1"
PASSED, NOWHERE, FOLLOWED = "HEAD's history has it", "no branch has it", "an event here follows it"
NOW = Moment("2026-06-01T00:00:00Z", TX, "")


class Place:
    """A repository whose first commit has an event; `story` goes on from there."""

    def __init__(self, root: Path) -> None:
        self.repository: Repository = make_repository(root)
        self.root = root
        self.story = Story(KETTLE)
        self.created = self.written("created")
        self.commit()

    def written(self, kind: str, story: Story | None = None) -> str:
        """Write one more event, and return its path."""
        event = (story or self.story).add(kind)
        self.write(event.path, event.encode())
        return event.path

    def write(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def commit(self) -> str:
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", "x")
        return git(self.root, "rev-parse", "HEAD").strip()

    def delete(self, *paths: str) -> None:
        for path in paths:
            (self.root / path).unlink()

    def forget(self) -> None:
        """No reflog leads anywhere any more."""
        git(self.root, "reflog", "expire", "--expire=now", "--all")

    def lost(self, *packets: str) -> list[tuple[str, str, str]]:
        return [(one.path, one.where, one.why) for one in lost_events(self.repository, packets)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "repository")


def test_without_a_commit_nothing_can_be_lost(tmp_path: Path) -> None:
    assert lost_events(make_repository(tmp_path)) == []


def test_what_is_here_is_not_lost(place: Place) -> None:
    place.written("noted")
    assert place.lost() == []


def test_an_event_that_a_commit_deleted_is_in_the_history(place: Place) -> None:
    first = git(place.root, "rev-parse", "HEAD").strip()
    place.delete(place.created)
    place.commit()
    place.forget()
    assert place.lost() == [(place.created, f"commit {first[:12]}", PASSED)]
    (found,) = lost_events(place.repository)
    assert found.data == place.story.events[0].encode()


def test_an_event_that_is_only_deleted_here_is_in_the_history(place: Place) -> None:
    place.delete(place.created)
    assert [why for *_, why in place.lost()] == [PASSED]


def test_an_event_that_a_merge_left_out_is_in_the_history_of_its_other_side(place: Place) -> None:
    git(place.root, "switch", "--quiet", "--create", "side")
    noted = place.written("noted")
    place.commit()
    git(place.root, "switch", "--quiet", "main")
    place.commit()
    git(place.root, "merge", "--quiet", "--strategy", "ours", "--no-edit", "side")
    assert [(path, why) for path, _, why in place.lost()] == [(noted, PASSED)]


def test_an_event_that_a_reset_took_away_is_in_the_reflog(place: Place) -> None:
    noted = place.written("noted")
    place.commit()
    git(place.root, "reset", "--quiet", "--hard", "HEAD~1")
    ((path, where, why),) = place.lost()
    assert (path, why) == (noted, NOWHERE)
    assert where in {"HEAD@{1}", "refs/heads/main@{1}"}


def test_an_event_of_a_deleted_branch_is_in_a_dangling_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for number in range(3):
        git(place.root, "switch", "--quiet", "--create", f"side-{number}", "main")
        path = place.written("noted")
        found[path] = place.commit()
    git(place.root, "switch", "--quiet", "main")
    for number in range(3):
        git(place.root, "branch", "--quiet", "-D", f"side-{number}")
    place.forget()
    expected = sorted((path, f"dangling commit {commit[:12]}", NOWHERE) for path, commit in found.items())
    assert place.lost() == expected
    monkeypatch.setattr(subject, "_AT_ONCE", 1)
    assert place.lost() == expected


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_an_event_at_the_tip_of_a_branch_or_tag_is_not_lost(place: Place, kind: str) -> None:
    place.written("noted")
    commit = place.commit()
    git(place.root, kind, "kept", commit)
    git(place.root, "reset", "--quiet", "--hard", "HEAD~1")
    assert place.lost() == []


def test_an_event_that_only_an_older_commit_of_a_branch_has_is_lost(place: Place) -> None:
    git(place.root, "switch", "--quiet", "--create", "side")
    noted = place.written("noted")
    commit = place.commit()
    place.delete(noted)
    place.commit()
    git(place.root, "switch", "--quiet", "main")
    place.forget()
    assert place.lost() == [(noted, f"commit {commit[:12]}", NOWHERE)]


def test_an_event_of_another_branch_that_an_event_here_follows_is_missed_with_all_before_it(place: Place) -> None:
    git(place.root, "switch", "--quiet", "--create", "side")
    middle = [place.written("noted"), place.written("noted")]
    commit = place.commit()
    git(place.root, "switch", "--quiet", "main")
    place.written("noted")
    place.forget()
    assert place.lost() == sorted((path, f"commit {commit[:12]}", FOLLOWED) for path in middle)


def test_what_a_lost_event_follows_is_lost_too(place: Place) -> None:
    git(place.root, "switch", "--quiet", "--create", "side")
    between = place.written("noted")
    place.commit()
    git(place.root, "switch", "--quiet", "main")
    last = place.written("noted")
    place.commit()
    place.delete(last)
    place.commit()
    assert sorted((path, why) for path, _, why in place.lost()) == sorted([(between, FOLLOWED), (last, PASSED)])


def test_an_event_in_the_stash_is_named_by_it(place: Place) -> None:
    noted = place.written("noted")
    git(place.root, "stash", "push", "--quiet", "--include-untracked")
    assert place.lost() == [(noted, "refs/stash", NOWHERE)]


def test_an_event_that_was_damaged_here_is_lost(place: Place) -> None:
    place.write(place.created, b"{}\n")
    ((path, _, why),) = place.lost()
    assert (path, why) == (place.created, PASSED)


def test_what_was_damaged_in_the_commit_already_cannot_come_back(place: Place) -> None:
    noted = place.written("noted")
    place.write(noted, b"{}\n")
    place.commit()
    place.delete(noted)
    place.commit()
    assert place.lost() == []


def test_a_file_of_another_name_is_no_event(place: Place) -> None:
    digest = place.created.rpartition("/")[2].removesuffix(".json")
    data = (place.root / place.created).read_bytes()
    others = [f"{LOG_FOLDER}/{KETTLE}/{name}" for name in (f"{digest}.txt", "notes.json", f"{digest}x.json")]
    for path in others:
        place.write(path, data)
    place.commit()
    place.delete(*others)
    place.commit()
    assert place.lost() == []


def test_only_the_events_of_the_packets_that_are_named_are_told(place: Place) -> None:
    other = Story(TAP)
    tap = place.written("created", other)
    approval = b'{"x":1}\n'
    envelope = f".GOV/attestations/{hashlib.sha256(approval).hexdigest()}.dsse.json"
    place.write(envelope, approval)
    place.commit()
    place.delete(tap, envelope, place.created)
    assert [path for path, *_ in place.lost()] == sorted([tap, envelope, place.created])
    assert [path for path, *_ in place.lost(TAP)] == [tap]
    assert [path for path, *_ in place.lost(TAP, KETTLE)] == sorted([tap, place.created])
    assert place.lost("WP-9-None-v1") == []


def test_what_is_brought_back_is_written_as_git_has_it_also_over_damage(place: Place) -> None:
    noted = place.written("noted")
    place.commit()
    place.delete(noted)
    place.write(place.created, b"damaged\n")
    changed = bring_back(place.repository, lost_events(place.repository), NOW)
    assert set(changed) == {noted, place.created}
    assert [(place.root / event.path).read_bytes() for event in place.story.events] == [
        event.encode() for event in place.story.events
    ]
    assert place.lost() == []


def test_an_event_whose_parents_are_no_list_is_followed_by_none(place: Place) -> None:
    for data in (b"[]\n", b"no JSON\n", b'{"parents":"x"}\n', b'{"parents":7}\n', b"{}\n"):
        place.write(f"{LOG_FOLDER}/{KETTLE}/{hashlib.sha256(data).hexdigest()}.json", data)
    assert place.lost() == []


def test_a_path_that_leads_out_of_the_log_is_neither_found_nor_written(place: Place) -> None:
    """Git stores such a tree if it is told to."""
    data = Story(TAP).add("created").encode()
    name = Story(TAP).add("created").path.rpartition("/")[2]

    def stored(kind: str, content: bytes) -> str:
        words = ["git", "hash-object", "-w", "--stdin", "--literally", "-t", kind]
        done = subprocess.run(words, cwd=place.root, input=content, capture_output=True, check=True)
        return done.stdout.decode().strip()

    tree = stored("tree", f"100644 {name}".encode() + b"\0" + bytes.fromhex(stored("blob", data)))
    for folder in ("..", "..", TAP, "log", ".GOV"):
        tree = stored("tree", f"40000 {folder}".encode() + b"\0" + bytes.fromhex(tree))
    git(place.root, "update-ref", "refs/heads/side", git(place.root, "commit-tree", "-m", "x", tree).strip())
    git(place.root, "update-ref", "-d", "refs/heads/side")
    assert lost_events(place.repository) == []
    with pytest.raises(WorkpacketError) as refused:
        bring_back(place.repository, [LostEvent(f"{LOG_FOLDER}/{TAP}/../../{name}", data, "", "")], NOW)
    assert refused.value.code == "path_unsafe"


@pytest.mark.parametrize("kept", ["refs/heads/kept", "refs/remotes/origin/kept", "refs/tags/kept"])
def test_a_commit_of_a_branch_or_tag_is_named_by_its_id_and_not_by_a_reflog(place: Place, kept: str) -> None:
    git(place.root, "switch", "--quiet", "--create", "side")
    noted = place.written("noted")
    commit = place.commit()
    place.delete(noted)
    git(place.root, "update-ref", kept, place.commit())
    git(place.root, "switch", "--quiet", "main")
    git(place.root, "branch", "--quiet", "-D", "side")
    assert place.lost() == [(noted, f"commit {commit[:12]}", NOWHERE)]


def test_a_commit_before_one_in_the_reflog_is_named_by_its_id(place: Place) -> None:
    before = git(place.root, "rev-parse", "HEAD")
    noted = place.written("noted")
    git(place.root, "add", "--all")
    tree = git(place.root, "write-tree")
    first = git(place.root, "commit-tree", "-m", "x", "-p", before, tree)
    second = git(place.root, "commit-tree", "-m", "y", "-p", first, tree)
    git(place.root, "reset", "--quiet", "--hard", second)
    git(place.root, "reset", "--quiet", "--hard", before)
    assert place.lost() == [(noted, f"commit {first[:12]}", NOWHERE)]


def test_an_event_that_was_staged_when_it_was_stashed_is_named_by_the_stash(place: Place) -> None:
    noted = place.written("noted")
    git(place.root, "add", "--all")
    git(place.root, "stash", "push", "--quiet")
    assert place.lost() == [(noted, "refs/stash", NOWHERE)]


def test_an_event_whose_bytes_git_has_lost_too_cannot_come_back(place: Place) -> None:
    noted = place.written("noted")
    place.commit()
    blob = git(place.root, "rev-parse", f"HEAD:{place.created}")
    place.delete(place.created, noted)
    place.commit()
    (place.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert [path for path, *_ in place.lost()] == [noted]


def test_a_deletion_that_is_dated_before_the_event_hides_nothing(place: Place) -> None:
    git(place.root, "switch", "--quiet", "--create", "one")
    noted = place.written("noted")
    commit = place.commit()
    place.delete(noted)
    place.commit()
    git(place.root, "switch", "--quiet", "--create", "two", commit)
    place.delete(noted)
    git(place.root, "commit", "--quiet", "--all", "--message", "x", date="2020-01-01T00:00:00Z")
    git(place.root, "switch", "--quiet", "main")
    assert place.lost() == [(noted, f"commit {commit[:12]}", NOWHERE)]


def test_an_interrupted_recovery_is_named_after_the_command(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []

    class Recorded:
        def apply(self, plan: Plan) -> tuple[str, ...]:
            named.append(plan.command)
            return ()

    @contextmanager
    def recorded(_: Repository, command: str) -> Iterator[Recorded]:
        named.append(command)
        yield Recorded()

    monkeypatch.setattr(subject, "writing", recorded)
    place.delete(place.created)
    bring_back(place.repository, lost_events(place.repository), NOW)
    assert named == ["recover", "recover"]
