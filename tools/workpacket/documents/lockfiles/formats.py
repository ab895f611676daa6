"""Which file is of which format. A new format is one module and one row here."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Final, NamedTuple, cast

from workpacket.documents.lockfiles.dependencies import Dependencies, Malformed
from workpacket.text.fault import Fault
from workpacket.text.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Format(NamedTuple):
    """`manifests` are the files beside a lock that say which of its packages were asked for, the first one there."""

    name: str
    ecosystem: str
    files: str
    module: str
    reader: str
    locks: bool
    manifests: tuple[str, ...] = ()


FORMATS: Final[tuple[Format, ...]] = (
    Format("npm", "npm", r"package-lock\.json|npm-shrinkwrap\.json", "npm", "read_lock", True, ("package.json",)),
    Format("pnpm", "npm", r"pnpm-lock\.yaml", "pnpm", "read_lock", True, ("package.json",)),
    Format("yarn", "npm", r"yarn\.lock", "yarn", "read_lock", True, ("package.json",)),
    Format("uv", "pypi", r"uv\.lock", "python_locks", "read_uv", True, ("pyproject.toml",)),
    Format("poetry", "pypi", r"poetry\.lock", "python_locks", "read_poetry", True, ("pyproject.toml",)),
    Format("pipenv", "pypi", r"Pipfile\.lock", "python_locks", "read_pipenv", True, ("Pipfile",)),
    Format("cargo", "cargo", r"Cargo\.lock", "cargo", "read_lock", True, ("Cargo.toml",)),
    Format("go.sum", "go", r"go\.sum", "go", "read_sum", True, ("go.mod",)),
    Format("go.mod", "go", r"go\.mod", "go", "read_mod", False),
    Format("package.json", "npm", r"package\.json", "npm", "read_manifest", False),
    Format("pyproject.toml", "pypi", r"pyproject\.toml", "python_manifests", "read_pyproject", False),
    Format("Pipfile", "pypi", r"Pipfile", "python_manifests", "read_pipfile", False),
    Format("requirements", "pypi", r"(?:.+[-_.])?requirements(?:[-_.].+)?\.(?:txt|in)", "python_manifests",
           "read_requirements", False),
    Format("Cargo.toml", "cargo", r"Cargo\.toml", "cargo", "read_manifest", False),
)  # fmt: skip

# Copies of other people's packages, each with a manifest of its own that nobody here asks anything with.
INSTALLED: Final = frozenset({"node_modules", ".venv", "site-packages"})

_PATTERNS: Final = tuple((re.compile(row.files), row) for row in FORMATS)


def format_of(path: str) -> Format | None:
    """The format of the file at `path` (with '/'), if it is about dependencies."""
    *folders, name = path.split("/")
    if INSTALLED.intersection(folders):
        return None
    if folders and folders[-1] == "requirements" and name.endswith((".txt", ".in")):
        return next(row for row in FORMATS if row.name == "requirements")
    return next((row for pattern, row in _PATTERNS if pattern.fullmatch(name)), None)


def read_dependencies(source: Source, known: Format) -> Dependencies | Fault:
    """What the file says, or what is wrong with it: never a part of it."""
    module = import_module(f"workpacket.documents.lockfiles.{known.module}")
    read = cast("Callable[[Source], Dependencies]", getattr(module, known.reader))
    try:
        return read(source)
    except Malformed as wrong:
        return wrong.fault
