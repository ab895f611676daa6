"""Coverage of real changes, as `check --base` asks it; `test_coverage_rules.py` decides from values.

The ways around it and the changes that must land are in tests/trust, and played by `trust.measure`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lifecycle.governed import TOKENS_COUNT, Governed, remembered
from workpacket.git.merging import trial_merges
from workpacket.git.repository import find_repository
from workpacket.model import exits
from workpacket.problem import WorkpacketError

pytestmark = pytest.mark.share(4)

NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Song-v1"
PACKET = f".GOV/task_packets/{NAME}.md"
REQUIRED = '[coverage]\nmode = "required"\n'


@remembered
def begun(governed: Governed, coverage: str = REQUIRED, *, other: bool = False) -> None:
    """With `other`, a claimed packet has the same scope, and covers what changes on main in the meantime."""
    governed.write("src/base.py", "one\ntwo\nthree\nfour\nfive\n")
    governed.begin(policy=coverage + TOKENS_COUNT)
    if other:
        governed.activate(OTHER)
        governed.commit("another packet")
        governed.done("packet", "prepare", OTHER, "--for", "poet")
        governed.done("claim", OTHER, "--as", "poet")
    governed.activate(NAME)
    governed.commit("activated")


@remembered
def judged(governed: Governed, *, other: bool = False) -> None:
    """Work on src/base.py, judged on its branch, which is checked out."""
    begun(governed, other=other)
    governed.work(NAME)
    governed.replace("src/base.py", "three", "3")
    governed.commit("Three")
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.write("docs/report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "docs/report.md", "--as", "judge")
    governed.commit("judged")


def said(governed: Governed, base: str = "main") -> list[tuple[str, str]]:
    answer = governed.json("check", "--base", base)
    codes = {"change_uncovered", "changed_after_verdict", "landed_otherwise"}
    return [(one["code"], one["path"]) for one in answer["findings"] if one["code"] in codes]


def test_a_warning_does_not_stop_and_off_says_nothing(governed: Governed) -> None:
    begun(governed, '[coverage]\nmode = "warn"\n')
    governed.write("lib/a.py", "1\n")
    governed.commit()
    result = governed("check", "--base", "HEAD~1")
    assert result.status == 0
    assert "change_uncovered" in result.out
    governed.replace(".GOV/policy/policy.toml", '"warn"', '"off"')
    governed.commit("off")
    governed.write("lib/a.py", "2\n")
    governed.commit()
    assert said(governed, "HEAD~1") == []


def test_the_mode_of_the_base_decides_and_not_the_changes_own(governed: Governed) -> None:
    begun(governed)
    governed.replace(".GOV/policy/policy.toml", '"required"', '"off"')
    governed.write("lib/a.py", "1\n")
    governed.commit()
    assert said(governed, "HEAD~1") == [("change_uncovered", "lib/a.py")]


def test_a_branch_behind_the_base_takes_nothing_back(governed: Governed) -> None:
    judged(governed)
    governed.git("switch", "--quiet", "main")
    governed.write("lib/elsewhere.py", "1\n")
    governed.commit()
    governed.git("switch", "--quiet", f"wp/{NAME}")
    assert said(governed) == []


def test_both_sides_that_git_joins_are_what_was_judged(governed: Governed) -> None:
    judged(governed, other=True)
    governed.git("switch", "--quiet", "main")
    governed.replace("src/base.py", "one", "1")
    governed.commit()
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
    assert said(governed, "HEAD^1") == []


def test_a_conflict_that_someone_settled_is_not_what_was_judged(governed: Governed) -> None:
    judged(governed)
    governed.git("switch", "--quiet", "main")
    governed.replace("src/base.py", "three", "drei")
    governed.commit()
    governed.git("merge", "--quiet", "--no-ff", "-X", "theirs", f"wp/{NAME}")
    assert set(said(governed, "HEAD^1")) == {("landed_otherwise", "src/base.py")}


def test_work_that_landed_before_its_verdict_may_have_changed_since(governed: Governed) -> None:
    begun(governed, other=True)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--squash", f"wp/{NAME}")
    governed.commit("squashed")
    governed.write("src/greet.py", "print('Hello, later')\n")
    governed.commit("later")
    governed.write("docs/report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "docs/report.md", "--as", "judge")
    governed.commit("judged")
    assert said(governed, "HEAD~1") == []


def squashed_elsewhere(governed: Governed) -> None:
    """As in a clone that was made after the branch was deleted."""
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--squash", f"wp/{NAME}")
    governed.commit("squashed")
    governed.git("branch", "--quiet", "-D", f"wp/{NAME}")
    governed.git("reflog", "expire", "--expire=now", "--all")
    governed.git("gc", "--quiet", "--prune=now")


def test_what_landed_is_known_without_the_judged_commit(governed: Governed) -> None:
    judged(governed)
    squashed_elsewhere(governed)
    assert said(governed, "HEAD~1") == []
    assert "VALIDATED" in governed.done("show", NAME).out


def test_a_judged_commit_that_this_clone_lacks_is_asked_for(governed: Governed) -> None:
    judged(governed)
    commit = str(governed.state(NAME).evidence[-1].data["commit"])
    governed.write("src/greet.py", "evil()\n")
    governed.commit("evil")
    squashed_elsewhere(governed)
    assert ("landed_otherwise", PACKET) in said(governed, "HEAD~1")
    assert f"git fetch origin {commit}" in governed("check", "--base", "HEAD~1").out
    assert "VALIDATED" not in governed.done("show", NAME).out


@pytest.mark.parametrize("path", ["src/report.py", "AGENTS.md", ".claude/report.md", "docs/run.sh"])
def test_a_report_is_nothing_that_a_program_or_an_agent_reads(governed: Governed, path: str) -> None:
    begun(governed)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.write(path, "evil()\n")
    governed.done("verdict", NAME, "PASS", "--report", path, "--as", "judge")
    governed.commit("judged")
    assert [where for _, where in said(governed)] == [path]


def test_a_page_that_was_there_before_is_no_report(governed: Governed) -> None:
    governed.write("docs/guide.md", "A guide.\n")
    begun(governed)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.write("docs/guide.md", "Another guide.\n")
    governed.done("verdict", NAME, "PASS", "--report", "docs/guide.md", "--as", "judge")
    governed.commit("judged")
    assert said(governed) == [("change_uncovered", "docs/guide.md")]


def test_a_check_leaves_no_object_in_the_repository(governed: Governed) -> None:
    judged(governed, other=True)
    governed.git("switch", "--quiet", "main")
    governed.replace("src/base.py", "one", "1")
    governed.commit()
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
    before = governed.git("count-objects", "-v")
    assert said(governed, "HEAD^1") == []
    assert governed.git("count-objects", "-v") == before


def test_an_older_git_is_told_and_nothing_passes(governed: Governed, tmp_path: Path, monkeypatch: Any) -> None:
    begun(governed)
    older = tmp_path / ".git/older/git"
    older.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    older.write_text(f'#!/bin/sh\nfor a; do [ "$a" = merge-tree ] && exit 129; done\nexec {real} "$@"\n')
    older.chmod(0o755)
    monkeypatch.setenv("PATH", f"{older.parent}{os.pathsep}{os.environ['PATH']}")
    head = governed.git("rev-parse", "HEAD")
    with (
        trial_merges(find_repository(governed.root)) as trials,
        pytest.raises(WorkpacketError, match="unknown whether the merged work is the judged work") as told,
    ):
        trials.merge(head, head)
    assert told.value.code == "tool_missing"
    assert "2.38" in told.value.hint


def test_a_merge_of_what_is_not_there_is_an_error(governed: Governed) -> None:
    begun(governed)
    head = governed.git("rev-parse", "HEAD")
    with trial_merges(find_repository(governed.root)) as trials, pytest.raises(WorkpacketError):
        trials.merge(head, "0" * 40)


def test_histories_without_a_common_beginning_can_be_compared(governed: Governed) -> None:
    begun(governed)
    tree = governed.git("rev-parse", "HEAD^{tree}")
    with trial_merges(find_repository(governed.root)) as trials:
        alone = trials.commit(tree)
        assert trials.merge(governed.git("rev-parse", "HEAD"), alone).tree == tree


# --- standing packets ---

DEPS = "WP-1-Dependencies-v1"
DEPS_PACKET = f".GOV/task_packets/{DEPS}.md"


def standing(governed: Governed, *words: str) -> None:
    """A standing packet for dependencies, activated on main."""
    governed.write("app/package-lock.json", "{}\n")
    governed.begin(policy=REQUIRED + TOKENS_COUNT)
    governed.done("new", DEPS, "--standing", "deps", "--roadmap", "SPEC_v1 2", *words)
    governed.refine(DEPS)
    governed.done("refine", DEPS, "--present")
    governed.sign(DEPS)
    governed.done("create-task-packet", DEPS)
    governed.commit("activated")


def changed(governed: Governed, path: str = "app/package-lock.json") -> list[tuple[str, str]]:
    governed.write(path, f"{governed.clock.count}\n")
    governed.commit("bot")
    return said(governed, "HEAD~1")


def test_a_standing_packet_covers_a_bots_change_until_its_last_day_and_no_code(governed: Governed) -> None:
    standing(governed, "--until", "2026-03-20")
    assert changed(governed) == []
    assert changed(governed, "src/a.py") == [("change_uncovered", "src/a.py")]
    governed.clock.turn(days=18)
    assert changed(governed) == []
    governed.clock.turn(days=2)
    assert changed(governed) == [("change_uncovered", "app/package-lock.json")]
    found = governed.json("check", "--base", "HEAD~1")["findings"]
    assert [one["message"] for one in found if one["code"] == "change_uncovered"] == [
        f"it is in the scope of {DEPS}, but it ended on 2026-03-20"
    ]


def test_the_last_day_that_was_approved_counts_and_not_one_written_later(governed: Governed) -> None:
    standing(governed, "--until", "2026-03-20")
    governed.clock.turn(days=30)
    governed.replace(DEPS_PACKET, "Standing until 2026-03-20", "Standing until 2026-12-31")
    governed.commit("longer")
    assert changed(governed) == [("change_uncovered", "app/package-lock.json")]


def test_no_packet_becomes_a_standing_one_after_its_activation(governed: Governed) -> None:
    begun(governed)
    governed.replace(PACKET, "  - The greeting itself.", "  - The greeting itself.\n  - Standing until 2026-12-31")
    governed.commit("standing")
    assert changed(governed, "src/a.py") == [("change_uncovered", "src/a.py")]
    found = governed.json("check", "--base", "HEAD~1")["findings"]
    assert "not approved as a standing packet" in next(
        one["message"] for one in found if one["code"] == "change_uncovered"
    )


@pytest.mark.parametrize("words", [("block", "--reason", "x", "--until", "y"), ("abandon", "--reason", "x")])
def test_a_standing_packet_that_is_blocked_or_given_up_covers_nothing(
    governed: Governed, words: tuple[str, ...]
) -> None:
    standing(governed)
    governed.done(words[0], DEPS, *words[1:])
    governed.commit("moved")
    assert changed(governed) == [("change_uncovered", "app/package-lock.json")]


def test_a_standing_packet_that_is_only_a_stub_covers_nothing(governed: Governed) -> None:
    begun(governed)
    governed.done("new", DEPS, "--standing", "docs")
    governed.commit("stub")
    assert changed(governed, "docs/a.md") == [("change_uncovered", "docs/a.md")]


def test_the_last_day_is_in_ninety_days_or_the_one_that_is_said(governed: Governed) -> None:
    governed.begin(policy=REQUIRED + TOKENS_COUNT)
    governed.done("new", DEPS, "--standing", "docs")
    assert "Standing until 2026-05-30: docs" in governed.read(f".GOV/task_packets/stubs/{DEPS}.md")
    for words in (
        ("--standing", "deps", "--until", "2026-02-28"),
        ("--standing", "deps", "--until", "2027-03-03"),
        ("--standing", "deps", "--until", "soon"),
        ("--standing", "deps", "--what", "x"),
        ("--standing", "code"),
        ("--until", "2026-03-20"),
    ):
        assert governed("new", "WP-1-Other-v1", *words).status == 2, words


def light_standing(governed: Governed, policy: str) -> None:
    """A draft of a standing packet in the light form, with everything but an approval."""
    governed.write("app/package-lock.json", "{}\n")
    governed.begin(policy=policy)
    text = governed.read(".GOV/policy/policy.toml")
    governed.write(".GOV/policy/policy.toml", text.replace('approvals = "signed"', 'approvals = "none"'))
    governed.commit("policy")
    governed.done(
        "new", DEPS, "--form", "light", "--standing", "deps", "--until", "2026-03-20", "--anchor", "1.1 Greeting",
        "--refinement", "Only versions change, and CI tests them.",
    )  # fmt: skip


def test_a_light_standing_packet_has_the_contract_of_the_full_one(governed: Governed) -> None:
    light_standing(governed, "")
    text = governed.read(DEPS_PACKET)
    assert text.startswith("# Keep the dependencies up to date\n")
    assert "  - Standing until 2026-03-20: deps" in text
    assert "- Only manifests and lock files change." in text


def test_a_light_standing_packet_needs_an_approval_whatever_the_policy_says_of_others(governed: Governed) -> None:
    light_standing(governed, "")
    assert 'approvals = "none"' in governed.read(".GOV/policy/policy.toml")
    for words in (("packet", "activate"), ("start",)):
        result = governed(*words, DEPS)
        assert (result.status, "approvers_unnamed" in result.codes) == (3, True), result
    governed.commit("draft")
    assert changed(governed) == [("change_uncovered", "app/package-lock.json")]


def test_an_event_written_by_hand_does_not_activate_a_light_standing_packet(governed: Governed) -> None:
    light_standing(governed, "")
    governed.replace(DEPS_PACKET, "  - Standing until 2026-03-20: deps\n", "")
    governed.commit("draft")
    governed.done("packet", "activate", DEPS)
    governed.replace(DEPS_PACKET, "**/go.mod`\n", "**/go.mod`\n  - Standing until 2026-03-20: deps\n")
    governed.commit("activated")
    assert "move_without_gate" in {one["code"] for one in governed.json("check", "--base", "HEAD~2")["findings"]}


def test_a_scope_widened_after_activation_covers_nothing_more(governed: Governed) -> None:
    begun(governed)
    governed.replace(PACKET, "  - `src/`", "  - `src/`\n  - `lib/`")
    governed.commit("widened")
    governed.work(NAME)
    governed.write("lib/a.py", "1\n")
    governed.commit("work")
    assert said(governed) == [("change_uncovered", "lib/a.py")]


def test_a_name_that_is_no_text_is_named_and_stops_nothing(governed: Governed) -> None:
    begun(governed)
    name = os.fsdecode(b"src/\xff\n.py")
    (governed.root / "src").mkdir(exist_ok=True)
    (governed.root / name).write_text("1\n")
    governed.commit("odd")
    assert [code for code, _ in said(governed, "HEAD~1")] == ["change_uncovered"]
    assert governed("check", "--base", "HEAD~1").status == exits.INTEGRITY


def test_work_begun_upon_judged_work_lands_with_it(governed: Governed) -> None:
    governed.begin(policy=REQUIRED + TOKENS_COUNT)
    for name in (NAME, OTHER):
        governed.activate(name)
        governed.commit("activated")
    governed.work(NAME)
    for name in (NAME, OTHER):
        if name == OTHER:
            governed.git("switch", "--quiet", "--create", f"wp/{OTHER}")
            governed.done("claim", OTHER, "--as", "poet", "--branch", f"wp/{OTHER}")
            governed.write("src/song.py", "print('La')\n")
            governed.commit("Sing")
        who = "coder" if name == NAME else "poet"
        governed.done("submit", name, "--as", who, "--prove", "all=true")
        governed.commit("submitted")
        governed.write(f"src/{name}.md", "Good.\n")
        governed.done("verdict", name, "PASS", "--report", f"src/{name}.md", "--as", "judge")
        governed.commit("judged")
    assert said(governed) == []
    governed.write("src/song.py", "print('evil')\n")
    governed.commit("evil")
    assert said(governed) == [("changed_after_verdict", "src/song.py")]


# --- reverts ---


def landed(governed: Governed) -> None:
    """Judged work merged into main, which is checked out."""
    judged(governed)
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", "--message", "Land", f"wp/{NAME}")


def test_a_whole_landing_taken_back_needs_no_packet_and_nothing_besides_is_let_through(governed: Governed) -> None:
    landed(governed)
    governed.write("docs/notes.md", "Later.\n")
    governed.commit("later")
    governed.git("revert", "--no-edit", "-m", "1", "HEAD~1")
    assert said(governed, "HEAD~1") == []
    governed.write("lib/evil.py", "1\n")
    governed.commit("evil")
    assert said(governed, "HEAD~2") == [("change_uncovered", "lib/evil.py")]
    governed.git("reset", "--quiet", "--hard", "HEAD~1")
    governed.git("revert", "--no-edit", "HEAD")
    assert said(governed, "HEAD~1") == []
    governed.write("src/greet.py", "evil()\n")
    governed.commit("evil")
    assert said(governed, "HEAD~2") == [("changed_after_verdict", "src/greet.py")]


def test_events_taken_back_without_their_code_leave_the_code_uncovered(governed: Governed) -> None:
    landed(governed)
    event = governed.state(NAME).history[-1]
    (governed.root / event.path).unlink()
    governed.commit("without the verdict")
    taken = {path for _, path in said(governed, "HEAD~1")}
    # The packet is in review now, and held: only what is out of its scope shows.
    assert taken == {"docs/report.md"}


def test_code_taken_back_without_its_events_is_a_change_like_any_other(governed: Governed) -> None:
    landed(governed)
    (governed.root / "src/greet.py").unlink()
    governed.commit("without the code")
    assert said(governed, "HEAD~1") == [("changed_after_verdict", "src/greet.py")]


def test_the_first_commit_is_not_taken_back(governed: Governed) -> None:
    """There is nothing before it that the base could be compared with."""
    governed.begin(policy=REQUIRED + TOKENS_COUNT)
    governed.stub(NAME)
    governed.git("add", "--all")
    governed.git("commit", "--quiet", "--amend", "--message", "All at once")
    event = governed.state(NAME).history[0]
    (governed.root / event.path).unlink()
    governed.commit("gone")
    assert said(governed, "HEAD~1") == []


def test_a_packet_that_is_activated_with_the_work_covers_it(governed: Governed) -> None:
    governed.begin(policy=REQUIRED + TOKENS_COUNT)
    governed.git("branch", "base")
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    assert said(governed, "base") == []


@pytest.mark.share(5)
@pytest.mark.parametrize(
    "scope",
    ["\n  - `src/`", " `src/`", "\n  - `lib/`\n\n  - `src/`", "\n  - `**/*.py`", "\n  - `s?c/`"],
)
def test_a_scope_is_found_however_it_is_written(governed: Governed, scope: str) -> None:
    governed.begin(policy=REQUIRED + TOKENS_COUNT)
    governed.activate(NAME)
    governed.replace(PACKET, "- IN_SCOPE_PATHS:\n  - `src/`", f"- IN_SCOPE_PATHS:{scope}")
    governed.commit("activated")
    governed.work(NAME)
    assert said(governed) == []


@pytest.mark.parametrize("report", ["docs/report.md", ".GOV/spec/report.md"])
def test_a_verdict_does_not_land_without_its_work(governed: Governed, report: str) -> None:
    begun(governed)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.write(report, "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", report, "--as", "judge")
    (governed.root / "src/greet.py").unlink()
    governed.commit("judged")
    assert said(governed) == [("changed_after_verdict", "src/greet.py")]
