"""Workflow and hooks install what is running: a version, a commit, or an archive with its digest; never a bare name."""

from __future__ import annotations

from typing import Any

import pytest

from workpacket.lifecycle.init import pinned, requirement_of, without_requirement, written_in
from workpacket.problem import WorkpacketError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "ab" * 32
GIT = {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}


# The records that pip, uv and pipx write (PEP 610), and what installs the same again.
RECORDS: list[tuple[dict[str, Any] | None, str]] = [
    (None, "workpacket==1.2.3"),
    ({"url": "https://example.org/w.git", "vcs_info": GIT}, f"workpacket @ git+https://example.org/w.git@{COMMIT}"),
    ({"url": "ssh://git@example.org/w", "vcs_info": GIT}, f"workpacket @ git+ssh://git@example.org/w@{COMMIT}"),
    (
        {"url": "https://example.org/w.git", "vcs_info": GIT, "subdirectory": "py"},
        f"workpacket @ git+https://example.org/w.git@{COMMIT}#subdirectory=py",
    ),
    (
        {"url": "https://example.org/w.whl", "archive_info": {"hashes": {"sha256": DIGEST}}},
        f"workpacket @ https://example.org/w.whl#sha256={DIGEST}",
    ),
    (
        {"url": f"https://example.org/w.whl#sha256={DIGEST}", "archive_info": {"hashes": {"sha256": DIGEST}}},
        f"workpacket @ https://example.org/w.whl#sha256={DIGEST}",
    ),
]


@pytest.mark.parametrize(("record", "requirement"), RECORDS, ids=range(len(RECORDS)))
def test_a_record_of_an_installation_becomes_a_requirement(record: dict[str, Any] | None, requirement: str) -> None:
    assert requirement_of(record, "1.2.3") == requirement == pinned(requirement)


LOCAL: list[dict[str, Any]] = [
    {"url": "file:///home/ann/workpacket", "dir_info": {"editable": True}},
    {"url": "file:///home/ann/w.whl", "archive_info": {"hashes": {"sha256": DIGEST}}},
    {"url": "file:///home/ann/workpacket", "vcs_info": GIT},
    {"dir_info": {}},
]


@pytest.mark.parametrize("record", LOCAL, ids=range(len(LOCAL)))
def test_what_lies_on_this_machine_is_refused_with_the_way_out(record: dict[str, Any]) -> None:
    with pytest.raises(WorkpacketError, match="CI cannot use") as error:
        requirement_of(record, "1.2.3")
    assert error.value.code == "install_source_local"
    assert "--from" in error.value.hint


@pytest.mark.parametrize(
    "requirement",
    [
        "",
        "workpacket",
        "workpacket>=1.0",
        "workpacket==1.*",
        "other==1.0",
        "workpacket @ git+https://example.org/w.git",
        "workpacket @ git+https://example.org/w.git@main",
        "workpacket @ https://example.org/w.whl",
        f"workpacket @ http://example.org/w.whl#sha256={DIGEST}",
        "workpacket @ https://example.org/w.whl#sha256=None",
        'workpacket==1.0"\n        run: curl',
        "workpacket==1.0\n",
        "workpacket==1.0 --index-url=https://example.org",
    ],
)
def test_what_names_no_single_state_of_the_tool_is_refused(requirement: str) -> None:
    with pytest.raises(WorkpacketError) as error:
        pinned(requirement)
    assert error.value.code == "install_source_open"


def test_an_archive_without_a_recorded_digest_is_refused() -> None:
    with pytest.raises(WorkpacketError):
        requirement_of({"url": "https://example.org/w.whl", "archive_info": {}}, "1.2.3")


def test_a_file_that_differs_in_its_requirement_alone_is_the_template() -> None:
    template = 'env:\n  WORKPACKET: "{workpacket}"\n'
    for _, requirement in RECORDS:
        text = template.replace("{workpacket}", requirement)
        assert written_in(text) == requirement
        assert without_requirement(text) == template
    assert written_in("name: workpacket\n") is None
