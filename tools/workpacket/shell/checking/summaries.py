"""What stubs and packets say of themselves in short, from the cache where their bytes were examined before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import cast

from workpacket.documents.summary import WorkSummary
from workpacket.git.repository import Repository
from workpacket.shell.checking.cache import Cache
from workpacket.shell.checking.repository import known_or_examined
from workpacket.shell.configuration import lanes_here
from workpacket.shell.fingerprint import package_fingerprint
from workpacket.shell.tree import find_documents

_KINDS = frozenset({"stub", "packet"})


def work_summaries(repository: Repository, progress: Callable[[int, int], None]) -> Mapping[str, WorkSummary]:
    """The summaries by path; of a file that cannot be read there is none."""
    root = str(repository.root)
    files = [found for found in find_documents(root) if found.kind in _KINDS]
    cache = Cache(str(repository.common_dir), package_fingerprint())
    try:
        results = known_or_examined(root, files, cache, progress, lanes_here(root))
    finally:
        cache.close()
    known = [(found.path, result.summary) for found, result in zip(files, results, strict=True) if result.summary]
    # One text for all is read three times as fast as ten thousand small ones.
    loaded = json.loads(f"[{','.join(summary for _, summary in known)}]")
    return {path: cast("WorkSummary", summary) for (path, _), summary in zip(known, loaded, strict=True)}
