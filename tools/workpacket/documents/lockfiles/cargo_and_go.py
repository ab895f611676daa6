"""`Cargo.lock`, versions 1 to 4, and `Cargo.toml`; `go.mod`, which is both manifest and lock file, and `go.sum`."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Package,
    asked_for,
    items,
    malformed_at,
    mapping,
    required_text,
    rooted,
    text,
    text_lines,
)
from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.source import Node, Source
from workpacket.text.toml_strict import load_toml

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
    """Read every requirement as a package. It is direct if it is a replacement or is not marked as indirect."""
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
    """Yield directive, arguments, comment and position of each line; every line of a block is yielded separately."""
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
            raise _wrong(at, line, "is not a directive of go.mod")
        if found["rest"] == "(":
            block = found["verb"]
        else:
            yield found["verb"], found["rest"], comment, at
    if block:
        raise _wrong(len(source.text), "", f"the block of {block} is not closed")


def read_go_sum(source: Source) -> Dependencies:
    """Read the digests of modules and of their go.mod. Only go.mod says which modules are direct, and which version is
    used.
    """
    digests: dict[tuple[str, str], dict[str, str]] = {}
    places: dict[tuple[str, str], int] = {}
    for line, at in text_lines(source):
        if not line.strip():
            continue
        found = _SUM.match(line)
        if found is None:
            raise _wrong(at, line, "is not a line of go.sum")
        key = found["module"], found["version"]
        label = f"alg:{found['kind']}{'-mod' if found['mod'] else ''}"
        if digests.setdefault(key, {}).setdefault(label, found["digest"]) != found["digest"]:
            raise _wrong(at, line, "gives a second digest for the same item")
        places.setdefault(key, at)
    packages = tuple(Package(*key, "", rows, places[key]) for key, rows in digests.items())
    # A digest alone requires nothing: every version that was ever examined has one.
    return Dependencies(packages, {})


def _wrong(at: int, line: str, what: str) -> WorkpacketError:
    return malformed_at(at, at + len(line), f"{line[:80]!r} {what}" if line else what)
