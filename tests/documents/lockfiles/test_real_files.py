"""Files that real package managers wrote: what changed between two of them is found, whatever the format."""

from __future__ import annotations

import random
import re

import pytest

from documents.lockfiles.states import FILES, compared, judged, project
from workpacket.documents.lockfiles.comparison import format_of

PROJECTS = sorted(path.name for path in FILES.iterdir())
NODE = {("is-odd", "updated"), ("kind-of", "added")}
PYTHON = {("python-dateutil", "updated"), ("iniconfig", "added")}
EXPECTED = {
    "berry": NODE, "cargo": {("other", "added")}, "npm1": NODE, "npm2": NODE, "npm3": NODE, "pipenv": PYTHON,
    "pnpm9": NODE, "poetry": PYTHON, "uv": PYTHON, "yarn1": NODE,
}  # fmt: skip
LOCKS = {name: next(path for path in project(name, "after") if "lock" in path.lower()) for name in PROJECTS}
MANIFESTS = {name: next(path for path in project(name, "after") if path != LOCKS[name]) for name in PROJECTS}


def test_every_recorded_project_is_tested() -> None:
    assert set(EXPECTED) == set(PROJECTS)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_new_and_an_updated_dependency_are_seen_in_lock_file_and_manifest(name: str) -> None:
    verdicts, unreadable = compared(project(name, "before"), project(name, "after"))
    assert unreadable == ()
    for path in (MANIFESTS[name], LOCKS[name]):
        found = {(change.name, change.kind) for change in verdicts[path].file.direct}
        assert found == (set() if path == "Cargo.lock" else EXPECTED[name])  # its own crates are not locked


@pytest.mark.parametrize("name", PROJECTS)
def test_the_way_back_is_a_removal(name: str) -> None:
    verdicts, _ = compared(project(name, "after"), project(name, "before"))
    found = {(change.name, change.kind) for change in verdicts[MANIFESTS[name]].file.direct}
    assert found == {(dependency, {"added": "removed"}.get(kind, kind)) for dependency, kind in EXPECTED[name]}


@pytest.mark.parametrize("name", PROJECTS)
def test_with_leave_for_both_nothing_is_violated(name: str) -> None:
    names = [dependency for dependency, _ in EXPECTED[name]]
    assert judged(project(name, "before"), project(name, "after"), *names) == []


@pytest.mark.parametrize("name", PROJECTS)
def test_with_leave_for_one_the_other_is_violated(name: str) -> None:
    (allowed, _), *rest = sorted(EXPECTED[name])
    found = judged(project(name, "before"), project(name, "after"), allowed)
    assert {dependency for dependency, _ in found} == {dependency for dependency, _ in rest}


@pytest.mark.parametrize("name", PROJECTS)
def test_what_did_not_change_is_not_mentioned(name: str) -> None:
    assert compared(project(name, "before"), project(name, "before")) == ({}, ())


@pytest.mark.parametrize("name", PROJECTS)
def test_other_line_ends_are_no_change(name: str) -> None:
    before = project(name, "before")
    after = {path: data.replace(b"\n", b"\r\n") for path, data in before.items()}
    assert judged(before, after) == []


@pytest.mark.parametrize("name", sorted(set(PROJECTS) - {"cargo"}))
def test_another_digest_of_the_same_version_is_never_covered(name: str) -> None:
    before = project(name, "before")
    lock = LOCKS[name]
    after = {**before, lock: _other_digests(before[lock])}
    assert after[lock] != before[lock]
    assert {what for _, what in judged(before, after, "*")} == {"integrity"}


def _other_digests(data: bytes) -> bytes:
    """Each digest begins otherwise."""
    return re.sub(
        rb"(sha512-|sha256:|checksum: 10c0/|\.tgz#)(.)",
        lambda found: found[1] + (b"1" if found[2] == b"0" else b"0"),
        data,
    )


@pytest.mark.parametrize("name", sorted(set(PROJECTS) - {"cargo", "berry", "pnpm9"}))
def test_another_registry_is_never_covered(name: str) -> None:
    before = project(name, "before")
    lock = LOCKS[name]
    after = {**before, lock: before[lock].replace(b"https://registry.example", b"https://elsewhere.example")}
    assert {what for _, what in judged(before, after, "*")} == {"source"}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_lock_file_that_is_gone_is_noticed(name: str) -> None:
    before = project(name, "before")
    found = judged(before, {MANIFESTS[name]: before[MANIFESTS[name]]}, "*")
    assert found == ([] if name == "cargo" else [("", "removed")])


@pytest.mark.parametrize("name", PROJECTS)
def test_the_first_lock_file_changes_nothing_that_was_asked_for(name: str) -> None:
    after = project(name, "before")
    assert judged({MANIFESTS[name]: after[MANIFESTS[name]]}, after) == []


@pytest.mark.parametrize("name", PROJECTS)
def test_nested_files_are_judged_like_those_at_the_top(name: str) -> None:
    before = {f"services/api/{path}": data for path, data in project(name, "before").items()}
    after = {f"services/api/{path}": data for path, data in project(name, "after").items()}
    assert set(judged(before, after)) == EXPECTED[name]


@pytest.mark.parametrize("name", PROJECTS)
def test_a_lock_file_cut_short_is_refused_or_is_seen_as_changed(name: str) -> None:
    """No cut passes: it cannot be read, or something of what it held is missing."""
    before = project(name, "after")
    lock = LOCKS[name]
    cuts = random.Random(name).sample(range(len(before[lock]) - 1), 25)
    for cut in cuts:
        verdicts, unreadable = compared(before, {**before, lock: before[lock][:cut]}, "*")
        assert unreadable or lock in verdicts
        assert all(one.path == lock for one in unreadable)


@pytest.mark.parametrize("name", PROJECTS)
def test_damage_at_any_byte_never_raises(name: str) -> None:
    before = project(name, "after")
    chance = random.Random(name)
    for path, data in before.items():
        for _ in range(40):
            damaged = bytearray(data)
            damaged[chance.randrange(len(data))] = chance.randrange(256)
            compared(before, {**before, path: bytes(damaged)})


@pytest.mark.parametrize("path", ["node_modules/left/package.json", ".venv/lib/requirements.txt", "src/main.py"])
def test_what_was_installed_or_is_something_else_is_not_looked_at(path: str) -> None:
    assert format_of(path) is None
