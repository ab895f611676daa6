"""`pyproject.toml`, `Pipfile` and `requirements*.txt`: what a Python project asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Malformed,
    items,
    malformed,
    mapping,
    merged,
    python_name,
    rooted,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.loaded import unreadable
from workpacket.text.node import Node
from workpacket.text.source import Fault, Source
from workpacket.text.toml_strict import load_toml

_REQUIREMENT = lazy_pattern(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?P<rest>(?:[\[\]<>=!~;@(,\s].*)?)\Z"
)

Asked = Iterator[tuple[str, str, int]]


def read_pyproject(source: Source) -> Dependencies:
    root = rooted(load_toml(source, LOCKFILE))
    return _as_dependencies(_pyproject(root, source))


def _pyproject(root: Node, source: Source) -> Asked:
    yield from _listed(items(root, "project", "dependencies"))
    for extra in mapping(root, "project", "optional-dependencies"):
        yield from _listed(items(root, "project", "optional-dependencies", extra))
    for group in mapping(root, "dependency-groups"):
        yield from _listed(items(root, "dependency-groups", group))
    yield from _listed(items(root, "build-system", "requires"))
    yield from _listed(items(root, "tool", "uv", "dev-dependencies"))
    yield from _listed(items(root, "tool", "uv", "override-dependencies"))
    yield from _table(root, source, "tool", "uv", "sources")
    yield from _table(root, source, "tool", "poetry", "dependencies")
    yield from _table(root, source, "tool", "poetry", "dev-dependencies")
    for group in mapping(root, "tool", "poetry", "group"):
        yield from _table(root, source, "tool", "poetry", "group", group, "dependencies")


def read_pipfile(source: Source) -> Dependencies:
    root = rooted(load_toml(source, LOCKFILE))
    groups = [name for name in root.mapping if name not in {"source", "requires", "scripts", "pipenv"}]
    return _as_dependencies(row for group in groups for row in _table(root, source, group))


def _listed(rows: list[Node]) -> Asked:
    for row in rows:
        if row.mapping:  # `{ include-group = "test" }` asks for nothing of its own
            continue
        found = _REQUIREMENT.match((row.text or "").strip())
        if found is None:
            raise malformed(row, f"{row.value!r} is no requirement")
        yield python_name(found["name"]), _plain(found["rest"]), row.start


def _table(root: Node, source: Source, *path: str) -> Asked:
    """A table of name = requirement; a detailed requirement counts as it is written."""
    for name, node in mapping(root, *path).items():
        if python_name(name) != "python":
            yield python_name(name), _plain(node.text or source.text[node.start : node.end]), node.start


def read_requirements(source: Source) -> Dependencies:
    return _as_dependencies(_requirement_lines(source))


def _requirement_lines(source: Source) -> Asked:
    faults = unreadable(source.text, 0, LOCKFILE)
    if faults:
        raise Malformed(Fault("lockfile_malformed", faults[0].start, faults[0].end, faults[0].message))
    for line, at in _joined(source):
        said = re.sub(r"(?:^|\s)#.*\Z", "", line, flags=re.DOTALL).strip()
        if not said:
            continue
        if said.startswith("-"):
            # An index, another file, something editable: what it brings has no name here, so the line itself is it.
            yield said, "", at
            continue
        digests = re.split(r"\s--hash[= ]", said)
        found = _REQUIREMENT.match(digests[0].strip())
        if found is not None:
            yield python_name(found["name"]), _plain(" ".join([found["rest"], *digests[1:]])), at
        else:  # an address or a path, which has no name either
            yield said, "", at


def _joined(source: Source) -> Iterator[tuple[str, int]]:
    """The lines, those that a backslash continues as one."""
    waiting, begun = "", 0
    for number, at in enumerate(source.line_starts, 1):
        line = source.line(number)
        begun = begun if waiting else at
        if line.endswith("\\"):
            waiting += line[:-1] + " "
            continue
        yield waiting + line, begun
        waiting = ""
    if waiting:
        yield waiting, begun


def _plain(requirement: str) -> str:
    return " ".join(requirement.split())


def _as_dependencies(asked: Asked) -> Dependencies:
    rows = list(asked)
    places: dict[str, int] = {}
    for name, _, at in rows:
        places.setdefault(name, at)
    return Dependencies(direct=merged((name, wanted) for name, wanted, _ in rows), places=places)
