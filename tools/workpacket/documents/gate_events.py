"""What both gate logs have in common: events, each about a packet, each with a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from workpacket.documents.document import Document, Text, as_text
from workpacket.documents.summary import GateSummary
from workpacket.text.node import Node

# Written by scripts in several languages, each in its own style.
_PACKET_KEYS = ("wpId", "wp_id", "wpid", "WP_ID")
_TIME_KEYS = ("timestamp", "created_at", "at")


class GateEvent(NamedTuple):
    """One event: `name` is the gate's, `wp_id` the packet's where the event itself says it."""

    node: Node
    name: Text | None
    wp_id: Text | None
    time: Text | None


class GateDocument(Document):
    """A gate log: `histories` are lists of events, each list in the order in which they happened."""

    histories: list[list[GateEvent]]

    def packet_texts(self) -> Iterable[Text]:
        """Every place that names a packet."""
        raise NotImplementedError

    def summary(self) -> GateSummary:
        return {"packets": [(text.value, *self.place(text)) for text in self.packet_texts()]}


def read_event(node: Node, *name_keys: str) -> GateEvent:
    return GateEvent(node, _first(node, name_keys), packet_of(node), _first(node, _TIME_KEYS))


def packet_of(node: Node) -> Text | None:
    """The id that a mapping states, in whichever style its key is written."""
    return _first(node, _PACKET_KEYS)


def _first(node: Node, keys: Iterable[str]) -> Text | None:
    return next((text for key in keys if (text := as_text(node.get(key))) is not None), None)
