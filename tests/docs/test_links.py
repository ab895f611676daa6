"""Links between our own documents lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source_tree import ROOT, committed_files, relative

LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


def documents() -> list[Path]:
    """The documents for readers; those below tests/ are input."""
    return [path for path in committed_files() if path.suffix == ".md" and path.parts[len(ROOT.parts)] != "tests"]


def anchors(document: Path) -> set[str]:
    """The anchors that forges make of headings."""
    headings = re.findall(r"^#+ +(.+?) *#*$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> Iterator[str]:
    for target in LINK.findall(document.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        destination = (document.parent / path).resolve() if path else document
        if ELSEWHERE.match(target):
            continue
        if not destination.exists() or (anchor and anchor not in anchors(destination)):
            yield target


def test_every_link_inside_the_repository_leads_somewhere() -> None:
    broken = {relative(document): links for document in documents() if (links := list(broken_links(document)))}

    assert broken == {}


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = LINK.findall((folder / "README.md").read_text("utf-8"))

    assert listed == sorted(path.name for path in folder.glob("0*.md"))


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ("[here](#a-heading-with-code)", []),
        ("[there](other.md#part-2)", []),
        ("[outside](https://example.org/nothing)", []),
        ("[gone](gone.md)", ["gone.md"]),
        ("[no such part](other.md#part-3)", ["other.md#part-3"]),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, link: str, broken: list[str]) -> None:
    document = tmp_path / "document.md"
    document.write_text(f"# A heading with `code`\n\n{link}\n", "utf-8")
    tmp_path.joinpath("other.md").write_text("# Other\n\n## Part 2\n", "utf-8")

    assert list(broken_links(document)) == broken
