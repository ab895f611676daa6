"""What every lock file and manifest says, whatever its format: which packages, from where, with which digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from workpacket.documents.lockfiles.origins import origin_of
from workpacket.text.fault import Fault
from workpacket.text.limits import MIB, Limits
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value

# The lock file of a large workspace: pnpm and npm write some megabytes, and npm's first format nests its tree.
LOCKFILE = Limits(size=32 * MIB, depth=80, nodes=1_000_000)


class Package(Value):
    """One version of one package. `integrity` maps what was digested (an algorithm, a file) to its digest.

    `source` is as precise as the format says: the address of the archive, else of the registry; '' is the default one.
    `archives` are the addresses of its files, where the format has them beside the registry.
    """

    name: str
    version: str
    source: str = ""
    integrity: Mapping[str, str] = NOTHING
    start: int = 0
    archives: tuple[str, ...] = ()

    @property
    def origins(self) -> frozenset[str]:
        """From whom it comes, which a new version does not change."""
        return frozenset(origin_of(address, self.name, self.version) for address in (self.source, *self.archives))


class Dependencies(Value):
    """`direct` is what was asked for: name to requirement. None: this format does not tell it from the rest.

    `resolved` names the version that a direct dependency got, where the format tells it from other versions of the
    same package that somebody else asked for.
    """

    packages: tuple[Package, ...] = ()
    direct: Mapping[str, str] | None = None
    places: Mapping[str, int] = NOTHING
    resolved: Mapping[str, frozenset[str]] = NOTHING

    def place(self, name: str) -> int:
        """Where in the file the package stands."""
        if name in self.places:
            return self.places[name]
        return next((package.start for package in self.by_name.get(name, ())), 0)

    def versions(self, name: str) -> frozenset[str]:
        """The versions of a direct dependency."""
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
        """Everybody from whom anything comes."""
        return frozenset(origin for package in self.packages for origin in package.origins)

    @cached_property
    def all_digested(self) -> bool:
        return all(package.integrity for package in self.packages)


class Malformed(Exception):
    """A file that is not of its format. Never leaves this package: `reading` makes it a value."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def malformed(node: Node, message: str) -> Malformed:
    return Malformed(Fault("lockfile_malformed", node.start, node.end, message))


def _at(node: Node, path: tuple[str | int, ...]) -> Node | None:
    """The node at `path`. What stands on the way must be a mapping: anything else there hides what it should hold."""
    found: Node | None = node
    for step in path:
        if found is None or found.value is None:
            return None
        if not isinstance(found.value, dict):
            raise malformed(found, f"a mapping with {step} should stand here")
        found = found.get(step)
    return found


def mapping(node: Node, *path: str | int) -> dict[str, Node]:
    """The mapping at `path`; empty if nothing stands there, and malformed if something else does."""
    found = _at(node, path)
    if found is None or found.value is None:
        return {}
    if not isinstance(found.value, dict):
        raise malformed(found, f"{'.'.join(map(str, path))} is no mapping")
    return found.value


def items(node: Node, *path: str | int) -> list[Node]:
    """The list at `path`, by the same rules."""
    found = _at(node, path)
    if found is None or found.value is None:
        return []
    if not isinstance(found.value, list):
        raise malformed(found, f"{'.'.join(map(str, path))} is no list")
    return found.value


def text(node: Node, *path: str | int) -> str:
    """The text at `path`; '' if nothing stands there, and malformed if it is no text."""
    found = _at(node, path)
    if found is None or found.value is None:
        return ""
    if not isinstance(found.value, str):
        raise malformed(found, f"{'.'.join(map(str, path))} is no text")
    return found.value


def required_text(node: Node, *path: str | int) -> str:
    found = text(node, *path)
    if not found:
        raise malformed(node, f"{'.'.join(map(str, path))} is missing")
    return found


def written(node: Node | None, source: Source) -> str:
    """A scalar as it was written, so that version 1.10 is not the number 1.1; '' if there is none."""
    if node is None or node.value is None or isinstance(node.value, (dict, list)):
        return ""
    return node.value if isinstance(node.value, str) else source.text[node.start : node.end].strip()


def subresource(integrity: str) -> dict[str, str]:
    """The digests of an `integrity` text, by algorithm: 'sha512-... sha1-...'."""
    rows = (part.partition("-") for part in integrity.split())
    return {f"alg:{algorithm}": digest for algorithm, dash, digest in rows if dash}


def python_name(name: str) -> str:
    """A Python project's name in its normal form: `Ruamel.YAML` is `ruamel-yaml`."""
    import re

    return re.sub(r"[-_.]+", "-", name).lower()


def merged(requirements: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Name to requirement; where several parts of a workspace ask for one package, all that they ask."""
    found: dict[str, set[str]] = {}
    for name, requirement in requirements:
        found.setdefault(name, set()).add(requirement)
    return {name: " | ".join(sorted(filter(None, wanted))) for name, wanted in found.items()}
