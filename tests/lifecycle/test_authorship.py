"""Who wrote a change: declared, carried by trailers, kept by a squash, and read back; never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lifecycle.governed import Governed
from workpacket.lifecycle.authorship import assistance

MESSAGES = Path(__file__).parents[1] / "evidence" / "authorship.jsonl"
CASES = [json.loads(line) for line in MESSAGES.read_text("utf-8").splitlines()]
NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Farewell-v1"
SAID = ("--harness", "Codex", "--harness-version", "1.2", "--model", "gpt-5-4", "--session", "0199c3f2")
DECLARED = {"harness": "Codex", "harness_version": "1.2", "model": "gpt-5-4", "session": "0199c3f2"}


def test_the_list_has_a_hundred_messages_of_four_conventions() -> None:
    assert len(CASES) >= 100
    assert len({case["convention"] for case in CASES}) == 4
    undeclared = [case for case in CASES if not case["expect"]["assistants"]]
    assert len(undeclared) >= 30


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_message_is_attributed_or_undeclared(case: dict[str, Any]) -> None:
    found = assistance(case["author"], case["message"])
    said = {"assistants": found.assistants, "sessions": found.sessions, "packets": found.packets}
    assert {key: list(value) for key, value in said.items()} == case["expect"]


def test_what_is_declared_is_recorded_and_carried_by_trailers(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("packet", "prepare", NAME, "--for", "coder")
    assert governed("claim", NAME, "--as", "coder", "--model", "x\ny").status == 2
    monkeypatch.setenv("CLAUDECODE", "1")
    governed.done("claim", NAME, "--as", "coder", *SAID)
    assert governed.state(NAME).history[-1].data["declared"] == DECLARED
    assert governed.done("trace", "trailers", NAME).out == f"Work-Packet: {NAME}\nAssisted-by: Codex:gpt-5-4\n"
    monkeypatch.setenv("WORKPACKET_HARNESS", "Pi")
    assert governed.json("trace", "trailers", NAME)["data"]["trailers"] == [
        f"Work-Packet: {NAME}",
        "Assisted-by: Pi:undeclared",
    ]


def test_a_harness_is_not_guessed_from_its_variables(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    governed.begin()
    governed.activate(NAME)
    for name in ("CLAUDECODE", "CURSOR_TRACE_ID", "CODEX_HOME", "AIDER_MODEL"):
        monkeypatch.setenv(name, "1")
    governed.done("packet", "prepare", NAME, "--for", "coder")
    governed.done("claim", NAME, "--as", "coder", "--actor-kind", "agent")
    assert "declared" not in governed.state(NAME).history[-1].data
    assert governed.done("trace", "trailers", NAME).out == f"Work-Packet: {NAME}\n"


def test_the_packet_of_the_branch_is_meant_and_a_hook_never_stops_a_commit(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.commit("ready")
    message = governed.root / "message"
    message.write_text("Greet\n\nBy name.\n")
    assert governed("trace", "trailers").status == 2
    governed.done("trace", "trailers", "--into", str(message))
    assert message.read_text() == "Greet\n\nBy name.\n"
    governed.work(NAME)
    for _ in range(2):
        governed.done("trace", "trailers", "--into", str(message), "--harness", "Codex", "--model", "gpt-5-4")
    assert message.read_text() == f"Greet\n\nBy name.\n\nWork-Packet: {NAME}\nAssisted-by: Codex:gpt-5-4\n"
    assert governed("trace", "trailers", "WP-1-Nothing-v1").codes == ["packet_unknown"]
