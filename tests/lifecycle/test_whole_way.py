"""From nothing to VALIDATED, as a new user would go: by what each command says."""

from __future__ import annotations

from lifecycle.governed import Governed

NAME = "WP-1-Greeting-v1"
STUB, REFINEMENT, PACKET = (
    f".GOV/{folder}/{NAME}.md" for folder in ("task_packets/stubs", "refinements", "task_packets")
)


def test_a_packet_goes_the_whole_way_and_the_check_agrees_at_every_step(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("check", "--fail-on", "error")
    assert governed.state(NAME).lane == "READY_FOR_DEV"
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "1=python -c pass", "--prove", "2=src/greet.py:1")
    governed.write("report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "validator")
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
    governed.done("merged", NAME)
    assert governed.state(NAME).lane == "VALIDATED"
    assert f"- **[{NAME}]** - [VALIDATED]" in governed.read(".GOV/roles_shared/TASK_BOARD.md")
    assert "**Status:** Validated" in governed.read(PACKET)
    assert f"| Done: {NAME} |" in governed.read(".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md")
    governed.done("check", "--fail-on", "error")
    governed.done("log", "verify", "--base", "main~1")


def test_each_command_says_what_to_do_next(governed: Governed) -> None:
    assert 'then: workpacket new "TITLE"' in governed.done("init").next
    governed.begin()
    assert governed.done("status").next == "workpacket help new", "a command that only looks names none that writes"
    governed.stub(NAME)
    assert governed.done("status").next == f"workpacket why {NAME}"
    assert governed.done("why", NAME).next == f"workpacket refine {NAME}"
    governed.refine(NAME)
    assert governed.done("why", NAME).next == f"workpacket refine {NAME} --present"
    assert f"packet activate {NAME}" in governed.done("refine", NAME, "--present").next
    governed.sign(NAME)
    assert governed.done("why", NAME).next == f"workpacket packet activate {NAME}"
    assert f"workpacket packet prepare {NAME}" in governed.done("create-task-packet", NAME).next
    assert governed.done("next").next == f"workpacket claim {NAME}"
    assert governed.done("packet", "prepare", NAME).next == f"workpacket claim {NAME}"
    assert f"workpacket submit {NAME}" in governed.done("claim", NAME).next
