"""Two packets that were given the same id in clones that did not know of each other: the second one is renamed."""

from __future__ import annotations

import json
import shutil

import pytest

from lifecycle.governed import Governed
from lifecycle.signed import Signed

pytestmark = pytest.mark.share(4)

OLD, NEW = "WP-1-Greet-v1", "WP-1-Greet-2-v1"
DOCUMENT, MOVED = f".GOV/task_packets/{OLD}.md", f".GOV/task_packets/{NEW}.md"
BRANCH = f"wp/{OLD}"


def drafted(governed: Governed, who: str) -> None:
    governed.done(
        "new", OLD, "--form", "light", "--what", f"Greet {who}", "--criterion", f"It greets {who}.",
        "--scope", f"src/{who}.txt", "--anchor", "1.1 Greeting", "--refinement", "The name is an argument.",
        "--as", who,
    )  # fmt: skip


def worked_on(governed: Governed, who: str, branch: str = BRANCH) -> None:
    """Drafted by a person on a branch of the first commit, worked on and submitted."""
    governed.git("switch", "--quiet", "--create", branch, "begin")
    drafted(governed, who)
    governed.done("start", OLD, "--as", who, "--branch", branch)
    governed.write(f"src/{who}.txt", f"{who}\n")
    governed.commit(f"Greet {who}")
    governed.done("done", OLD, "--as", who, "--prove", "1=true", "--commit")


@pytest.fixture
def taken(governed: Governed) -> Governed:
    """Ann's packet has landed; Bob's, which has the same id, is in review on its branch, which is checked out."""
    governed.begin(policy="")
    governed.git("tag", "begin")
    worked_on(governed, "ann", "work-of-ann")
    worked_on(governed, "bob")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", "work-of-ann")
    governed.git("switch", "--quiet", BRANCH)
    return governed


def codes(governed: Governed, *words: str) -> list[str]:
    return [each["code"] for each in governed.json("check", *words)["findings"]]


def test_the_second_packet_is_refused_with_the_way_out(taken: Governed) -> None:
    assert "log_second_genesis" in codes(taken, "--base", "main")
    result = taken("verdict", OLD, "PASS", "--reason", "It greets.", "--as", "eve")
    assert result.codes == ["packet_exists"]
    assert result.next == f"workpacket packet rename {OLD} NEW_WP_ID"


def test_a_renamed_packet_is_a_draft_that_lands_beside_the_other_one(taken: Governed) -> None:
    text = taken.read(DOCUMENT)
    told = taken.done("packet", "rename", OLD, NEW, "--commit", "--as", "bob")
    assert told.next == f"workpacket start {NEW} --branch {BRANCH}"
    assert taken.read(MOVED) == text
    assert not (taken.root / DOCUMENT).exists()
    assert taken.json("show", NEW)["data"]["lane"] == "STUB"
    assert codes(taken) == []
    taken.done("start", NEW, "--branch", BRANCH, "--as", "bob")
    taken.done("done", "--as", "bob", "--prove", "1=true", "--commit")
    taken.git("switch", "--quiet", BRANCH)
    taken.git("merge", "--quiet", "--no-edit", "main")
    assert codes(taken) == codes(taken, "--base", "main") == []
    taken.git("switch", "--quiet", "main")
    taken.git("merge", "--quiet", "--no-ff", BRANCH)
    lanes = {name: taken.json("show", name)["data"]["lane"] for name in (OLD, NEW)}
    assert lanes == {OLD: "MERGED", NEW: "MERGED"}
    assert codes(taken, "--base", "HEAD^1") == []


def test_the_log_of_the_old_id_keeps_what_was_renamed(taken: Governed) -> None:
    before = set((taken.root / f".GOV/log/{OLD}").iterdir())
    taken.done("packet", "rename", OLD, NEW, "--commit", "--as", "bob")
    assert before < set((taken.root / f".GOV/log/{OLD}").iterdir())
    assert taken.json("show", OLD)["data"]["superseded_by"] == NEW
    created = json.loads(next((taken.root / f".GOV/log/{NEW}").iterdir()).read_text())
    assert created["data"]["source"] == {"kind": "packet", "name": OLD}
    taken.git("merge", "--quiet", "--no-edit", "main")
    history = taken.done("log", "show", OLD).out
    assert history.count(" (belongs to a different packet, which was renamed)") == len(before) + 1
    assert taken.state(OLD).history[0].actor.id == "ann"


def test_work_on_the_other_packet_goes_on_beside_the_renamed_events(taken: Governed) -> None:
    taken.done("packet", "rename", OLD, NEW, "--commit", "--as", "bob")
    taken.git("switch", "--quiet", "main")
    taken.git("merge", "--quiet", "--no-ff", BRANCH)
    taken.done("verdict", OLD, "PASS", "--reason", "It greets.", "--as", "eve")
    taken.commit("Judged")
    assert taken.json("show", OLD)["data"]["lane"] == "VALIDATED"
    assert codes(taken) == []
    assert taken("log", "verify").status == 0


def test_a_packet_that_has_landed_keeps_its_id(taken: Governed) -> None:
    taken.git("switch", "--quiet", "main")
    assert taken.refused("packet", "rename", OLD, NEW) == ["packet_landed"]


def test_an_event_written_by_hand_does_not_rename_a_packet_of_the_base(taken: Governed) -> None:
    """Otherwise a second beginning would take the place of the history that landed."""
    bobs = {path.name: path.read_bytes() for path in (taken.root / f".GOV/log/{OLD}").iterdir()}
    taken.git("switch", "--quiet", "--create", "attack", "main")
    folder = taken.root / f".GOV/log/{OLD}"
    kept = taken.root / "kept"
    shutil.copytree(taken.root / ".GOV", kept)
    # Where nothing has landed yet, the command writes the event.
    taken.git("update-ref", "-d", "refs/heads/main")
    taken.done("packet", "rename", OLD, NEW, "--as", "mallory")
    event = next(path for path in folder.iterdir() if not (kept / "log" / OLD / path.name).exists())
    forged = event.read_bytes()
    taken.git("update-ref", "refs/heads/main", "attack")
    shutil.rmtree(taken.root / ".GOV")
    shutil.copytree(kept, taken.root / ".GOV")
    shutil.rmtree(kept)
    for name, data in {event.name: forged, **bobs}.items():
        (folder / name).write_bytes(data)
    taken.commit("Replace the history")
    assert "move_without_gate" in codes(taken, "--base", "main")


@pytest.mark.parametrize(
    ("new", "code"),
    [("WP-1-greet-V1", "packet_exists"), (OLD, "packet_exists"), ("Greet", "invalid_value"), ("WP07", "invalid_value")],
)
def test_the_new_id_is_one_that_nobody_has(taken: Governed, new: str, code: str) -> None:
    result = taken("packet", "rename", OLD, new)
    assert code in result.err


def test_packets_that_depend_on_the_old_id_are_named(taken: Governed) -> None:
    taken.done("new", "Sing", "--depends", OLD, "--as", "bob")
    told = taken.done("packet", "rename", OLD, NEW, "--as", "bob").out
    assert f"WP-1-Sing-v1 depends on {OLD}: if it refers to this packet, edit .GOV/task_packets/WP-1-Sing-v1.md" in told


def test_an_approval_of_the_old_id_does_not_count_for_the_new_one(signed: Signed) -> None:
    signed.begin()
    governed = signed.governed
    drafted(governed, "ann")
    signed.approve(name=OLD)
    governed.done("packet", "rename", OLD, NEW)
    assert governed.refused("start", NEW) == ["approval_missing"]


def test_a_stub_is_renamed_with_its_refinement(signed: Signed) -> None:
    signed.begin()
    governed = signed.governed
    governed.stub(OLD)
    governed.refine(OLD)
    told = governed.done("packet", "rename", OLD, NEW)
    assert f".GOV/task_packets/stubs/{NEW}.md" in governed.json("show", NEW)["data"]["files"].values()
    for path in (f".GOV/task_packets/stubs/{NEW}.md", f".GOV/refinements/{NEW}.md"):
        assert NEW in governed.read(path)
        assert OLD not in governed.read(path)
    assert told.next == f"workpacket refine {NEW}"
    assert [code for code in codes(governed) if code != "approvals_unanchored"] == []


def test_a_full_packet_that_was_approved_keeps_its_id(signed: Signed) -> None:
    signed.begin()
    signed.ready(OLD)
    signed.approve(name=OLD)
    assert signed.governed.refused("packet", "rename", OLD, NEW) == ["wrong_lane"]
