"""Rules about the rows of the signature audit."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import Text
from workpacket.documents.signature_audit import AuditRow, SignatureAudit
from workpacket.rules.rule import DocumentRule
from workpacket.text.fault import Fault
from workpacket.text.formats import legacy_signature


class AuditRule(DocumentRule[SignatureAudit]):
    kinds = ("signature_audit",)


class AuditSignatureMalformed(AuditRule):
    """Audited signature that is no name with a date

    A token says who approved and when. This one says neither, so the row proves nothing.

    Remedy: correct the token if it was mistyped; else delete the row and have the packet approved again.
    """

    def check(self, document: SignatureAudit) -> Iterator[Fault]:
        for row in document.rows:
            token = row.signature
            problem = legacy_signature(token.value) if token is not None else ""
            if token is not None and problem:
                hint = "a token is a name in small letters, then DDMMYYYYHHMM"
                yield self.fault(token.span, f"{token.value!r} {problem}", hint=hint)


class AuditSignatureTwice(AuditRule):
    """Signature that is audited twice

    A token is given once, for one packet; a second row means that it was used again.

    Remedy: have the second packet approved on its own, or delete the row if it is a copy.
    """

    def check(self, document: SignatureAudit) -> Iterator[Fault]:
        first: dict[str, AuditRow] = {}
        for row in document.rows:
            if row.signature is None or not row.signature.value:
                continue
            earlier = first.setdefault(row.signature.value, row)
            if earlier is not row:
                message = f"{row.signature.value} stands already at line {earlier.row.line}"
                yield self.fault(row.signature.span, message)


class AuditOrder(AuditRule):
    """Signature that is newer than the one above it

    The audit is kept newest first; a row out of order was added later than it looks, or its date is wrong.

    Remedy: move the row to its place.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: SignatureAudit) -> Iterator[Fault]:
        oldest: Text | None = None
        for row in document.rows:
            token = row.signature
            if token is None or legacy_signature(token.value):
                continue
            if oldest is not None and _moment(token) > _moment(oldest):
                message = f"{token.value} is newer than {oldest.value}, which stands above it"
                yield self.fault(token.span, message)
            else:
                oldest = token


def _moment(token: Text) -> tuple[str, str, str, str]:
    """Year, month, day and time of a token that ends in DDMMYYYYHHMM."""
    digits = token.value[-12:]
    return digits[4:8], digits[2:4], digits[:2], digits[8:]
