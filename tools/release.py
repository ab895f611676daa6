"""Makes the parts of a release other than wheel and sdist: its notes, its checksums and the version in its bill of
materials.

`notes` prints the section of CHANGELOG.md of a version. It fails if that is missing or empty, if the tag is not the
version of the package, or if the addresses in pyproject.toml have no owner yet. `checksums` writes SHA256SUMS, which
`sha256sum --check` reads. `materials` writes the version of the package into a bill of materials, whose generator finds
only versions that pyproject.toml states.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUMS = "SHA256SUMS"


class NotReleasable(Exception):
    """The tree cannot be released as it is."""


def notes(changelog: str, version: str) -> str:
    """Return the text below the heading of this version."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise NotReleasable(f"CHANGELOG.md has no section [{version}]")
    if not found[1].strip():
        raise NotReleasable(f"the section [{version}] of CHANGELOG.md is empty")
    return found[1].strip() + "\n"


def version_of(tag: str, initial: str) -> str:
    """Return the version that a tag such as `v1.2.3` releases; `initial` is the text of the package's `__init__.py`."""
    found = re.search(r'^__version__ = "([^"]+)"', initial, re.MULTILINE)
    version = found[1] if found else ""
    if tag != f"v{version}":
        raise NotReleasable(f"the tag is {tag}, but the package's version is {version}")
    return version


def check_addresses(pyproject: str) -> None:
    """Refuse if the addresses that the index shows for the package are placeholders."""
    if "/OWNER/" in pyproject:
        raise NotReleasable("[project.urls] of pyproject.toml still has the placeholder OWNER")


def with_version(materials: str, version: str) -> str:
    """Return the bill of materials (CycloneDX) with the version of the package that it describes."""
    bill = json.loads(materials)
    bill["metadata"]["component"]["version"] = version
    return json.dumps(bill, indent=2, ensure_ascii=False) + "\n"


def checksums(folder: Path) -> str:
    """Return a line for each file in the folder, sorted by name."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("release", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("notes", help="print the notes of the version that a tag releases").add_argument("tag")
    commands.add_parser("checksums", help=f"write {SUMS} into a folder").add_argument("folder", type=Path)
    commands.add_parser("materials", help="name the version in a bill of materials").add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    initial = (ROOT / "tools/workpacket/__init__.py").read_text("utf-8")
    if given.command == "materials":
        (version,) = re.findall(r'^__version__ = "([^"]+)"', initial, re.MULTILINE)
        given.file.write_text(with_version(given.file.read_text("utf-8"), version), "utf-8")
        return 0
    if given.command == "checksums":
        (given.folder / SUMS).write_text(checksums(given.folder), "utf-8")
        return 0
    try:
        check_addresses((ROOT / "pyproject.toml").read_text("utf-8"))
        version = version_of(given.tag, initial)
        sys.stdout.write(notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version))
    except NotReleasable as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
