"""The two gate logs: lists of events, each with a packet and a time.

`ORCHESTRATOR_GATES.json` lists the gates that the orchestrator recorded for each packet, oldest first.
`validator_gates/<WP_ID>.json` records the validation of one packet. Its sessions are in a mapping by packet
(`validation_sessions`) or in lists (`sessions`, `archived_sessions`), or the file is itself one session. Each session
has a list of gates, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from workpacket.documents.document import Document, Text, as_text
from workpacket.documents.summary import GateSummary
from workpacket.text.formats import date_time
from workpacket.text.json_strict import load_json
from workpacket.text.source import REGISTER, Node, Source

# Written by scripts in several languages, each with its own spelling.
_PACKET_KEYS = ("wpId", "wp_id", "wpid", "WP_ID")
_TIME_KEYS = ("timestamp", "created_at", "at")


class GateEvent(NamedTuple):
    """One event: `name` is the name of the gate, and `wp_id` is the id of the packet, if the event states it."""

    node: Node
    name: Text | None
    wp_id: Text | None
    time: Text | None


class GateDocument(Document):
    """A gate log. `histories` are lists of events, each in chronological order."""

    histories: list[list[GateEvent]]

    def packet_texts(self) -> Iterable[Text]:
        """Return every location that names a packet."""
        raise NotImplementedError

    def summary(self) -> GateSummary:
        stated = [(packet, what, self.mention(text)) for packet, what, text in self.stated()]
        return {"packets": [self.mention(text) for text in self.packet_texts()], "stated": stated}

    def days(self) -> Iterator[tuple[str, Text]]:
        times = (event.time for history in self.histories for event in history)
        # The schema judges their form.
        yield from (("the event", time) for time in times if time is not None and not date_time(time.value))

    def stated(self) -> Iterable[tuple[str, str, Text]]:
        """Return the current verdicts and signatures: the packet, `verdict` or `signature`, and the value."""
        return ()


def read_event(node: Node, *name_keys: str) -> GateEvent:
    return GateEvent(node, _first(node, name_keys), packet_of(node), _first(node, _TIME_KEYS))


def packet_of(node: Node) -> Text | None:
    """Return the id in a mapping, in whatever style its key is written."""
    return _first(node, _PACKET_KEYS)


def _first(node: Node, keys: Iterable[str]) -> Text | None:
    return next((text for key in keys if (text := as_text(node.get(key))) is not None), None)


class OrchestratorGates(GateDocument):
    kind = "orchestrator_gates"

    def __init__(self, source: Source) -> None:
        loaded = load_json(source, REGISTER)
        super().__init__(source, loaded.root, loaded.faults)
        self.events = [read_event(node, "type", "gate") for node in self.items_at("gate_logs")]
        self.histories = [self.events]

    def stated(self) -> Iterator[tuple[str, str, Text]]:
        last = {
            event.wp_id.value: text
            for event in self.events
            if event.wp_id is not None and (text := as_text(event.node.get("signature"))) is not None
        }
        yield from ((packet, "signature", text) for packet, text in last.items())

    def packet_texts(self) -> Iterator[Text]:
        yield from (event.wp_id for event in self.events if event.wp_id is not None)


_HOLDERS = ("validation_sessions", "sessions", "archived_sessions")
GATE_TYPES = ("REFINEMENT", "SIGNATURE", "PREPARE")
VERDICTS = ("PASS", "FAIL", "OUTDATED_ONLY")
# In the order in which a successful validation passes them.
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

    def stated(self) -> Iterator[tuple[str, str, Text]]:
        keyed = self.at("validation_sessions")
        for name, session in keyed.mapping.items() if keyed is not None else ():
            verdict = as_text(session.get("verdict"))
            if verdict is not None:
                yield name, "verdict", verdict

    def packet_texts(self) -> Iterator[Text]:
        """Yield the ids in the sessions, and the key of each session whose id is missing or different."""
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
