"""The fourth founding document, a stub about sessions after a crash: its rules for stubs, and what it wants built.

What stands in its checklist is done by the commands and recipes that it names, from a stub to merged work.
"""

from __future__ import annotations

import hashlib
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
    IN_MAIN_BODY,
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
from corpora.seeds.user import ROOT, Repository, Said, python, ran

pytestmark = pytest.mark.share(3)

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
    assert repository("runtime", "run", "start", "work", "--packet", WP).status == 3


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
    repository.done("packet", "supersede", WP, "--by", NEXT_WP)
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


@pytest.mark.long
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
    audited = repository.done("board", "registry", "audit").out
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
                os.system("workpacket runtime cancel session@s > /dev/null")
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
        os.system("workpacket runtime cancel session@s > /dev/null")
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
        shown = self.json("runtime", "session", "show", "session@s")
        assert shown == self.json("runtime", "session", "show", "session@s")
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
    killed.done("log", "export", "session", "s", "--out", str(tmp_path / "artifact"))
    assert ANSWER in (tmp_path / "artifact").read_text("utf-8")
    killed.done("runtime", "session", "decide", "session@s", "retry")
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
    said = killed("runtime", "session", "show", "session@s")
    assert (said.status == 0) is (status == "PAUSED")
    for choice in choices:
        assert choice in said.text
    again = killed.live()
    assert (again.status == 0) is (status == "PAUSED")
    assert status == "PAUSED" or "RunBlocked" in again.err


@pytest.mark.long
def test_recovery_does_nothing_twice_unless_an_operator_says_so(sessions: Killed) -> None:
    one = sessions("after-effect")
    assert one.live().status == 1
    assert one.outbox() == [ANSWER]
    one.done("runtime", "session", "decide", "session@s", "repair", "--note", "it is there")
    for _ in range(2):
        assert one.live().status == 0
        assert one.outbox() == [ANSWER]


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "chunks", "sent"), [("cancel", 4, []), ("cancel-in-tool", 6, [ANSWER])], ids=["stream", "tool"]
)
def test_a_session_is_cancelled_between_chunks_and_after_a_tool_but_never_inside(
    sessions: Killed, where: str, chunks: int, sent: list[str]
) -> None:
    one = sessions("")
    said = one.live(where)
    assert said.status == 1
    assert "RunCancelled" in said.err
    assert "ended" not in said.out
    assert chunks <= said.out.count("chunk ") <= chunks + 1
    assert one.outbox() == sent


@pytest.mark.long
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


# ---- what a careful reader of the document found missing -----------------------------------------------------------

DEPENDENCIES = "## DEPENDENCIES / BLOCKERS (DRAFT)\n"
NO_DEPENDENCY = f"{DEPENDENCIES}- None known.\n"
FOUNDING = "WP-1-Going-On-v1"
# The stub of the document with other words: same fields, same nesting, same blank line at its end.
THE_STUB = f"""\
# TASK_PACKET_STUB_TEMPLATE

This is a BACKLOG STUB. It is NOT an executable Task Packet.

Rules:
- No USER_SIGNATURE is requested/required for stubs.
- No refinement file is required for stubs.
- Coder/Validator MUST NOT start work from a stub.

---

# Work Packet Stub: {FOUNDING}

## STUB_METADATA
- WP_ID: {FOUNDING}
- BASE_WP_ID: WP-1-Going-On
- CREATED_AT: 2026-02-24T00:00:00Z
- STUB_STATUS: STUB (NOT READY FOR DEV)
- SPEC_TARGET: .GOV/roles_shared/SPEC_CURRENT.md
- ROADMAP_POINTER: SPEC_v1.md 2 (Phase 1) -> item 3 (going on)
- SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap):
  - SPEC_v1.md 1.1 Greeting (Normative)
  - SPEC_v1.md 1 Main body (all of it)

## INTENT (DRAFT)
- What: Let a greeting go on after a stop.
- Why: A user who was interrupted wants the rest.

## SCOPE_SKETCH (DRAFT)
- IN_SCOPE:
  - Checkpoints of a greeting:
    - their format, and where they are stored; the last one is a field of the greeting.
  - Going on:
    - find what was interrupted, and go on or fail.
    - no word is said twice.
- OUT_OF_SCOPE:
  - Songs (see the roadmap).

## ACCEPTANCE_CRITERIA (DRAFT)
- A stop in the middle of a word leaves a greeting that goes on.
- No word is said twice.

## DEPENDENCIES / BLOCKERS (DRAFT)
- Depends on: the greeting itself (WP-1-Greeting-v1).
- Coordinates with: the voice (Unified Voice Contract).

## RISKS / UNKNOWNs (DRAFT)
- Risk: a greeting may hold a name.

## ACTIVATION_CHECKLIST (REQUIRED BEFORE ANY CODING)
- [ ] Confirm the requirement exists in Master Spec Main Body (not just Roadmap).
- [ ] Produce the in-chat Technical Refinement Block (per `.GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md`).
- [ ] Obtain USER_SIGNATURE for the WP.
- [ ] Create `.GOV/refinements/{FOUNDING}.md` (approved/signed).
- [ ] Create the official task packet via `just create-task-packet {FOUNDING}` (in `.GOV/task_packets/`).
- [ ] Copy relevant scope/acceptance notes from this stub into the official packet.
- [ ] Move `.GOV/roles_shared/TASK_BOARD.md` entry from STUB to Ready for Dev.

"""
FOUNDING_STUB = f".GOV/task_packets/stubs/{FOUNDING}.md"


def test_a_stub_that_lacks_a_part_of_the_template_is_found(governed: Governed) -> None:
    repository = governed("trusted")
    repository.write(FOUNDING_STUB, THE_STUB)
    sound = repository("check", FOUNDING_STUB, "--json").codes
    banner = "This is a BACKLOG STUB. It is NOT an executable Task Packet.\n"
    anchors = THE_STUB[THE_STUB.index("- SPEC_ANCHOR_CANDIDATES") : THE_STUB.index("\n## INTENT")]
    for part in ("- Why: A user who was interrupted wants the rest.\n", anchors, banner,
                 "- What: Let a greeting go on after a stop.\n"):  # fmt: skip
        repository.write(FOUNDING_STUB, THE_STUB.replace(part, ""))
        assert set(repository("check", FOUNDING_STUB, "--json").codes) - set(sound), part


def test_the_file_of_the_document_is_a_sound_stub_as_it_is(governed: Governed) -> None:
    repository = governed("trusted")
    repository.write(FOUNDING_STUB, THE_STUB)
    assert repository("check", FOUNDING_STUB, "--json").errors() == []


def test_the_signature_is_recorded_by_the_recipe_that_people_know(governed: Governed, prepared: Prepared) -> None:
    repository = governed("presented")
    statement = str(repository.root / ".git" / "statement")
    key = ("--key", str(prepared.key.with_suffix(".pub")))
    said = ran(repository.root, "just", "record-signature", WP, *key, "--statement-out", statement)
    assert said.status == 0, said
    ran(
        repository.root, "ssh-keygen", "-q", "-Y", "sign", "-n", "workpacket-approval@v1", "-f", prepared.key, statement
    )
    said = ran(repository.root, "just", "record-signature", "--attach", statement)
    assert said.status == 0, said
    assert re.search(r"^- USER_SIGNATURE: ann\d{12}$", repository.read(REFINEMENT), re.MULTILINE)


def test_what_the_tool_wrote_is_no_error_while_the_signature_is_awaited(governed: Governed) -> None:
    repository = governed("presented")
    assert repository("check", "--json").errors() == []
    repository.replace(REFINEMENT, ("VERDICT: PASS", "VERDICT: <fill in>"))
    assert repository("check", "--json").errors() != []


def test_a_field_named_sha1_holds_a_sha1_and_another_the_sha256(governed: Governed) -> None:
    repository = governed("refined")
    text = repository.read(REFINEMENT)
    specification = (repository.root / ".GOV/spec/SPEC_v1.md").read_bytes()
    assert f"- SPEC_TARGET_SHA1: {hashlib.sha1(specification).hexdigest()}\n" in text
    assert f"- SPEC_TARGET_SHA256: {hashlib.sha256(specification).hexdigest()}\n" in text
    repository.replace(REFINEMENT, (hashlib.sha256(specification).hexdigest(), "0" * 64))
    assert "spec_moved" in repository("check", REFINEMENT, "--json").codes


def test_just_works_right_after_init(repository: Repository) -> None:
    repository.done("init")
    listed = ran(repository.root, "just", "--list")
    assert listed.status == 0, listed
    assert "create-task-packet" in listed.out
    assert "(" in ran(repository.root, "just", "create-task-packet", WP).err
    repository.write("justfile", "mine:\n    @echo mine\n")
    repository.done("init")
    assert repository.read("justfile") == "mine:\n    @echo mine\n"


THEIR_JUSTFILE = """\
set dotenv-load := false

gate-check wp-id:
    @echo theirs {{wp-id}}

# Record a user signature for a work packet
record-signature wp-id signature:
    @echo theirs {{wp-id}} {{signature}}
"""


def test_a_justfile_with_recipes_of_the_same_names_goes_on_working(repository: Repository) -> None:
    repository.write("justfile", THEIR_JUSTFILE)
    said = repository.done("init").text
    (line,) = set(re.findall(r"((?:import|mod\??) .*gov\.just')$", said, re.MULTILINE))
    repository.write("justfile", f"{line}\n\n{THEIR_JUSTFILE}")
    assert ran(repository.root, "just", "gate-check", WP).out == f"theirs {WP}\n"
    listed = ran(repository.root, "just", "--list", "--list-submodules")
    assert "create-task-packet" in listed.out, listed


def activated(repository: Repository, prepared: Prepared, *pairs: tuple[str, str]) -> None:
    """A packet made of the stub, in which these words were replaced before anyone looked at it."""
    repository.replace(STUB, *pairs)
    repository.commit("More words")
    repository.done("refine", WP)
    fill_in(repository, IN_MAIN_BODY)
    repository.done("refine", WP, "--present")
    repository.commit("For the user to read")
    sign(repository, prepared.key)
    repository.commit("Approved")
    repository.done("create-task-packet", WP)
    repository.replace(PACKET, ("TERMS: TODO", "TERMS: x"))
    repository.commit("Activated")


def test_nested_scope_and_what_the_work_coordinates_with_reach_the_packet(
    governed: Governed, prepared: Prepared
) -> None:
    repository = governed("stub")
    nested = "  - The greeting itself:\n    - its words.\n    - its voice."
    others = f"{DEPENDENCIES}- Coordinates with: the voice (Unified Voice Contract).\n"
    activated(repository, prepared, ("  - The greeting itself.", nested), (NO_DEPENDENCY, others))
    text = repository.read(PACKET)
    assert f"{nested}\n" in text
    assert "Coordinates with: the voice (Unified Voice Contract)." in text


def test_the_boxes_of_the_checklist_are_ticked_where_the_tool_knows(governed: Governed) -> None:
    boxes = {stage: re.findall(r"^- \[([ x])\]", governed(stage).read(STUB), re.MULTILINE)
             for stage in ("stub", "presented", "ready")}  # fmt: skip
    assert "".join(boxes["stub"]) == " " * 7
    assert "".join(boxes["presented"]) == "xx" + " " * 5
    assert "".join(boxes["ready"]) == "x" * 7


def test_a_dependency_that_nobody_knows_has_a_remedy_that_ends_the_refusal(
    governed: Governed, prepared: Prepared
) -> None:
    repository = governed("stub")
    activated(repository, prepared, (NO_DEPENDENCY, f"{DEPENDENCIES}- Depends on: WP-1-Voice-v1.\n"))
    repository.done("packet", "prepare", WP, "--for", "coder")
    said = repository.refused("claim", WP, "--as", "coder")
    assert "workpacket new WP-1-Voice-v1" in said
    assert f"workpacket packet amend {WP}" in said
    with_it = repository.read(PACKET)
    lines = [line for line in with_it.splitlines(keepends=True) if "Voice" not in line and "DEPENDENCIES:" not in line]
    repository.write(PACKET, "".join(lines))
    assert f"workpacket packet amend {WP}" in repository.refused("claim", WP, "--as", "coder")
    repository.write(PACKET, with_it)
    repository.done("new", "WP-1-Voice-v1", "--what", "A voice", "--why", "To sing")
    assert "(dependency_unmet)" in repository.refused("claim", WP, "--as", "coder")


def test_post_work_passes_before_the_packet_is_submitted(governed: Governed) -> None:
    repository = governed("claimed")
    said = ran(repository.root, "just", "post-work", WP, "--as", "coder")
    assert said.status == 3
    assert "evidence" in said.out + said.err
    said = ran(repository.root, "just", "post-work", WP, "--as", "coder", "--prove", "1=true")
    assert said.status == 0, said
    assert repository.git("status", "--porcelain") == ""


def test_ci_installs_what_runs_here_and_judges_the_change(governed: Governed) -> None:
    repository = governed("ready")
    repository.done("init", "--workflow", "--from", "workpacket==0.1.0")
    workflow = repository.read(".github/workflows/workpacket.yml")
    assert "workpacket==0.1.0" in workflow
    assert "--base" in workflow
    assert "pip install workpacket\n" not in workflow
    page = (ROOT / "docs" / "howto" / "ci.md").read_text("utf-8")
    assert "nox" in page
    assert not re.search(r"install\(\"workpacket\"\)|pip install workpacket$", page, re.MULTILINE)


STATEFUL = """
import os, signal, sys, json
from pathlib import Path
from workpacket.runtime import Runtime, Settings
from workpacket.runtime.model_sessions.session import open_session

STATE = {"max_tokens": 4096, "tokens_used": 17, "tokenizer": "bpe", "secretary": "Ann", "at": 3}
with Runtime.open(Path(".git/workpacket/runs.db"), Settings(actor="tester")) as runtime:
    with open_session(runtime, "s", model="m", every=2) as session:
        if sys.argv[1] == "save":
            session.checkpoint(state=STATE)
            os.kill(os.getpid(), signal.SIGKILL)
        print(json.dumps(session.restore().state))
"""


def test_a_restored_session_has_the_state_that_was_saved(sessions: Killed) -> None:
    repository = sessions("")
    assert python(repository.root, STATEFUL, "save").status == -signal.SIGKILL
    restored = python(repository.root, STATEFUL, "restore")
    assert restored.status == 0, restored
    assert json.loads(restored.out) == {
        "max_tokens": 4096, "tokens_used": 17, "tokenizer": "bpe", "secretary": "Ann", "at": 3,
    }  # fmt: skip


LEAKING = """
import sys
from pathlib import Path
from workpacket.runtime import Runtime, Settings
from workpacket.runtime.model_sessions.session import open_session

with Runtime.open(Path(".git/workpacket/runs.db"), Settings(actor="tester")) as runtime:
    with open_session(runtime, "s", model="m", every=1) as session:
        session.add("user", sys.argv[1])
        session.checkpoint()
"""


def test_secrets_stay_out_of_artifacts_and_store_in_every_usual_form(sessions: Killed) -> None:
    repository = sessions("")
    texts = {"password=hunter2hunter2": "hunter2hunter2", "postgres://u:s3cretpw@h/db": "s3cretpw",
             "api_key: 'a8f5f167f44f4964e6c998de'": "a8f5f167f44f4964e6c998de",
             "ghp_" + "a1B2" * 9: "ghp_" + "a1B2" * 9}  # fmt: skip
    said = python(repository.root, LEAKING, "\n".join(texts))
    assert said.status == 0, said
    stored = b"".join(path.read_bytes() for path in (repository.root / ".git" / "workpacket").rglob("*")
                      if path.is_file())  # fmt: skip
    assert [secret for secret in texts.values() if secret.encode() in stored] == []
