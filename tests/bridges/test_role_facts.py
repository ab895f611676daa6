"""Files that a role names: their digests are kept at each milestone, and a change is said and stops nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridges.roles import FILE, ROLE, Roles, checkpoint
from git.scratch import begin_repository
from workpacket.bridges.role_facts import MOST, named_in
from workpacket.cli.main import main

PLAN = "docs/plan.md"
ID = "role/auth/build/backend-eng"
WRITER = ("--instance", "a")


@pytest.fixture
def roles(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Roles:
    begin_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    made = Roles(tmp_path, capsys)
    made.write("one\n", PLAN)
    return made


def resumed(roles: Roles, *words: str) -> Any:
    roles.capture.readouterr()
    assert main(["resume", *words, "--json", *WRITER]) == 0
    return json.loads(roles.capture.readouterr().out)["data"]


def changed(roles: Roles) -> list[str]:
    """What the list names, of the one role."""
    (row,) = roles.listed()
    found: list[str] = row["changed_artifacts"]
    return found


def artifacts(roles: Roles, *words: str) -> list[str]:
    roles.done(*words, "--json", *WRITER)
    found: list[str] = json.loads(roles.said)["data"]["artifacts"]
    return found


def test_a_file_that_changed_since_the_last_milestone_is_said_and_stops_nothing(roles: Roles) -> None:
    roles.claim(f"Wrote {PLAN}.")
    assert changed(roles) == []
    (before,) = resumed(roles)["unfinished"]
    assert before["warnings"] == []
    roles.write("two\n", PLAN)
    (work,) = resumed(roles)["unfinished"]
    message = f"{PLAN} has changed since the last milestone"
    assert work["warnings"] == [{"code": "artifact_changed", "message": message, "command": f"git diff -- {PLAN}"}]
    assert work["blocked_by"] == []
    assert changed(roles) == [PLAN]
    (done,) = resumed(roles, ID, "--yes")["resumed"]
    assert done["said"] == [message]
    assert changed(roles) == []


def test_people_are_told_before_they_choose(roles: Roles) -> None:
    roles.claim(f"Wrote {PLAN}")
    (roles.root / PLAN).unlink()
    roles.capture.readouterr()
    assert main(["resume", *WRITER]) == 0
    lines = roles.capture.readouterr().out.splitlines()
    assert lines[3:6] == [
        f"    artifact_changed: {PLAN} is gone since the last milestone",
        f"    help: git log --stat -- {PLAN}",
        f"    help: workpacket resume {ID} --yes",
    ]
    roles.done("list")
    assert roles.said == (
        f"auth backend-eng (build): research, in_progress, Wrote {PLAN} [run_busy]; "
        f"{PLAN} is gone since the last milestone\n"
    )


def test_each_milestone_counts_from_its_own_moment(roles: Roles) -> None:
    """The role itself goes on writing: that is no change that anybody has to look at."""
    roles.claim(f"Began {PLAN}")
    roles.write("two\n", PLAN)
    roles.done("drafted", *ROLE, *WRITER)
    assert changed(roles) == []
    roles.write("one\n", PLAN)
    assert changed(roles) == [PLAN]


def test_a_file_that_is_gone_at_a_milestone_is_no_artifact_any_more(roles: Roles) -> None:
    roles.claim(f"Wrote {PLAN}")
    (roles.root / PLAN).unlink()
    assert artifacts(roles, "note", *ROLE, "Threw it away") == []


def test_a_file_that_the_words_do_not_name_is_put_behind_them(roles: Roles) -> None:
    roles.write("x\n", "docs/two words.md")
    roles.claim("Wrote it", "--artifact", PLAN, "--artifact", "docs/two words.md")
    assert roles.text().endswith(f"Wrote it ({PLAN}, docs/two words.md)\n")
    assert 'last_action: "Wrote it"' in roles.text()
    assert artifacts(roles, "drafted", *ROLE) == [PLAN, "docs/two words.md"]
    roles.done("note", *ROLE, f"Read {PLAN} again", "--artifact", PLAN, *WRITER)
    assert roles.text().endswith(f"Read {PLAN} again\n")


@pytest.mark.parametrize(
    "path", ["docs/none.md", "docs", "../outside", "/etc/passwd", "", "docs/link.md", "in/plan.md"]
)
def test_what_is_no_file_here_is_no_artifact(roles: Roles, path: str) -> None:
    (roles.root / "docs/link.md").symlink_to(roles.root / PLAN)
    (roles.root / "in").symlink_to(roles.root / "docs")
    assert roles("claimed", *ROLE, "--team", "build", "--artifact", path) == 2, roles.said
    assert not (roles.root / FILE).exists()
    roles.claim(f"Looked at {path} .")
    assert artifacts(roles, "drafted", *ROLE) == []


def test_notes_that_people_wrote_name_files_too(roles: Roles) -> None:
    roles.write(checkpoint().replace("Claimed the task", f"Began `{PLAN}:12-40`, see ./docs/other.md"))
    roles.write("x\n", "docs/other.md")
    assert artifacts(roles, "note", *ROLE, f"Wrote ({FILE})") == [PLAN, "docs/other.md"]


def test_the_files_that_were_named_first_are_let_go_of(roles: Roles) -> None:
    for number in range(MOST + 1):
        roles.write("x\n", f"f/{number}")
    roles.claim(" ".join(f"f/{number}" for number in range(MOST)))
    found = artifacts(roles, "note", *ROLE, f"f/{MOST}")
    assert (len(found), found[0], found[-1]) == (MOST, "f/1", f"f/{MOST}")


def test_a_path_with_a_secret_in_it_is_not_kept(roles: Roles) -> None:
    secret = f"f/ghp_{'a' * 36}"
    roles.write("x\n", secret)
    roles.write("x\n", "docs/api_token.md")
    roles.claim(f"Wrote {secret} and docs/api_token.md")
    assert changed(roles) == []
    assert artifacts(roles, "drafted", *ROLE) == ["docs/api_token.md"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Wrote docs/a.md.", ["docs/a.md"]),
        ("See [the plan](docs/a.md), and `b c.md`!", ["b c.md", "docs/a.md", "c.md"]),
        ("docs/a.md:12 **docs/b.md**: 'x.py'", ["docs/a.md", "docs/b.md", "x.py"]),
        ("./Makefile.am; no path here", ["Makefile.am"]),
    ],
    ids=["full stop", "markdown", "lines", "dot"],
)
def test_a_path_is_found_in_a_sentence(text: str, found: list[str]) -> None:
    assert list(named_in([text])) == found
