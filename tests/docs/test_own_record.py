"""Our own packets, from the new root of trust on: activated before the work, judged no faster than the proofs ran."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from architecture.source_tree import ROOT
from docs.own_record import faults, git
from git.scratch import make_repository

PACKET = "WP-1-Work-v1"
SINCE = "2026-11-19T00:00:00Z"
RECORD = ROOT / ".GOV/policy/reanchored.toml"


def test_our_own_packets_are_activated_before_the_work_and_judged_in_time() -> None:
    since = tomllib.loads(RECORD.read_text("utf-8"))["reanchor"][0]["at"]
    assert faults(ROOT, since) == []


@pytest.mark.long
def test_what_was_done_before_would_not_pass() -> None:
    """The packets that .GOV/README.md corrects: without the date, the same question names them."""
    told = faults(ROOT, "")
    assert any("its commit" in each for each in told)
    assert any("proof whose time was not recorded" in each for each in told)


class Record:
    """A repository with a log whose events hold only what the question looks at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = 0
        make_repository(root)
        self.commit("src/old.py", "old\n")

    def commit(self, path: str, text: str) -> str:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, "utf-8")
        git(self.root, "add", "--all")
        git(self.root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "-m", path)
        return git(self.root, "rev-parse", "HEAD").strip()

    def event(self, kind: str, second: int, **data: Any) -> str:
        self.clock += 1
        event = {"type": kind, "clock": self.clock, "at": f"2026-11-19T01:00:{second:02}Z", "data": data}
        text = json.dumps(event)
        return self.commit(f".GOV/log/{PACKET}/{hashlib.sha256(text.encode()).hexdigest()}.json", text)

    def judged(self, commit: str, *, base: str, taken: int = 5, took: int | None = 4000) -> list[str]:
        row = {"command": "pytest", "commit": commit, **({"milliseconds": took} if took is not None else {})}
        self.event("submitted", 10, commit=commit, base_commit=base, evidence=[{**row, "criterion": "1"}, row])
        self.event("verdict.given", 10 + taken)
        return faults(self.root, SINCE)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "repository")


def test_work_that_began_after_its_activation_passes(record: Record) -> None:
    base = record.event("activated", 0)
    assert record.judged(record.commit("src/new.py", "new\n"), base=base) == []


def test_a_commit_from_before_the_activation_is_named(record: Record) -> None:
    base = git(record.root, "rev-parse", "HEAD").strip()
    git(record.root, "checkout", "--quiet", "-b", "work")
    work = record.commit("src/new.py", "new\n")
    git(record.root, "checkout", "--quiet", "-")
    record.event("activated", 0)
    git(record.root, "-c", "user.name=A", "-c", "user.email=a@b", "merge", "--quiet", "--no-ff", "-m", "m", "work")
    (fault,) = record.judged(work, base=base)
    assert f"its commit {work[:12]} is not younger than its activation" in fault


def test_work_that_was_done_before_and_committed_again_is_named(record: Record) -> None:
    git(record.root, "rm", "--quiet", "src/old.py")
    git(record.root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "-m", "gone")
    base = record.event("activated", 0)
    (fault,) = record.judged(record.commit("src/new.py", "old\n"), base=base)
    assert "src/new.py is as a commit before the activation had it" in fault


def test_a_submission_that_nothing_activated_on_the_line_is_named(record: Record) -> None:
    base = git(record.root, "rev-parse", "HEAD").strip()
    git(record.root, "checkout", "--quiet", "-b", "work")
    record.event("activated", 0)
    work = record.commit("src/new.py", "new\n")
    record.event("submitted", 10, commit=work, base_commit=base, evidence=[])
    git(record.root, "checkout", "--quiet", "-")
    git(record.root, "-c", "user.name=A", "-c", "user.email=a@b", "merge", "--quiet", "--no-ff", "-m", "m", "work")
    assert [each for each in faults(record.root, SINCE) if "not younger than its activation" in each]


def test_a_verdict_faster_than_its_proofs_is_named(record: Record) -> None:
    base = record.event("activated", 0)
    (fault,) = record.judged(record.commit("src/new.py", "new\n"), base=base, taken=3)
    assert "judged 3 s after the submission, and its proofs took 4 s" in fault


def test_a_proof_without_its_time_is_named(record: Record) -> None:
    base = record.event("activated", 0)
    (fault,) = record.judged(record.commit("src/new.py", "new\n"), base=base, took=None)
    assert "a proof whose time was not recorded" in fault
