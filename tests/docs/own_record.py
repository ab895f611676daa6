"""What a log says of its packets, compared with what git knows: which came first, and how fast it was judged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def faults(root: Path, since: str) -> list[str]:
    """Of the packets activated after the instant `since`: work older than its activation, verdicts faster than their
    proofs."""
    landed = landings(root)
    found = []
    for folder in sorted((root / ".GOV/log").glob("WP-*")):
        events = sorted((read(path) for path in folder.glob("*.json")), key=lambda event: event["clock"])
        activated = next((event for event in events if event["type"] == "activated"), None)
        if activated is not None and activated["at"] > since:
            found += [f"{folder.name}: {what}" for what in (*too_old(root, events, landed), *too_fast(events))]
    return found


def read(path: Path) -> Event:
    event: Event = json.loads(path.read_bytes())
    return {**event, "name": path.name}


def landings(root: Path) -> dict[str, str]:
    """For each file of the log, the commit of the first-parent line that brought it."""
    options = ["--first-parent", "--diff-merges=first-parent", "--reverse", "--diff-filter=A", "--name-only"]
    found: dict[str, str] = {}
    commit = ""
    for line in git(root, "log", *options, "--format=%x01%H", "HEAD", "--", ".GOV/log").splitlines():
        if line.startswith("\x01"):
            commit = line[1:]
        elif line:
            found.setdefault(line.rpartition("/")[2], commit)
    return found


def too_old(root: Path, events: list[Event], landed: Mapping[str, str]) -> Iterator[str]:
    """The activation is on the line before the first commit of the work, and no blob of the work is known to it."""
    begun = [landed[event["name"]] for event in events if event["type"] == "activated" and event["name"] in landed]
    submitted = [event for event in events if event["type"] == "submitted"]
    for event in submitted:
        commit, base = event["data"]["commit"], event["data"].get("base_commit")
        if not begun:
            yield f"{commit[:12]} was submitted before the activation was on the main branch"
            continue
        own = git(root, "rev-list", commit, f"^{base or begun[0]}", "--", ":(exclude).GOV").split()
        for each in own:
            if subprocess.run(["git", "merge-base", "--is-ancestor", begun[0], each], cwd=root, check=False).returncode:
                yield f"its commit {each[:12]} is not younger than its activation"
        known = set(git(root, "rev-list", "--objects", "--no-object-names", begun[0]).split())
        for path, blob in changed(root, begun[0], commit):
            if blob in known:
                yield f"{path} is as a commit before the activation had it"


def changed(root: Path, before: str, after: str) -> Iterator[tuple[str, str]]:
    """The files outside of .GOV that the work wrote, with their blobs."""
    own = git(root, "merge-base", before, after).strip()
    lines = git(root, "diff-tree", "-r", "-z", "--no-renames", own, after, "--", ":(exclude).GOV").split("\0")
    for entry, path in zip(lines[::2], lines[1::2], strict=False):
        _, mode, _, blob, letter = entry.split()
        if letter != "D" and mode != "160000":
            yield path, blob


def too_fast(events: list[Event]) -> Iterator[str]:
    """A validator who ran the proofs again took at least as long as they took before."""
    for place, event in enumerate(events):
        if event["type"] != "verdict.given":
            continue
        before = list(takewhile(lambda one: one["type"] != "submitted", reversed(events[:place])))
        submission = next((one for one in reversed(events[:place]) if one["type"] == "submitted"), None)
        if submission is None:
            yield "a verdict without a submission"
            continue
        rows = [row for one in (submission, *before) for row in one["data"].get("evidence", [])]
        ran = {(row["command"], row.get("commit")): row.get("milliseconds") for row in rows if "command" in row}
        if None in ran.values():
            yield "a proof whose time was not recorded"
        needed = sum(took for took in ran.values() if took) / 1000
        taken = (instant(event["at"]) - instant(submission["at"])).total_seconds()
        if taken < needed:
            yield f"judged {taken:g} s after the submission, and its proofs took {needed:g} s"


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
