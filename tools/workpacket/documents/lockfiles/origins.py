"""From whom a package comes: what of its address a new version of it does not change."""

from __future__ import annotations

import re
from typing import Final

# Here the host says nothing about who wrote the code; the repository does.
_ANYBODYS: Final = frozenset({
    "bitbucket.org", "codeberg.org", "codeload.github.com", "gist.github.com", "gist.githubusercontent.com",
    "github.com", "gitlab.com", "raw.githubusercontent.com",
})  # fmt: skip
# A requirement that is no range of versions: an address, a repository, an archive.
_ADDRESS: Final = re.compile(
    r"://|^(?:git|github|gitlab|bitbucket|gist|patch|exec|http|https):|\bgit@"
    r"|\b(?:git|url|registry|registry-index|index|source)\s*=|^[\w.-]+/[\w.-]+(?:#.*)?$"
    r"|=>\s+(?![./])\S|^-+(?!r\b|c\b|e\b|requirement|constraint|editable|require-hashes)\w"
)
_CREDENTIALS: Final = re.compile(r"://[^/@\s\"']*@")
# One that names a file or a folder.
_LOCAL: Final = re.compile(
    r"(?:^(?:file|link|portal):|\b(?:path|file)\s*=\s*[\"']?|=>\s+|^(?:-e|--editable|-r|--requirement|-c|--constraint)"
    r"[\s=]+|^(?=[~./]))(?P<path>[^\"'\s,}#\[]*)"
)


def origin_of(address: str, name: str = "", version: str = "") -> str:
    """Scheme and host; of a registry that serves under paths, all before the name; of a repository, the whole of it.

    An archive whose address names another package or another version is an origin of its own.
    """
    plain, _, fragment = address.partition("#")
    plain = plain.split("?", 1)[0]
    scheme, separator, rest = plain.partition("://")
    if not separator:
        return plain
    host, _, path = rest.partition("/")
    host = host.rpartition("@")[2].lower()
    if scheme.startswith("git") or scheme.endswith(("+git", "+ssh")) or plain.endswith(".git") or "commit=" in fragment:
        return f"{scheme}://{host}/{path}"
    if host in _ANYBODYS:
        return f"{scheme}://{host}/{'/'.join(path.split('/')[:2])}"
    if "/-/" in path:
        return f"{scheme}://{host}/{_before_name(path, name, version)}"
    return f"{scheme}://{host}"


def _before_name(path: str, name: str, version: str) -> str:
    """The folder below which a registry of npm's kind has its packages: `<folder>/<name>/-/<name>-<version>.tgz`."""
    package, _, file = path.partition("/-/")
    package = package.replace("%2f", "/").replace("%2F", "/")
    own_file = file.rpartition("/")[2] == f"{name.rpartition('/')[2]}-{version}.tgz"
    if own_file and (package == name or package.endswith(f"/{name}")):
        return package.removesuffix(name)
    return path


def without_credentials(text: str) -> str:
    """The text as it may be shown and stored: an address may carry a name and a password."""
    return _CREDENTIALS.sub("://", text)


def names_a_place(requirement: str, folder: str = "") -> bool:
    """Whether the requirement says from where, and not only which version. What lies in this repository, seen from
    `folder`, is nobody else's code."""
    return any(
        _ADDRESS.search(part) is not None or any(_leads_out(found["path"], folder) for found in _LOCAL.finditer(part))
        for part in requirement.split(" | ")
    )


def _leads_out(path: str, folder: str) -> bool:
    if path.startswith(("/", "~")) or "\\" in path or ":" in path or "$" in path:
        return True
    depth = len([part for part in folder.split("/") if part])
    for part in path.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False
