"""`list`, `explain`, `schema`, `fmt` and `check --watch`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cli.commands import STUB, STUB_PATH, Commands

PACKET = """# Task Packet: WP-1-Lexer-v1

## METADATA
- WP_ID: WP-1-Lexer-v1
- BASE_WP_ID: WP-1-Lexer
- DATE: 2026-03-01T00:00:00Z
- **Status:** In Progress
- RISK_TIER: HIGH
- USER_SIGNATURE: ada010320261200

## SCOPE
- What: Cut the text into words.

## QUALITY_GATE
### DONE_MEANS
- Every word has its place.

## AUTHORITY
- SPEC_ANCHOR: Spec_v1.md 4.1

## BOOTSTRAP
- FILES_TO_OPEN:
  - src/lexer.py
"""


@pytest.fixture
def two(commands: Commands) -> Commands:
    """A repository with a stub that depends on a packet."""
    stub = STUB.replace("(DRAFT)\n- None known.", "(DRAFT)\n- Depends on: WP-1-Lexer-v1", 1)
    commands.write(STUB_PATH, stub)
    commands.write(".GOV/task_packets/WP-1-Lexer-v1.md", PACKET)
    return commands


class TestList:
    def test_every_packet_has_a_line_by_id(self, two: Commands) -> None:
        lines = two("list").out.splitlines()
        assert lines[0].split() == ["WP-1-Lexer-v1", "IN_PROGRESS", "packet", "Cut", "the", "text", "into", "words."]
        assert lines[1].startswith("WP-1-Parser-v1")
        assert lines[-1] == "2 packets"

    @pytest.mark.parametrize(
        ("words", "ids"),
        [
            (["--lane", "in_progress"], ["WP-1-Lexer-v1"]),
            (["--lane", "Stub,BLOCKED"], ["WP-1-Parser-v1"]),
            (["--kind", "stub"], ["WP-1-Parser-v1"]),
            (["--base", "WP-1-Lexer"], ["WP-1-Lexer-v1"]),
            (["--risk", "high"], ["WP-1-Lexer-v1"]),
            (["--depends-on", "WP-1-Lexer-v1"], ["WP-1-Parser-v1"]),
            (["WP-1-P*"], ["WP-1-Parser-v1"]),
            (["WP-9-*"], []),
        ],
    )
    def test_options_choose_among_them(self, two: Commands, words: list[str], ids: list[str]) -> None:
        listed = json.loads(two("list", "--json", *words).out)
        assert [work["id"] for work in listed["data"]["work"]] == ids

    def test_a_limit_says_how_many_are_left_out(self, two: Commands) -> None:
        assert two("list", "--limit", "1").out.splitlines()[-1] == "1 packet, 1 more without --limit"
        assert json.loads(two("list", "--limit", "1", "--json").out)["data"]["more"] == 1
        assert two("list", "--limit", "0").status == 2

    def test_the_log_says_who_holds_what_and_what_happened_lately(self, two: Commands) -> None:
        two("adopt", "--as", "ann")
        two("claim", "WP-1-Lexer-v1", "--as", "bob", "--branch", "main")
        two("block", "WP-1-Lexer-v1", "--as", "bob", "--reason", "no data", "--until", "there is data")

        def ids(*words: str) -> list[str]:
            return [work["id"] for work in json.loads(two("list", "--json", *words).out)["data"]["work"]]

        assert ids("--holder", "nobody-here") == []
        assert ids("--since", "2026-01-01") == ["WP-1-Lexer-v1", "WP-1-Parser-v1"]
        assert ids("--since", "2999-01-01") == []
        assert ids("--blocked") in ([], ["WP-1-Lexer-v1"])
        assert two("list", "--since", "lately").status == 2

    def test_a_packet_is_listed_once_and_its_stub_on_request(self, two: Commands) -> None:
        two.write(".GOV/task_packets/stubs/WP-1-Lexer-v1.md", STUB.replace("WP-1-Parser", "WP-1-Lexer"))
        assert two("list").out.splitlines()[-1] == "2 packets"
        stubs = json.loads(two("list", "--json", "--kind", "stub").out)["data"]["work"]
        assert [work["id"] for work in stubs] == ["WP-1-Lexer-v1", "WP-1-Parser-v1"]

    def test_json_tells_what_other_tools_need(self, two: Commands) -> None:
        work = json.loads(two("list", "--json", "WP-1-P*").out)["data"]["work"][0]
        assert work == {
            "id": "WP-1-Parser-v1",
            "base": "WP-1-Parser",
            "kind": "stub",
            "path": STUB_PATH,
            "lanes": ["STUB"],
            "status": "STUB (NOT READY FOR DEV)",
            "risk": "",
            "created": "2026-03-01T00:00:00Z",
            "depends": ["WP-1-Lexer-v1"],
            "title": "Read packets without loss.",
            "signatures": "",
        }


class TestSearch:
    @pytest.mark.parametrize(
        ("words", "ids"),
        [
            (["lexer"], ["WP-1-Lexer-v1", "WP-1-Parser-v1"]),
            (["PARSER"], ["WP-1-Parser-v1"]),
            (["read", "loss"], ["WP-1-Parser-v1"]),
            (["hand", "survive"], ["WP-1-Parser-v1"]),
            (["survive lexer"], ["WP-1-Parser-v1"]),
            (["survive", "words"], []),
            (["-e", "x"], None),
        ],
    )
    def test_all_words_occur_somewhere_in_the_packet(
        self, two: Commands, words: list[str], ids: list[str] | None
    ) -> None:
        shown = two("search", "--json", *words)
        if ids is None:
            assert shown.status == 2
            return
        assert [one["id"] for one in json.loads(shown.out)["data"]["found"]] == ids

    def test_each_packet_is_shown_with_the_lines(self, two: Commands) -> None:
        lines = two("search", "survive").out.splitlines()
        assert lines[0] == "WP-1-Parser-v1  STUB  Read packets without loss."
        assert lines[1].endswith("- Why: Hand edits must survive.")
        assert lines[-2:] == ["1 packet", "next: workpacket show WP-1-Parser-v1"]

    def test_events_are_searched_too(self, two: Commands) -> None:
        two("adopt", "--as", "ann")
        two("note", "WP-1-Parser-v1", "the customer called", "--as", "ann")
        assert "WP-1-Parser-v1" in two("search", "customer").out

    def test_the_same_question_is_answered_anew_after_a_change(self, two: Commands) -> None:
        assert "0 packets" in two("search", "giraffe").out
        two.write(STUB_PATH, STUB.replace("Hand edits", "Giraffes"))
        assert "1 packet\n" in two("search", "giraffe").out

    def test_words_are_needed_and_are_not_patterns(self, two: Commands) -> None:
        assert two("search").status == 2
        assert "0 packets" in two("search", "h.nd").out


class TestExplain:
    def test_a_code_is_explained(self, commands: Commands) -> None:
        shown = commands("explain", "byte_order_mark")
        assert shown.status == 0
        assert "What to do" in shown.out

    def test_an_explanation_is_json_too(self, commands: Commands) -> None:
        data = json.loads(commands("explain", "byte_order_mark", "--json").out)["data"]
        assert (data["code"], data["family"]) == ("byte_order_mark", "text")

    def test_all_codes_are_one_page(self, commands: Commands) -> None:
        assert "byte_order_mark" in commands("explain", "--all").out


class TestSchema:
    def test_without_a_name_all_names_are_listed(self, commands: Commands) -> None:
        assert {"stub", "packet", "task_board"} <= set(commands("help", "schema").out.split())

    def test_a_schema_and_its_twin_are_printed(self, commands: Commands) -> None:
        assert json.loads(commands("help", "schema", "stub").out)["$schema"].endswith("2020-12/schema")
        assert "draft-07" in json.loads(commands("help", "schema", "stub", "--draft-07").out)["$schema"]


class TestFmt:
    def test_what_can_be_formatted_is(self, commands: Commands) -> None:
        path = commands.write(STUB_PATH, STUB.replace("## INTENT (DRAFT)", "## Intent (draft)") + "\n\n")
        assert f"would format {STUB_PATH}" in commands("fmt", "--check").out
        assert commands("fmt", "--check").status == 1
        assert "+## INTENT (draft)" in commands("fmt", "--diff").out
        assert commands("fmt").status == 0
        assert path.read_text(encoding="utf-8") == STUB.replace("## INTENT (DRAFT)", "## INTENT (draft)")
        assert commands("fmt", "--check").status == 0

    def test_nothing_to_format_is_no_success(self, commands: Commands) -> None:
        assert commands("fmt").status == 6


def test_watching_checks_again_after_a_change_until_it_is_interrupted(commands: Commands) -> None:
    commands.write(STUB_PATH, STUB)
    script = "from workpacket.cli.main import console; console()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", script, "check", "--watch", STUB_PATH]
    with subprocess.Popen(
        command, cwd=commands.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        lines = iter(watching.stdout)
        assert any("no findings" in line for line in lines)
        time.sleep(0.1)
        commands.write(STUB_PATH, STUB + "\n\n", age=0.0)
        assert any("blank_lines_at_end" in line for line in lines)
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
    assert watching.returncode == 0
