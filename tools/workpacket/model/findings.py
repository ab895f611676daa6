"""A finding: what is wrong, where, and what to do about it."""

from __future__ import annotations

from typing import Literal

from workpacket.model.reasons import Severity
from workpacket.value import Value, replace

Confidence = Literal["certain", "likely", "possible"]


class Edit(Value):
    """Replace the characters [start, end) of one file's text (see `text.source.Source`) by `text`."""

    start: int
    end: int
    text: str


class Fix(Value):
    """Edits of the finding's own file. Safe: the meaning of the document stays; unsafe: a person should look."""

    edits: tuple[Edit, ...]
    safe: bool
    title: str = ""


class Finding(Value):
    """`line` and `column` count from 1; 0 means the file as a whole. The end is the place behind the last character."""

    code: str
    severity: Severity
    path: str
    line: int
    column: int
    message: str
    hint: str = ""
    fix: Fix | None = None
    confidence: Confidence = "certain"
    end_line: int = 0
    end_column: int = 0

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        return (self.path, self.line, self.column, self.code, self.message)

    def with_severity(self, severity: Severity) -> Finding:
        return replace(self, severity=severity)
