"""The open role checkpoints of a packet, for commands after which no role should be active."""

from __future__ import annotations

import os

from workpacket.cli.packet_command import Decide
from workpacket.git.repository import Repository
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.value import replace

_FOLDER = "docs/progress"


def noting_roles(repository: Repository, decide: Decide) -> Decide:
    """The same decision, with a note on each open role of the packet. Only its writer closes a role."""

    def noted(facts: Facts, packet: PacketFacts) -> Answer:
        answer = decide(facts, packet)
        if not isinstance(answer, Planned):
            return answer
        return replace(answer, notes=(*answer.notes, *_notes(str(repository.root), (packet.id.text, packet.id.base))))

    return noted


def _notes(root: str, features: tuple[str, ...]) -> tuple[str, ...]:
    if not os.path.isdir(os.path.join(root, _FOLDER)):
        return ()
    from workpacket.bridges.role_acts import open_roles  # costs start-up, and few packets have roles
    from workpacket.bridges.role_facts import notes_here

    # The name of a base is part of the names of its revisions.
    notes = notes_here(root, about=features[-1])
    found = {path: names[0] for feature in features for path, names in open_roles(notes, feature).items()}
    return tuple(
        f"the role in {path} is open; when its writer is done: workpacket progress close {feature}"
        for path, feature in sorted(found.items())
    )
