"""Rules about the gate logs of orchestrator and validator."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import Text
from workpacket.documents.gate_logs import GATES, GateDocument, ValidatorGates
from workpacket.model.ids import WorkPacketId
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.formats import date_time

GateRule = DocumentRule[GateDocument]


class GateIdMalformed(GateRule):
    """Gate log with an invalid packet id

    The gate was not recorded for any packet.

    Remedy: correct the id.
    """

    def check(self, document: GateDocument) -> Iterator[Problem]:
        seen: set[str] = set()
        for text in document.packet_texts():
            if text.value in seen:
                continue
            seen.add(text.value)
            parsed = WorkPacketId.try_parse(text.value)
            if parsed is None or parsed.kind != "packet":
                message = f"{text.value!r} is not a work packet id"
                yield self.fault(text.span, message, hint="write it as WP-<phase>-<slug>, with an optional -v<N>")


class GateTimeBackwards(GateRule):
    """Gate older than the one before it

    Logs are append-only. An event out of order was inserted later, or its time is wrong.

    Remedy: find out which; do not sort the log, because it is evidence.
    """

    severity = "warning"

    def check(self, document: GateDocument) -> Iterator[Problem]:
        for history in document.histories:
            latest: Text | None = None
            for event in history:
                time = event.time
                # Times of the same zone and precision compare as text; others are not judged.
                if time is None or date_time(time.value) or not time.value.endswith("Z"):
                    continue
                if latest is not None and time.value[:19] < latest.value[:19]:
                    yield self.fault(time.span, f"{time.value} is before {latest.value}, the time of an earlier event")
                else:
                    latest = time


class ValidatorGateUnknown(DocumentRule[ValidatorGates]):
    """Unknown validation gate

    Validation depends on the gates already passed; this is not one of them.

    Remedy: correct its name.
    """

    severity = "warning"

    def check(self, document: ValidatorGates) -> Iterator[Problem]:
        for history in document.histories:
            for event in history:
                if event.name is not None and event.name.value not in GATES:
                    message = f"there is no gate {event.name.value!r}"
                    yield self.fault(event.name.span, message, hint=f"one of {', '.join(GATES)}")


class GateFileMismatch(DocumentRule[ValidatorGates]):
    """Gate session in the file of another packet

    The packet's validator does not find it, and the other packet seems to have passed gates that it did not.

    Remedy: rename the file or correct the id.
    """

    def check(self, document: ValidatorGates) -> Iterator[Problem]:
        for text in document.packet_texts():
            parsed = WorkPacketId.try_parse(text.value)
            if parsed is not None and text.value != document.stem:
                message = f"the session belongs to {text.value}, the file to {document.stem}"
                yield self.fault(text.span, message, hint="rename the file or correct the id")
