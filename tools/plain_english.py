"""Finds words and names that a native writer would not use: a part of `just lint`.

It reads the prose of README, CONTRIBUTING, SECURITY, CHANGELOG and docs/, and the docstrings, strings, comments, module
names and class names of the package. plain_english.txt lists the files that still have some, with their counts. A count
may only fall: `--lower` writes the lower counts, and nothing raises one. `--show PATH...` prints each place in a file.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = "tools/plain_english.txt"
PACKAGE = "tools/workpacket"
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**/*.md")
# Generated from strings of the package, in which the words are found already.
GENERATED = ("docs/reference/", "docs/runtime/formats.md")

PHRASES = {
    "is no (is not a)": r"(?<!there )(?<!there\n)\b(?:is|are|was|were)\s+no\s+(?!(?:longer|more|less|other|one)\b)\w+",
    "anew (again; regenerate)": r"\banew\b",
    "stands (is; holds)": r"\b(?:stands?|stood)\b(?! (?:for|alone|out)\b|-)",
    "whoever (anyone who)": r"\bwhoever\b",
    "of which (whose; relative clause)": r"\bof\s+which\b",
    "nobody (no one; passive; name the missing thing)": r"\bnobody\b",
    "in so many words (explicitly)": r"\bin\s+so\s+many\s+words\b",
    "somebody, everybody (someone, everyone)": r"\b(?:some|every)body\b",
    "another ... than (other than; a different ... from)": r"\banother\s+(?!\w+\s+(?:takes|has|is|was)\b)\w+\s+than\b",
    "also if (even if)": r"\balso\s+if\b",
    "beforehand (first; in advance)": r"\bbeforehand\b",
    "legalese (in it, by which)": r"\b(?:hereby|therein|thereof|therewith|whereby|wherein|insofar|amongst|whilst)\b",
    "git took (git removed)": r"\bgit\s+took\b",
}
COMPILED = {advice: re.compile(pattern, re.IGNORECASE) for advice, pattern in PHRASES.items()}
NOT_PROSE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL)
# Words in -ing that are established nouns.
NOUNS = {"string", "setting", "settings", "heading", "listing", "meaning", "warning", "finding", "testing"}

Place = tuple[int, str, str]  # line, text, key in PHRASES


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the page as one text; code is replaced by spaces, so that lines keep their numbers."""
    yield 1, NOT_PROSE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def prose_of_module(text: str) -> Iterator[tuple[int, str]]:
    """Yield every string and comment with its first line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def places(path: str, text: str) -> list[Place]:
    """Return every phrase in one file, by line."""
    prose = prose_of_module if path.endswith(".py") else prose_of_page
    return sorted(
        (line + part.count("\n", 0, match.start()), " ".join(match[0].split()), advice)
        for line, part in prose(text)
        for advice, pattern in COMPILED.items()
        for match in pattern.finditer(part)
    )


def files(root: Path) -> dict[str, str]:
    pages = (path for pattern in PAGES for path in root.glob(pattern))
    paths = {path.relative_to(root).as_posix(): path for path in (*pages, *(root / PACKAGE).rglob("*.py"))}
    return {name: paths[name].read_text("utf-8") for name in sorted(paths) if not name.startswith(GENERATED)}


def listed(root: Path) -> dict[str, int]:
    lines = (root / LIST).read_text("utf-8").splitlines()
    return {path: int(count) for count, path in (line.split() for line in lines)}


def compare(found: dict[str, list[Place]], allowed: dict[str, int]) -> Iterator[str]:
    """Yield a message for each file with more phrases than listed, and for each count that is too high."""
    for path in sorted(found.keys() | allowed.keys()):
        count, most = len(found.get(path, [])), allowed.get(path, 0)
        if count > most:
            yield from (f"{path}:{line}: {words!r}: {advice}" for line, words, advice in found[path])
            yield f"{path}: {count} such phrases, at most {most} allowed"
        elif count < most:
            yield f"{path}: {most} phrases are listed, {count} are left: run `python tools/plain_english.py --lower`"


def gerund(path: str) -> list[Place]:
    """Return the module itself, if its name is a gerund."""
    last = Path(path).stem.split("_")[-1]
    return [(1, Path(path).stem, "gerund (name the thing)")] if last.endswith("ing") and last not in NOUNS else []


def repeated_classes(modules: dict[str, str]) -> dict[str, list[Place]]:
    """Return public classes that share their name with a class of another module."""
    defined: dict[str, list[tuple[str, int]]] = {}
    for path, text in modules.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined.setdefault(node.name, []).append((path, node.lineno))
    found: dict[str, list[Place]] = {}
    for name, at in defined.items():
        for path, line in at if len(at) > 1 else []:
            found.setdefault(path, []).append((line, name, f"class name used {len(at)} times"))
    return found


def search(texts: dict[str, str], within: Collection[str] = ()) -> dict[str, list[Place]]:
    """Return the places by file, in all files or only those in `within`; files without any are left out."""
    asked = within or texts
    modules = {path: text for path, text in texts.items() if path.endswith(".py")}
    classes = repeated_classes(modules) if modules.keys() & asked else {}
    found = {path: places(path, texts[path]) + classes.get(path, []) for path in asked if path in texts}
    for path in modules.keys() & found:
        found[path] += gerund(path)
    return {path: sorted(seen) for path, seen in found.items() if seen}


def main() -> int:
    parser = argparse.ArgumentParser(description="Find words that a native writer would not use.")
    parser.add_argument("--lower", action="store_true", help="write the counts that have fallen")
    parser.add_argument("--show", nargs="+", metavar="PATH", default=[], help="print each place in these files")
    options = parser.parse_args()
    found = search(files(ROOT), options.show)
    if options.show:
        shown = [
            f"{path}:{line}: {words!r}: {advice}"
            for path in options.show
            for line, words, advice in found.get(path, [])
        ]
        sys.stdout.write("".join(f"{line}\n" for line in shown))
        return 0
    allowed = listed(ROOT)
    if options.lower:
        allowed = {path: min(most, len(found[path])) for path, most in allowed.items() if path in found}
        (ROOT / LIST).write_text("".join(f"{count} {path}\n" for path, count in sorted(allowed.items())), "utf-8")
    wrong = list(compare(found, allowed))
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
