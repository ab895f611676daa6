"""`yarn.lock`: the first format, which is yarn's own, and the YAML of yarn 2 and later ("berry")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.lockfiles.dependencies import (
    LOCKFILE,
    Dependencies,
    Malformed,
    Package,
    mapping,
    merged,
    required_text,
    rooted,
    subresource,
    written,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.loaded import unreadable
from workpacket.text.source import Fault, Source
from workpacket.text.yaml_strict import load_yaml

_BERRY = lazy_pattern(r"^__metadata:", re.MULTILINE)
_NAME = lazy_pattern(r"(?P<name>(?:@[^/@]+/)?[^/@]+)@(?P<rest>.*)\Z", re.DOTALL)

# The first format, line by line: a heading with what was asked for, fields, and groups of dependencies.
_ASKED = r'(?:"[^"\\]+"|[^\s",:][^\s",]*)'
_HEADING = lazy_pattern(rf"(?P<asked>{_ASKED}(?:, {_ASKED})*):\Z")
_FIELD = lazy_pattern(r'  (?P<key>[a-z]+) (?:"(?P<quoted>[^"\\]*)"|(?P<plain>[^\s"]+))\Z')
_GROUP = lazy_pattern(r"  [a-zA-Z]+:\Z")
_MEMBER = lazy_pattern(rf"    {_ASKED} {_ASKED}(?:.*)?\Z")


def read_lock(source: Source) -> Dependencies:
    return _berry(source) if _BERRY.search(source.text) else Dependencies(tuple(_classic(source)))


# ---- the first format ------------------------------------------------------------------------------------------------


def _classic(source: Source) -> Iterator[Package]:
    faults = unreadable(source.text, 0, LOCKFILE)
    if faults:
        raise Malformed(Fault("lockfile_malformed", 0, 0, f"{faults[0].message} ({faults[0].code})"))
    fields: dict[str, str] = {}
    heading, start = "", 0
    for line, at in _lines(source):
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
            raise Malformed(Fault("lockfile_malformed", at, at + len(line), "this line is not of yarn's format"))
    if heading:
        yield _classic_package(heading, fields, start)


def _lines(source: Source) -> Iterator[tuple[str, int]]:
    """The lines that say something, and where they begin."""
    for number, at in enumerate(source.line_starts, 1):
        line = source.line(number)
        if line.strip() and not line.startswith("#"):
            yield line, at


def _classic_package(heading: str, fields: dict[str, str], start: int) -> Package:
    named = _NAME.match(heading.split(", ", maxsplit=1)[0].strip('"'))
    if named is None or "version" not in fields:
        missing = "a version" if named else "a name and a version"
        raise Malformed(Fault("lockfile_malformed", start, start + len(heading), f"{heading} has not {missing}"))
    name = named["name"]
    if named["rest"].startswith("npm:"):  # an alias: installed under one name, and another package
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
            raise Malformed(
                Fault("lockfile_malformed", node.start, node.end, f"{key}: its resolution names no package")
            )
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
