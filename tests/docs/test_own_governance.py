"""Our own `.GOV/`: complete, approved, and without anybody's private key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LANES = ["activated", "prepared", "claimed", "submitted", "verdict.given", "merged"]


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What the audit says of the commit checked out here, in a clone whose main branch it is: what the remote of this
    repository is, and what was remembered of it, depends on the machine."""
    clone = tmp_path_factory.mktemp("own") / "clone"
    git("clone", "--quiet", str(ROOT), str(clone))
    git("-C", str(clone), "checkout", "--quiet", "-B", "main")
    git("-C", str(clone), "remote", "remove", "origin")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), "XDG_CONFIG_HOME": str(clone.parent / "settings")}
    command = [sys.executable, "-m", "workpacket", "audit", "--json"]
    done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    answer: Mapping[str, Any] = json.loads(done.stdout)
    return answer


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def test_every_requirement_of_the_main_body_has_a_packet(audit: Mapping[str, Any]) -> None:
    requirements = audit["data"]["requirements"]
    assert requirements["count"] >= 20
    assert requirements["uncovered"] == []


def test_the_audit_finds_nothing_but_the_new_roots_of_trust(audit: Mapping[str, Any]) -> None:
    found = {(each["code"], each["severity"]) for each in audit["findings"]}
    # The refinements of before were signed with the boxes of their checklist left empty, and what is signed stays.
    assert found == {("policy_reanchored", "info"), ("verdict_unticked", "warning")}
    unticked = [each["path"] for each in audit["findings"] if each["code"] == "verdict_unticked"]
    assert len(unticked) == 21


def test_each_new_root_of_trust_was_named_on_main_before_it_came() -> None:
    """`check --base` asks this of the change; main itself has no base to compare it with."""
    record = ".GOV/policy/reanchored.toml"
    line = ["log", "--first-parent", "--diff-merges=first-parent", "--no-patch", "--reverse", "--format=%H"]
    brought = git("-C", str(ROOT), *line, "HEAD", "--", record).split()
    for number, commit in enumerate(brought):
        policy = tomllib.loads(git("-C", str(ROOT), "show", f"{commit}:{record}"))["reanchor"][number]["policy"]
        assert f"WORKPACKET_REANCHOR={policy}" in git("-C", str(ROOT), "show", f"{commit}^1:.ci/run")
    assert len(brought) == 2


def test_every_packet_of_ours_goes_through_every_lane_in_order() -> None:
    """Those in work have come some of the way; the log of a judged one need not say `merged`."""
    whole = 0
    for packet in sorted(path.stem for path in (ROOT / ".GOV/task_packets").glob("WP-*.md")):
        events = [json.loads(path.read_bytes()) for path in (ROOT / ".GOV/log" / packet).glob("*.json")]
        # Notes and amendments move nothing.
        in_order = sorted(events, key=lambda event: event["clock"])
        types = [event["type"] for event in in_order if event["type"] not in {"noted", "amended"}]
        lanes = types[types.index(LANES[0]) :] if LANES[0] in types else []
        light = "\n- FORM: light\n" in (ROOT / f".GOV/task_packets/{packet}.md").read_text(encoding="utf-8")
        way = [lane for lane in LANES if lane != "prepared"] if light else LANES  # `start` needs no preparation
        assert lanes == way[: len(lanes)] != [], packet
        whole += lanes == LANES
    assert whole >= 21


ERRATA = (
    "Batch-Checkpoint", "Completion", "Foreign-Forms", "Parallel-Branches", "Postgres-Store", "Runtime-Store",
    "Session-Recovery", "Signed-Gates", "Start-Up", "Step-Checkpoint",
)  # fmt: skip


@pytest.mark.parametrize("name", ERRATA)
def test_what_is_wrong_in_our_record_is_corrected_by_an_event_of_its_packet(name: str) -> None:
    """The page in .GOV can be rewritten; the log only grows."""
    packet = f"WP-1-{name}-v1"
    events = [json.loads(path.read_bytes()) for path in (ROOT / ".GOV/log" / packet).glob("*.json")]
    (note,) = [event for event in events if event["type"] == "noted"]
    assert note["data"]["text"].startswith("Erratum: ")
    assert note["actor"]["id"] == "founders"
    assert note["sig"]
    ran_again = "were run again" in (ROOT / f".GOV/reports/{packet}.md").read_text("utf-8")
    assert ran_again == ("They were not" in note["data"]["text"])
    assert name in (ROOT / ".GOV/README.md").read_text("utf-8")


def test_nothing_was_ever_changed_in_or_taken_out_of_the_log() -> None:
    """CI runs on main itself and can compare it with nothing older; so this asks every commit of its line."""
    assert git("-C", str(ROOT), "rev-parse", "--is-shallow-repository").strip() == "false"
    listed = ["log", "--first-parent", "--diff-merges=first-parent", "--no-renames", "--diff-filter=DMT", "--format="]
    folders = [".GOV/log", ".GOV/attestations"]
    assert git("-C", str(ROOT), *listed, "--name-only", "HEAD", "--", *folders).split() == []


def test_nobodys_private_key_lies_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files", "-z", ".GOV"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0"):
        if name:
            assert b"PRIVATE KEY" not in Path(ROOT, name).read_bytes(), name
