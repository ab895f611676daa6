"""What an audit finds besides `check`: suspect links, containment that cannot be, and what stands alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from audit.audited import DONE, SPEC, STUB, STUCK, WORKED, Audited
from git.scratch import git
from lifecycle.governed import Quiet, govern
from lifecycle.landings import in_flight, name_of
from workpacket.ledger.log import NewLogEvent
from workpacket.model.canonical import Json
from workpacket.rules.packet_evidence import ran_nothing
from workpacket.shell.audit import web_address

REFINEMENT = f".GOV/refinements/{WORKED}.md"


def doubts(town: Audited) -> set[tuple[str, str, int]]:
    """Code, path and line of what `trace` tells."""
    return {(one["code"], one["path"], one["line"]) for one in town.json("trace")["data"]["doubts"]}


def codes(town: Audited) -> set[str]:
    return {code for code, _, _ in doubts(town)}


def test_where_all_holds_there_is_no_doubt(audited: Audited) -> None:
    assert doubts(audited) == set()


def test_a_changed_requirement_makes_the_link_of_unfinished_work_suspect(audited: Audited) -> None:
    audited.replace(SPEC, "greets its user by name", "greets everybody")
    line = audited.line_of(REFINEMENT, "ANCHOR 1")
    assert ("requirement_changed", REFINEMENT, line) in doubts(audited)
    assert not any(DONE in path for code, path, _ in doubts(audited) if code == "requirement_changed")


def test_a_requirement_that_only_moved_is_not_suspect(audited: Audited) -> None:
    audited.replace(SPEC, "# Specification\n", "# Specification\n\nA preface.\n")
    assert "requirement_changed" not in codes(audited)
    assert audited.json("trace", WORKED)["data"]["packets"][0]["anchors"][0]["state"] == "moved"


def test_a_refinement_changed_after_activation_is_found(audited: Audited) -> None:
    audited.write(REFINEMENT, audited.read(REFINEMENT) + "\nAnd more.\n")
    assert ("approved_file_changed", REFINEMENT, 0) in doubts(audited)


def test_a_proof_that_changed_since_is_noted_at_its_criterion(audited: Audited) -> None:
    audited.write("src/greet.py", "print('nobody')\n")
    line = audited.line_of(audited.packet_path(DONE), "It ends with a line feed.")
    assert doubts(audited) == {("proof_changed", audited.packet_path(DONE), line)}


def test_work_that_left_the_target_branch_is_found(audited: Audited) -> None:
    event = next(one for one in audited.events(DONE) if one.type == "merged")
    files = {path: data for path, data in audited.files().items() if path.startswith((".GOV", "src", "reports"))}
    git(audited.root, "checkout", "--quiet", "--orphan", "other")
    audited.commit("The same files, another history")
    git(audited.root, "branch", "--force", "main", "other")
    git(audited.root, "checkout", "--quiet", "main")
    assert files == {path: data for path, data in audited.files().items() if path in files}
    assert ("commit_not_on_target", event.path, 1) in doubts(audited)


def test_containment_of_a_commit_that_did_not_exist_yet_is_found(audited: Audited) -> None:
    late = commit_of_later(audited)
    git(audited.root, "update-ref", "refs/heads/main", late)
    submitted = next(one for one in audited.events(DONE) if one.type == "submitted")
    data = {"lane_from": "MERGE_PENDING", "lane_to": "VALIDATED", "commit": submitted.text("commit"),
            "target": "main", "target_commit": late, "proof": "commit"}  # fmt: skip
    (audited.root / audited.events(DONE)[-1].path).unlink()
    event = audited.record(DONE, NewLogEvent("merged", data))
    assert ("containment_too_early", event.path, 1) in doubts(audited)


def commit_of_later(town: Audited) -> str:
    """A commit with the files of the last one, made years after what the log tells of."""
    text = re.sub(r"[0-9]{10} \+0000", "1900000000 +0000", git(town.root, "cat-file", "commit", "HEAD"))
    path = town.root / ".git" / "later"
    path.write_text(text + "\n")
    return git(town.root, "hash-object", "-t", "commit", "-w", str(path))


def test_a_requirement_that_no_packet_rests_on_is_an_orphan(audited: Audited) -> None:
    audited.replace(SPEC, "## 2 Roadmap", "### 1.2 Leaving\nIt says goodbye.\n\n## 2 Roadmap")
    line = audited.line_of(SPEC, "### 1.2")
    assert ("requirement_without_packet", SPEC, line) in doubts(audited)
    assert not any(path == SPEC and at != line for _, path, at in doubts(audited))


def test_a_requirement_that_a_stub_names_is_planned(audited: Audited) -> None:
    audited.replace(SPEC, "## 2 Roadmap", "### 1.2 Leaving\nIt says goodbye.\n\n## 2 Roadmap")
    path = f".GOV/task_packets/stubs/{STUB}.md"
    lines = audited.read(path).splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "SPEC_ANCHOR_CANDIDATES" in line)
    audited.write(path, "".join([*lines[: at + 1], "  - SPEC_v1.md 1.2 Leaving\n", *lines[at + 1 :]]))
    assert "requirement_without_packet" not in codes(audited)


def test_a_packet_without_a_requirement_is_an_orphan(audited: Audited) -> None:
    text = audited.read(REFINEMENT)
    audited.write(REFINEMENT, text[: text.index("#### ANCHOR 1")])
    assert ("packet_without_requirement", audited.packet_path(WORKED), 1) in doubts(audited)


def test_a_criterion_added_after_the_proof_and_evidence_of_one_that_is_gone(audited: Audited) -> None:
    path = audited.packet_path(DONE)
    audited.replace(path, "- The name is printed.", "- The full name is printed.")
    submitted = next(one for one in audited.events(DONE) if one.type == "submitted")
    assert doubts(audited) == {
        ("criterion_without_evidence", path, audited.line_of(path, "The full name")),
        ("evidence_without_criterion", submitted.path, 1),
    }


def test_what_stands_alone_is_no_error_of_the_repository(audited: Audited) -> None:
    audited.replace(SPEC, "## 2 Roadmap", "### 1.2 Leaving\nIt says goodbye.\n\n## 2 Roadmap")
    assert audited("audit").status == 0
    for path in (f".GOV/task_packets/stubs/{DONE}.md", audited.packet_path(DONE)):
        audited.replace(path, "- The name is printed.", "- The full name is printed.")
    found = audited.json("audit")["findings"]
    assert {one["code"] for one in found if one["severity"] == "error"} == {"contract_changed"}


def test_a_blocked_packet_says_why_and_until_when(audited: Audited) -> None:
    told = audited.done("trace", STUCK).out
    assert "No melody is licensed." in told
    assert "The licence is signed." in told


@pytest.mark.parametrize(
    ("log", "nothing"),
    [
        ("collected 0 items\n\nno tests ran in 0.01s", "collected 0 items"),
        ("collected 5 items / 5 deselected / 0 selected", "0 selected"),
        ("test result: ok. 0 passed; 0 failed; 12 filtered out", "0 passed"),
        ("Ran 0 tests in 0.000s\n\nOK", "Ran 0 tests"),
        ("?   \texample.org/x\t[no test files]", "no test files"),
        ("Tests:       0 total", "Tests:       0 total"),
        ("  0 passing (1ms)", "0 passing"),
        ("No tests found, exiting with code 0", "No tests found"),
        ("10 passed in 1s", ""),
        ("running 0 tests\nrunning 12 tests\n12 passed", ""),
        ("ok  \texample.org/x\t0.01s\n?   \texample.org/y\t[no test files]", ""),
        ("version 3.0 passed to the compiler", ""),
        ("0 passed, 3 failed", ""),
        ("", ""),
    ],
)
def test_a_log_says_whether_anything_ran(log: str, nothing: str) -> None:
    assert ran_nothing(log) == nothing


def test_evidence_of_the_log_that_ran_nothing_is_found_by_check(audited: Audited) -> None:
    row: Json = {"criterion": "The name is printed.", "result": "met", "command": "pytest -k none", "exit_code": 0,
           "log_tail": "collected 0 items"}  # fmt: skip
    bare: Json = {"criterion": "The name is printed.", "result": "met", "command": "pytest"}
    event = audited.record(WORKED, NewLogEvent("evidence.recorded", {"evidence": [row, bare]}))
    found = {(one["code"], one["path"]) for one in audited.json("check")["findings"]}
    assert found == {("evidence_ran_nothing", event.path), ("evidence_exit_code_missing", event.path)}


def test_what_changed_since_the_approval_is_shown_part_by_part(audited: Audited) -> None:
    assert audited.json("trace", WORKED)["data"]["packets"][0]["rewritten"] == []
    audited.replace(audited.packet_path(WORKED), "The name is printed.", "The name is sung.")
    changed = audited.json("trace", WORKED)["data"]["packets"][0]["rewritten"]
    assert [one["part"] for one in changed] == ["criteria"]
    assert "printed" in changed[0]["before"]
    assert "sung" in changed[0]["after"]


def test_a_light_packet_is_based_on_the_section_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    governed = Quiet(tmp_path, None, govern(tmp_path, monkeypatch, None).clock)
    in_flight(governed, 2)
    governed.git("switch", "--quiet", f"wp/{name_of(1)}")
    said = governed.json("audit")["data"]
    rows = {row["title"]: row["packets"] for row in said["requirements"]["rows"]}
    assert rows["Part 1"] == [name_of(1)]
    packet = next(one for one in said["packets"] if one["id"] == name_of(1))
    assert (packet["title"], packet["waits_for"]) == ("Part 1", "verdict")
    assert (packet["anchors"][0]["state"], "Part 1 is there." in packet["anchors"][0]["excerpt"]) == ("holds", True)
    said = governed.json("audit")["data"]["packets"]
    assert "\n" in next(one for one in said if one["id"] == name_of(1))["anchors"][0]["excerpt"], "lines are not joined"
    governed.write(".GOV/spec/SPEC_v1.md", governed.read(".GOV/spec/SPEC_v1.md").replace("Part 1 is there", "Gone"))
    assert ("requirement_changed", True) in {
        (one["code"], name_of(1) in one["path"]) for one in governed.json("audit")["data"]["matters"]
    }


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:acme/greet.git", "https://github.com/acme/greet"),
        ("https://user:secret@github.com/acme/greet.git", "https://github.com/acme/greet"),
        ("ssh://git@gitlab.example.org:2222/group/sub/greet", "https://gitlab.example.org/group/sub/greet"),
        ("/srv/git/greet.git", ""),
        ("https://example.org/acme/greet.git", ""),
        ("https://github.com/acme/<script>", ""),
        ("", ""),
    ],
)
def test_the_address_on_a_forge_is_that_of_the_remote_without_credentials(remote: str, address: str) -> None:
    assert web_address(remote) == address
