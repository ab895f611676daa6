"""Pull requests as they are: packets in flight land in any order and by any button, and no landing needs another."""

from __future__ import annotations

import subprocess

import pytest

from lifecycle.governed import Governed, Quiet, remembered
from lifecycle.landings import How, Hub, in_flight, name_of, order
from workpacket.lifecycle.board_sync import without_conflicts
from workpacket.text.source import Source

# All thirty orders of ten packets are played by `tests/proof/lifecycle/test_landings.py`.
COUNT, SEED = 3, 7
SPECIFICATION_PATH = ".GOV/spec/SPEC_v1.md"


@pytest.fixture
def hub(governed: Governed, tmp_path_factory: pytest.TempPathFactory) -> Hub:
    in_flight(governed, COUNT)
    return Hub(governed.root, tmp_path_factory.mktemp("hub"))


@pytest.mark.long
def test_packets_in_flight_land_without_a_conflict_and_are_merged_at_once(hub: Hub, governed: Governed) -> None:
    clone = Quiet(hub.root, None, governed.clock)
    for landed, (name, how) in enumerate(order(SEED, COUNT), 1):
        before = hub.git("rev-parse", "HEAD").stdout.strip()
        assert hub.land(name, how) == [], (name, how)
        assert clone("check", "--base", before).status == 0, (name, how)
        assert clone.json("status")["data"]["lanes"] == {"MERGED": landed}
    assert {name_of(number) for number in range(1, COUNT + 1)} == {
        path.name for path in (hub.root / ".GOV" / "log").iterdir()
    }


def test_nothing_that_packets_share_is_written_on_their_branches(hub: Hub) -> None:
    for number in range(1, COUNT + 1):
        changed = hub.git("diff", "--name-only", "main", f"origin/wp/{name_of(number)}").stdout.split()
        assert not any(path.startswith(".GOV/roles_shared/") for path in changed)


SECTIONS = "# Specification\n\n## 1 Main body\n\n<<<<<<< HEAD\n{}=======\n{}>>>>>>> wp/x\n\n## 2 Roadmap\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        ("### One\n\nIt is there.\n", "### Two\n\nIt too.\n", True),
        ("### One\n\nIt is there.\n", "### One\n\nIt is elsewhere.\n", False),
        ("It is there.\n", "It is elsewhere.\n", False),
        ("### One\n\nIt is there.\n", "It is elsewhere.\n", False),
        ("### One\n\nIt is there.\n", "", False),
    ],
)
def test_only_sections_that_both_sides_add_are_kept_without_a_person(ours: str, theirs: str, *, both: bool) -> None:
    source = Source("spec.md", SECTIONS.format(ours, theirs))
    settled = without_conflicts(source, sections=True)
    assert settled.text == (SECTIONS.partition("<<<")[0] + f"{ours}\n{theirs}\n## 2 Roadmap\n" if both else source.text)


@remembered
def requiring(governed: Governed) -> None:
    """Two packets in review, each of which adds a section to the specification."""
    governed.done("init")
    governed.commit("Governance")
    for number in (1, 2):
        governed.git("switch", "--quiet", "main")
        governed.done(
            "new", f"Part {number}", "--criterion", f"Part {number} is there.", "--scope", f"src/part_{number}.txt",
            "--requirement", f"There is part {number}.", "--refinement", f"Part {number} is a file of its own.",
        )  # fmt: skip
        governed.done("start", name_of(number))
        governed.write(f"src/part_{number}.txt", f"part {number}\n")
        governed.commit(f"Part {number}")
        governed.done("done", name_of(number), "--prove", "1=true", "--commit")


@pytest.mark.share(3)
@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_two_packets_that_each_add_a_requirement_are_settled_by_one_command(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory, how: How
) -> None:
    requiring(governed)
    hub = Hub(governed.root, tmp_path_factory.mktemp("hub"))
    clone = Quiet(hub.root, None, governed.clock)
    assert hub.land(name_of(1), how) == []
    before = hub.git("rev-parse", "HEAD").stdout.strip()
    assert hub.land(name_of(2), how) == [SPECIFICATION_PATH]
    clone.done("board", "sync", "--as", "forge")
    hub.go_on(how)
    assert clone("check", "--base", before).status == 0
    assert clone.json("status")["data"]["lanes"] == {"MERGED": 2}


def test_a_landing_that_rewrites_what_a_packet_requires_is_not_the_submitted_work(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    requiring(governed)
    hub = Hub(governed.root, tmp_path_factory.mktemp("hub"))
    clone = Quiet(hub.root, None, governed.clock)
    hub.land(name_of(1), "merge")
    hub.land(name_of(2), "merge")
    clone.done("board", "sync", "--as", "forge")
    clone.replace(SPECIFICATION_PATH, "There is part 2.", "There may be part 2.")
    hub.go_on("merge")
    assert clone.json("status")["data"]["lanes"] == {"MERGED": 1, "IN_REVIEW": 1}


def test_two_branches_that_each_add_a_packet_to_the_board_are_settled_by_one_command(governed: Governed) -> None:
    """The layout of the board keeps apart only packets that were on it when the branches began."""
    governed.begin(policy='\n[board]\ncommit = "branch"\n')
    for number in (1, 2):
        governed.git("switch", "--quiet", "--create", f"work-{number}", "main")
        governed.stub(name_of(number))
        governed.commit("Added")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "work-1")
    with pytest.raises(subprocess.CalledProcessError):
        governed.git("merge", "--quiet", "work-2")
    assert "workpacket board sync" in governed("check").out
    settled = governed.done("board", "sync")
    assert settled.next.endswith("&& git merge --continue")
    governed.commit("Both")
    board = governed.read(".GOV/roles_shared/TASK_BOARD.md")
    assert [board.count(f"[{name_of(number)}]") for number in (1, 2)] == [1, 1]
    assert "everything agrees with the log" in governed.done("board", "sync").out
