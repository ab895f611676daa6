"""The formats of lock files and manifests: npm, pnpm and yarn; uv, poetry, pipenv and pip; Cargo; Go.

A `yarn.lock` has one of two formats: yarn 1 has its own, and yarn 2 and later ("berry") use YAML.
"""

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
    malformed_at,
    mapping,
    merged,
    python_name,
    required_text,
    rooted,
    subresource,
    text,
    text_lines,
    written,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import WorkpacketError
from workpacket.text.json_strict import load_json
from workpacket.text.source import Node, Source
from workpacket.text.toml_strict import load_toml
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
    """Yield the packages in a version 1 file, where the dependencies of a package are nested inside it and direct ones
    are not marked.
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
    """Return the actual package, if it is not the one in the name: `wolf@1.0.0`, formerly `/wolf/1.0.0`."""
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
            raise malformed(node, f"{key}: its resolution does not identify a package")
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
        raise malformed(place, f"source {kind} is not a string")
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
    """Return the requirements in a table of name = requirement; a requirement with details is returned as written."""
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


_GROUPS = ("dependencies", "dev-dependencies", "build-dependencies")


def read_cargo(source: Source) -> Dependencies:
    root = rooted(load_toml(source, LOCKFILE))
    packages = items(root, "package")
    # A package without a source is part of the workspace, or is at a path that its manifest names.
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


def read_cargo_manifest(source: Source) -> Dependencies:
    return asked_for(_asked(rooted(load_toml(source, LOCKFILE)), source))


def _asked(root: Node, source: Source) -> Iterator[tuple[str, str, int]]:
    tables: list[tuple[str, ...]] = [("workspace", "dependencies"), *((group,) for group in _GROUPS)]
    tables += [("target", target, group) for target in mapping(root, "target") for group in _GROUPS]
    for path in tables:
        for name, node in mapping(root, *path).items():
            # `package` names the actual package; the key is then only its name in the code.
            yield text(node, "package") or name if node.mapping else name, _wanted(node, source), node.start
    for registry in mapping(root, "patch"):
        for name, node in mapping(root, "patch", registry).items():
            yield name, f"patch {_wanted(node, source)}", node.start


def _wanted(node: Node, source: Source) -> str:
    return node.text or " ".join(source.text[node.start : node.end].split())


_WORD = r'(?:"[^"]*"|`[^`]*`|[^\s"`()]+)'
_ONE = lazy_pattern(r"(?P<verb>[a-z]+)\s+(?P<rest>\S.*)\Z")
_REQUIRED = lazy_pattern(rf"(?P<module>{_WORD})\s+(?P<version>v[^\s]+)\Z")
_REPLACED = lazy_pattern(rf"(?P<old>{_WORD})(?:\s+v[^\s]+)?\s+=>\s+(?P<new>{_WORD})(?:\s+(?P<version>v[^\s]+))?\Z")
_SUM = lazy_pattern(
    r"(?P<module>\S+) (?P<version>v[^\s/]+)(?P<mod>/go\.mod)? (?P<kind>h[0-9]+):(?P<digest>[A-Za-z0-9+/=]+)\Z"
)
_VERBS = frozenset(
    {"module", "go", "toolchain", "godebug", "require", "replace", "exclude", "retract", "tool", "ignore"}
)


def read_go_mod(source: Source) -> Dependencies:
    """Read every requirement as a package. A package is direct if it is a replacement or is not marked as indirect."""
    packages: dict[str, Package] = {}
    direct: dict[str, str] = {}
    for verb, line, comment, at in _directives(source):
        if verb == "require":
            found = _REQUIRED.match(line)
            if found is None:
                raise _wrong(at, line, "is not a requirement")
            module = found["module"].strip('"`')
            packages[module] = Package(module, found["version"], "", {}, at)
            if not comment.startswith("indirect"):
                direct[module] = found["version"]
        elif verb == "replace":
            found = _REPLACED.match(line)
            if found is None:
                raise _wrong(at, line, "is not a replacement")
            module = found["old"].strip('"`')
            direct[f"{module}"] = f"{direct.get(module, '')} => {found['new']} {found['version'] or ''}".strip()
            packages[module] = Package(module, found["version"] or "", found["new"].strip('"`'), {}, at)
        elif verb == "tool":
            direct[f"tool {line}"] = ""
    return Dependencies(tuple(packages.values()), direct)


def _directives(source: Source) -> Iterator[tuple[str, str, str, int]]:
    """Yield the directive, arguments, comment and position of each line; every line in a block is yielded
    separately."""
    block = ""
    for whole, at in text_lines(source):
        said, _, comment = whole.partition("//")
        line, comment = said.strip(), comment.strip()
        if not line:
            continue
        if block:
            if line == ")":
                block = ""
            else:
                yield block, line, comment, at
            continue
        found = _ONE.match(line)
        if found is None or found["verb"] not in _VERBS:
            raise _wrong(at, line, "is not a go.mod directive")
        if found["rest"] == "(":
            block = found["verb"]
        else:
            yield found["verb"], found["rest"], comment, at
    if block:
        raise _wrong(len(source.text), "", f"the {block} block is not closed")


def read_go_sum(source: Source) -> Dependencies:
    """Read the digests of modules and of their go.mod files. Only go.mod says which modules are direct, and which
    version is used.
    """
    digests: dict[tuple[str, str], dict[str, str]] = {}
    places: dict[tuple[str, str], int] = {}
    for line, at in text_lines(source):
        if not line.strip():
            continue
        found = _SUM.match(line)
        if found is None:
            raise _wrong(at, line, "is not a valid go.sum line")
        key = found["module"], found["version"]
        label = f"alg:{found['kind']}{'-mod' if found['mod'] else ''}"
        if digests.setdefault(key, {}).setdefault(label, found["digest"]) != found["digest"]:
            raise _wrong(at, line, "gives a second digest for the same entry")
        places.setdefault(key, at)
    packages = tuple(Package(*key, "", rows, places[key]) for key, rows in digests.items())
    # A digest alone requires nothing: every version that was ever examined has one.
    return Dependencies(packages, {})


def _wrong(at: int, line: str, what: str) -> WorkpacketError:
    return malformed_at(at, at + len(line), f"{line[:80]!r} {what}" if line else what)
