"""The content of a lock file or manifest in any format: packages, their sources and digests. Malformed input is
reported with its location. The origin of a package is the part of its address that does not change with the version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from workpacket.model.layout import LARGEST_LOCKFILE
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.text.source import Limits, Loaded, Node, Source, unreadable
from workpacket.value import NOTHING, Value

# On these hosts, the repository, not the host, identifies the author of the code.
_ANYBODYS: Final = frozenset({
    "bitbucket.org", "codeberg.org", "codeload.github.com", "gist.github.com", "gist.githubusercontent.com",
    "github.com", "gitlab.com", "raw.githubusercontent.com",
})  # fmt: skip
# A requirement other than a range of versions: an address, a repository, an archive.
_ADDRESS: Final = re.compile(
    r"://|^(?:git|github|gitlab|bitbucket|gist|patch|exec|http|https):|\bgit@"
    r"|\b(?:git|url|registry|registry-index|index|source)\s*=|^[\w.-]+/[\w.-]+(?:#.*)?$"
    r"|=>\s+(?![./])\S|^-+(?!r\b|c\b|e\b|requirement|constraint|editable|require-hashes)\w"
)
_CREDENTIALS: Final = re.compile(r"://[^/@\s\"']*@")
# A requirement that names a file or a folder.
_LOCAL: Final = re.compile(
    r"(?:^(?:file|link|portal):|\b(?:path|file)\s*=\s*[\"']?|=>\s+|^(?:-e|--editable|-r|--requirement|-c|--constraint)"
    r"[\s=]+|^(?=[~./]))(?P<path>[^\"'\s,}#\[]*)"
)


def origin_of(address: str, name: str = "", version: str = "") -> str:
    """Return scheme and host; for a registry with paths, everything before the name; for a repository, the whole
    address. An archive whose address contains a different package name or version is a separate origin.
    """
    plain, _, fragment = address.partition("#")
    plain = plain.split("?", 1)[0]
    scheme, separator, rest = plain.partition("://")
    if not separator:
        return plain
    host, _, path = rest.partition("/")
    host = host.rpartition("@")[2].lower()
    if scheme.startswith("git") or scheme.endswith(("+git", "+ssh")) or plain.endswith(".git") or "commit=" in fragment:
        return f"{scheme}://{host}/{path}"
    if host in _ANYBODYS:
        return f"{scheme}://{host}/{'/'.join(path.split('/')[:2])}"
    if "/-/" in path:
        return f"{scheme}://{host}/{_before_name(path, name, version)}"
    return f"{scheme}://{host}"


def _before_name(path: str, name: str, version: str) -> str:
    """Return the address that all packages of an npm-style registry share: `<folder>/<name>/-/<name>-<version>.tgz`."""
    package, _, file = path.partition("/-/")
    package = package.replace("%2f", "/").replace("%2F", "/")
    own_file = file.rpartition("/")[2] == f"{name.rpartition('/')[2]}-{version}.tgz"
    if own_file and (package == name or package.endswith(f"/{name}")):
        return package.removesuffix(name)
    return path


def without_credentials(text: str) -> str:
    """Return the string without credentials, so that it can be shown and stored."""
    return _CREDENTIALS.sub("://", text)


def names_a_place(requirement: str, folder: str = "") -> bool:
    """Whether the requirement names a third-party source, and not only a version. A path inside this repository,
    relative to `folder`, is not a third-party source.
    """
    return any(
        _ADDRESS.search(part) is not None or any(_leads_out(found["path"], folder) for found in _LOCAL.finditer(part))
        for part in requirement.split(" | ")
    )


def _leads_out(path: str, folder: str) -> bool:
    if path.startswith(("/", "~")) or "\\" in path or ":" in path or "$" in path:
        return True
    depth = len([part for part in folder.split("/") if part])
    for part in path.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


# The limits allow for the lock file of a large workspace: pnpm and npm write some megabytes, and npm's first format
# nests its tree.
LOCKFILE = Limits(size=LARGEST_LOCKFILE, depth=80, nodes=1_000_000)


class Package(Value):
    """One version of one package. `integrity` maps an algorithm or a file to its digest. `source` is the address of the
    archive if the format records it, otherwise of the registry; '' is the default registry. `archives` are the
    addresses of its files, if the format records them in addition to the registry.
    """

    name: str
    version: str
    source: str = ""
    integrity: Mapping[str, str] = NOTHING
    start: int = 0
    archives: tuple[str, ...] = ()

    @property
    def origins(self) -> frozenset[str]:
        """Return the origins, which do not change with the version."""
        return frozenset(origin_of(address, self.name, self.version) for address in (self.source, *self.archives))


class Dependencies(Value):
    """The content of a file. `direct` maps the names of direct dependencies to requirements; None if the format does
    not mark direct dependencies. `resolved` gives the version of a direct dependency, if the format distinguishes it
    from other versions of the same package.
    """

    packages: tuple[Package, ...] = ()
    direct: Mapping[str, str] | None = None
    places: Mapping[str, int] = NOTHING
    resolved: Mapping[str, frozenset[str]] = NOTHING

    def place(self, name: str) -> int:
        """Return the offset of the package in the file."""
        if name in self.places:
            return self.places[name]
        return next((package.start for package in self.by_name.get(name, ())), 0)

    def versions(self, name: str) -> frozenset[str]:
        """Return the versions of a direct dependency."""
        if name in self.resolved:
            return self.resolved[name]
        return frozenset(package.version for package in self.by_name.get(name, ()))

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[Package]]:
        found: dict[str, list[Package]] = {}
        for package in self.packages:
            found.setdefault(package.name, []).append(package)
        return found

    @cached_property
    def origins(self) -> frozenset[str]:
        """Return all origins."""
        return frozenset(origin for package in self.packages for origin in package.origins)

    @cached_property
    def all_digested(self) -> bool:
        return all(package.integrity for package in self.packages)


def malformed_at(start: int, end: int, message: str) -> WorkpacketError:
    """Return the error for a malformed file."""
    return WorkpacketError.of(Problem("lockfile_malformed", message, Location.span(start, end)))


def malformed(node: Node, message: str) -> WorkpacketError:
    return malformed_at(node.start, node.end, message)


def _at(node: Node, path: tuple[str | int, ...]) -> Node | None:
    """Return the node at `path`. Every value on the path must be a mapping; anything else would hide the content below
    it.
    """
    found: Node | None = node
    for step in path:
        if found is None or found.value is None:
            return None
        if not isinstance(found.value, dict):
            raise malformed(found, f"expected a mapping with {step} here")
        found = found.get(step)
    return found


def _value(node: Node, path: tuple[str | int, ...], kind: type, noun: str) -> Any:
    """Return the value at `path`; None if it is missing; raise an error if it has another type."""
    found = _at(node, path)
    if found is None or found.value is None:
        return None
    if not isinstance(found.value, kind):
        raise malformed(found, f"{'.'.join(map(str, path))} is not {noun}")
    return found.value


def mapping(node: Node, *path: str | int) -> dict[str, Node]:
    return _value(node, path, dict, "a mapping") or {}


def items(node: Node, *path: str | int) -> list[Node]:
    return _value(node, path, list, "a list") or []


def text(node: Node, *path: str | int) -> str:
    return _value(node, path, str, "text") or ""


def required_text(node: Node, *path: str | int) -> str:
    found = text(node, *path)
    if not found:
        raise malformed(node, f"{'.'.join(map(str, path))} is missing")
    return found


def written(node: Node | None, source: Source) -> str:
    """Return a scalar as written, so that version 1.10 does not become the number 1.1; '' if it is missing."""
    if node is None or node.value is None or isinstance(node.value, (dict, list)):
        return ""
    return node.value if isinstance(node.value, str) else source.text[node.start : node.end].strip()


def subresource(integrity: str) -> dict[str, str]:
    """Return the digests in an `integrity` string, by algorithm: 'sha512-... sha1-...'."""
    rows = (part.partition("-") for part in integrity.split())
    return {f"alg:{algorithm}": digest for algorithm, dash, digest in rows if dash}


def python_name(name: str) -> str:
    """Return a Python project's normalized name: `Ruamel.YAML` is `ruamel-yaml`."""
    return re.sub(r"[-_.]+", "-", name).lower()


# The name, the requirement, and where it is stated.
Asked = Iterable[tuple[str, str, int]]


def merged(requirements: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return requirements by name, including every requirement if several workspace members require the same
    package."""
    found: dict[str, set[str]] = {}
    for name, requirement in requirements:
        found.setdefault(name, set()).add(requirement)
    return {name: " | ".join(sorted(filter(None, wanted))) for name, wanted in found.items()}


def asked_for(asked: Asked) -> Dependencies:
    """Return the requirements in a manifest."""
    rows = list(asked)
    places: dict[str, int] = {}
    for name, _, at in rows:
        places.setdefault(name, at)
    return Dependencies(direct=merged((name, wanted) for name, wanted, _ in rows), places=places)


def rooted(loaded: Loaded) -> Node:
    """Return the root mapping. The error message includes the strict loader's error and its code."""
    if loaded.root is None:
        first = loaded.faults[0]
        raise malformed_at(first.start, first.end, f"{first.message} ({first.code})")
    if not isinstance(loaded.root.value, dict):
        raise malformed(loaded.root, "the file is not a mapping")
    return loaded.root


def text_lines(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the lines of a file in a custom format, and the position where each line begins."""
    for fault in unreadable(source.text, 0, LOCKFILE):
        raise malformed_at(fault.start, fault.end, f"{fault.message} ({fault.code})")
    for number, at in enumerate(source.line_starts, 1):
        yield source.line(number), at
