"""Which packet answers for a path, decided from values; `test_coverage.py` asks it of real changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from ledger.stories import COMMIT, Story
from lifecycle.world import packet_text
from workpacket.documents.packet import Packet
from workpacket.documents.policy import PolicyDocument
from workpacket.documents.stub import Stub
from workpacket.ledger.log import join_events
from workpacket.lifecycle.coverage import Cover, Landing, StatedScope, judging, kind_of, stated_scope, uncovered
from workpacket.lifecycle.gates import standing_until
from workpacket.lifecycle.policy import CoveragePolicy, coverage_policy
from workpacket.model.events import LogEvent
from workpacket.model.lanes import BUILT_IN, OPEN
from workpacket.text.source import Source

NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Song-v1"
PACKET = f".GOV/task_packets/{NAME}.md"
REQUIRED = '[coverage]\nmode = "required"\n'


def covering(kind: Any, *scopes: tuple[str, ...], packet: str = NAME) -> Cover:
    return Cover(packet, kind, scopes or (("src/",),), "it is READY_FOR_DEV")


def answers(landing: Landing, *covers: Cover, exempt: tuple[str, ...] = ()) -> Mapping[str, str]:
    return {one.path: one.code for one in uncovered(landing, covers, exempt)}


def brought(*paths: str, otherwise: tuple[str, ...] = (), conflicts: tuple[str, ...] = ()) -> Landing:
    return Landing(
        frozenset((*paths, *otherwise)), frozenset(otherwise), frozenset(conflicts), {NAME: dict.fromkeys(paths, "1")}
    )


CHANGED = Landing(frozenset({"src/a.py"}))


@pytest.mark.parametrize("kind", ["work", "standing"])
def test_held_work_and_a_standing_packet_cover_their_scope_and_nothing_else(kind: str) -> None:
    assert answers(CHANGED, covering(kind)) == {}
    assert answers(Landing(frozenset({"src.py", "srcs/a", "SRC/a", "lib/src/a"})), covering(kind)) == dict.fromkeys(
        ("src.py", "srcs/a", "SRC/a", "lib/src/a"), "change_uncovered"
    )


@pytest.mark.parametrize("kind", ["ready", ""])
def test_a_packet_that_nobody_works_on_covers_nothing_and_is_named(kind: str) -> None:
    (one,) = uncovered(CHANGED, [covering(kind)], ())
    assert (one.code, one.packet) == ("change_uncovered", NAME)
    assert one.message == f"it is in the scope of {NAME}, but it is READY_FOR_DEV"


def test_a_path_has_to_be_in_the_approved_scope_and_in_the_present_one() -> None:
    assert answers(CHANGED, covering("work", ("src/",), ("src/a.py",))) == {}
    assert answers(CHANGED, covering("work", ("src/", "lib/"), ("lib/",))) == {"src/a.py": "change_uncovered"}
    assert answers(CHANGED, Cover(NAME, "work", ())) == {"src/a.py": "change_uncovered"}


def test_judged_work_covers_what_it_brought_and_only_as_it_was_judged() -> None:
    judged = covering("verdict")
    assert answers(brought("src/a.py"), judged) == {}
    assert answers(brought(otherwise=("src/a.py",)), judged) == {"src/a.py": "changed_after_verdict"}
    assert answers(brought(otherwise=("lib/a.py",)), judged) == {"lib/a.py": "change_uncovered"}
    assert answers(brought(otherwise=("src/a.py",), conflicts=("src/a.py",)), judged) == {
        "src/a.py": "landed_otherwise"
    }
    # Out of its scope, also where the judged commit changed it.
    assert answers(brought("lib/a.py"), judged) == {"lib/a.py": "change_uncovered"}
    # The change of another packet's judged commit.
    other = Landing(frozenset({"src/a.py"}), brought={OTHER: {"src/a.py": "1"}})
    (one,) = uncovered(other, [judged], ())
    assert (one.code, one.message) == (
        "change_uncovered",
        f"it is in the scope of {NAME}, but its judged commit does not change the path",
    )


def test_work_upon_the_work_of_another_packet_answers_for_what_it_changes_itself() -> None:
    both = (covering("verdict"), covering("verdict", ("docs/",), packet=OTHER))
    paths = frozenset({"src/a.py", "docs/a.md"})
    same = {NAME: {"src/a.py": "1"}, OTHER: {"src/a.py": "1", "docs/a.md": "2"}}
    assert answers(Landing(paths, brought=same), *both) == {}
    other = {NAME: {"src/a.py": "1"}, OTHER: {"src/a.py": "3", "docs/a.md": "2"}}
    assert answers(Landing(paths, brought=other), *both) == {"src/a.py": "change_uncovered"}


def test_what_is_exempt_or_covered_for_a_time_is_text_and_lies_in_folders_that_are_named() -> None:
    paths = frozenset({"docs/a.md", "docs/b.md/evil.py", "docs/c.md"})
    landing = Landing(paths, special=frozenset({"docs/c.md"}))
    evil = {"docs/b.md/evil.py": "change_uncovered", "docs/c.md": "change_uncovered"}
    assert answers(landing, exempt=("docs/*.md",)) == evil
    assert answers(landing, covering("standing", ("docs/*.md",))) == evil
    assert answers(landing, exempt=("docs/",)) == {"docs/c.md": "change_uncovered"}
    assert answers(landing, exempt=("docs",)).keys() == paths
    assert answers(landing, covering("work", ("docs/*.md",))) == {}


def test_work_that_is_held_covers_a_path_that_another_packets_verdict_does_not() -> None:
    landing = brought(otherwise=("src/a.py",))
    assert answers(landing, covering("verdict"), covering("work", packet=OTHER)) == {}


def test_governance_reports_and_exempt_paths_need_no_packet() -> None:
    paths = frozenset({".GOV/spec/a.md", "docs/report.md", "po/de.po"})
    assert answers(Landing(paths, reports=frozenset({"docs/report.md"})), exempt=("po/*.po",)) == {}
    names = frozenset({".GOV", ".GOVERNED/a", "po/de.pot", "docs/.GOV/a"})
    assert answers(Landing(names), exempt=("po/*.po",)).keys() == names


_DOCUMENTS = (
    *("a.md", "a.markdown", "a.rst", "a.txt", "a.json", "a.yaml", "a.yml", "a.toml", "a.csv", "a.tsv", "a.xml"),
    *("a.log", "a.html", "a.svg", "a.png", "a.jpg", "a.pdf", "a.sshsig", "A.MD"),
    *("allowed_signers", "revoked_keys", ".gitattributes", ".gitignore", ".gitkeep"),
)


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_a_file_of_the_governance_folder_that_is_only_read_needs_no_packet(name: str) -> None:
    assert answers(Landing(frozenset({f".GOV/x/{name}"}))) == {}


@pytest.mark.parametrize("name", ["a.py", "a.sh", "gov.just", "a", "md", "Makefile", "allowed_signers.py", "x.gitkeep"])
def test_any_other_file_there_may_be_a_program_and_needs_one(name: str) -> None:
    assert answers(Landing(frozenset({f".GOV/x/{name}"}))) == {f".GOV/x/{name}": "change_uncovered"}


def test_a_document_that_becomes_a_program_or_rewords_the_specification_needs_one() -> None:
    paths = frozenset({".GOV/a.md", ".GOV/b.md", ".GOV/c.md"})
    landing = Landing(paths, special=frozenset({".GOV/a.md"}), anchors=frozenset({".GOV/b.md"}))
    assert answers(landing).keys() == {".GOV/a.md", ".GOV/b.md"}
    assert answers(landing, covering("work", (".GOV/",))) == {}
    assert answers(landing, covering("standing", (".GOV/",))).keys() == {".GOV/a.md"}


def test_the_guard_and_the_check_agree_on_the_lanes_in_which_a_standing_packet_covers() -> None:
    assert {lane for lane in BUILT_IN.tokens if kind_of(lane, BUILT_IN) in {"ready", "work"}} == OPEN


def test_the_lane_decides_how_a_packet_covers() -> None:
    """A new lane: say in `kind_of`, tools/workpacket/lifecycle/coverage.py, how a packet in it covers, and here."""
    assert {lane: kind_of(lane, BUILT_IN) for lane in (*BUILT_IN.tokens, "FORKED", "")} == {
        "STUB": "",
        "READY_FOR_DEV": "ready",
        "IN_PROGRESS": "work",
        "IN_REVIEW": "work",
        "MERGE_PENDING": "verdict",
        "MERGED": "",
        "VALIDATED": "verdict",
        "BLOCKED": "",
        "FAIL": "",
        "OUTDATED_ONLY": "",
        "SUPERSEDED": "",
        "ABANDONED": "",
        "FORKED": "",
        "": "",
    }


def test_a_path_that_is_not_as_it_was_judged_is_not_covered_by_having_been_judged() -> None:
    landing = Landing(frozenset({"src/a.py"}), frozenset({"src/a.py"}), brought={NAME: {"src/a.py": "1"}})
    assert answers(landing, covering("verdict")) == {"src/a.py": "changed_after_verdict"}
    assert answers(brought("src/a.py"), covering("ready")) == {"src/a.py": "change_uncovered"}
    assert answers(brought(otherwise=("src/a.py",)), covering("ready")) == {"src/a.py": "change_uncovered"}


def judged_in(story: Story) -> tuple[LogEvent, str] | None:
    return judging(story.log())


def test_a_log_whose_last_verdict_is_not_pass_judges_nothing() -> None:
    assert judging(join_events(NAME, [])) is None
    story = Story()
    story.tell("created", "activated", "claimed", "submitted")
    assert judged_in(story) is None
    first = story.add("verdict.given")
    assert judged_in(story) == (first, COMMIT)
    story.add("reopened")
    assert judged_in(story) == (first, COMMIT)
    story.add("submitted", commit="e" * 40)
    # The verdict is on what was submitted before it.
    assert judged_in(story) == (first, COMMIT)
    changes = story.add("verdict.given", verdict="CHANGES", lane_to="IN_PROGRESS")
    assert judged_in(story) is None
    story.add("submitted", commit="f" * 40, after=(changes,))
    last = story.add("verdict.given")
    story.add("noted", text="merge it")
    assert judged_in(story) == (last, "f" * 40)


def test_a_verdict_knows_only_what_its_writer_saw() -> None:
    story = Story()
    seen = story.tell("created", "activated", "claimed", "submitted")
    story.add("submitted", commit="e" * 40, after=(seen,))
    verdict = story.add("verdict.given", after=(seen,), at="2026-01-02T00:00:00Z")
    assert judged_in(story) == (verdict, COMMIT)
    alone = Story()
    claimed = alone.tell("created", "activated", "claimed")
    alone.add("submitted", after=(claimed,))
    alone.add("verdict.given", after=(claimed,), at="2026-01-02T00:00:00Z")
    assert judged_in(alone) is None


def test_the_last_day_of_a_standing_packet_is_read_from_its_scope() -> None:
    assert str(standing_until(["x", "Standing until 2026-12-31: dependencies"])) == "2026-12-31"
    assert [standing_until([text]) for text in ("Standing until 2026-13-01", "Not Standing until 2026-12-31", "")] == [
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", CoveragePolicy()),
        ('[coverage]\nmode = "warn"\nexempt = ["a/"]', CoveragePolicy("warn", ("a/",))),
        ('[coverage]\nmode = "of"', CoveragePolicy("required")),
        ("[coverage]", CoveragePolicy("required")),
        ("[coverage", CoveragePolicy("required")),
    ],
)
def test_what_cannot_be_read_in_the_policy_asks_for_everything(text: str, policy: CoveragePolicy) -> None:
    assert coverage_policy(PolicyDocument(Source("policy.toml", text)).root) == policy


# --- what a document states ---


def packet(old: str = "", new: str = "") -> StatedScope:
    page = packet_text(NAME, "Ready for Dev").decode()
    assert old in page
    return stated_scope(Packet(Source(PACKET, page.replace(old, new, 1))))


def stub(*entries: str) -> StatedScope:
    text = f"# Work Packet Stub: {NAME}\n\n## STUB_METADATA\n- WP_ID: {NAME}\n\n## SCOPE_SKETCH (DRAFT)\n- IN_SCOPE:\n"
    page = text + "".join(f"  - {entry}\n" for entry in entries)
    return stated_scope(Stub(Source(f".GOV/task_packets/stubs/{NAME}.md", page)))


OF_STUB = "- SCOPE_OF_STUB:\n  - None known.\n"


def test_a_packet_states_its_paths_and_the_quoted_names_of_its_stub() -> None:
    assert packet() == StatedScope(("`src/`",), None)
    named = OF_STUB.replace("None known.", "`justfile`\n  - `lib/`\n  - The greeting itself.")
    assert packet(OF_STUB, named) == StatedScope(("`src/`", "justfile"), None)
    assert packet("  - `src/`\n", "  - `src/`\n  - Standing until 2026-12-31\n").until == date(2026, 12, 31)


def test_a_stub_states_every_path_that_it_names() -> None:
    assert stub("`src/`", "`justfile`", "The greeting itself.") == StatedScope(("justfile", "src/"), None)


def test_a_document_that_cannot_be_approved_states_no_scope() -> None:
    assert packet("- Why: Manners\n", "- Why: Manners\n- Why: Joy\n") == StatedScope((), None)


_INSTRUCTIONS = (
    "AGENTS.md", "claude.local.md", "Skill.md", "copilot-instructions.md", "CODER_PROTOCOL.md", "QWEN.md", "Agent.md",
    "CRUSH.md", "warp.md", "a.agent.md", "a.chatmode.md", "style.instructions.md", "review.prompt.md", ".x/y/a.txt",
    ".claude/commands/a.md",
)  # fmt: skip


@pytest.mark.parametrize("name", _INSTRUCTIONS)
def test_a_page_of_the_governance_folder_that_agents_follow_needs_a_packet(name: str) -> None:
    assert answers(Landing(frozenset({f".GOV/x/{name}"}))) == {f".GOV/x/{name}": "change_uncovered"}


def test_a_hidden_folder_directly_below_the_governance_folder_needs_a_packet() -> None:
    assert answers(Landing(frozenset({".GOV/.cursor/a.md"}))) == {".GOV/.cursor/a.md": "change_uncovered"}


@pytest.mark.parametrize(
    "name",
    [
        "my-agents.md",
        "agents-report.md",
        "protocol.md",
        "AGENTS.md.txt",
        "agentsxmd.md",
        "prompt.md",
        "a.b.md",
        "x.y/a.md",
    ],
)
def test_a_page_that_only_sounds_like_one_needs_none(name: str) -> None:
    assert answers(Landing(frozenset({f".GOV/AGENTS.md/{name}"}))) == {}
