"""Conditions that are rarely unmet: each is met here, its message is followed, and the packet moves on."""

from __future__ import annotations

import subprocess

import pytest

from lifecycle.governed import SPECIFICATION, Governed
from lifecycle.signed import ALICE, Signed
from lifecycle.world import packet_text
from workpacket.problem import WorkpacketError

NAME = "WP-1-Greeting-v1"
PACKET, REFINEMENT = f".GOV/task_packets/{NAME}.md", f".GOV/refinements/{NAME}.md"
POLICY = ".GOV/policy/policy.toml"


def unmet(governed: Governed, code: str, *words: str) -> tuple[str, str]:
    """The message and the help of this unmet condition."""
    assert code in governed.refused(*words)
    (found,) = [one for one in governed.json(*words)["findings"] if one["code"] == code]
    return found["message"], found["hint"]


def activated(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")


def submitted(governed: Governed) -> None:
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.write("report.md", "Good.\n")
    governed.commit("submitted")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    governed.commit("judged")


def test_a_specification_that_must_grow_first_is_extended(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME)
    governed.replace(REFINEMENT, "ENRICHMENT_NEEDED: NO", "ENRICHMENT_NEEDED: YES")
    message, hint = unmet(governed, "enrichment_needed", "packet", "activate", NAME)
    assert message == "ENRICHMENT_NEEDED is YES: the specification must be extended first"
    assert hint == "add the proposed text to the specification, then write the refinement against the new version"
    governed.write(".GOV/spec/SPEC_v1.md", SPECIFICATION + "\n## 3 Also\nThe program ends.\n")
    governed.commit("extended")
    governed.git("rm", "--quiet", REFINEMENT)
    governed.commit("to be written again")
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    governed.done("packet", "activate", NAME)
    assert governed.state(NAME).lane == "READY_FOR_DEV"


def test_a_fork_is_settled_in_a_lane_that_the_message_lists(governed: Governed) -> None:
    activated(governed)
    for branch in ("one", "two"):
        governed.git("switch", "--quiet", "--create", branch, "main")
        governed.done("claim", NAME, "--as", branch)
        governed.commit(branch)
    governed.git("merge", "--quiet", "--message", "merged", "one")
    settle = ("packet", "resolve", NAME, "--reason", "one began first", "--lane")
    message, hint = unmet(governed, "fork_lane_unknown", *settle, "VALIDATED")
    assert message == "the conflicting moves lead to IN_PROGRESS, not to VALIDATED"
    assert "IN_PROGRESS" in governed.done(*hint.split()[1:]).out
    governed.done(*settle, "IN_PROGRESS")
    assert governed.state(NAME).lane == "IN_PROGRESS"


def test_a_packet_that_a_commit_deleted_is_restored_as_the_message_says(governed: Governed) -> None:
    activated(governed)
    governed.work(NAME)
    text = governed.read(PACKET)
    governed.git("rm", "--quiet", PACKET)
    governed.commit("deleted")
    governed.write("src/more.py", "print()\n")
    governed.commit("more")
    submit = ("submit", NAME, "--as", "coder", "--prove", "all=true")
    message, hint = unmet(governed, "packet_missing", *submit)
    assert message == f"{PACKET} is missing"
    subprocess.run(["sh", "-ec", hint], cwd=governed.root, check=True)
    assert governed.read(PACKET) == text
    governed.commit("restored")
    governed.done(*submit)


def test_work_that_was_never_submitted_is_reopened_and_submitted(governed: Governed) -> None:
    governed.done("init")
    governed.write(PACKET, packet_text(NAME, "Merge Pending").decode())
    governed.commit("before the log")
    governed.done("adopt")
    governed.commit("adopted")
    message, hint = unmet(governed, "commit_unknown", "packet", "merged", NAME)
    assert message == f"no commit of {NAME} has been submitted"
    assert hint == f"workpacket packet reopen {NAME} --reason TEXT"
    governed.done(*hint.split()[1:])
    governed.git("switch", "--quiet", "--create", "work")
    governed.write("src/greet.py", "print()\n")
    governed.commit("work")
    submitted(governed)
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "work")
    governed.done("packet", "merged", NAME)
    assert governed.state(NAME).lane == "VALIDATED"


def test_a_target_branch_that_does_not_exist_is_named_anew_in_the_policy(governed: Governed) -> None:
    governed.begin()
    pattern = 'branch_pattern = "wp/{id}"\n'
    governed.replace(POLICY, pattern, f'{pattern}target_branch = "release"\n')
    governed.commit("there is no such branch")
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    submitted(governed)
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", f"wp/{NAME}")
    message, hint = unmet(governed, "target_branch_unknown", "packet", "merged", NAME)
    assert message == "neither the policy nor git names a target branch that exists here"
    assert hint == f'edit {POLICY} on the base: target_branch = "BRANCH", below [lifecycle]'
    governed.replace(POLICY, 'target_branch = "release"', 'target_branch = "main"')
    governed.commit("the branch that there is")
    governed.done("packet", "merged", NAME)
    assert governed.state(NAME).lane == "VALIDATED"


def test_a_refinement_without_the_fields_of_the_signature_gets_them_and_is_approved(signed: Signed) -> None:
    governed = signed.governed
    signed.begin()
    signed.ready()
    text = governed.read(REFINEMENT)
    (line,) = [line for line in text.splitlines(keepends=True) if "USER_REVIEW_STATUS:" in line]
    governed.write(REFINEMENT, text.replace(line, ""))
    with pytest.raises(WorkpacketError, match="METADATA lacks USER_REVIEW_STATUS") as stopped:
        signed.draft("activation", ALICE)
    assert stopped.value.code == "refinement_unfillable"
    assert stopped.value.problem.hint == (
        f"add the fields that `workpacket check {REFINEMENT}` lists, then: workpacket approve {NAME}"
    )
    assert "USER_REVIEW_STATUS" in governed("check", REFINEMENT).out
    governed.write(REFINEMENT, text)
    signed.approve()
    governed.done("packet", "activate", NAME)
