"""What the tests of lock files share: the recorded projects, and two states judged against each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workpacket.documents.lockfiles.comparison import FileVerdict, Leave, State, compare, judge
from workpacket.problem import Problem

FILES = Path(__file__).parent / "files"

Texts = Mapping[str, str | bytes]


def project(name: str, state: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((FILES / name / state).iterdir())}


def state(label: str, texts: Texts) -> State:
    return State(label, {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()})


def compared(before: Texts, after: Texts, *allow: str) -> tuple[dict[str, FileVerdict], tuple[Problem, ...]]:
    """The verdict on each file that changed, and what could not be read."""
    files, unreadable = compare(state("before", before), state("after", after))
    return {verdict.file.path: verdict for verdict in judge(files, Leave(allow))}, unreadable


def judged(before: Texts, after: Texts, *allow: str) -> list[tuple[str, str]]:
    """What was violated: name and in what. Everything must be readable."""
    verdicts, unreadable = compared(before, after, *allow)
    assert unreadable == ()
    return [(one.name, one.what) for verdict in verdicts.values() for one in verdict.violations]


REGISTRY = "https://registry.example"


def archive(name: str, version: str) -> str:
    return f"{REGISTRY}/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"


def npm_package(name: str, version: str, **more: Any) -> dict[str, Any]:
    """An entry of package-lock.json as npm writes it; a value None leaves the key out."""
    digest = f"sha512-{name}{version}".replace("@", "").replace("/", "")
    entry = {"version": version, "resolved": archive(name, version), "integrity": digest, **more}
    return {key: value for key, value in entry.items() if value is not None}


def npm_lock(direct: Mapping[str, str], **packages: dict[str, Any]) -> str:
    """A package-lock.json of version 3. A keyword stands for the folder below node_modules, `__` for `/`."""
    rows = {f"node_modules/{name.replace('__', '/')}": entry for name, entry in packages.items()}
    root = {"name": "sample", "dependencies": dict(direct)}
    return json.dumps({"name": "sample", "lockfileVersion": 3, "packages": {"": root, **rows}}, indent=2)
