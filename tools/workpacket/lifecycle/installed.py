"""What to install so that CI and hooks run the same tool as here.

A bare name installs whatever an index has under that name on that day, or nothing. A requirement therefore names a
version on the index, a commit of a git repository, or an archive and its digest: PEP 610 records which of them is
installed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json

NAME: Final = "workpacket"
# The placeholder for the requirement in a template.
PLACEHOLDER: Final = "{workpacket}"
# Templates have the requirement between double quotes, so it contains neither a quote nor a backslash.
_PINNED = lazy_pattern(
    r"workpacket(\[[a-z,]+\])?"
    r"( ?== ?[0-9A-Za-z.!+_-]+| @ git\+[a-z]+://[^\s\"'\\@]+(?:@[^\s\"'\\@/]+/[^\s\"'\\@]+)?@[0-9a-f]{40}(#[^\s\"'\\]+)?"
    r"| @ https://[^\s\"'\\]+#sha256=[0-9a-f]{64})"
)
_WRITTEN = lazy_pattern(r'"(workpacket(?:\[[a-z,]+\])?(?: ?==| @ )[^"\n]*)"')
_REMEDY: Final = (
    "pass --from with what others can install: workpacket==VERSION, "
    "'workpacket @ git+https://HOST/PATH@COMMIT', or 'workpacket @ https://HOST/FILE.whl#sha256=DIGEST'"
)


def requirement_of(direct_url: Mapping[str, Json] | None, version: str) -> str:
    """Return the requirement that installs the running tool: `direct_url` is the record of PEP 610, None for an install
    from an index.
    """
    if direct_url is None:
        return f"{NAME}=={version}"
    url = direct_url.get("url")
    if not isinstance(url, str) or url.startswith("file:"):
        message = f"this workpacket was installed from a path on this machine, {url}, which CI cannot install"
        raise WorkpacketError("install_source_local", message, hint=_REMEDY)
    commit, archive = direct_url.get("vcs_info"), direct_url.get("archive_info")
    if isinstance(commit, dict):
        folder = direct_url.get("subdirectory")
        inside = f"#subdirectory={folder}" if folder else ""
        return pinned(f"{NAME} @ {commit.get('vcs')}+{url}@{commit.get('commit_id')}{inside}")
    hashes = archive.get("hashes") if isinstance(archive, dict) else None
    digest = hashes.get("sha256") if isinstance(hashes, dict) else None
    return pinned(f"{NAME} @ {url.partition('#')[0]}#sha256={digest}")


def pinned(requirement: str) -> str:
    """Return the requirement if it identifies exactly one state of the tool."""
    if not _PINNED.fullmatch(requirement):
        message = f"{requirement!r} does not identify the workpacket to install: it has no version, commit or digest"
        raise WorkpacketError("install_source_open", message, hint=_REMEDY)
    return requirement


def written_in(text: str) -> str | None:
    """Return the requirement in one of our files."""
    found = _WRITTEN.search(text)
    return found[1] if found else None


def without_requirement(text: str) -> str:
    """Return the file as it is in the template."""
    return _WRITTEN.sub(f'"{PLACEHOLDER}"', text)
