"""Filling in the person's word in a refinement, before it is signed: what is signed must say that it was approved.

The token is the old name-with-a-date, so that readers of today's files find what they look for. It proves nothing; the
envelope beside it does, and it is over these very bytes. A token stands on one packet only: whoever approves several
within a minute leaves on each the next minute that is free. It is one of the few that follow from approver and instant,
so a statement that was signed elsewhere can be attached to the same bytes later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from workpacket.documents.refinement import APPROVAL_WORDS, Refinement
from workpacket.model.findings import Edit
from workpacket.text.edits import apply_edits
from workpacket.text.keys import normal_key
from workpacket.text.source import Source

LABELS = ("USER_REVIEW_STATUS", "USER_SIGNATURE", "USER_APPROVAL_EVIDENCE")
_LONGEST_NAME = 40
# So many approvals can one person give at once; a token an hour off is still of the time that it names.
_MINUTES = 60


def tokens_of(approver: str, at: datetime) -> Iterator[str]:
    """`ann310120261200` for ann@example.org, in UTC, and those of the minutes that follow."""
    name = re.sub(r"[^a-z]", "", approver.partition("@")[0].casefold())[:_LONGEST_NAME] or "approver"
    return (f"{name}{at + timedelta(minutes=later):%d%m%Y%H%M}" for later in range(_MINUTES))


def fill(source: Source, packet: str, token: str) -> Source | str:
    """The refinement with the three USER fields filled in, every other byte as it was; or why that cannot be done."""
    wanted = dict(zip(LABELS, ("APPROVED", token, f"{APPROVAL_WORDS} {packet}"), strict=True))
    fields = _fields(Refinement(source))
    missing = [label for label, value in fields.items() if value is None]
    if missing == ["USER_APPROVAL_EVIDENCE"]:
        source = _with_evidence(source, fields["USER_SIGNATURE"])
        fields = _fields(Refinement(source))
        missing = [label for label, value in fields.items() if value is None]
    if missing:
        return f"METADATA has no field {', no '.join(missing)} to fill in"
    long = [label for label, value in fields.items() if value and "\n" in source.text[slice(*value[1])]]
    if long:
        return f"its METADATA field {long[0]} goes over several lines; what stands below its first line would be lost"
    edits = [_edit(source, span, wanted[label]) for label, value in fields.items() if value for span in [value[1]]]
    filled = apply_edits(source, edits)
    reread = {label: value[0] if value else None for label, value in _fields(Refinement(filled)).items()}
    if reread != wanted:
        return "its METADATA is read differently once it is filled in"
    return filled


def _fields(document: Refinement) -> dict[str, tuple[str, tuple[int, int]] | None]:
    """Values and where they stand; also of a field that is empty, whose place a typed document does not tell."""
    placed = document.placed_section("metadata")
    found = {field.name: (field.value, field.value_span) for field in reversed(placed.fields)} if placed else {}
    return {label: found.get(normal_key(label)) for label in LABELS}


def _edit(source: Source, span: tuple[int, int], value: str) -> Edit:
    start, end = span
    space = "" if start and source.text[start - 1] in " \t" else " "
    return Edit(start, end, space + value)


def _with_evidence(source: Source, signature: tuple[str, tuple[int, int]] | None) -> Source:
    """With an empty field for the evidence below the signature's line, written as that line is."""
    if signature is None:
        return source
    line = source.line_and_column(signature[1][0])[0]
    start, end = source.line_span(line)
    match = re.match(r"\s*(?:[-*+]\s+)?", source.text[start:end])
    lead = match.group() if match is not None else "- "
    return apply_edits(source, [Edit(end, end, f"{source.eol}{lead}USER_APPROVAL_EVIDENCE:")])
