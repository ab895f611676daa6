"""The sources of the documentation site, and the check of what is rendered from them; `nox -s site` renders it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import docs_site
from architecture.source_tree import ROOT


def test_every_page_is_laid_out_and_is_in_the_menu(tmp_path: Path) -> None:
    docs_site.lay_out(ROOT, tmp_path)
    laid_out = {path.relative_to(tmp_path).as_posix().removesuffix(".md") for path in tmp_path.rglob("*.md")}
    front = (tmp_path / "index.md").read_text("utf-8")
    trees = re.findall(r"^```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)^```$", front, re.MULTILINE | re.DOTALL)
    listed = [name for tree in trees for name in tree.split()]
    decisions = {name for name in laid_out if re.match(r"docs/decisions/\d", name)}
    assert len(listed) == len(set(listed))
    assert {*listed, *decisions, "index"} == laid_out
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", front):
        assert (tmp_path / picture).is_file()


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("[a](other.md)", "[a](other.md)"),
        ("[a](../README.md#install)", "[a](../index.md#install)"),
        ("[a](#here)", "[a](#here)"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("![a](pictures/a.webp)", "![a](pictures/a.webp)"),
        ("[a](../tools/x.py)", "[a](https://forge/tools/x.py)"),
        ("`[a](gone.md)`", "`[a](gone.md)`"),
        ("```\n[a](gone.md)\n```\n", "```\n[a](gone.md)\n```\n"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_to_files_of_the_repository(tmp_path: Path, link: str, becomes: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "x.py").touch()
    known = ["README.md", "docs/page.md", "docs/other.md"]
    assert docs_site.with_links(tmp_path, "docs/page.md", link, known, "https://forge") == becomes


def test_a_link_that_leads_nowhere_stops_the_site(tmp_path: Path) -> None:
    with pytest.raises(docs_site.SiteFault):
        docs_site.with_links(tmp_path, "docs/page.md", "[a](gone.md)", ["docs/page.md"], "https://forge")


SITE = {
    "index.html": '<a href="docs/a.html#part">a</a><a href="https://example.org">b</a><a href="search.html">c</a>',
    "docs/a.html": '<p id="part">A</p><script src="../s.js"></script>',
    "search.html": '<link rel="stylesheet" href="s.css">',
    "s.js": "",
}


def rendered(folder: Path, changes: dict[str, str]) -> list[str]:
    names = list(dict.fromkeys(docs_site.SEARCHES.values()))
    terms = {word.rstrip("e"): names.index(page) for word, page in docs_site.SEARCHES.items()}
    index = {"searchindex.js": f"Search.setIndex({json.dumps({'docnames': names, 'terms': terms})})"}
    for name, text in {**SITE, **index, **changes}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return list(docs_site.faults(folder))


def test_a_site_as_it_should_be_has_no_faults(tmp_path: Path) -> None:
    assert rendered(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("index.html", '<a href="docs/b.html">b</a>', "index.html: docs/b.html leads nowhere"),
        ("index.html", '<a href="docs/a.html#gone">b</a>', "index.html: docs/a.html#gone leads nowhere"),
        ("docs/a.html", '<img src="https://elsewhere/x.png">', "docs/a.html: loads https://elsewhere/x.png"),
        ("searchindex.js", 'Search.setIndex({"docnames":[],"terms":{}})', "a search for 'passkey' does not find"),
    ],
)
def test_what_is_wrong_with_a_site_is_named(tmp_path: Path, name: str, text: str, fault: str) -> None:
    assert any(found.startswith(fault) for found in rendered(tmp_path, {name: text}))
