"""Findings of this layer: the severity comes from the reason, the place is a whole file."""

from __future__ import annotations

from workpacket.model.findings import Finding
from workpacket.model.reason_tables.integrity import BY_CODE


def fault(code: str, path: str, message: str) -> Finding:
    reason = BY_CODE[code]
    return Finding(code, reason.severity, path, 0, 0, message, hint=reason.remedy)
