"""`ORCHESTRATOR_GATES.json`: which gates the orchestrator recorded for which packet, oldest first."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import Text
from workpacket.documents.gate_events import GateDocument, GateEvent, read_event
from workpacket.text.json_strict import load_json
from workpacket.text.limits import REGISTER
from workpacket.text.source import Source


class OrchestratorGates(GateDocument):
    kind = "orchestrator_gates"

    def __init__(self, source: Source) -> None:
        loaded = load_json(source, REGISTER)
        super().__init__(source, loaded.root, loaded.faults)
        logs = self.at("gate_logs")
        items = logs.items if logs is not None else []
        self.events: list[GateEvent] = [read_event(node, "type", "gate") for node in items]
        self.histories = [self.events]

    def packet_texts(self) -> Iterator[Text]:
        yield from (event.wp_id for event in self.events if event.wp_id is not None)
