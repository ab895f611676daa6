"""`validator_gates/<WP_ID>.json`: how far the validation of one packet went.

Sessions stand in a mapping by packet (`validation_sessions`), in lists (`sessions`, `archived_sessions`), or the file
is one session itself. Each has a list of gates, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import Text
from workpacket.documents.gate_events import GateDocument, packet_of, read_event
from workpacket.text.json_strict import load_json
from workpacket.text.node import Node
from workpacket.text.source import Source

_HOLDERS = ("validation_sessions", "sessions", "archived_sessions")
# Oldest first, as a passing validation goes through them.
GATES = ("WP_APPENDED", "COMMITTED", "REPORT_PRESENTED", "USER_ACKNOWLEDGED")


class ValidatorGates(GateDocument):
    kind = "validator_gates"

    def __init__(self, source: Source) -> None:
        loaded = load_json(source)
        super().__init__(source, loaded.root, loaded.faults)
        self.sessions = list(_sessions(loaded.root)) if loaded.root is not None else []
        self.histories = [
            [read_event(gate, "gate", "type", "name") for gate in gates.items]
            for session in self.sessions
            if (gates := session.get("gates")) is not None
        ]

    def packet_texts(self) -> Iterator[Text]:
        """The ids that the sessions state; of one that states none, or another, also its key."""
        yield from (stated for session in self.sessions if (stated := packet_of(session)) is not None)
        keyed = self.at("validation_sessions")
        if keyed is None or keyed.keys is None:
            return
        for name, session in keyed.mapping.items():
            stated = packet_of(session)
            if stated is None or stated.value != name:
                yield Text(name, *keyed.keys[name])


def _sessions(root: Node) -> Iterator[Node]:
    if root.get("gates") is not None:
        yield root
    for name in _HOLDERS:
        holder = root.get(name)
        if holder is not None:
            yield from (node for node in (*holder.mapping.values(), *holder.items) if node.mapping)
