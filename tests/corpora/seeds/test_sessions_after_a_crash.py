"""The fourth founding document, a stub about sessions after a crash: its rules for stubs, and what it wants built.

What stands in its checklist is done by the commands and recipes that it names, from a stub to merged work.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpora.seeds.governed import (
    BASE,
    BOARD,
    IN_ROADMAP,
    PACKET,
    REFINEMENT,
    REGISTRY,
    STUB,
    WP,
    Prepared,
    fill_in,
    sign,
)
from corpora.seeds.user import Repository, Said, python, ran

Governed = Callable[[str], Repository]
PROTOCOL = ".GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md"
NEXT_WP = "WP-1-Greeting-v2"

# ---- the rules of a stub -------------------------------------------------------------------------------------------


def test_a_stub_has_the_parts_of_the_template_in_their_order_and_is_no_packet(governed: Governed) -> None:
    repository = governed("stub")
    parts = [
        f"# Work Packet Stub: {WP}", "## STUB_METADATA", f"- WP_ID: {WP}", f"- BASE_WP_ID: {BASE}", "- CREATED_AT: ",
        "- STUB_STATUS: STUB (NOT READY FOR DEV)", "- SPEC_TARGET: .GOV/roles_shared/SPEC_CURRENT.md",
        "- ROADMAP_POINTER: ", "- SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap):", "## INTENT (DRAFT)", "- What: ",
        "- Why: ", "## SCOPE_SKETCH (DRAFT)", "- IN_SCOPE:", "- OUT_OF_SCOPE:", "## ACCEPTANCE_CRITERIA (DRAFT)",
        "## DEPENDENCIES / BLOCKERS (DRAFT)", "## RISKS / UNKNOWNs (DRAFT)",
        "## ACTIVATION_CHECKLIST (REQUIRED BEFORE ANY CODING)",
    ]  # fmt: skip
    text = repository.read(STUB)
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("\n- [ ] ") == 7
    assert f"just create-task-packet {WP}" in text
    (listed,) = repository.json("list")["work"]
    assert (listed["kind"], listed["lanes"], listed["path"]) == ("stub", ["STUB"], STUB)
    assert not (repository.root / PACKET).exists()


def test_of_a_stub_neither_signature_nor_refinement_is_demanded(governed: Governed) -> None:
    repository = governed("stub")
    assert repository("check", "--json").answer["findings"] == []
    repository.replace(STUB, ("- STUB_STATUS: STUB (NOT READY FOR DEV)\n", ""))
    assert [error["path"] for error in repository("check", "--json").errors()] == [STUB]


def test_nobody_starts_work_from_a_stub(governed: Governed) -> None:
    repository = governed("stub")
    for words in (("claim", WP), ("submit", WP, "--prove", "1=true"), ("verdict", WP, "PASS")):
        assert "(packet_is_stub)" in repository.refused(*words), words
    assert repository("run", "start", "work", "--packet", WP).status != 0


def test_the_protocol_of_the_orchestrator_tells_how_a_stub_is_activated(governed: Governed) -> None:
    protocol = governed("init").read(PROTOCOL)
    for literal in (
        "Technical Refinement Block",
        "USER_SIGNATURE",
        "just create-task-packet",
        "just record-refinement",
    ):
        assert literal in protocol


def test_the_registry_says_which_packet_of_a_base_is_the_active_one(governed: Governed) -> None:
    repository = governed("stub")
    assert f"| {BASE} | {STUB} |" in repository.read(REGISTRY)
    repository = governed("ready")
    assert f"| {BASE} | {PACKET} | Ready for Dev: {WP} |" in repository.read(REGISTRY)
    repository.done("new", "--next", BASE, "--what", "Greet better", "--why", "People still like it")
    assert f"| {BASE} | {PACKET} |" in repository.read(REGISTRY)
    repository.done("supersede", WP, "--by", NEXT_WP)
    assert f"| {BASE} | .GOV/task_packets/stubs/{NEXT_WP}.md |" in repository.read(REGISTRY)


# ---- the checklist of activation -----------------------------------------------------------------------------------


def test_a_requirement_that_only_the_roadmap_has_activates_nothing(governed: Governed) -> None:
    repository = governed("stub")
    repository.done("refine", WP)
    fill_in(repository, IN_ROADMAP)
    assert "(requirement_only_in_roadmap)" in repository.refused("create-task-packet", WP)
    assert "(requirement_only_in_roadmap)" not in governed("presented").refused("create-task-packet", WP)


def test_the_refinement_block_is_shown_to_the_user_before_the_packet_is_made(governed: Governed) -> None:
    repository = governed("refined")
    assert "(refinement_not_presented)" in repository.refused("create-task-packet", WP)
    shown = ran(repository.root, "just", "record-refinement", WP, "--present")
    assert shown.status == 0, shown
    assert "### SPEC_ANCHORS" in shown.out
    assert "SPEC_ANCHOR: SPEC_v1.md line 6" in shown.out
    assert "(refinement_not_presented)" not in repository.refused("create-task-packet", WP)


def test_the_signature_of_the_user_is_made_with_a_key_that_the_policy_trusts(
    governed: Governed, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory
) -> None:
    repository = governed("presented")
    said = repository.refused("create-task-packet", WP)
    assert "(user_signature_missing)" in said
    assert "(approval_missing)" in said
    other = tmp_path_factory.mktemp("key") / "mallory"
    ran(repository.root, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other)
    statement = repository.root / ".git" / "statement"
    made = repository("approve", WP, "--key", f"{other}.pub", "--statement-out", str(statement))
    if made.status == 0:
        ran(repository.root, "ssh-keygen", "-q", "-Y", "sign", "-n", "workpacket-approval@v1", "-f", other, statement)
        repository("approve", "--attach", str(statement))
    assert repository("create-task-packet", WP).status == 3
    repository = governed("presented")
    sign(repository, prepared.key)
    assert repository.done("approvals", "list").out.count("gate activation: open") == 1
    repository.replace(REFINEMENT, ("by name", "by number"))
    assert "(subject_mismatch)" in repository.refused("create-task-packet", WP)


def test_the_refinement_lies_in_its_file_and_says_there_that_it_is_approved_and_signed(governed: Governed) -> None:
    repository = governed("approved")
    text = repository.read(f".GOV/refinements/{WP}.md")
    assert "- USER_REVIEW_STATUS: APPROVED\n" in text
    assert re.search(r"^- USER_SIGNATURE: ann\d{12}$", text, re.MULTILINE)
    assert f"- USER_APPROVAL_EVIDENCE: APPROVE REFINEMENT {WP}\n" in text
    repository.git("rm", "--quiet", REFINEMENT)
    repository.git("commit", "--quiet", "--message", "the refinement is withdrawn")
    assert "refinement" in repository.refused("create-task-packet", WP)


def test_activation_moves_the_entry_of_the_board_from_stub_to_ready_for_dev(governed: Governed) -> None:
    repository = governed("approved")
    assert repository.section("Stub Backlog (Not Activated)") == f"- **[{WP}]** - [STUB]\n"
    said = ran(repository.root, "just", "create-task-packet", WP)
    assert said.status == 0, said
    assert repository.section("Stub Backlog (Not Activated)").strip() == ""
    assert f"- **[{WP}]** - [READY_FOR_DEV]" in repository.section("Ready for Dev")
    assert "**Status:** Ready for Dev" in repository.read(PACKET)


def test_a_packet_goes_from_its_claim_to_validated_by_the_recipes_of_the_founders(governed: Governed) -> None:
    repository = governed("ready")

    def just(recipe: str, *words: str, status: int = 0) -> str:
        """Type what the recipe types; that `just` hands on the words is seen in other tests."""
        lines = ran(repository.root, "just", "--dry-run", recipe, *words).err.splitlines()
        assert lines, recipe
        said = []
        for line in lines:
            command, *typed = [part for one in shlex.split(line) for part in (words if one == "$@" else (one,))]
            assert command == "workpacket"
            said.append(repository(*typed))
        assert max(one.status for one in said) == status, (recipe, said)
        return "".join(one.text for one in said)

    just("pre-work", WP)
    assert "work_branch_missing" in just("gate-check", WP, status=3)
    just("record-prepare", WP, "--for", "coder")
    just("claim", WP, "--as", "coder")
    assert f"- **[{WP}]** - [IN_PROGRESS]" in repository.section("In Progress")
    repository.commit("Claimed")
    repository.git("switch", "--quiet", f"wp/{WP}")
    repository.git("merge", "--quiet", "main")
    repository.commit("Greet", {"src/greet.py": "print('hello')\n"})
    just("submit", WP, "--as", "coder", "--prove", "1=true")
    repository.commit("Submitted", {"report.md": "Good.\n"})
    assert "verdict_by_coder" in just("verdict", WP, "PASS", "--report", "report.md", "--as", "coder", status=3)
    just("verdict", WP, "PASS", "--report", "report.md", "--as", "eve")
    repository.commit("Judged")
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", f"wp/{WP}")
    just("merged", WP)
    assert f"- **[{WP}]** - [VALIDATED]" in repository.section("Done")
    repository.replace(BOARD, ("[VALIDATED]", "[READY_FOR_DEV]"))
    assert "board_drift" in just("task-board-check", status=1)
    just("task-board-set", WP, "STUB", status=3)
    just("board-sync")
    repository.replace(REGISTRY, ("| Done: ", "| Blocked: "))
    just("wp-traceability-set")
    assert f"| Done: {WP} |" in repository.read(REGISTRY)
    repository.commit("Merged")
    assert just("audit").startswith("Nothing is wrong.\n1 packet, ")
    just("validate")


def test_the_registry_is_audited_and_a_packet_is_traced_from_requirement_to_commit(governed: Governed) -> None:
    repository = governed("claimed")
    audited = repository.done("registry", "audit").out
    assert f"{BASE}: {WP} IN_PROGRESS" in audited
    assert "criteria proved 0 of 1" in audited
    followed = json.dumps(repository.json("trace", WP))
    for literal in ("SPEC_v1.md", "The name is printed.", WP):
        assert literal in followed
    repository.replace(".GOV/spec/SPEC_v1.md", ("by name", "by number"))
    repository.commit("Another requirement")
    assert "requirement_changed" in repository("audit").text
    assert "requirement_changed" in repository("trace", WP).text


# ---- sessions ------------------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys
from pathlib import Path
from workpacket.runtime import Runtime, Settings
from workpacket.runtime.model_sessions.session import open_session

where = sys.argv[1]

def die(here):
    if here == where:
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)

def model():
    for number in range(6):
        if number == 4:
            die("mid-stream")
            if where == "cancel":
                os.system("workpacket cancel session@s > /dev/null")
        yield f"{number} "

def ask(answer):
    print("had", repr(answer.partial), flush=True)
    for chunk in answer.chunks(model()):
        print("chunk", chunk, flush=True)
    return answer.text

def send(text):
    die("mid-tool")
    with open("outbox", "a") as file:
        file.write(text + "\\n")
    if where == "cancel-in-tool":
        os.system("workpacket cancel session@s > /dev/null")
    die("after-effect")
    return "sent"

with Runtime.open(Path(".git/workpacket/runs.db"), Settings(actor="tester")) as runtime:
    with open_session(runtime, "s", model="m", every=2) as session:
        session.add("user", "count")
        answer = session.model_run(ask)
        session.checkpoint(state={"note": "small"})
        print(session.tool("c1", send, answer.content), flush=True)
        session.add("user", "thanks")
        print("ended", flush=True)
"""
ANSWER = "0 1 2 3 4 5 "


class Sessions(Repository):
    """A repository in which one program talks with a model."""

    def live(self, where: str = "") -> Said:
        return python(self.root, PROGRAM, where)

    def shown(self) -> dict[str, Any]:
        """What `session show` says, which is the same however often it is asked."""
        shown = self.json("session", "show", "session@s")
        assert shown == self.json("session", "show", "session@s")
        return shown

    def outbox(self) -> list[str]:
        path = self.root / "outbox"
        return path.read_text("utf-8").splitlines() if path.exists() else []


Killed = Callable[[str], Sessions]


@pytest.fixture
def sessions(repository: Repository) -> Killed:
    """A repository in which a session was killed at this place, or with '' none was begun."""
    (repository.root / ".git" / "workpacket").mkdir()
    made = Sessions(repository.root)

    def killed(where: str) -> Sessions:
        assert not where or made.live(where).status == -signal.SIGKILL
        return made

    return killed


def test_checkpoints_are_artifacts_and_the_session_names_the_last_one(sessions: Killed, tmp_path: Path) -> None:
    killed = sessions("mid-tool")
    first = killed.shown()["session"]
    assert re.fullmatch(r"[0-9a-f]{64}", first["checkpoint_artifact_id"])
    assert first["last_checkpoint_at"] > 0
    assert first["last_checkpoint_kind"] == "event_triggered"
    killed.done("export", "session", "s", "--out", str(tmp_path / "artifact"))
    assert ANSWER in (tmp_path / "artifact").read_text("utf-8")
    killed.done("session", "decide", "session@s", "retry")
    assert killed.live().status == 0
    last = killed.shown()["session"]
    assert last["status"] == "CLOSED"
    assert last["checkpoint_artifact_id"] != first["checkpoint_artifact_id"]


@pytest.mark.parametrize(
    ("where", "status", "reason", "choices"),
    [
        ("mid-stream", "PAUSED", "worker_lost", []),
        ("mid-tool", "BLOCKED", "effect_outcome_unknown", ["repair", "retry", "cancel"]),
    ],
)
def test_an_interrupted_session_is_detected_and_resumes_or_fails_with_state_and_guidance(
    sessions: Killed, where: str, status: str, reason: str, choices: list[str]
) -> None:
    killed = sessions(where)
    shown = killed.shown()
    assert (shown["session"]["status"], shown["session"]["reason"], shown["choices"]) == (status, reason, choices)
    said = killed("session", "show", "session@s")
    assert (said.status == 0) is (status == "PAUSED")
    for choice in choices:
        assert choice in said.text
    again = killed.live()
    assert (again.status == 0) is (status == "PAUSED")
    assert status == "PAUSED" or "RunBlocked" in again.err


def test_recovery_does_nothing_twice_unless_an_operator_says_so(sessions: Killed) -> None:
    one = sessions("after-effect")
    assert one.live().status == 1
    assert one.outbox() == [ANSWER]
    one.done("session", "decide", "session@s", "repair", "--note", "it is there")
    for _ in range(2):
        assert one.live().status == 0
        assert one.outbox() == [ANSWER]


@pytest.mark.parametrize(
    ("where", "chunks", "sent"), [("cancel", 4, []), ("cancel-in-tool", 6, [ANSWER])], ids=["stream", "tool"]
)
def test_a_session_is_cancelled_between_chunks_and_after_a_tool_but_never_inside(
    sessions: Killed, where: str, chunks: int, sent: list[str]
) -> None:
    one = sessions("")
    said = one.live(where)
    assert said.status != 0
    assert "RunCancelled" in said.err
    assert "ended" not in said.out
    assert chunks <= said.out.count("chunk ") <= chunks + 1
    assert one.outbox() == sent


@pytest.mark.parametrize(("where", "pending"), [("mid-stream", "repeatable"), ("mid-tool", "unknown")])
def test_a_crash_mid_stream_or_mid_tool_leaves_a_checkpoint_and_each_open_call_with_its_class(
    sessions: Killed, where: str, pending: str
) -> None:
    killed = sessions(where)
    shown = killed.shown()
    assert [one["pending"] for one in shown["pending"]] == [pending]
    assert shown["session"]["checkpoint_artifact_id"]
    if where == "mid-stream":
        again = killed.live()
        assert again.out.startswith("had '0 1 2 3 '\n")
        assert again.out.endswith("sent\nended\n")
