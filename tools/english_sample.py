"""Draws strings by seed for a second reader, who says of each whether a native technical editor would print it as is.

Three strata: messages, hints and reasons of the package (250 of 500), sentences of the pages (120), and docstrings with
the lines of help (130). The sheets of past readings are in tests/corpora/english. The order of output is that of files
and lines, so that two drawings of one commit with one seed are equal.

    python tools/english_sample.py --seed 8215 > sheet.tsv
    python tools/english_sample.py --share tests/corpora/english/rating-8215.tsv
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tools/workpacket"
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")
# Made from strings of the package, where they are drawn already.
GENERATED = ("docs/reference/",)
PARTS = {"message": 250, "page": 120, "docstring": 130}

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_ENTRY = re.compile(r"^(\s*)([a-z]\w+): ", re.MULTILINE)
_NOT_FOR_PEOPLE = re.compile(
    r"\(\?|\\[bdsw]|\]\*|^\s*(?:[<,/#]|workpacket |refs |git |Literal\[|default-src |None \| |[\w, ]+, (?:crc|hash)$)"
    r"|\b(?:SELECT|INSERT|GRANT|REVOKE|CREATE|ALTER|WHERE)\b"
)
_TAKES_NO_PROSE = re.compile(r"(?:pattern|compile|execute|^_kind)$")
_CODE = re.compile(r"`[^`]*`")
_SENTENCE_END = re.compile(r"(?<=[a-z`)\]*\"\d][.!?:])\s+(?=[A-Z`*\[\"])")
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
_LIST_MARK = re.compile(r"^\s*(?:[-*>]|\d+\.|#+)\s+")


class Text(NamedTuple):
    """A string and its place."""

    path: str
    line: int
    text: str


def one_line(text: str) -> str:
    return " ".join(text.split())


def is_prose(text: str) -> bool:
    """Whether the text is for people: at least four words, and not a pattern, query or template."""
    words = re.findall(r"\b[A-Za-z]*[a-z][a-z]+\b", re.sub(r"`[^`]*`|\{[^}]*\}", "", text))
    return len(words) >= 4 and " " in text.strip() and not _NOT_FOR_PEOPLE.search(text)


def literal(node: ast.expr) -> str | None:
    """Return a string or f-string as written, with its expressions in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    return None


def of_reasons(path: str, line: int, text: str) -> Iterator[Text]:
    """Yield title, explanation and remedy of each entry in a table of reasons, or of a rule's docstring."""
    starts = [match.start() for match in _ENTRY.finditer(text)] or [0]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        entry = text[start:end]
        at = line + text.count("\n", 0, start)
        title, _, rest = entry.strip().partition("\n")
        explanation, _, remedy = rest.partition("Remedy:")
        for part in (title.partition(": ")[2] or title, explanation, remedy):
            if is_prose(part):
                yield Text(path, at, one_line(part))


def no_text(node: ast.AST) -> list[ast.expr]:
    """Return the strings in a node that no one reads: parts of an f-string, patterns, and lists of words to split."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.Call) and _TAKES_NO_PROSE.search(ast.unparse(node.func)):
        return node.args
    return [node.value] if isinstance(node, ast.Attribute) and node.attr == "split" else []


def of_module(path: str, source: str) -> Iterator[tuple[str, Text]]:
    """Yield each string of a module with the name of its stratum."""
    tree = ast.parse(source)
    docstrings: set[int] = set()
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            docstrings.add(id(first.value))
            if "Remedy:" in text:
                yield from (("message", part) for part in of_reasons(path, first.lineno, text))
            elif is_prose(text):
                yield "docstring", Text(path, first.lineno, one_line(text))
        inner.update(id(part) for part in no_text(node))
    kind = "docstring" if path.endswith("cli/commands.py") else "message"
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in docstrings | inner:
            continue
        if (text := literal(node)) is None or not is_prose(text):
            continue
        if "reason_tables" in path and "Remedy:" in text:
            yield from (("message", part) for part in of_reasons(path, node.lineno, text))
        elif text.count("\n") < 3:
            yield kind, Text(path, node.lineno, one_line(text))


def unreleased(text: str) -> str:
    """Return the changes that have not been released yet."""
    return re.split(r"^## ", text, flags=re.MULTILINE)[1] if "\n## " in text else text


def of_page(path: str, text: str) -> Iterator[tuple[str, Text]]:
    """Yield the sentences of a page; each table cell is one."""
    text = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    line = 1
    for block in re.split(r"(\n(?=\s*\n|\s*(?:[-*|#]|\d+\.)\s))", text):
        plain = one_line(_LIST_MARK.sub("", block.strip()))
        # No sentence ends inside code.
        plain = _CODE.sub(lambda match: match[0].replace(" ", "\0"), plain)
        cells = re.split(r"(?<!\\)\|", plain) if plain.startswith("|") else [plain]
        at = line + block[: len(block) - len(block.lstrip("\n"))].count("\n")
        for sentence in (part.replace("\0", " ") for cell in cells for part in _SENTENCE_END.split(cell.strip())):
            if is_prose(sentence):
                yield "page", Text(path, at, sentence)
        line += block.count("\n")


def population(root: Path) -> dict[str, list[Text]]:
    """Return all strings by stratum, in a stable order."""
    found: dict[str, list[Text]] = {name: [] for name in PARTS}
    for module in sorted((root / PACKAGE).rglob("*.py")):
        path = module.relative_to(root).as_posix()
        for stratum, text in of_module(path, module.read_text("utf-8")):
            found[stratum].append(text)
    pages = {page.relative_to(root).as_posix(): page for pattern in PAGES for page in root.glob(pattern)}
    for path in sorted(pages):
        if not path.startswith(GENERATED):
            found["page"] += [text for _, text in of_page(path, pages[path].read_text("utf-8"))]
    changes = unreleased((root / "CHANGELOG.md").read_text("utf-8"))
    found["page"] += [text for _, text in of_page("CHANGELOG.md", changes)]
    return {name: sorted(set(texts)) for name, texts in found.items()}


def draw(root: Path, seed: int, count: int) -> list[tuple[str, Text]]:
    """Draw `count` strings, in the proportions of `PARTS`."""
    chosen = random.Random(seed)  # noqa: S311 - a drawing, not a secret
    total = sum(PARTS.values())
    drawn = [
        (stratum, text)
        for stratum, texts in population(root).items()
        for text in chosen.sample(texts, min(len(texts), count * PARTS[stratum] // total))
    ]
    return sorted(drawn, key=lambda item: (list(PARTS).index(item[0]), item[1]))


def share(sheet: Path) -> str:
    """Yield, by stratum, how many strings of a sheet the reader would print as they are."""
    rows = [line.split("\t") for line in sheet.read_text("utf-8").splitlines()[1:]]
    lines = []
    for name in (*PARTS, "all"):
        verdicts = [row[2] for row in rows if name in (row[0], "all")]
        yes = verdicts.count("yes")
        lines.append(f"{name}: {yes} of {len(verdicts)}, {100 * yes / max(1, len(verdicts)):.1f} %\n")
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw strings for a second reader.")
    parser.add_argument("--seed", type=int, default=8215, help="the seed of the drawing")
    parser.add_argument("--count", type=int, default=sum(PARTS.values()), help="how many strings to draw")
    parser.add_argument("--sizes", action="store_true", help="print how many strings can be drawn")
    parser.add_argument("--share", type=Path, metavar="SHEET", help="print the share of a sheet with verdicts")
    options = parser.parse_args()
    if options.share:
        sys.stdout.write(share(options.share))
    elif options.sizes:
        sys.stdout.write("".join(f"{name}: {len(texts)}\n" for name, texts in population(ROOT).items()))
    else:
        sys.stdout.write("stratum\tplace\tverdict\treason\ttext\n")
        for stratum, text in draw(ROOT, options.seed, options.count):
            sys.stdout.write(f"{stratum}\t{text.path}:{text.line}\t\t\t{text.text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
