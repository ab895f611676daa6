"""Files as commits hold them, read many at a time. A commit never changes, so each is read once in a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from workpacket.documents.stub_text import SPEC_POINTER
from workpacket.git.objects import missing_object, read_objects
from workpacket.git.repository import Repository
from workpacket.lifecycle.policy import POLICY_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.base.line import BaseLine

_MANY = 4096
# The policy, and the pointer to the specification: whoever asks for one of them will ask for the others.
OF_EVERY_JUDGEMENT = (POLICY_PATH, ".GOV/policy/allowed_signers", ".GOV/policy/revoked_keys", SPEC_POINTER)
# Objects that git is asked for with one call: so many specifications fit into memory at the same time.
_AT_ONCE = 500
# What was read ahead: by the name of the object, None for one that is not there.
_READ: dict[Repository, dict[str, bytes | None]] = {}


@lru_cache(maxsize=_MANY)
def committed(repository: Repository, commit: str, paths: tuple[str, ...]) -> dict[str, bytes]:
    """The files that the commit holds, of those named; do not change the answer, others get the same."""
    if not commit:
        return {}
    names = {f"{commit}:{path}": path for path in paths if "\n" not in path}
    known: Mapping[str, bytes | None] = _READ.get(repository, {})
    found: Mapping[str, bytes | None]
    found = known if names.keys() <= known.keys() else read_objects(repository, names)
    return {path: data for name, path in names.items() if (data := found.get(name)) is not None}


def read_ahead(repository: Repository, names: Iterable[str], line: BaseLine | None = None) -> None:
    """Read many files (`<commit>:<path>`) with few calls of git, for `committed` to find.

    What `line` knows of is asked for by the id of its contents.
    """
    known = _READ.setdefault(repository, {})
    wanted = {name: name for name in names if name not in known and "\n" not in name}
    for name in wanted if line is not None else ():
        revision, _, path = name.partition(":")
        if line is not None and line.knows(revision, path):
            wanted[name] = line.blob(revision, path)
    asked = list(dict.fromkeys(filter(None, wanted.values())))
    # One specification stands in a thousand commits, and is kept once.
    found, same = dict[str, bytes](), dict[bytes, bytes]()
    for start in range(0, len(asked), _AT_ONCE):
        read = read_objects(repository, asked[start : start + _AT_ONCE])
        found.update((name, same.setdefault(data, data)) for name, data in read.items())
    for name, identity in wanted.items():
        if identity not in found and identity not in ("", name):
            raise missing_object(identity, name)
        known[name] = found.get(identity)


def committed_file(repository: Repository, commit: str, path: str) -> bytes | None:
    return committed(repository, commit, (path,)).get(path)
