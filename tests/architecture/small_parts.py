"""What may be too small to stand alone: modules with one importer, and functions with one caller and no test.

The list names a module by its dotted name and a function with `()`, so that moving a function changes nothing.

`python tests/architecture/small_parts.py` takes lines off the list that no longer hold; it adds none.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from architecture.source_tree import PACKAGE, ROOT, nodes, parsed, python_files

LIST = Path(__file__).with_name("small_parts.txt")
SMALL_MODULE = 40
SMALL_FUNCTION = 3
WORD = re.compile(r"\w+")


def listed() -> dict[str, str]:
    """Each part with the reason why it may be as small as it is; empty for those from before there was a limit."""
    lines = [line for line in LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.partition("  # ") for line in lines)}


def small_parts() -> set[str]:
    files = python_files(PACKAGE)
    modules = [parsed(path) for path in files]
    found = {*small_functions(modules, set())}
    return {*small_modules(files), *small_functions(modules, tested_among(found))}


def tested_among(functions: Iterable[str]) -> set[str]:
    """The words in the code of tests; a file that has none of these names anywhere need not be parsed."""
    names = {function.removesuffix("()") for function in functions}
    files = (
        path for path in python_files(ROOT / "tests") if not names.isdisjoint(WORD.findall(path.read_text("utf-8")))
    )
    return {word for path in files for word in words(parsed(path))}


def small_modules(files: Iterable[Path]) -> Iterator[str]:
    """Those with few lines that one other module imports. Packages are left out, and commands, which nobody imports."""
    modules = {dotted(path): path for path in files}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        for target in imported(parsed(path)):
            importers[target].add(name)
    for name, path in modules.items():
        small = len(path.read_bytes().splitlines()) < SMALL_MODULE
        if small and path.name != "__init__.py" and len(importers[name]) == 1:
            yield name


def small_functions(modules: Iterable[ast.Module], tested: set[str]) -> Iterator[str]:
    """Functions of a module (no methods: those may be what a class promises) that are named in one place only."""
    short: set[str] = set()
    used: Counter[str] = Counter()
    for module in modules:
        used.update(words(module))
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                short |= {node.name} if lines <= SMALL_FUNCTION else set()
    return (f"{name}()" for name in short if used[name] == 1 and name not in tested)


def words(module: ast.Module) -> Iterator[str]:
    """Every name that is used, as often as it is; imports are not uses."""
    for node in nodes(module):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def imported(module: ast.Module) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def main() -> None:
    there = small_parts()
    lines = LIST.read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.strip() or line[0] == "#" or line.split("  # ")[0].strip() in there]
    LIST.write_text("".join(kept), "utf-8")


if __name__ == "__main__":
    main()
