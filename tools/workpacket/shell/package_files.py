"""The files of the package itself: its schemas, the digests of every text that `init` ever wrote, and a fingerprint.

A cache is invalid once any part of the package has changed, so the fingerprint is needed at every start. The schemas
are imported only when they are needed.
"""

from __future__ import annotations

import os

from workpacket import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.text.schema import SchemaSet

STARTER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "starter")
# One line per text that `init` ever wrote: its SHA-256 and its path. `just reference` adds lines and never removes any.
SHIPPED = os.path.join(STARTER, "shipped.sha256")


def package_fingerprint() -> str:
    """Return the identity of an installed package; for a checkout, the number, size and times of all source and schema
    files.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = schema_folder()
    if folder.startswith(package):
        # Installed packages are replaced as a whole, never edited.
        status = os.stat(__file__)
        return f"{__version__}-{status.st_mtime_ns}-{status.st_ino}"
    count = size = newest = 0
    for searched in (package, folder):
        for _, status in _files(searched):
            count += 1
            size += status.st_size
            newest = max(newest, status.st_mtime_ns)
    return f"{__version__}-{count}-{size}-{newest}"


def package_digest() -> str:
    """Return an identity of the package that is the same on every machine: a digest of all source and schema files. It
    takes longer than the fingerprint.
    """
    from workpacket.digests import sha256

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    digests: list[str] = []
    for path in sorted(path for searched in (package, schema_folder()) for path, _ in _files(searched)):
        with open(path, "rb") as stream:
            digests.append(f"{sha256(stream.read()).hexdigest()} {os.path.basename(path)}")
    return f"{__version__}-{sha256(chr(10).join(digests).encode()).hexdigest()[:16]}"


def schema_folder() -> str:
    """Return the folder of the JSON Schemas: inside an installed package, or next to `tools` in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "schemas")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(os.path.dirname(package)), "schemas")


def _files(folder: str) -> list[tuple[str, os.stat_result]]:
    """Return the paths and states of all source and schema files below a folder."""
    found: list[tuple[str, os.stat_result]] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        with os.scandir(current) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        waiting.append(entry.path)
                elif entry.name.endswith((".py", ".json")):
                    found.append((entry.path, entry.stat()))
    return found


_OPENED: list[SchemaSet] = []


def schemas() -> SchemaSet:
    """Return the schemas of the package, each read when it is first needed."""
    if _OPENED:
        return _OPENED[0]
    from workpacket.text.schema import SchemaSet

    folder = schema_folder()

    def read(name: str) -> bytes:
        with open(os.path.join(folder, f"{name}.schema.json"), "rb") as stream:
            return stream.read()

    _OPENED.append(SchemaSet(read))
    return _OPENED[0]


def read_shipped() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    with open(SHIPPED, encoding="utf-8", newline="") as stream:
        for line in stream.read().splitlines():
            known, _, path = line.partition("  ")
            found.setdefault(path, set()).add(known)
    return {path: frozenset(digests) for path, digests in found.items()}
