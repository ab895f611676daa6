"""The words that placeholders of command lines stand for in the repository at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from workpacket.cli.workspace import open_workspace
from workpacket.model.ids import WorkPacketId
from workpacket.shell.tree import find_documents

GATES = ("activation", "verdict", "waiver", "override")


def words_for(placeholder: str) -> Iterable[str]:
    """Without duplicates and in order; `()` for a placeholder of which nothing is known."""
    source = _SOURCES.get(placeholder)
    return sorted(set(source())) if source else ()


def _packets() -> Iterable[str]:
    return (packet.text for packet in _ids())


def _bases() -> Iterable[str]:
    return (packet.base for packet in _ids())


def _ids() -> Iterable[WorkPacketId]:
    """By the names of files alone: a packet whose file cannot be read can be named all the same."""
    for found in find_documents(open_workspace().root):
        if found.kind not in {"stub", "packet"}:
            continue
        *_, folder, name = found.path.split("/")
        packet = WorkPacketId.try_parse(folder if name == "packet.md" else name.removesuffix(".md"))
        if packet is not None:
            yield packet


def _lanes() -> Iterable[str]:
    from workpacket.shell.base.policy import lanes_here

    return lanes_here(open_workspace().root).tokens


def _codes() -> Iterable[str]:
    from workpacket.report.catalogue import catalogue

    return catalogue()


def _kinds() -> Iterable[str]:
    from workpacket.documents.places import PLACES

    return (kind for _, kind in PLACES)


def _branches() -> Iterable[str]:
    """Branches only, of all that a revision can be: nobody completes a hash."""
    from pathlib import Path

    from workpacket.git.repository import find_repository
    from workpacket.git.revisions import branch_names

    return branch_names(find_repository(Path.cwd()))


_SOURCES: Mapping[str, Callable[[], Iterable[str]]] = {
    "WP_ID": _packets,
    "BASE_WP_ID": _bases,
    "LANE": _lanes,
    "CODE": _codes,
    "KIND": _kinds,
    "GATE": lambda: GATES,
    "BRANCH": _branches,
    "REV": _branches,
}
