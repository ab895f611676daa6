"""JavaScript: the lock files of npm (versions 1 to 3), pnpm (5 to 9) and yarn, and `package.json`.

A `yarn.lock` has one of two formats: yarn 1 has its own, and yarn 2 and later ("berry") use YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Package,
    malformed,
    malformed_at,
    mapping,
    merged,
    required_text,
    rooted,
    subresource,
    text,
    text_lines,
    written,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.json_strict import load_json
from workpacket.text.source import Node, Source
from workpacket.text.yaml_strict import load_yaml

_NPM_GROUPS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
# Where a manifest overrides the version of a transitive dependency.
_OVERRIDES = ("overrides", "resolutions")
_INSTALLED = "node_modules/"


def read_npm(source: Source) -> Dependencies:
    root = rooted(load_json(source, LOCKFILE))
    if root.get("packages") is None:
        return Dependencies(tuple(_tree(root)))
    packages = mapping(root, "packages")
    own = {path: node for path, node in packages.items() if _INSTALLED not in f"{path}/"}
    got = {
        (path, name): _got(path, name, packages) for path, node in own.items() for name, _ in _npm_requirements(node)
    }
    direct = merged(wanted for node in own.values() for wanted in _npm_requirements(node))
    # A package from elsewhere in the folder of a workspace member was requested too, whatever the manifest says.
    direct = {
        text(node, "name"): f"as {name}" for (_, name), node in got.items() if node and text(node, "name")
    } | direct
    # Version 2 also has the tree of version 1, which is all that an old npm reads.
    return Dependencies((*_installed(packages), *_tree(root)), direct, resolved=_npm_resolved(got))


def _got(path: str, name: str, packages: dict[str, Node]) -> Node | None:
    """Return the version that a workspace member gets: from its own folder, or else from the root."""
    folders = (f"{path}/{_INSTALLED}{name}".lstrip("/"), f"{_INSTALLED}{name}")
    return next((packages[folder] for folder in folders if folder in packages), None)


def _npm_resolved(got: dict[tuple[str, str], Node | None]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for (_, name), node in got.items():
        versions = found.setdefault(name, set())
        if node is not None:
            other = text(node, "name")
            versions.add(f"{other}@{text(node, 'version')}" if other not in {"", name} else text(node, "version"))
    return {name: frozenset(versions) for name, versions in found.items()}


def _installed(packages: dict[str, Node]) -> Iterator[Package]:
    """Yield the packages of a flat list, by installation folder."""
    for path, node in packages.items():
        link = node.get("link")
        if f"/{_INSTALLED}" not in f"/{path}" or (link is not None and link.value is True):
            continue
        # An alias is installed under one name but is another package.
        name = text(node, "name") or path.rpartition(_INSTALLED)[2]
        yield _npm_package(name, node)


def _tree(root: Node) -> Iterator[Package]:
    """Yield the packages of version 1, where the dependencies of a package are nested inside it and direct ones are not
    marked.
    """
    waiting = [root]
    while waiting:
        for name, node in mapping(waiting.pop(), "dependencies").items():
            yield _npm_package(name, node)
            waiting.append(node)


def _npm_package(name: str, node: Node) -> Package:
    return Package(
        name, text(node, "version"), text(node, "resolved"), subresource(text(node, "integrity")), node.start
    )


def read_package_json(source: Source) -> Dependencies:
    root = rooted(load_json(source, LOCKFILE))
    overridden = ((name, "override") for group in _OVERRIDES for name in mapping(root, group))
    pnpm = ((name, "override") for name in mapping(root, "pnpm", "overrides"))
    direct = merged([*_npm_requirements(root), *overridden, *pnpm])
    places = {
        name: span[0]
        for group in _NPM_GROUPS
        for name, span in ((root.get(group) or Node(None, 0, 0)).keys or {}).items()
    }
    return Dependencies(direct=direct, places=places)


def _npm_requirements(node: Node) -> Iterator[tuple[str, str]]:
    for group in _NPM_GROUPS:
        for name in mapping(node, group):
            wanted = text(node, group, name)
            yield name, wanted
            # An alias is known by one name but is another package: both names need permission.
            if wanted.startswith("npm:"):
                yield wanted.removeprefix("npm:").rpartition("@")[0] or wanted.removeprefix("npm:"), wanted


_PNPM_GROUPS = ("dependencies", "devDependencies", "optionalDependencies")
# `/name@1.0.0(peer@2.0.0)` and `name@1.0.0`; before version 6 `/name/1.0.0_peer@2.0.0`.
_WITH_AT = lazy_pattern(r"/?(?P<name>(?:@[^/@]+/)?[^/@]+)@(?P<version>[^(]+)(?:\(.*)?\Z")
_WITH_SLASH = lazy_pattern(r"/(?P<name>(?:@[^/@]+/)?[^/@]+)/(?P<version>[^/_]+)(?:_.*)?\Z")


def read_pnpm(source: Source) -> Dependencies:
    root = rooted(load_yaml(source, limits=LOCKFILE))
    if not written(root.get("lockfileVersion"), source):
        raise malformed(root, "lockfileVersion is missing")
    importers = mapping(root, "importers") or {".": root}
    direct = merged(wanted for node in importers.values() for wanted in _pnpm_requirements(node, source))
    overrides = ((name, f"override {written(node, source)}") for name, node in mapping(root, "overrides").items())
    packages = tuple(_pnpm_package(key, node, source) for key, node in mapping(root, "packages").items())
    return Dependencies(packages, direct | dict(overrides), resolved=_pnpm_resolved(importers, source))


def _pnpm_resolved(importers: dict[str, Node], source: Source) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for importer in importers.values():
        for group in _PNPM_GROUPS:
            for name, node in mapping(importer, group).items():
                got = written(node.get("version") or node, source)
                found.setdefault(name, set()).add(re.split(r"[(_]", got, maxsplit=1)[0])
    return {name: frozenset(versions) for name, versions in found.items()}


def _pnpm_requirements(importer: Node, source: Source) -> Iterator[tuple[str, str]]:
    specifiers = mapping(importer, "specifiers")
    for group in _PNPM_GROUPS:
        for name, node in mapping(importer, group).items():
            wanted = written(node.get("specifier") or specifiers.get(name) or node, source)
            yield name, wanted
            other = _other_name(written(node.get("version") or node, source))
            if other not in {"", name}:  # an alias: both names need permission
                yield other, f"as {name}"


def _other_name(version: str) -> str:
    """Return the actual package, if it differs from the name: `wolf@1.0.0`, formerly `/wolf/1.0.0`."""
    plain = version.partition("(")[0]
    found = None if "://" in plain or ":" in plain else _WITH_AT.match(plain) or _WITH_SLASH.match(plain)
    return found["name"] if found is not None else ""


def _pnpm_package(key: str, node: Node, source: Source) -> Package:
    """Return a package. For an archive or a repository, the version is its address."""
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


_BERRY = lazy_pattern(r"^__metadata:", re.MULTILINE)
_NAME = lazy_pattern(r"(?P<name>(?:@[^/@]+/)?[^/@]+)@(?P<rest>.*)\Z", re.DOTALL)

# The first format, line by line: a heading with the requested packages, fields, and groups of dependencies.
_ASKED = r'(?:"[^"\\]+"|[^\s",:][^\s",]*)'
_HEADING = lazy_pattern(rf"(?P<asked>{_ASKED}(?:, {_ASKED})*):\Z")
_FIELD = lazy_pattern(r'  (?P<key>[a-z]+) (?:"(?P<quoted>[^"\\]*)"|(?P<plain>[^\s"]+))\Z')
_GROUP = lazy_pattern(r"  [a-zA-Z]+:\Z")
_MEMBER = lazy_pattern(rf"    {_ASKED} {_ASKED}(?:.*)?\Z")


def read_yarn(source: Source) -> Dependencies:
    return _berry(source) if _BERRY.search(source.text) else Dependencies(tuple(_classic(source)))


# ---- the first format ------------------------------------------------------------------------------------------------


def _classic(source: Source) -> Iterator[Package]:
    fields: dict[str, str] = {}
    heading, start = "", 0
    for line, at in text_lines(source):
        if not line.strip() or line.startswith("#"):
            continue
        found = _HEADING.match(line) if not line.startswith(" ") else None
        if found is not None:
            if heading:
                yield _classic_package(heading, fields, start)
            heading, start, fields = found["asked"], at, {}
            continue
        field = _FIELD.match(line)
        if field is not None and heading:
            fields[field["key"]] = field["quoted"] if field["quoted"] is not None else field["plain"]
        elif not heading or not (_GROUP.match(line) or _MEMBER.match(line)):
            raise malformed_at(at, at + len(line), "this line is not in yarn's format")
    if heading:
        yield _classic_package(heading, fields, start)


def _classic_package(heading: str, fields: dict[str, str], start: int) -> Package:
    named = _NAME.match(heading.split(", ", maxsplit=1)[0].strip('"'))
    if named is None or "version" not in fields:
        missing = "a version" if named else "a name and a version"
        raise malformed_at(start, start + len(heading), f"{heading} has not {missing}")
    name = named["name"]
    if named["rest"].startswith("npm:"):  # an alias: installed under one name, but another package
        aliased = _NAME.match(named["rest"].removeprefix("npm:"))
        name = aliased["name"] if aliased else name
    address, _, digest = fields.get("resolved", "").partition("#")
    integrity = subresource(fields.get("integrity", "")) | ({"alg:sha1-hex": digest} if len(digest) == 40 else {})
    if address.startswith("git"):
        address, integrity = fields["resolved"], {}
    return Package(name, fields["version"], address, integrity, start)


# ---- berry -----------------------------------------------------------------------------------------------------------


def _berry(source: Source) -> Dependencies:
    root = rooted(load_yaml(source, limits=LOCKFILE))
    packages: list[Package] = []
    asked: list[tuple[str, str]] = []
    own: set[str] = set()
    for key, node in root.mapping.items():
        if key == "__metadata":
            continue
        named = _NAME.match(required_text(node, "resolution"))
        if named is None:
            raise malformed(node, f"{key}: its resolution does not name a package")
        protocol, _, reference = named["rest"].partition(":")
        if protocol == "workspace":
            members = mapping(node, "dependencies").items()
            asked += [(name, written(wanted, source)) for name, wanted in members]
            own.add(named["name"])
            continue
        address = reference.partition("::")[2] if protocol == "npm" else named["rest"]
        checksum = written(node.get("checksum"), source)
        cache, slash, digest = checksum.rpartition("/")
        label = f"alg:yarn-{cache if slash else '1'}"
        version = written(node.get("version"), source)
        packages.append(Package(named["name"], version, address, {label: digest} if digest else {}, node.start))
    return Dependencies(tuple(packages), merged(row for row in asked if row[0] not in own))
