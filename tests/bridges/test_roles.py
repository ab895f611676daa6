"""Roles on the command line: one call and one line a milestone, one writer a file, and what is not as it should be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.roles import FILE, ROLE, TEAM, Roles, checkpoint
from git.scratch import begin_repository
from workpacket.bridges.role_facts import RoleKey
from workpacket.cli.main import main
from workpacket.documents.role_progress import KEYS, RoleProgress, advanced, front_of
from workpacket.problem import WorkpacketError
from workpacket.runtime import Runtime
from workpacket.runtime.holders import process_named
from workpacket.text.source import Source


@pytest.fixture
def roles(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Roles:
    begin_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Roles(tmp_path, capsys)


def untimed(text: str) -> str:
    return re.sub(r"\[\d\d:\d\d\]", "[HH:MM]", re.sub(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', '"NOW"', text))


# ---- milestones ----------------------------------------------------------------------------------------------------


def test_a_milestone_is_one_call_and_one_line(roles: Roles) -> None:
    roles.claim("--phase", "implementation")
    assert roles.said == "auth backend-eng: implementation, in_progress: Claimed the task\n"
    assert untimed(roles.text()) == (
        '---\nfeature: "auth"\nteam: "build"\nagent: "backend-eng"\nphase: "implementation"\nstatus: "in_progress"\n'
        'last_action: "Claimed the task"\nupdated: "NOW"\n---\n\n## Progress Notes\n\n- [HH:MM] Claimed the task\n'
    )


@pytest.mark.parametrize(
    ("milestone", "status"),
    [
        ("claimed", "in_progress"), ("drafted", "in_progress"), ("review-requested", "awaiting_review"),
        ("review-approved", "in_progress"), ("blocked", "blocked"), ("done", "complete"), ("note", "in_progress"),
    ],
)  # fmt: skip
def test_each_milestone_has_its_status(roles: Roles, milestone: str, status: str) -> None:
    roles.claim()
    roles.done(milestone, *ROLE, "What happened: #1 'so'", "--instance", "a")
    front = front_of(RoleProgress(Source(FILE, roles.text())))
    assert (front["status"], front["last_action"], front["phase"]) == (status, "What happened: #1 'so'", "research")
    assert roles.text().count("- [") == 2
    assert main(["check", FILE]) == 0


def test_of_a_file_that_people_wrote_only_the_meant_spans_change(roles: Roles) -> None:
    head = (
        "---\r\nfeature: auth   # the door\r\nteam: build\r\nagent: backend-eng\r\nextra: [1, 2]\r\nphase: design\r\n"
    )
    end = (
        "\r\n## Progress Notes\r\n\r\n* [09:00] One\r\n  more of it\r\n\r\nProse.\r\n\r\n# Findings\r\n\r\n- a list\r\n"
    )
    roles.write(
        f"{head}status: in_progress\r\nlast_action: One # not this\r\nupdated: 2026-03-01T09:00:00Z\r\n---\r\n{end}"
    )
    roles.done("blocked", *ROLE, "Who decides?", "--instance", "a")
    text = untimed(roles.text())
    assert text.startswith(f"{head}status: blocked\r\nlast_action: Who decides? # not this\r\nupdated: ")
    assert text.endswith(end.replace("[09:00]", "[HH:MM]").replace("it\r\n", "it\r\n* [HH:MM] Who decides?\r\n", 1))
    assert roles.said.startswith(f"{FILE} was imported into the log\n")


_LINES = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=30).map(str.strip)


@given(words=_LINES.filter(bool), body=st.lists(st.sampled_from(
    ["", "## Progress Notes", "- [09:00] a", "  - b", "Text", "```", "# Other", "1. c", "> q", "### Below", "* d"]
), max_size=8).map("\n".join))  # fmt: skip
def test_a_note_is_added_and_nothing_else_or_it_is_refused(words: str, body: str) -> None:
    before = RoleProgress(Source(FILE, checkpoint().partition("\n## ")[0] + f"\n{body}"))
    note = f"[10:00] {words}"
    try:
        after = RoleProgress(Source.from_bytes(FILE, advanced(before, {"status": "blocked"}, note)))
    except ValueError:
        return
    assert front_of(after) == {**front_of(before), "status": "blocked"}
    assert [item.text for item in after.notes()] == [*(item.text for item in before.notes()), note]
    kept = iter(after.source.text.splitlines())
    assert all(line in kept for line in before.source.text.splitlines() if "status" not in line)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("claimed", *ROLE), "missing_argument"),
        (("claimed", "auth"), "missing_argument"),
        (("finished", *ROLE), "invalid_value"),
        (("blocked", *ROLE, *TEAM), "invalid_value"),
        (("note", *ROLE, "a\x1bb", *TEAM), "invalid_value"),
        (("claimed", "../x", "y", *TEAM), "invalid_value"),
        (("claimed", "auth", "summary", *TEAM), "invalid_value"),
        (("claimed", *ROLE, *TEAM, "--phase", "lunch"), "role_phase_foreign"),
        (("claimed", *ROLE, "--team", "build", "--instance", "a/b"), "invalid_value"),
        (("claimed", *ROLE, "--team", "build", "--owner", "me"), "invalid_value"),
        (("adopt", *ROLE, *TEAM), "checkpoint_missing"),
        (("restore", *ROLE, *TEAM), "checkpoint_missing"),
        (("list", "auth"), "unexpected_argument"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else words,
)
def test_each_refusal_has_its_code_and_writes_nothing(roles: Roles, words: tuple[str, ...], code: str) -> None:
    assert main(["runtime", "progress", *words]) != 0
    assert code in roles.capture.readouterr().err
    assert not (roles.root / "docs").exists()
    with Runtime.open() as runtime:
        assert runtime.store.heads() == ()


def test_a_note_that_holds_a_secret_is_stored_and_written_without_it(roles: Roles) -> None:
    roles.claim()
    roles.done("note", *ROLE, f"the token is ghp_{'a' * 36}", "--instance", "a")
    assert "ghp_" not in roles.text()
    roles.done("note", *ROLE, "and on", "--instance", "a")


def test_teams_have_words_of_their_own(roles: Roles) -> None:
    roles.write('[tool.workpacket.phases]\nbuild = ["scan", "fit"]\n', "pyproject.toml")
    roles.claim()
    assert 'phase: "scan"' in roles.text()
    assert roles("note", *ROLE, "on", "--phase", "design", "--instance", "a") == 1
    roles.write(checkpoint("auth", "other", team="plan", phase="fit"), "docs/progress/auth-other.md")
    assert main(["check"]) == 0
    said = roles.capture.readouterr().out
    assert "auth-other.md" in said
    assert "role_phase_foreign" in said
    assert FILE not in said


# ---- one writer ----------------------------------------------------------------------------------------------------


def test_a_second_instance_may_not_write_until_the_first_is_done(roles: Roles) -> None:
    roles.claim()
    assert roles("note", *ROLE, "me too", "--instance", "b") == 44
    assert "backend-eng#a is its writer" in roles.said
    assert "me too" not in roles.text()
    roles.done("done", *ROLE, "--instance", "a")
    roles.done("claimed", *ROLE, "again", "--instance", "b")


def test_a_process_that_is_gone_holds_nothing(roles: Roles) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    roles.done("claimed", *ROLE, "--team", "build", "--owner", str(gone.pid))
    assert roles("note", *ROLE, "me", "--owner", str(os.getpid())) == 44
    assert process_named(gone.pid) in roles.said
    gone.communicate()
    roles.done("note", *ROLE, "me", "--owner", str(os.getpid()))


def test_a_killed_writer_leaves_a_late_file_that_the_next_call_brings_up(roles: Roles) -> None:
    roles.claim()
    before = roles.text()
    roles.killed("blocked", *ROLE, "No answer", "--instance", "a")
    assert roles.text() == before
    assert [(row["status"], row["blocked_by"]) for row in roles.listed()] == [("blocked", ["run_busy"])]
    roles.done("note", *ROLE, "An answer", "--instance", "a")
    assert "was outdated and has been rewritten" in roles.said
    notes = [line.partition("] ")[2] for line in roles.text().splitlines() if line.startswith("- [")]
    assert notes == ["Claimed the task", "No answer", "An answer"]


def test_a_role_whose_first_call_was_killed_is_known_and_goes_on(roles: Roles) -> None:
    roles.killed("claimed", *ROLE, *TEAM)
    assert not (roles.root / FILE).exists()
    assert roles.listed()[0]["path"] == FILE
    roles.done("drafted", *ROLE, "--instance", "a")
    assert roles.text().count("- [") == 2


# ---- what contradicts ----------------------------------------------------------------------------------------------


def test_a_file_that_contradicts_the_log_blocks_until_somebody_says_which_is_right(roles: Roles) -> None:
    roles.claim()
    good = roles.text()
    roles.write(good.replace('"in_progress"', '"complete"'))
    assert roles("note", *ROLE, "on", "--instance", "a") == 69
    assert "status is 'complete' in the file, but 'in_progress' in the log (view_conflict)" in roles.said
    assert roles.listed()[0]["blocked_by"] == ["view_conflict", "run_busy"]
    roles.done("restore", *ROLE, "--instance", "a")
    assert roles.text() == good
    roles.write(good.replace('"in_progress"', '"complete"'))
    roles.done("adopt", *ROLE, "--instance", "a")
    assert roles.listed() == []
    roles.done("claimed", *ROLE, "again", "--instance", "a")


def test_prose_and_keys_of_ones_own_contradict_nothing(roles: Roles) -> None:
    roles.claim()
    roles.write(roles.text().replace("---\n\n", "mine: 1\n---\n\nProse.\n\n"))
    roles.done("drafted", *ROLE, "--instance", "a")
    assert "mine: 1\n---\n\nProse.\n" in roles.text()


def test_a_lost_file_is_written_again_from_the_log(roles: Roles) -> None:
    roles.write(checkpoint().replace("---\n\n", "---\n\nProse.\n\n", 1))
    roles.done("drafted", *ROLE, "--instance", "a")
    before = roles.text()
    (roles.root / FILE).unlink()
    roles.done("restore", *ROLE, "--team", "build", "--instance", "a")
    assert roles.text() == before


def test_a_renamed_file_is_named_and_no_second_one_is_begun(roles: Roles) -> None:
    roles.claim()
    (roles.root / FILE).rename(roles.root / "docs/progress/login-backend-eng.md")
    assert roles("note", *ROLE, "on", "--instance", "a") == 1
    assert "docs/progress/login-backend-eng.md is the checkpoint of backend-eng in auth" in roles.said
    assert roles.listed()[0]["blocked_by"] == ["role_identity_mismatch", "run_busy"]


def test_two_roles_that_would_have_one_file_are_told_apart(roles: Roles) -> None:
    roles.done("claimed", "auth-backend", "eng", *TEAM)
    assert roles("claimed", *ROLE, *TEAM) == 1
    assert "role_identity_mismatch" in roles.said


def test_the_same_role_twice_is_said(roles: Roles) -> None:
    roles.claim()
    roles.write(roles.text(), "docs/progress/copy.md")
    assert {row["path"]: row["blocked_by"] for row in roles.listed()} == {
        FILE: ["role_twice", "run_busy"], "docs/progress/copy.md": ["role_twice", "role_identity_mismatch", "run_busy"],
    }  # fmt: skip


def test_a_link_in_the_place_of_the_file_is_not_written_through(roles: Roles) -> None:
    roles.write("mine\n", "elsewhere")
    (roles.root / "docs/progress").mkdir(parents=True)
    (roles.root / FILE).symlink_to(roles.root / "elsewhere")
    assert roles("claimed", *ROLE, *TEAM) != 0
    assert (roles.root / "elsewhere").read_text() == "mine\n"


def test_a_file_in_which_a_note_would_be_no_note_is_left_alone(roles: Roles) -> None:
    text = checkpoint().partition("\n## ")[0] + "\n```\na fence that nobody closed\n"
    roles.write(text)
    assert roles("note", *ROLE, "on", "--instance", "a") == 4
    assert "role_file_unwritable" in roles.said
    assert roles.text() == text
    assert roles.listed()[0]["last_action"] == "Drafted the plan"


# ---- zombies -------------------------------------------------------------------------------------------------------


def test_a_complete_feature_takes_no_more_milestones_and_its_roles_are_closed_at_once(roles: Roles) -> None:
    roles.claim()
    roles.write(checkpoint("auth", "tester", updated="2026-03-01"), "docs/progress/auth-tester.md")
    roles.write(checkpoint("other", "tester"), "docs/progress/other-tester.md")
    roles.write('---\nfeature: "auth"\nstatus: "complete"\n---\n', "docs/progress/auth-summary.md")
    assert roles("note", *ROLE, "on", "--instance", "a") == 3
    assert "role_feature_closed" in roles.said
    assert [row["blocked_by"] for row in roles.listed() if row["feature"] == "auth"] == [
        ["role_zombie", "run_busy"], ["role_zombie"],
    ]  # fmt: skip
    roles.done("close", "auth")
    assert "auth: 1 closed; docs/progress/auth-backend-eng.md: backend-eng#a is its writer" in roles.said
    roles.done("done", *ROLE, "--instance", "a")
    assert [row["feature"] for row in roles.listed()] == ["other"]
    assert 'status: "complete"' in roles.text("docs/progress/auth-tester.md")


def test_closing_a_feature_closes_what_can_be_closed_and_names_the_rest(roles: Roles) -> None:
    roles.write(checkpoint("auth", "one"), "docs/progress/auth-one.md")
    roles.write(checkpoint("auth", "two of us"), "docs/progress/auth-two.md")
    roles.write(checkpoint("auth", "three"), "docs/progress/renamed.md")
    roles.done("close", "auth")
    assert roles.said.startswith("auth: 1 closed; docs/progress/auth-two.md: 'two of us' is not a valid name for agent")
    assert "docs/progress/renamed.md is the checkpoint of three in auth" in roles.said


def test_a_packet_that_came_to_its_end_ends_the_roles_of_its_name(roles: Roles) -> None:
    from workpacket.documents.role_progress import closing_of

    lanes = {"WP-1-Auth-v1": "SUPERSEDED", "WP-1-Auth-v2": "VALIDATED", "WP-1-Auth-Door-v1": "IN_PROGRESS"}
    assert closing_of("wp-1-auth-v1", (), lanes) == "WP-1-Auth-v1 is SUPERSEDED"
    assert closing_of("WP-1-Auth", (), lanes) == "WP-1-Auth-v2 is VALIDATED"
    assert closing_of("WP-1-Auth", (), {**lanes, "WP-1-Auth-v3": "IN_REVIEW"}) == ""
    assert closing_of("WP-1-Auth-Door", (), lanes) == ""


# ---- listing -------------------------------------------------------------------------------------------------------


def test_the_list_is_of_a_team_and_begins_with_the_latest(roles: Roles) -> None:
    for number, (feature, team) in enumerate([("a", "build"), ("b", "plan"), ("c", "build")]):
        text = checkpoint(feature, "eng", team=team, updated=f"2026-03-0{number + 1}T09:30:00Z")
        roles.write(text, f"docs/progress/{feature}-eng.md")
    assert [row["feature"] for row in roles.listed("--team", "build")] == ["c", "a"]
    roles.done("list")
    assert roles.said.splitlines()[0] == "c eng (build): design, in_progress, Drafted the plan"
    assert not (roles.root / ".git" / "workpacket").exists()


def test_a_date_without_a_time_and_other_zones_are_ordered_as_moments(roles: Roles) -> None:
    written = {"a": "2026-03-02", "b": "2026-03-01T23:30:00-05:00", "c": "2026-03-02T00:30:00Z", "d": "soon"}
    for feature, updated in written.items():
        roles.write(checkpoint(feature, "eng", updated=updated), f"docs/progress/{feature}-eng.md")
    assert [row["feature"] for row in roles.listed()] == ["b", "c", "a", "d"]
    roles.done("note", "a", "eng", "on", "--instance", "a")
    assert roles.listed()[0]["feature"] == "a"
    assert "T" in roles.listed()[0]["updated"]


def test_every_file_of_the_corpus_is_read_and_its_troubles_are_named(roles: Roles) -> None:
    corpus = os.environ.get("WORKPACKET_CORPUS")
    if not corpus:
        pytest.skip("no corpus here")
    files = sorted(Path(corpus, "agent-teams-progress").glob("*.md"))
    for file in files:
        roles.write(file.read_text("utf-8"), f"docs/progress/{file.name}")
    rows = roles.listed()
    assert rows
    assert {row["path"] for row in rows} <= {f"docs/progress/{file.name}" for file in files}
    for file in files:
        document = RoleProgress(Source.from_bytes(f"docs/progress/{file.name}", file.read_bytes()))
        if document.is_checkpoint and all(document.at(key) is not None for key in KEYS):
            assert main(["log", "import", "role", f"docs/progress/{file.name}"]) == 0, file.name
    assert roles.listed() == rows


@pytest.mark.parametrize("name", ["", "a/b", ".", "-a", "a b", "a\n", "x" * 101, "ä"])
def test_a_name_that_is_no_part_of_a_file_name_is_refused(name: str) -> None:
    with pytest.raises(WorkpacketError) as caught:
        RoleKey(name, "agent")
    assert caught.value.code == "invalid_value"
