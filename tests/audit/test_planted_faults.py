"""Ten faults, each planted in a repository where nothing is wrong: `check`, `audit` and CI name it, with its place."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any

import pytest

from architecture.source_tree import ROOT
from audit.audited import BOARD, DONE, LOG, REGISTRY, REPORT, SPEC, STUB, WORKED, Audited
from shell.approvals.story import Story
from workpacket.ledger.log import NewLogEvent
from workpacket.report.catalogue import catalogue

Place = tuple[str, int]
RUN = {"run": "run-1", "stream": "stream-1"}


def edited_report(town: Audited) -> Place:
    town.write(REPORT, "It does not greet.\n")
    return REPORT, 0


def edited_log(town: Audited) -> Place:
    town.write(LOG, "3 passed in 0.01s\n")
    return town.packet_path(DONE), town.line_of(town.packet_path(DONE), "LOG_SHA256")


def stale_cell(town: Audited) -> Place:
    town.replace(REGISTRY, f"Done: {DONE}", f"In Progress: {DONE}")
    return REGISTRY, town.line_of(REGISTRY, DONE)


def forked_packet(town: Audited) -> Place:
    last = len(town.events(WORKED)) - 1
    for number, reason in enumerate(("theirs", "ours")):
        lane = ("READY_FOR_DEV", "BLOCKED")[number]
        data = {"lane_from": "IN_PROGRESS", "lane_to": lane, "reason": reason} | ({"until": "x"} if number else {})
        town.record(WORKED, NewLogEvent(("released", "blocked")[number], data), after=last)
    return f".GOV/log/{WORKED}", 0


def truncated_log(town: Audited) -> Place:
    last = town.events(DONE)[-1]
    (town.root / last.path).unlink()
    return last.path, 0


def zombie_run(town: Audited) -> Place:
    return town.record(DONE, NewLogEvent("run.linked", RUN)).path, 1


def moved_specification(town: Audited) -> Place:
    town.replace(SPEC, "greets its user by name", "greets everybody")
    path = f".GOV/refinements/{WORKED}.md"
    return path, town.line_of(path, "SPEC_TARGET_RESOLVED")


def expired_waiver(town: Audited) -> Place:
    data = {"rule": "dependency_unmet", "reason": "in a hurry", "expires_at": "2025-12-31T00:00:00Z"}
    return town.record(WORKED, NewLogEvent("waived", data)).path, 1


def missing_row(town: Audited) -> Place:
    rows = town.read(REGISTRY).splitlines(keepends=True)
    town.write(REGISTRY, "".join(row for row in rows if STUB not in row))
    path = f".GOV/task_packets/stubs/{STUB}.md"
    return path, town.line_of(path, f"WP_ID: {STUB}")


def superseded_but_active(town: Audited) -> Place:
    town.replace(BOARD, f"**[{DONE}]** - [VALIDATED]", f"**[{DONE}]** - [SUPERSEDED]")
    return REGISTRY, town.line_of(REGISTRY, DONE)


FAULTS: dict[str, tuple[Callable[[Audited], Place], str]] = {
    "edited evidence: the report": (edited_report, "evidence_changed"),
    "edited evidence: the log": (edited_log, "evidence_log_differs"),
    "stale registry cell": (stale_cell, "registry_board_stale"),
    "forked packet": (forked_packet, "packet_forked"),
    "truncated log": (truncated_log, "log_file_deleted"),
    "zombie run": (zombie_run, "run_zombie"),
    "spec moved": (moved_specification, "spec_moved"),
    "waiver expired": (expired_waiver, "waiver_expired"),
    "missing row": (missing_row, "stub_without_row"),
    "superseded but active": (superseded_but_active, "registry_active_superseded"),
}
# What was cut off at the end of a log is seen in comparison with the base alone, which CI names.
NEEDS_BASE = {"truncated log"}


def places(found: dict[str, Any], code: str) -> list[Place]:
    return [(one["path"], one["line"]) for one in found["findings"] if one["code"] == code]


def command_of_ci() -> list[str]:
    """The words of the session `gov` of the noxfile, which `.ci/run` calls, without the program."""
    tree = ast.parse((ROOT / "noxfile.py").read_bytes())
    session = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "gov")
    runs = [
        node for node in ast.walk(session) if isinstance(node, ast.Call) and ast.unparse(node.func) == "session.run"
    ]
    words = [argument.value for argument in runs[-1].args if isinstance(argument, ast.Constant)]
    assert words[0] == "workpacket"
    return [str(word) for word in words[1:]]


def test_nothing_is_wrong_before(audited: Audited) -> None:
    assert audited("check", "--fail-on", "info", "--base", "main").status == 0
    assert audited.json("audit")["findings"] == []
    assert audited("audit").out.startswith("Nothing is wrong.\n")


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named_by_check_audit_and_ci(audited: Audited, name: str) -> None:
    plant, code = FAULTS[name]
    place = plant(audited)
    base = ["--base", "main"] if name in NEEDS_BASE else []
    assert place in places(audited.json("check", *base), code)
    audit = audited.json("audit")
    assert place in places(audit, code)
    assert place in [(one["path"], one["line"]) for one in audit["data"]["matters"] if one["code"] == code]
    told = audited(*command_of_ci(), *base, "--format", "github").out
    there = f"file={place[0]},line={place[1]}" if place[1] else f"file={place[0]}"
    assert any(there in line and code in line for line in told.splitlines())
    assert f"code-{code}" in audited("audit", "--format", "html").out


def test_a_wrong_signature_is_named_by_check_audit_and_ci(story: Story) -> None:
    envelope = story.approve()
    path = f".GOV/attestations/{envelope}.dsse.json"
    forged = forge(story, path)
    assert (forged, 0) in places(story.json("check"), "signature_invalid")
    assert (forged, 0) in places(story.json("audit"), "signature_invalid")
    assert "signature_invalid" in story.run(*command_of_ci(), "--format", "github").out


def forge(story: Story, path: str) -> str:
    """Another signature of the same key, of another text, under the right name; returns where it lies."""
    import base64
    import hashlib

    envelope = json.loads(story.read(path))
    blob = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
    blob[-1] ^= 1
    envelope["signatures"][0]["sig"] = base64.b64encode(bytes(blob)).decode()
    data = (json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n").encode()
    forged = f".GOV/attestations/{hashlib.sha256(data).hexdigest()}.dsse.json"
    (story.root / path).unlink()
    story.write(forged, data)
    return forged


def shares(said: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {gap["name"]: (gap["done"], gap["of"]) for gap in said["data"]["gaps"]}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", FAULTS)
def test_no_number_says_that_all_is_in_order_beside_an_error_about_the_log_or_evidence(
    audited: Audited, name: str
) -> None:
    before = shares(audited.json("audit"))
    plant, code = FAULTS[name]
    plant(audited)
    said = audited.json("audit")
    family = catalogue()[code].family
    if family != "integrity" or not any(one["code"] == code for one in said["data"]["matters"]):
        return
    done, of = shares(said)["Packets with an intact log"]
    assert done < of
    assert of == before["Packets with an intact log"][1]


def test_a_forged_decision_is_counted_and_is_not_in_order(story: Story) -> None:
    forge(story, f".GOV/attestations/{story.approve()}.dsse.json")
    done, of = shares(story.json("audit"))["Valid signed decisions"]
    assert (done, of) == (0, 1)


@pytest.mark.parametrize("name", FAULTS)
def test_whoever_reads_the_report_learns_who_has_to_act(audited: Audited, name: str) -> None:
    plant, code = FAULTS[name]
    plant(audited)
    matter = next(one for one in audited.json("audit")["data"]["matters"] if one["code"] == code)
    assert matter["who"]
