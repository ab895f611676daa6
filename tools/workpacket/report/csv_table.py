"""Tables as CSV (RFC 4180), safe to open in a spreadsheet.

Spreadsheets run a cell that begins with one of a few characters as a formula, even if it is quoted. Such a cell gets an
apostrophe in front, which spreadsheets read as "this is text". Control characters are shown in their visible form.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from workpacket.report.escape import escape

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(heads)
    writer.writerows([cell(value) for value in row] for row in rows)
    return stream.getvalue()


def cell(value: object) -> str:
    """Return a value as a cell. Only text can be a formula: a negative number stays a number."""
    if not isinstance(value, str):
        return str(value)
    shown = escape(value)
    return f"'{shown}" if shown.lstrip(" ").startswith(_FORMULA) else shown
