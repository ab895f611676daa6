"""The documentation as a site: `nox -s site` lays out its sources here, renders them and checks the result.

The pages of docs/ and some of the top folder keep their places. `README.md` becomes `index.md`, and a link to a file
that is not a page leads to the file in the repository. The menu is the map in docs/README.md.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
MAP = "docs/README.md"
PICTURES = {".svg", ".webp"}
# Code, which may contain what looks like a link.
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#")
# Words that a reader may search for, and a page that must be found by each.
SEARCHES = {
    "revoke": "docs/approvals/protect",
    "effect": "docs/runtime/effects",
    "checkpoint": "docs/runtime/commit",
    "passkey": "docs/approvals/touch",
}
CONFIGURATION = """\
project = "workpacket"
copyright = "the authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "workpacket"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 4
# Blocks that show what a terminal printed are not always valid in the language of their name.
suppress_warnings = ["misc.highlighting_failure"]
"""


class SiteFault(Exception):
    """The site can't be built, or is not as it should be."""


def pages(root: Path) -> list[str]:
    """The pages of the site, by their paths in the repository."""
    below = (path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
    return [*TOP, *sorted(below)]


def place(page: str) -> str:
    """Where a page of the repository is in the sources of the site."""
    folder, name = posixpath.split(page)
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


def lay_out(root: Path, folder: Path) -> None:
    """Write the sources of the site into an empty folder."""
    known = pages(root)
    source = source_url(root)
    for page in known:
        text = with_links(root, page, (root / page).read_text("utf-8"), known, source)
        if page == "README.md":
            text += menu((root / MAP).read_text("utf-8"))
        if page == "docs/decisions/README.md":
            text += toctree("", ["0*"], "glob")
        target = folder / place(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    for picture in (path for path in (root / "docs").rglob("*") if path.suffix in PICTURES):
        target = folder / picture.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    (folder / "conf.py").write_text(CONFIGURATION, "utf-8")


def source_url(root: Path) -> str:
    """The address below which a forge shows the files of the repository."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return f"{project['urls']['Source']}/blob/main"


def with_links(root: Path, page: str, text: str, known: list[str], source: str) -> str:
    """The text of a page, with each link as the site needs it."""

    def rewritten(match: re.Match[str]) -> str:
        path, hash_mark, anchor = match[1].partition("#")
        if ELSEWHERE.match(match[1]):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        if target in known:
            target = posixpath.relpath(place(target), posixpath.dirname(page) or ".")
        elif posixpath.splitext(target)[1] in PICTURES:
            target = path
        elif (root / target).exists():
            target = f"{source}/{target}"
        else:
            raise SiteFault(f"{page}: {match[1]} leads nowhere")
        return f"]({target}{hash_mark}{anchor})"

    parts = CODE.split(text)
    return "".join(part if odd % 2 else LINK.sub(rewritten, part) for odd, part in enumerate(parts))


def menu(text: str) -> str:
    """The menu: one part for each section of the map, and one for pages about the project."""
    seen: set[str] = set()
    parts = []
    for section in text.split("\n## ")[1:]:
        heading = section.partition("\n")[0].partition(":")[0]
        # A link into the middle of a page does not decide where the page belongs.
        new = [
            target for target in dict.fromkeys(LINK.findall(section)) if target.endswith(".md") and target not in seen
        ]
        seen.update(new)
        parts.append(toctree(heading, [posixpath.join("docs", _name(target)) for target in new]))
    return "".join([*parts, toctree("Project", ["docs/index", *(page[:-3] for page in TOP[1:])])])


def _name(target: str) -> str:
    return place(target).removesuffix(".md")


def toctree(caption: str, names: list[str], *options: str) -> str:
    shown = [f":caption: {caption}"] if caption else []
    return "\n".join(
        ["", "```{toctree}", ":hidden:", *shown, *(f":{option}:" for option in options), "", *names, "```", ""]
    )


class _Page(HTMLParser):
    """The ids and references of a page; `loaded` is what a browser fetches to show it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif "src" in values:
            self.loaded.append(values["src"])
        elif tag == "link" and "stylesheet" in values.get("rel", ""):
            self.loaded.append(values["href"])


def faults(site: Path) -> Iterator[str]:
    """What is wrong with the rendered site: links, resources from elsewhere, searches without a result."""
    rendered = {path.relative_to(site).as_posix(): _Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    for name, page in sorted(rendered.items()):
        yield from (f"{name}: loads {address}" for address in page.loaded if urlsplit(address).netloc)
        yield from (f"{name}: {link} leads nowhere" for link in page.links if not _leads(site, name, link, rendered))
    for word, expected in SEARCHES.items():
        if expected not in found_by(site, word):
            yield f"a search for {word!r} does not find {expected}"


def _leads(site: Path, name: str, link: str, rendered: dict[str, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
    if target not in rendered:
        return (site / target).is_file()
    return not parts.fragment or unquote(parts.fragment) in rendered[target].ids


def found_by(site: Path, word: str) -> set[str]:
    """The pages that the search finds by a word, as its script does: by the beginning of an indexed word."""
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip(";\n").removesuffix(")"))
    stem = word.rstrip("e")
    entries = [places for term, places in index["terms"].items() if term.startswith(stem)]
    numbers = {number for places in entries for number in ([places] if isinstance(places, int) else places)}
    return {index["docnames"][number] for number in numbers}


def main() -> int:
    parser = argparse.ArgumentParser(description="Lay out the sources of the documentation site, or check the site.")
    parser.add_argument("what", choices=("lay-out", "check"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.what == "lay-out":
        lay_out(ROOT, options.folder)
        return 0
    found = list(faults(options.folder))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
