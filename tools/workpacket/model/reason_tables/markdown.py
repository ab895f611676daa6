"""Why a Markdown document could not be read into blocks."""

from __future__ import annotations

from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        code="markdown_too_large",
        title="The document is larger than a document may be",
        explanation=(
            "Governed documents are read whole, on every check. A file beyond the limit is almost always a log or an "
            "export that was pasted in, and reading it would slow down every command for everybody."
        ),
        remedy="Move the bulk into a file of its own outside .GOV and link to it, or delete it.",
        family="reading",
    ),
    Reason(
        code="markdown_too_many_blocks",
        title="The document has more blocks than a document may have",
        explanation=(
            "Headings, list items, paragraphs and table cells are counted, because each costs time and memory in every "
            "check. Files with so many are generated, and can be made to exhaust the machine that checks them."
        ),
        remedy="Split the document, or keep generated lists and tables in files outside .GOV.",
        family="reading",
    ),
    Reason(
        code="markdown_too_deep",
        title="Lists and quotes are nested too deep",
        explanation=(
            "Below a certain depth Markdown readers drop text silently. What a person sees in the file would then not "
            "be what was checked."
        ),
        remedy="Indent the lines at this place less, or take the inner list out into a section of its own.",
        family="reading",
    ),
    Reason(
        code="markdown_too_costly",
        title="Reading the document would take too much work",
        explanation=(
            "Some texts make every Markdown reader go over the same lines again and again: quotes that never end, "
            "link definitions over thousands of lines, an enormous number of tiny lines. Nobody writes them by hand."
        ),
        remedy="Remove the repeated quote marks, brackets or short lines at this place, or put them into a code fence.",
        family="reading",
    ),
)
