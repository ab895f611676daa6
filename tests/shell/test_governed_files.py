"""A listing that is narrowed to some packets says the same about them as the whole listing."""

from __future__ import annotations

from pathlib import Path

import pytest

from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.layout import LOG_FOLDER, PACKETS, REFINEMENTS, STUBS
from workpacket.shell.governed_files import find_governed

NAMES = ("WP-1-Parser-v1", "WP-1-Parser-v2", "WP-1-Parser-v10", "WP-1-ParserX-v1", "WP-1-Parser", "WP-2-Writer-v1")
BESIDE = ("README.md", "wp-1-Parser-v1.md", "WP-1-CON.md", ".WP-1-Parser-v1.md.swp", "WP-1-Parser-v3.txt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in (STUBS, PACKETS, REFINEMENTS):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name in (*(f"{name}.md" for name in NAMES[:5]), *BESIDE):
            (tmp_path / folder / name).write_text("")
    for name in (*NAMES[3:], "not a packet"):
        (tmp_path / LOG_FOLDER / name).mkdir(parents=True)
    for name in NAMES[4:]:
        (tmp_path / PACKETS / name).mkdir()
        (tmp_path / PACKETS / name / "packet.md").write_text("")
    return tmp_path


@pytest.mark.parametrize("start", ["", "WP-1-Parser", "WP-1-Parser-v1", "WP-2", "README", "WP-9"])
def test_a_narrowed_listing_says_the_same(root: Path, start: str) -> None:
    whole, narrow = find_governed(str(root)), find_governed(str(root)).beginning(start)

    for all_of, some in ((whole.stubs, narrow.stubs), (whole.packets, narrow.packets)):
        assert some == {name: path for name, path in all_of.items() if name.startswith(start)}
    assert narrow.refinements == {name: path for name, path in whole.refinements.items() if name.startswith(start)}
    assert narrow.logs == {name for name in whole.logs if name.startswith(start)}
    assert sorted(narrow) == sorted(name for name in whole.known if name.startswith(start))


def test_a_name_is_known_whether_or_not_all_were_judged(root: Path) -> None:
    governed = find_governed(str(root))
    asked = (*NAMES, *BESIDE, "not a packet", "WP-1-Pars", "")
    found = [name for name in asked if name in governed]

    assert found == [name for name in asked if name in find_governed(str(root)).known] == [*NAMES]
    assert len(governed) == len(NAMES)
    # A file has priority over a folder.
    assert governed.packets["WP-1-Parser"] == f"{PACKETS}/WP-1-Parser.md"
    assert governed.packets["WP-2-Writer-v1"] == f"{PACKETS}/WP-2-Writer-v1/packet.md"


@pytest.mark.parametrize("pattern", ["wp/{id}", "{id}", "a{id}-b", "{id}/{id}", "x/{id}/y/{id}/z", "same", "{ID}"])
def test_a_branch_names_the_packet_whose_branch_it_is(pattern: str) -> None:
    policy = LifecyclePolicy(branch_pattern=pattern)
    branches = {policy.branch_of(name): name for name in NAMES}
    beside = ("", "main", "wp/", "wp/wp/", "a-b", "ab", *(f"{branch}-" for branch in branches), *NAMES)

    for branch in (*branches, *beside):
        named = [name for name in NAMES if policy.branch_of(name) == branch]
        told = policy.named_by(branch)
        assert (told if told in NAMES else "") == (named[0] if len(named) == 1 else "")
