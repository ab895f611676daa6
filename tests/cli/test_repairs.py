"""What `check --fix` and `fmt` say of their repairs, and what they do with a file that a repair would damage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

import pytest

from cli.commands import STUB, STUB_PATH, Commands
from rules.canonical import PACKET
from workpacket.documents.document import Document
from workpacket.problem import Edit, Fix, Location, Problem
from workpacket.rules.rule import rules_for
from workpacket.rules.text import NoFinalNewline
from workpacket.shell import checking

PACKET_PATH = ".GOV/task_packets/WP-1-Parser-v1.md"
DAMAGED = STUB.replace("- WP_ID: WP-1-Parser-v1\n", "- WP_ID: WP-1-Parser-v1\n  - damage here\n")
HINT = "- BASE_WP_ID: WP-1-Parser (stable id without the revision)\n"
CHILD = "  - **Status:** Done\n  - USER_SIGNATURE: ada010320261200\n"


class Damaging(NoFinalNewline):
    """A rule with a repair that destroys text, as one could be written by mistake: it joins a line to the one above."""

    family = "text"
    reach: ClassVar[str] = "next"

    @classmethod
    def code(cls) -> str:
        return NoFinalNewline.code()

    def check(self, document: Document) -> Iterator[Problem]:
        text = document.source.text
        at = text.find("  - damage here\n")
        if at >= 0:
            fix = {
                "overlapping": (Edit(at, at + 8, ""), Edit(at + 4, at + 9, "")),
                "outside": (Edit(at, len(text) + 9, ""),),
                "backwards": (Edit(at + 9, at, ""),),
                "next": (Edit(at, at + 30, ""),),
                "fence": (Edit(at, at + 3, "  ```"),),
            }[self.reach]
            yield Problem(self.code(), "damage", Location.span(at, at + 15), fix=Fix(fix, safe=True))


@pytest.fixture(params=["overlapping", "outside", "backwards", "next", "fence"])
def damaging(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Damaging, "reach", request.param)
    monkeypatch.setattr(checking, "rules_for", lambda kind: (*rules_for(kind), Damaging))


@pytest.mark.usefixtures("damaging")
@pytest.mark.parametrize("words", [("check", "--fix"), ("check", "--unsafe-fixes"), ("fmt",)])
def test_a_file_that_a_repair_would_damage_is_named_and_the_others_are_repaired(
    commands: Commands, words: tuple[str, ...]
) -> None:
    damaged = commands.write(STUB_PATH, DAMAGED.rstrip("\n"))
    other = commands.write(PACKET_PATH, PACKET.replace("- BASE_WP_ID: WP-1-Parser\n", HINT + CHILD))
    done = commands(*words, STUB_PATH, PACKET_PATH)
    assert done.status in {1, 6}
    assert "repair_refused" in done.out + done.err
    assert STUB_PATH in done.out + done.err
    assert damaged.read_text(encoding="utf-8") == DAMAGED.rstrip("\n")
    base = "- BASE_WP_ID: WP-1-Parser\n"
    assert other.read_text(encoding="utf-8") == PACKET.replace(base, base + CHILD)


@pytest.mark.usefixtures("damaging")
def test_a_diff_names_the_file_that_would_be_refused(commands: Commands) -> None:
    commands.write(STUB_PATH, DAMAGED)
    done = commands("check", "--diff", STUB_PATH)
    assert done.status == 1
    assert done.out.startswith(f"error: {STUB_PATH}: not fixed, and nothing was written: ")


def test_check_says_what_it_repaired(commands: Commands) -> None:
    commands.write(PACKET_PATH, PACKET.replace("- BASE_WP_ID: WP-1-Parser\n", HINT).rstrip("\n"))
    shown = commands("check", PACKET_PATH, "--fix").out
    assert "note: repaired 1 hint_text_left, 1 no_final_newline in 1 file" in shown
    assert "note: repaired nothing" in commands("check", PACKET_PATH, "--fix", "--statistics").out


def test_check_says_it_to_programs(commands: Commands) -> None:
    commands.write(PACKET_PATH, PACKET.rstrip("\n"))
    plain = json.loads(commands("check", PACKET_PATH, "--json").out)
    shown = json.loads(commands("check", PACKET_PATH, "--fix", "--json").out)
    assert "repaired" not in plain["data"]
    assert shown["data"]["repaired"] == {"files": [PACKET_PATH], "by_code": {"no_final_newline": 1}}


def test_fmt_says_what_it_repaired(commands: Commands) -> None:
    commands.write(PACKET_PATH, PACKET.replace("- BASE_WP_ID: WP-1-Parser\n", HINT))
    assert "would repair 1 hint_text_left in 1 file\n" in commands("fmt", "--check", PACKET_PATH).out
    assert "repaired 1 hint_text_left in 1 file\n" in commands("fmt", PACKET_PATH).out


def test_a_hint_is_shown_before_it_is_deleted(commands: Commands) -> None:
    commands.write(PACKET_PATH, PACKET.replace("- BASE_WP_ID: WP-1-Parser\n", HINT))
    shown = commands("check", PACKET_PATH).out
    assert "the value of BASE_WP_ID is followed by the template's hint '(stable id without the revision)'" in shown
    assert "delete '(stable id without the revision)' (--fix)" in shown


def test_another_id_behind_an_id_is_no_hint(commands: Commands) -> None:
    commands.write(
        PACKET_PATH, PACKET.replace("- BASE_WP_ID: WP-1-Parser\n", "- BASE_WP_ID: WP-1-Parser | WP-1-B-v1\n")
    )
    shown = commands("check", PACKET_PATH).out
    assert "BASE_WP_ID contains more than the id WP-1-Parser: '| WP-1-B-v1'" in shown
    assert "hint_text_left" not in shown


def test_fmt_leaves_the_guides_of_the_governance_folder_alone(commands: Commands) -> None:
    """A hook names the files of a commit, which may be only a guide or a template."""
    commands.write(".GOV/README.md", "# Governance\n\n\n")
    commands.write("NOTES.md", "# Notes\n")
    run = commands("fmt", ".GOV/README.md")
    assert run.status == 0
    assert "README.md was not checked" in run.err
    assert commands("fmt", "NOTES.md").status == 6
    assert commands("fmt", ".GOV/README.md", "NOTES.md").status != 0
