"""`pnpm-lock.yaml`, lock file versions 5 to 9."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Package,
    malformed,
    mapping,
    merged,
    rooted,
    subresource,
    text,
    written,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.text.yaml_strict import load_yaml

_GROUPS = ("dependencies", "devDependencies", "optionalDependencies")
# `/name@1.0.0(peer@2.0.0)` and `name@1.0.0`; before version 6 `/name/1.0.0_peer@2.0.0`.
_WITH_AT = lazy_pattern(r"/?(?P<name>(?:@[^/@]+/)?[^/@]+)@(?P<version>[^(]+)(?:\(.*)?\Z")
_WITH_SLASH = lazy_pattern(r"/(?P<name>(?:@[^/@]+/)?[^/@]+)/(?P<version>[^/_]+)(?:_.*)?\Z")


def read_lock(source: Source) -> Dependencies:
    root = rooted(load_yaml(source, limits=LOCKFILE))
    if not written(root.get("lockfileVersion"), source):
        raise malformed(root, "lockfileVersion is missing")
    importers = mapping(root, "importers") or {".": root}
    direct = merged(wanted for node in importers.values() for wanted in _requirements(node, source))
    overrides = ((name, f"override {written(node, source)}") for name, node in mapping(root, "overrides").items())
    packages = tuple(_package(key, node, source) for key, node in mapping(root, "packages").items())
    return Dependencies(packages, direct | dict(overrides), resolved=_resolved(importers, source))


def _resolved(importers: dict[str, Node], source: Source) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for importer in importers.values():
        for group in _GROUPS:
            for name, node in mapping(importer, group).items():
                got = written(node.get("version") or node, source)
                found.setdefault(name, set()).add(re.split(r"[(_]", got, maxsplit=1)[0])
    return {name: frozenset(versions) for name, versions in found.items()}


def _requirements(importer: Node, source: Source) -> Iterator[tuple[str, str]]:
    specifiers = mapping(importer, "specifiers")
    for group in _GROUPS:
        for name, node in mapping(importer, group).items():
            wanted = written(node.get("specifier") or specifiers.get(name) or node, source)
            yield name, wanted
            other = _other_name(written(node.get("version") or node, source))
            if other not in {"", name}:  # an alias: leave is needed for both names
                yield other, f"as {name}"


def _other_name(version: str) -> str:
    """The package that is taken, where it is not the one of that name: `wolf@1.0.0`, before `/wolf/1.0.0`."""
    plain = version.partition("(")[0]
    found = None if "://" in plain or ":" in plain else _WITH_AT.match(plain) or _WITH_SLASH.match(plain)
    return found["name"] if found is not None else ""


def _package(key: str, node: Node, source: Source) -> Package:
    """An archive or a repository has its address in place of a version."""
    resolution = node.get("resolution")
    if resolution is None:
        raise malformed(node, f"{key} has no resolution")
    address = text(resolution, "tarball") or text(resolution, "repo")
    if not address and resolution.get("directory") is not None:
        address = f"directory:{text(resolution, 'directory')}"
    commit = written(resolution.get("commit"), source)
    found = _WITH_AT.match(key) or _WITH_SLASH.match(key)
    name = text(node, "name") or (found["name"] if found else key)
    version = written(node.get("version"), source) or (found["version"] if found else "")
    return Package(
        name, version, f"{address}#{commit}" if commit else address,
        subresource(text(resolution, "integrity")), node.start,
    )  # fmt: skip
