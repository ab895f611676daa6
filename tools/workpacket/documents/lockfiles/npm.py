"""`package-lock.json` and `npm-shrinkwrap.json`, lock file versions 1 to 3, and `package.json`."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Package,
    mapping,
    merged,
    rooted,
    subresource,
    text,
)
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
    got = {(path, name): _got(path, name, packages) for path, node in own.items() for name, _ in _requirements(node)}
    direct = merged(wanted for node in own.values() for wanted in _requirements(node))
    # Somebody else's package in the folder of what was asked for was asked for too, whatever the manifest says.
    direct = {
        text(node, "name"): f"as {name}" for (_, name), node in got.items() if node and text(node, "name")
    } | direct
    # Version 2 also has the tree of version 1, and an old npm reads nothing else.
    return Dependencies((*_installed(packages), *_tree(root)), direct, resolved=_resolved(got))


def _got(path: str, name: str, packages: dict[str, Node]) -> Node | None:
    """What a part of the workspace gets: from its own folder, else from that of the root."""
    folders = (f"{path}/{_INSTALLED}{name}".lstrip("/"), f"{_INSTALLED}{name}")
    return next((packages[folder] for folder in folders if folder in packages), None)


def _resolved(got: dict[tuple[str, str], Node | None]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for (_, name), node in got.items():
        versions = found.setdefault(name, set())
        if node is not None:
            other = text(node, "name")
            versions.add(f"{other}@{text(node, 'version')}" if other not in {"", name} else text(node, "version"))
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
