"""`package-lock.json` and `npm-shrinkwrap.json`, lock file versions 1 to 3, and `package.json`."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Package,
    mapping,
    merged,
    subresource,
    text,
)
from workpacket.documents.lockfiles.loading import rooted
from workpacket.text.json_strict import load_json
from workpacket.text.node import Node
from workpacket.text.source import Source

_GROUPS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
# Where a manifest says which version of a dependency of a dependency is taken.
_OVERRIDES = ("overrides", "resolutions")
_INSTALLED = "node_modules/"


def read_lock(source: Source) -> Dependencies:
    root = rooted(load_json(source, LOCKFILE))
    if root.get("packages") is None:
        return Dependencies(tuple(_tree(root)))
    packages = mapping(root, "packages")
    own = {path: node for path, node in packages.items() if _INSTALLED not in f"{path}/"}
    direct = merged(wanted for node in own.values() for wanted in _requirements(node))
    # Version 2 also has the tree of version 1, and an old npm reads nothing else.
    return Dependencies((*_installed(packages), *_tree(root)), direct, resolved=_resolved(own, packages))


def _resolved(own: dict[str, Node], packages: dict[str, Node]) -> dict[str, frozenset[str]]:
    """What each part of the workspace gets: from its own folder, else from that of the root."""
    found: dict[str, set[str]] = {}
    for path, node in own.items():
        for name, _ in _requirements(node):
            folders = (f"{path}/{_INSTALLED}{name}".lstrip("/"), f"{_INSTALLED}{name}")
            got = next((packages[folder] for folder in folders if folder in packages), None)
            found.setdefault(name, set()).update([text(got, "version")] if got is not None else [])
    return {name: frozenset(versions) for name, versions in found.items()}


def _installed(packages: dict[str, Node]) -> Iterator[Package]:
    """The packages of a flat list: by the folder that each is installed in."""
    for path, node in packages.items():
        link = node.get("link")
        if f"/{_INSTALLED}" not in f"/{path}" or (link is not None and link.value is True):
            continue
        # An alias is installed under one name and is another package.
        name = text(node, "name") or path.rpartition(_INSTALLED)[2]
        yield _package(name, node)


def _tree(root: Node) -> Iterator[Package]:
    """The packages of version 1, in which those of a package stand inside it. Which are direct it does not say."""
    waiting = [root]
    while waiting:
        for name, node in mapping(waiting.pop(), "dependencies").items():
            yield _package(name, node)
            waiting.append(node)


def _package(name: str, node: Node) -> Package:
    return Package(
        name, text(node, "version"), text(node, "resolved"), subresource(text(node, "integrity")), node.start
    )


def read_manifest(source: Source) -> Dependencies:
    root = rooted(load_json(source, LOCKFILE))
    overridden = ((name, "override") for group in _OVERRIDES for name in mapping(root, group))
    pnpm = ((name, "override") for name in mapping(root, "pnpm", "overrides"))
    direct = merged([*_requirements(root), *overridden, *pnpm])
    places = {
        name: span[0] for group in _GROUPS for name, span in ((root.get(group) or Node(None, 0, 0)).keys or {}).items()
    }
    return Dependencies(direct=direct, places=places)


def _requirements(node: Node) -> Iterator[tuple[str, str]]:
    for group in _GROUPS:
        for name in mapping(node, group):
            wanted = text(node, group, name)
            yield name, wanted
            # An alias is called by one name and is another package: leave is needed for both.
            if wanted.startswith("npm:"):
                yield wanted.removeprefix("npm:").rpartition("@")[0] or wanted.removeprefix("npm:"), wanted
