"""Reasons of the loaders: what makes a YAML, JSON or TOML text unreadable, or readable in two ways."""

from __future__ import annotations

from workpacket.model.reasons import Reason

_REPAIRS = (
    Reason(
        code="repair_refused",
        title="A repair would have changed more than its finding",
        explanation="Before a repaired file is written, it is compared with what it was by readers that are not ours:"
        " line by line, by markdown-it and by PyYAML. They saw a change that no finding names, or the repair reached"
        " beyond the lines of its finding. Nothing was written to the file; the other files were repaired.",
        remedy="Mend the finding by hand, and report the file: a rule offers a repair here that it should not.",
        family="reading",
    ),
)
_LIMITS = (
    Reason(
        code="limit_size",
        title="The file is too large",
        explanation="Readers have limits, so that one file cannot stop a check or exhaust a machine. Governance"
        " documents are far below them: 256 KiB for YAML, JSON, TOML and front matter, 2 MiB for Markdown, 8 MiB for"
        " the task board and the traceability registry.",
        remedy="Split the document, or move data that is not governance out of it.",
        family="reading",
    ),
    Reason(
        code="limit_depth",
        title="Lists and mappings are nested too deeply",
        explanation="Deep nesting is the usual way to crash a parser: 30,000 opening brackets end a process that reads"
        " them with a common YAML library. No document of this package needs more than 32 levels.",
        remedy="Flatten the structure.",
        family="reading",
    ),
    Reason(
        code="limit_nodes",
        title="The file holds too many values",
        explanation="A small text can unfold to very many values, and all later work grows with them. The limit is"
        " 20,000, for the task board and the traceability registry 500,000.",
        remedy="Split the document.",
        family="reading",
    ),
)

_CHARACTERS = (
    Reason(
        code="text_not_utf8",
        title="Bytes that are not UTF-8 in a file that is read strictly",
        explanation="Bytes in another encoding read as other characters on every machine, so no value made of them can"
        " be relied on.",
        remedy="Save the file as UTF-8; an editor can show and convert its present encoding.",
        family="reading",
    ),
    Reason(
        code="yaml_character",
        title="Character that YAML forbids",
        explanation="Control characters, a byte order mark inside the text and the line ends that only YAML 1.1 knows"
        " do not show in an editor, and parsers differ on what they mean.",
        remedy="Remove the character, or write it as an escape in double quotes.",
        family="reading",
    ),
)

_YAML = (
    Reason(
        code="yaml_syntax",
        title="Text that is not YAML",
        explanation="The document breaks off here. It is never used in part: a half-read checkpoint or packet would be"
        " worse than none.",
        remedy="Correct the line; quoting the value with double quotes settles most cases.",
        family="reading",
    ),
    Reason(
        code="yaml_duplicate_key",
        title="Key stands twice in one mapping",
        explanation="YAML forbids it, many readers silently keep the last value, and some the first.",
        remedy="Keep one of the two lines.",
        family="reading",
    ),
    Reason(
        code="yaml_key_not_text",
        title="Key that is no text",
        explanation="Keys are names of fields. A list, a mapping or nothing at all as a key has no form in JSON and"
        " means different things to different readers.",
        remedy="Write the key as text, in quotes if need be; quote the whole line if it was meant as a value.",
        family="reading",
    ),
    Reason(
        code="yaml_anchor",
        title="Anchor",
        explanation="Anchors and aliases let a small file unfold to gigabytes (an alias bomb), and hide from a reviewer"
        " what a field contains.",
        remedy="Write the value out; put it in quotes if the '&' belongs to it.",
        family="reading",
    ),
    Reason(
        code="yaml_alias",
        title="Alias",
        explanation="Anchors and aliases let a small file unfold to gigabytes (an alias bomb), and hide from a reviewer"
        " what a field contains.",
        remedy="Write the value out; put it in quotes if the '*' belongs to it.",
        family="reading",
    ),
    Reason(
        code="yaml_tag",
        title="Tag",
        explanation="Tags tell a reader which type, and in some libraries which class, to make of a value. Here the"
        " schema of the document decides.",
        remedy="Remove the tag; put the value in quotes if the '!' belongs to it.",
        family="reading",
    ),
    Reason(
        code="yaml_merge_key",
        title="Merge key",
        explanation="'<<' is an extension that some readers apply and others take for an ordinary key.",
        remedy="Write the merged entries out.",
        family="reading",
    ),
    Reason(
        code="yaml_directive",
        title="Directive",
        explanation="Lines that begin with '%' change how the rest is read; no document of this package needs one, and"
        " readers treat unknown ones differently.",
        remedy="Remove the line.",
        family="reading",
    ),
    Reason(
        code="yaml_several_documents",
        title="More than one YAML document in a file",
        explanation="A file is one document: which of several would count is anybody's guess.",
        remedy="Remove the '---' line, or move the second document to a file of its own.",
        family="reading",
    ),
    Reason(
        code="yaml_tab",
        title="Tab where YAML readers disagree",
        explanation="YAML forbids tabs as indentation, and parsers differ about them between and inside unquoted"
        " values. They are allowed in comments, in quotes and inside the lines of a block of text.",
        remedy="Replace the tab by blanks, or put the value in quotes.",
        family="reading",
        fix="safe",
    ),
    Reason(
        code="yaml_comment_without_blank",
        title="Comment without a blank before it",
        explanation="To YAML a '#' begins a comment only after a blank; some readers are more generous, so the rest of"
        " the line is text to one and comment to another.",
        remedy="Put a blank before the '#'.",
        family="reading",
        fix="safe",
    ),
    Reason(
        code="yaml_question_mark",
        title="Lone question mark",
        explanation="A '?' that stands alone marks a key, which nobody needs, and inside brackets parsers disagree on"
        " whether it does.",
        remedy="Write 'key: value'; put a text that contains a lone '?' in quotes.",
        family="reading",
    ),
    Reason(
        code="yaml_bare_block",
        title="The whole document is one block of text",
        explanation="Readers differ on whether such a block may begin at the margin, and so on where it ends.",
        remedy="Give it a key.",
        family="reading",
    ),
    Reason(
        code="yaml_unfinished_block",
        title="Block of text ends with a blank line that has no line end",
        explanation="Readers differ on whether that last line belongs to the text.",
        remedy="Remove the blanks at the end of the file.",
        family="reading",
    ),
)

_JSON = (
    Reason(
        code="json_syntax",
        title="Text that is not JSON",
        explanation="The document breaks off here. It is never used in part.",
        remedy="Correct the place named; RFC 8259 allows no comments, no trailing commas and no single quotes.",
        family="reading",
    ),
    Reason(
        code="json_duplicate_key",
        title="Key stands twice in one object",
        explanation="Readers keep the first or the last value as they like, so two tools can see two documents: a known"
        " way around signatures and checks.",
        remedy="Keep one of the two.",
        family="reading",
    ),
    Reason(
        code="json_not_a_number",
        title="NaN or infinity",
        explanation="JSON has no such numbers, although some libraries write them.",
        remedy="Write null, or a string.",
        family="reading",
    ),
    Reason(
        code="json_integer_range",
        title="Integer that not every reader holds exactly",
        explanation="Beyond 2**53 - 1 many readers round, so one document has several values.",
        remedy="Write it as a string.",
        family="reading",
    ),
    Reason(
        code="json_number_range",
        title="Number that is too large",
        explanation="The number is larger than any a reader can hold, and would become infinity.",
        remedy="Write it as a string.",
        family="reading",
    ),
    Reason(
        code="json_lone_surrogate",
        title="Escape for half a character",
        explanation="'\\ud800' to '\\udfff' make a character only in pairs. Alone they cannot be stored as UTF-8, and"
        " readers replace, drop or refuse them.",
        remedy="Write the character itself, or both halves.",
        family="reading",
    ),
    Reason(
        code="json_control_character",
        title="Control character inside a string",
        explanation="JSON wants control characters, line ends included, written as escapes.",
        remedy="Write '\\n' for a line end, '\\t' for a tab.",
        family="reading",
    ),
    Reason(
        code="json_trailing_data",
        title="Something follows the JSON value",
        explanation="A JSON file is one value. What follows would be ignored by some readers and read by others.",
        remedy="Remove it; one value to a line is a different format, with the suffix .jsonl.",
        family="reading",
    ),
    Reason(
        code="json_byte_order_mark",
        title="The JSON file begins with a byte order mark",
        explanation="RFC 8259 forbids to write one and lets readers ignore or refuse it.",
        remedy="Save the file as UTF-8 without a byte order mark.",
        family="text",
        severity="warning",
        fix="safe",
    ),
)

_TOML = (
    Reason(
        code="toml_syntax",
        title="Text that is not TOML",
        explanation="The document breaks off here. It is never used in part: half a policy would be a milder one.",
        remedy="Correct the line; https://toml.io/en/v1.0.0 shows each form.",
        family="reading",
    ),
    Reason(
        code="toml_number_range",
        title="Number that not every reader holds",
        explanation="Infinity, NaN and integers beyond 2**53 - 1 have no exact form in JSON, which schemas speak of.",
        remedy="Write a smaller number, or a string.",
        family="reading",
    ),
)

_FRONT_MATTER = (
    Reason(
        code="front_matter_unclosed",
        title="Front matter without an end",
        explanation="A file that begins with '---' begins with front matter, and without a closing '---' nobody can say"
        " where its text begins.",
        remedy="Put a line '---' after the last field; if a ruled line was meant, write '***'.",
        family="reading",
    ),
    Reason(
        code="front_matter_not_first",
        title="Front matter that does not begin on the first line",
        explanation="Tools look for front matter on the very first line only; after a blank line it is ordinary text.",
        remedy="Remove the blank lines before the '---'.",
        family="reading",
    ),
    Reason(
        code="front_matter_not_a_mapping",
        title="Front matter that is not made of keys and values",
        explanation="Front matter holds the fields of a document. A list, a sentence or nothing at all has none.",
        remedy="Write 'key: value' lines, or remove the two '---' lines.",
        family="reading",
    ),
)

REASONS: tuple[Reason, ...] = (*_REPAIRS, *_LIMITS, *_CHARACTERS, *_YAML, *_JSON, *_TOML, *_FRONT_MATTER)
