"""The role checkpoints of a packet that are still open, for commands after which nobody should be at work in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from workpacket.cli.packet_command import Decide
from workpacket.git.repository import Repository
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.shell.tree import link_on_the_way, look_below, read_bytes
from workpacket.text.limits import DATA
from workpacket.value import replace

if TYPE_CHECKING:
    from workpacket.documents.role_progress import RoleProgress  # the bridge is imported where there is a role

_FOLDER = "docs/progress"


def noting_roles(repository: Repository, decide: Decide) -> Decide:
    """The same decision, with a note on each open role of the packet. A role is its writer's: it is not closed here."""

    def noted(facts: Facts, packet: PacketFacts) -> Answer:
        answer = decide(facts, packet)
        if not isinstance(answer, Planned):
            return answer
        return replace(answer, notes=(*answer.notes, *_notes(str(repository.root), (packet.id.text, packet.id.base))))

    return noted


def _notes(root: str, features: tuple[str, ...]) -> tuple[str, ...]:
    if not os.path.isdir(os.path.join(root, _FOLDER)) or link_on_the_way(root, _FOLDER):
        return ()
    from workpacket.bridges.role_acts import open_roles
    from workpacket.bridges.role_facts import read_folder

    names = [found.path.rpartition("/")[2] for found in look_below(root, _FOLDER) if found.path.count("/") == 2]
    # What stands in the name of a base stands in that of its revisions too.
    notes: dict[str, RoleProgress] = read_folder(lambda _: names, _reader(root), about=features[-1])
    found = {path: names[0] for feature in features for path, names in open_roles(notes, feature).items()}
    return tuple(
        f"the role in {path} is open; when its writer is done: workpacket progress close {feature}"
        for path, feature in sorted(found.items())
    )


def _reader(root: str) -> Callable[[str], bytes | None]:
    def read(path: str) -> bytes | None:
        try:
            return read_bytes(root, path, DATA.size)
        except OSError:
            return None

    return read
