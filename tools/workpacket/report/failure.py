"""A command that could not do what was asked, as text and as a finding of the JSON object."""

from __future__ import annotations

from workpacket.errors import WorkpacketError
from workpacket.model.findings import Finding
from workpacket.report.escape import escape
from workpacket.report.terminal import PLAIN, Style


def render_failure(error: WorkpacketError, style: Style = PLAIN) -> str:
    """`error: what (code)`, and a line that helps. Never wrapped: people search for it and paste it."""
    where = f"{escape(error.path)}: " if error.path else ""
    lines = [f"{style.paint('error:', 'error')} {where}{escape(error.message)} ({escape(error.code)})"]
    if error.hint:
        lines.append(f"{style.paint('help:', 'help')} {escape(error.hint)}")
    return "\n".join(lines) + "\n"


def failure_finding(error: WorkpacketError) -> Finding:
    return Finding(error.code, "error", error.path, 0, 0, error.message, error.hint)
