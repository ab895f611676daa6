"""The fourth founding document, a stub about sessions after a crash: its rules for stubs, and what it wants built.

The crashes themselves (between chunks, in a tool call, after the effect, with a program that lives on, with a damaged
artifact) are the golden ones of tests/runtime/test_session.py; here they are seen as an operator sees them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import runtime.test_session
from git.scratch import make_repository
from workpacket.cli.main import main
from workpacket.runtime import Runtime
from workpacket.runtime.model_sessions.recovery import assess
from workpacket.runtime.model_sessions.session import ModelSession

PROGRAM = Path(runtime.test_session.PROGRAM)
WP = "WP-1-Crash-Recovery-v1"
Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Commands in a governed repository."""
    make_repository(tmp_path)

    def called(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        with chdir(tmp_path):
            status = main([*words])
        return status, "".join(capsys.readouterr())

    assert called("init")[0] == 0
    return called


@pytest.fixture
def stub(call: Call, tmp_path: Path) -> str:
    status, said = call("new", WP, "--what", "Checkpoints of sessions", "--why", "A crash loses the session")
    assert status == 0, said
    return (tmp_path / ".GOV" / "task_packets" / "stubs" / f"{WP}.md").read_text("utf-8")


# ---- the rules of a stub -------------------------------------------------------------------------------------------


def test_a_stub_has_every_part_of_the_template_in_its_order(stub: str) -> None:
    parts = [
        f"# Work Packet Stub: {WP}", "## STUB_METADATA", f"- WP_ID: {WP}", "- BASE_WP_ID: WP-1-Crash-Recovery",
        "- CREATED_AT: ", "- STUB_STATUS: STUB (NOT READY FOR DEV)", "- SPEC_TARGET: ", "- ROADMAP_POINTER: ",
        "- SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap):", "## INTENT (DRAFT)", "- What: ", "- Why: ",
        "## SCOPE_SKETCH (DRAFT)", "- IN_SCOPE:", "- OUT_OF_SCOPE:", "## ACCEPTANCE_CRITERIA (DRAFT)",
        "## DEPENDENCIES / BLOCKERS (DRAFT)", "## RISKS / UNKNOWNs (DRAFT)",
        "## ACTIVATION_CHECKLIST (REQUIRED BEFORE ANY CODING)",
    ]  # fmt: skip
    places = [stub.index(part) for part in parts]
    assert places == sorted(places)
    assert stub.count("\n- [ ] ") == 7
    assert f"just create-task-packet {WP}" in stub


def test_neither_refinement_nor_signature_is_asked_of_a_stub(call: Call, stub: str) -> None:
    _, said = call("check", "--json")
    about = [one for one in json.loads(said)["findings"] if WP in one["path"]]
    assert [one["code"] for one in about if "signature" in one["code"] or "refinement" in one["code"]] == []


@pytest.mark.parametrize(
    "words",
    [("claim", WP), ("submit", WP, "--prove", "1=true"), ("run", "start", "work", "--packet", WP)],
    ids=lambda words: words[0],
)
def test_nobody_starts_work_from_a_stub(call: Call, stub: str, words: tuple[str, ...]) -> None:
    status, said = call(*words)
    assert status != 0
    assert WP in said


def test_the_activation_of_a_stub_asks_for_refinement_and_signature_and_writes_nothing(
    call: Call, stub: str, tmp_path: Path
) -> None:
    status, said = call("create-task-packet", WP)
    assert status == 3
    assert "refinement" in said
    assert not (tmp_path / ".GOV" / "task_packets" / f"{WP}.md").exists()
    assert f"- **[{WP}]** - [STUB]" in (tmp_path / ".GOV" / "roles_shared" / "TASK_BOARD.md").read_text("utf-8")
    status, said = call("why", WP)
    assert "refinement" in said


# ---- sessions ------------------------------------------------------------------------------------------------------


def crash(store: Path, where: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, str(PROGRAM), str(store), where], env=environment, capture_output=True,
                          text=True, check=False)  # fmt: skip


def session_of(call: Call, *words: str) -> tuple[int, dict[str, Any]]:
    status, said = call("session", *words, "--json")
    return status, json.loads(said)["data"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / ".git" / "workpacket"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "runs.db"


def test_the_record_of_a_session_has_the_fields_of_its_last_checkpoint() -> None:
    named = {field.name for field in fields(ModelSession)}
    assert {"checkpoint_artifact_id", "last_checkpoint_at", "last_checkpoint_kind"} <= named


@pytest.mark.parametrize(
    ("where", "status", "reason", "pending", "choices"),
    [
        ("mid-chunk", "PAUSED", "worker_lost", ["repeatable"], []),
        ("mid-tool", "BLOCKED", "effect_outcome_unknown", ["unknown"], ["repair", "retry", "cancel"]),
        ("after-effect", "BLOCKED", "effect_outcome_unknown", ["unknown"], ["repair", "retry", "cancel"]),
    ],
)
def test_a_crash_leaves_a_session_with_an_artifact_that_resumes_or_blocks_with_a_reason(
    call: Call, store: Path, where: str, status: str, reason: str, pending: list[str], choices: list[str]
) -> None:
    assert crash(store, where).returncode == -signal.SIGKILL
    exit_status, shown = session_of(call, "show", "session@s")
    assert (shown["session"]["status"], shown["session"]["reason"]) == (status, reason)
    assert [one["pending"] for one in shown["pending"]] == pending
    assert shown["choices"] == choices
    assert shown["session"]["checkpoint_artifact_id"]
    assert shown["session"]["last_checkpoint_at"] > 0
    assert (exit_status == 0) is (status == "PAUSED")
    assert session_of(call, "show", "session@s") == (exit_status, shown)
    restarted = crash(store, "")
    assert (restarted.returncode == 0) is (status == "PAUSED")
    assert status == "PAUSED" or "RunBlocked" in restarted.stderr


@pytest.mark.parametrize(("choice", "sent"), [("repair", 1), ("retry", 2)])
def test_an_effect_is_done_twice_only_if_an_operator_says_so(call: Call, store: Path, choice: str, sent: int) -> None:
    crash(store, "after-effect")
    for _ in range(2):
        assert crash(store, "").returncode == 1
    assert session_of(call, "decide", "session@s", choice)[0] == 0
    assert crash(store, "").returncode == 0
    assert len(store.with_name("outbox").read_text().splitlines()) == sent
    assert crash(store, "").returncode == 0
    assert len(store.with_name("outbox").read_text().splitlines()) == sent


def test_what_a_checkpoint_holds_is_an_artifact_under_its_own_id_without_secrets(call: Call, store: Path) -> None:
    with Runtime.open(store) as opened:
        from workpacket.runtime.model_sessions.session import open_session

        with open_session(opened, "s", model="m") as session:
            session.add("user", "the key is ghp_" + "a" * 36)
            session.checkpoint(state={"password": "hunter2", "at": 3})
        report = assess(opened, "session@s")
        assert report.artifact is not None
        assert "ghp_" not in json.dumps(report.artifact.body)
        assert "hunter2" not in json.dumps(report.artifact.body)
        assert report.artifact.body["redactions"] == 1  # the message came without its own
