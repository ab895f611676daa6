"""Python: the lock files of uv, poetry and pipenv; and `pyproject.toml`, `Pipfile` and `requirements*.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Asked,
    Dependencies,
    Package,
    asked_for,
    items,
    malformed,
    mapping,
    merged,
    python_name,
    required_text,
    rooted,
    text,
    text_lines,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.json_strict import load_json
from workpacket.text.source import Node, Source
from workpacket.text.toml_strict import load_toml

# ---- uv --------------------------------------------------------------------------------------------------------------

# A package with one of these sources is part of the workspace itself.
_OWN = ("editable", "virtual", "directory")


def read_uv(source: Source) -> Dependencies:
    root = rooted(load_toml(source, LOCKFILE))
    packages = items(root, "package")
    own = [node for node in packages if any(node.get("source", kind) is not None for kind in _OWN)]
    direct = merged(wanted for node in own for wanted in _uv_requirements(node))
    members = {required_text(node, "name") for node in own}
    found = tuple(_uv_package(node) for node in packages if node not in own)
    return Dependencies(found, {name: wanted for name, wanted in direct.items() if name not in members})


def _uv_requirements(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the requirements in the member's metadata; the resolved lists have names but no requirements."""
    for row in items(node, "dependencies"):
        yield python_name(required_text(row, "name")), ""
    for group in ("optional-dependencies", "dev-dependencies"):
        for name in mapping(node, group):
            for row in items(node, group, name):
                yield python_name(required_text(row, "name")), ""
    for row in items(node, "metadata", "requires-dist"):
        yield python_name(required_text(row, "name")), text(row, "specifier")
    for name in mapping(node, "metadata", "requires-dev"):
        for row in items(node, "metadata", "requires-dev", name):
            yield python_name(required_text(row, "name")), text(row, "specifier")


def _uv_package(node: Node) -> Package:
    where = mapping(node, "source")
    if len(where) != 1:
        raise malformed(node, "a package must have exactly one source")
    ((kind, place),) = where.items()
    address = place.text
    if address is None:
        raise malformed(place, f"the source {kind} is not text")
    files = [*items(node, "wheels"), *([found] if (found := node.get("sdist")) is not None else [])]
    digests = {f"file:{_file_name(file)}": text(file, "hash") for file in files if text(file, "hash")}
    source = address if kind in {"registry", "url"} else f"{kind}+{address}"
    archives = {text(file, "url") for file in files} - {""}
    name, version = python_name(required_text(node, "name")), text(node, "version")
    return Package(name, version, source, digests, node.start, tuple(sorted(archives)))


def _file_name(file: Node) -> str:
    address = text(file, "url") or text(file, "path") or text(file, "filename")
    return address.split("#", 1)[0].rpartition("/")[2]


# ---- poetry ----------------------------------------------------------------------------------------------------------


def read_poetry(source: Source) -> Dependencies:
    """Read the file. It does not mark direct packages; pyproject.toml does."""
    root = rooted(load_toml(source, LOCKFILE))
    old = mapping(root, "metadata", "files")  # where lock files before version 2 have the digests
    return Dependencies(tuple(_poetry_package(node, old) for node in items(root, "package")))


def _poetry_package(node: Node, old: dict[str, Node]) -> Package:
    name = required_text(node, "name")
    files = items(node, "files") or (old[name].items if name in old else [])
    digests = {f"file:{required_text(file, 'file')}": required_text(file, "hash") for file in files}
    address = text(node, "source", "url")
    kind = text(node, "source", "type")
    commit = text(node, "source", "resolved_reference")
    source = f"{kind}+{address}#{commit}" if kind == "git" else address
    return Package(python_name(name), required_text(node, "version"), source, digests, node.start)


# ---- pipenv ----------------------------------------------------------------------------------------------------------


def read_pipenv(source: Source) -> Dependencies:
    """Read the file. It does not mark direct packages; its Pipfile does."""
    root = rooted(load_json(source, LOCKFILE))
    named = {text(row, "name"): text(row, "url") for row in items(root, "_meta", "sources")}
    only = next(iter(named.values())) if len(named) == 1 else ""
    groups = [group for group in root.mapping if group != "_meta"]
    return Dependencies(
        tuple(
            _pipenv_package(name, node, named, only) for group in groups for name, node in mapping(root, group).items()
        )
    )


def _pipenv_package(name: str, node: Node, sources: dict[str, str], only: str) -> Package:
    hashes = [row.text or "" for row in items(node, "hashes")]
    address = text(node, "git") or text(node, "file") or text(node, "path")
    reference = text(node, "ref")
    index = text(node, "index")
    source = f"git+{address}#{reference}" if text(node, "git") else address or sources.get(index, only)
    return Package(
        python_name(name), text(node, "version").removeprefix("=="), source,
        {f"hash:{digest}": digest for digest in hashes}, node.start,
    )  # fmt: skip


_REQUIREMENT = lazy_pattern(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?P<rest>(?:[\[\]<>=!~;@(,\s].*)?)\Z"
)


def read_pyproject(source: Source) -> Dependencies:
    return asked_for(_pyproject(rooted(load_toml(source, LOCKFILE)), source))


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
    return asked_for(row for group in groups for row in _table(root, source, group))


def _listed(rows: list[Node]) -> Asked:
    for row in rows:
        if row.mapping:  # `{ include-group = "test" }` requires nothing itself
            continue
        found = _REQUIREMENT.match((row.text or "").strip())
        if found is None:
            raise malformed(row, f"{row.value!r} is not a requirement")
        yield python_name(found["name"]), _plain(found["rest"]), row.start


def _table(root: Node, source: Source, *path: str) -> Asked:
    """Return the requirements of a table name = requirement; a requirement with details is kept as written."""
    for name, node in mapping(root, *path).items():
        if python_name(name) != "python":
            yield python_name(name), _plain(node.text or source.text[node.start : node.end]), node.start


def read_requirements(source: Source) -> Dependencies:
    return asked_for(_requirement_lines(source))


def _requirement_lines(source: Source) -> Asked:
    for line, at in _joined(source):
        said = re.sub(r"(?:^|\s)#.*\Z", "", line, flags=re.DOTALL).strip()
        if not said:
            continue
        if said.startswith("-"):
            # An index, another file, something editable: packages from it have no name here, so the line itself is the
            # name.
            yield said, "", at
            continue
        digests = re.split(r"\s--hash[= ]", said)
        found = _REQUIREMENT.match(digests[0].strip())
        if found is not None:
            yield python_name(found["name"]), _plain(" ".join([found["rest"], *digests[1:]])), at
        else:  # an address or a path, which has no name either
            yield said, "", at


def _joined(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the lines, with continuation lines joined."""
    waiting, begun = "", 0
    for line, at in text_lines(source):
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
