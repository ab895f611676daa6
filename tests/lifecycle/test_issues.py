"""`new --from`: a packet for each open issue of another tool, with its link, and none twice."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lifecycle.governed import Governed

GITHUB = {
    "number": 7,
    "title": "Greet the user",
    "body": "People like it.\r\n\r\n## Acceptance criteria\r\n- [ ] It prints a greeting.\r\n- [x] It ends.\r\n\r\n"
    "## More\r\n- no",
    "url": "https://github.com/o/r/issues/7",
    "state": "OPEN",
}
GITLAB = {
    "iid": 3,
    "title": "Sing",
    "description": "Loud.",
    "web_url": "https://gitlab.com/o/r/-/issues/3",
    "state": "opened",
}
BEADS = [
    {
        "id": "r-1",
        "title": "Greet",
        "description": "Why not.",
        "acceptance_criteria": "- It greets\n- It ends",
        "status": "open",
    },
    {"id": "r-2", "title": "Gone", "status": "closed"},
]
BACKLOG = """---
id: task-4
title: Greet the user
status: To Do
dependencies: []
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
People like it.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 It prints a greeting.
- [ ] #2 It ends.
<!-- AC:END -->
"""
LIST = """# To do

- [ ] Greet the user
  - [ ] It prints a greeting.
- [x] Begin
- [ ] Sing
"""


@pytest.fixture
def begun(governed: Governed) -> Governed:
    governed.done("init")
    governed.commit("begun")
    return governed


def made(governed: Governed, source: str, *words: str) -> dict[str, str]:
    answer = governed.json("new", "--from", source, *words)
    return {one["link"]: one["id"] for one in answer["data"]["made"]}


def document(governed: Governed, name: str) -> str:
    return governed.read(f".GOV/task_packets/{name}.md")


def test_an_issue_of_github_becomes_a_packet_with_its_link(begun: Governed) -> None:
    begun.write("issue.json", json.dumps(GITHUB))
    assert made(begun, "issue.json", "--scope", "src/") == {GITHUB["url"]: "WP-1-Greet-The-User-v1"}
    text = document(begun, "WP-1-Greet-The-User-v1")
    assert "# Greet the user\n" in text
    assert "- Why: People like it.\n" in text
    assert "## DONE_MEANS\n- It prints a greeting.\n- It ends.\n" in text
    event = begun.state("WP-1-Greet-The-User-v1").history[0]
    assert event.data["source"] == {"kind": "issue", "name": GITHUB["url"]}
    begun.done("check")


def test_the_same_issue_is_never_made_twice(begun: Governed) -> None:
    begun.write("issue.json", json.dumps([GITHUB, GITLAB]))
    assert len(made(begun, "issue.json")) == 2
    before = begun.files()
    answer = begun.json("new", "--from", "issue.json")["data"]
    assert (answer["made"], answer["known"]) == ([], [GITHUB["url"], GITLAB["web_url"]])
    assert begun.files() == before


def test_two_issues_of_one_title_are_two_packets(begun: Governed) -> None:
    begun.write("issue.json", json.dumps([GITHUB, {**GITHUB, "url": "https://github.com/o/r/issues/8"}]))
    assert sorted(made(begun, "issue.json").values()) == ["WP-1-Greet-The-User-2-v1", "WP-1-Greet-The-User-v1"]


@pytest.mark.parametrize(
    ("path", "text", "links"),
    [
        (".beads/issues.jsonl", "\n".join(map(json.dumps, BEADS)), [".beads/issues.jsonl#r-1"]),
        ("backlog/tasks/task-4 - Greet.md", BACKLOG, ["backlog/tasks/task-4 - Greet.md#task-4"]),
        ("todo.md", LIST, ["todo.md#Greet the user", "todo.md#Sing"]),
        ("issue.md", "# Greet the user\n\nPeople like it.\n\n- It greets.\n", ["issue.md"]),
    ],
)
def test_issues_of_other_tools_keep_their_ids(begun: Governed, path: str, text: str, links: list[str]) -> None:
    begun.write(path, text)
    source = "backlog" if path.startswith("backlog") else path
    found = made(begun, source)
    assert list(found) == links
    assert made(begun, source) == {}
    begun.done("check")


def test_criteria_and_reasons_are_carried_over(begun: Governed) -> None:
    begun.write("backlog/tasks/task-4 - Greet.md", BACKLOG)
    (name,) = made(begun, "backlog").values()
    assert "- Why: People like it.\n" in document(begun, name)
    assert "- It prints a greeting.\n- It ends.\n" in document(begun, name)


def test_the_full_form_can_be_asked_for(begun: Governed) -> None:
    begun.write("todo.md", LIST)
    assert len(made(begun, "todo.md", "--form", "full")) == 2
    assert "- What: Sing" in begun.read(".GOV/task_packets/stubs/WP-1-Sing-v1.md")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.json", "{"),
        ("a.json", '{"title": "No link"}'),
        ("a.jsonl", '{"id": "r-1"}\n'),
        ("a.jsonl", '{"title": "x"}\n'),
        ("a.md", ""),
        ("a.json", "[]"),
    ],
)
def test_what_is_no_issue_makes_nothing(begun: Governed, path: str, text: str) -> None:
    begun.write(path, text)
    before = begun.files()
    assert begun("new", "--from", path).status == 1
    assert begun.files() == before


@pytest.mark.parametrize("source", ["gh:", "gh:x", "gh:--web#1", "glab:1;2"])
def test_a_number_is_a_number(begun: Governed, source: str) -> None:
    assert begun("new", "--from", source).status == 2


def test_the_forge_is_asked_with_the_users_own_program(
    begun: Governed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forge is played by a program of its client's name; nothing here was run against GitHub."""
    folder = tmp_path.parent / f"{tmp_path.name}-bin"
    folder.mkdir()
    program = folder / "gh"
    program.write_text(f"#!/bin/sh\necho \"$@\" > '{folder}/asked'\ncat <<'E'\n{json.dumps(GITHUB)}\nE\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert list(made(begun, "gh:o/r#7")) == [GITHUB["url"]]
    assert (folder / "asked").read_text() == "issue view 7 --json number,title,body,url,state --repo o/r\n"
    program.write_text("#!/bin/sh\necho no such issue >&2\nexit 1\n")
    answer = begun("new", "--from", "gh:8")
    assert answer.status == 6
    assert "no such issue (tool_failed)" in answer.err


SOURCES = [json.loads(line) for line in Path(__file__).with_name("issue_sources.jsonl").read_text("utf-8").splitlines()]


def write_all(governed: Governed, files: Mapping[str, str | None]) -> None:
    for path, text in files.items():
        if text is None:
            (governed.root / path).unlink()
        else:
            governed.write(path, text)


def contents(governed: Governed, name: str) -> dict[str, Any]:
    """What a packet says, in the words of issue_sources.jsonl."""
    text = document(governed, name)
    fields = dict(re.findall(r"^- (Why|DEPENDENCIES|IN_SCOPE_PATHS): (.*)$", text, re.MULTILINE))
    criteria = text.partition("## DONE_MEANS\n")[2].partition("## ")[0]
    return {
        "title": text.splitlines()[0].removeprefix("# "),
        "why": fields.get("Why", ""),
        "criteria": re.findall(r"^- (.*)$", criteria, re.MULTILINE),
        "scope": re.findall(r"`([^`]+)`", fields.get("IN_SCOPE_PATHS", "")),
        "depends": [
            document(governed, one).splitlines()[0].removeprefix("# ")
            for one in fields.get("DEPENDENCIES", "").split(", ")
            if one
        ],
    }


@pytest.mark.parametrize("source", SOURCES, ids=[source["case"] for source in SOURCES])
def test_what_other_tools_write_is_read_once(begun: Governed, source: dict[str, Any]) -> None:
    write_all(begun, source["files"])
    answer = begun.json("new", "--from", source["from"])
    packets = [{"link": one["link"], **contents(begun, one["id"])} for one in answer["data"]["made"]]
    expected = sorted(source["made"], key=lambda one: str(one["title"]))
    found = sorted(packets, key=lambda one: str(one["title"]))
    assert [{key: packet[key] for key in one} for packet, one in zip(found, expected, strict=True)] == expected
    if source["done"] is not None:
        assert answer["data"]["done"] == source["done"]
    write_all(begun, source["then"])
    again = begun.json("new", "--from", source["again"])["data"]["made"]
    assert [contents(begun, one["id"])["title"] for one in again] == source["made_again"]
    begun.done("check", ".GOV")  # elsewhere are the files of another tool, whose lanes may be old


def test_what_was_made_is_committed_if_asked(begun: Governed) -> None:
    begun.write("todo.md", LIST)
    assert len(made(begun, "todo.md", "--commit")) == 2
    assert begun.git("status", "--porcelain").split() == ["??", "todo.md"]


def test_the_title_of_a_packet_may_name_another_packet(begun: Governed) -> None:
    begun.write("todo.md", "- [ ] Say more than WP-1-Greet-v1 says\n- [ ] Remove what WP06 left\n")
    assert len(made(begun, "todo.md")) == 2
    begun.done("check")
