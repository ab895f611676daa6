"""`Cargo.lock`, versions 1 to 4, and `Cargo.toml`."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Package,
    items,
    mapping,
    merged,
    required_text,
    rooted,
    text,
)
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.text.toml_strict import load_toml

_GROUPS = ("dependencies", "dev-dependencies", "build-dependencies")


def read_lock(source: Source) -> Dependencies:
    root = rooted(load_toml(source, LOCKFILE))
    packages = items(root, "package")
    # What has no source is a part of the workspace, or lies at a path that its manifest names.
    own = [node for node in packages if not text(node, "source")]
    members = {required_text(node, "name") for node in own}
    direct = {(row.text or "").split(" ", 1)[0]: "" for node in own for row in items(node, "dependencies") if row.text}
    old = {key: node.text or "" for key, node in mapping(root, "metadata").items()}
    found = tuple(_package(node, old) for node in packages if node not in own)
    return Dependencies(found, {name: wanted for name, wanted in direct.items() if name not in members})


def _package(node: Node, old: dict[str, str]) -> Package:
    name, version, source = required_text(node, "name"), required_text(node, "version"), text(node, "source")
    # Version 1 has the checksums in a table at the end.
    checksum = text(node, "checksum") or old.get(f"checksum {name} {version} ({source})", "")
    return Package(name, version, source, {"alg:sha256": checksum} if checksum else {}, node.start)


def read_manifest(source: Source) -> Dependencies:
    root = rooted(load_toml(source, LOCKFILE))
    rows = list(_asked(root, source))
    places: dict[str, int] = {}
    for name, _, at in rows:
        places.setdefault(name, at)
    return Dependencies(direct=merged((name, wanted) for name, wanted, _ in rows), places=places)


def _asked(root: Node, source: Source) -> Iterator[tuple[str, str, int]]:
    tables: list[tuple[str, ...]] = [("workspace", "dependencies"), *((group,) for group in _GROUPS)]
    tables += [("target", target, group) for target in mapping(root, "target") for group in _GROUPS]
    for path in tables:
        for name, node in mapping(root, *path).items():
            # `package` names what is really taken where the key is only how the code calls it.
            yield text(node, "package") or name if node.mapping else name, _wanted(node, source), node.start
    for registry in mapping(root, "patch"):
        for name, node in mapping(root, "patch", registry).items():
            yield name, f"patch {_wanted(node, source)}", node.start


def _wanted(node: Node, source: Source) -> str:
    return node.text or " ".join(source.text[node.start : node.end].split())
