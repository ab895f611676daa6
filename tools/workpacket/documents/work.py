"""What stubs and packets have in common: an id, a status, dependencies, and the summary made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from workpacket.documents.document import Text
from workpacket.documents.evidence import EvidenceBlock
from workpacket.documents.structured import StructuredDocument
from workpacket.documents.summary import EMPTY_MENTION, EvidenceSummary, Mention, WorkSummary
from workpacket.model.ids import WorkPacketId, find_ids, leading_id

# Of quoted lines, what tells whether anything ran stands at the beginning or is short.
_LONGEST_PROOF = 2000


class WorkDocument(StructuredDocument):
    """A stub or a packet. Each kind says where its own values stand."""

    def id_text(self) -> Text | None:
        """Where the document states its own id."""
        raise NotImplementedError

    def base_text(self) -> Text | None:
        return None

    def status_text(self) -> Text | None:
        raise NotImplementedError

    def created_text(self) -> Text | None:
        return None

    def risk_text(self) -> Text | None:
        return None

    def signature_text(self) -> Text | None:
        return None

    def refinement_text(self) -> Text | None:
        """The path of the refinement that the document names."""
        return None

    def dependency_texts(self) -> Iterable[Text]:
        """Texts in which every work packet id counts as a dependency."""
        return ()

    @property
    def evidence_blocks(self) -> Sequence[EvidenceBlock]:
        """The commands that the document gives as evidence."""
        return ()

    @property
    def own_id(self) -> str:
        """The id that the document states, else the one that its file name says."""
        text = self.id_text()
        return leading_id(text.value) if text is not None and text.value else self.stem

    def summary(self) -> Mapping[str, object]:
        status = self.status_text()
        own_id = self.own_id
        summary: WorkSummary = {
            "id": own_id,
            "base": _base_of(own_id),
            "title": self.title(),
            "place": self.place(self.id_text()),
            "lanes": [lane.token for lane in self.lanes.named(status.value)] if status is not None else [],
            "status": status.value if status is not None else "",
            "status_place": self.place(status),
            "created": _value(self.created_text()),
            "risk": _value(self.risk_text()),
            "depends": self.mentions(self.dependency_texts(), own_id),
            "signature": self.mention(self.signature_text()),
            "refinement": self.mention(self.refinement_text()),
            "evidence": [self._evidence_summary(block) for block in self.evidence_blocks],
        }
        return summary

    def _evidence_summary(self, block: EvidenceBlock) -> EvidenceSummary:
        return {
            "place": self.source.line_and_column(block.start),
            "log": self.mention(block.fields.get("LOG_PATH")),
            "sha256": self.mention(block.fields.get("LOG_SHA256")),
            "proof": block.proof[:_LONGEST_PROOF],
        }

    def title(self) -> str:
        """One line that says what the packet is about."""
        return ""

    def mention(self, text: Text | None) -> Mention:
        return (text.value, *self.place(text)) if text is not None else EMPTY_MENTION

    def mentions(self, texts: Iterable[Text], own_id: str) -> list[Mention]:
        """Every other packet that the texts name, once, with its place."""
        found: dict[str, Mention] = {}
        for text in texts:
            for name, start, _ in find_ids(text.value):
                if str(name) != own_id and str(name) not in found:
                    line, column = self.source.line_and_column(text.start + start)
                    found[str(name)] = (str(name), line, column)
        return list(found.values())


def _base_of(own_id: str) -> str:
    parsed = WorkPacketId.try_parse(own_id)
    return str(parsed.base) if parsed is not None else own_id


def _value(text: Text | None) -> str:
    return text.value if text is not None else ""
