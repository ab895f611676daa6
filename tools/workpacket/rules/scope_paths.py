"""Rules about the paths that work may change, in packets, work packages and batch tasks."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.batch import BatchCheckpoint, BatchTasks
from workpacket.documents.document import Text
from workpacket.documents.packet import Packet
from workpacket.documents.work_package import WorkPackage
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.scope import pattern_of
from workpacket.problem import Problem
from workpacket.rules.packet import is_too_wide
from workpacket.rules.rule import DocumentRule
from workpacket.rules.structured import PLACEHOLDER, says_something
from workpacket.text.formats import repository_path


class PathLeavesRepository(DocumentRule[Packet | BatchTasks | BatchCheckpoint]):
    """Path outside the repository

    Work is done and reviewed inside the repository. An absolute path, or one with `..`, refers to files that are not
    governed, and allows no changes in the repository.

    Remedy: write the path relative to the root of the repository, without `..`.
    """

    kinds = ("packet", "batch_tasks", "batch_checkpoint")

    def check(self, document: Packet | BatchTasks | BatchCheckpoint) -> Iterator[Problem]:
        for text, path in _paths(document):
            complaint = repository_path(path.replace("\\", "/")) if path else ""
            if complaint:
                yield self.fault(text.span, f"the path {path!r} {complaint}")


class ScopeTooWide(DocumentRule[Packet | WorkPackage]):
    """Scope that contains the whole repository

    A scope this wide does not limit the work, and conflicts with every other packet.

    Remedy: list the files and folders that the work may change.
    """

    kinds = ("packet", "work_package")
    severity = "warning"

    def check(self, document: Packet | WorkPackage) -> Iterator[Problem]:
        entries = document.in_scope_paths if isinstance(document, Packet) else document.owned_files
        for entry in entries:
            if is_too_wide(entry.value):
                yield self.fault(entry.span, f"the scope {entry.value!r} contains the whole repository")


class ScopeWithoutPath(DocumentRule[Packet]):
    """Scope that contains no path

    No change can be compared with the scope, so either everything counts as outside it, or nothing does.

    Remedy: list the files and folders that the work may change.
    """

    kinds = ("packet",)
    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        said = [entry for entry in document.in_scope_paths if says_something(entry.value)]
        said = [entry for entry in said if not PLACEHOLDER.match(entry.value) and not is_too_wide(entry.value)]
        if said and not any(_LIKE_A_PATH.search(entry.value) for entry in said):
            yield self.fault(said[0].span, f"the scope {said[0].value[:60]!r} contains no path")


# A folder, an ending, a pattern, or a name in backticks or on its own.
_LIKE_A_PATH = lazy_pattern(r"[/\\*`]|\w\.\w|\A\.?\w[\w-]*\Z")


def _paths(document: Packet | BatchTasks | BatchCheckpoint) -> Iterator[tuple[Text, str]]:
    if isinstance(document, Packet):
        yield from ((entry, pattern_of(entry.value)) for entry in document.in_scope_paths)
        return
    entries = document.entries if isinstance(document, BatchTasks) else document.next_tasks
    yield from ((file, file.value.strip()) for entry in entries for file in entry.files)
