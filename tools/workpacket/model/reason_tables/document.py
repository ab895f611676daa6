"""Reasons about unreadable text, documents, settings, and files that `init` wrote."""

from __future__ import annotations

from functools import partial

from workpacket.model.reasons import reasons

_reading = partial(reasons, "reading")
_repaired = partial(reasons, "reading", fix="safe")
_repaired_warning = partial(reasons, "text", severity="warning", fix="safe")
_document = partial(reasons, "document")
_reading_note = partial(reasons, "reading", severity="info", strict_severity="info")
_document_warning = partial(reasons, "document", severity="warning")
_document_advice = partial(reasons, "document", severity="warning", strict_severity="warning")
_across_advice = partial(reasons, "cross-file", severity="warning", strict_severity="warning")

MARKDOWN = _reading("""
    markdown_too_large: The document is too large
        Every check reads governed documents in full. A larger file almost always contains a pasted log or export, and
        reading it would slow down every command.
        Remedy: Move most of the text to a separate file outside .GOV and link to it, or delete it.

    markdown_too_many_blocks: The document has too many blocks
        Headings, list items, paragraphs and table cells are counted, because each takes time and memory in every check.
        Files with so many blocks are generated, and could exhaust the machine that checks them.
        Remedy: Split the document, or keep generated lists and tables in files outside .GOV.

    markdown_too_deep: Lists and quotes are nested too deeply
        Beyond a certain depth, Markdown readers silently drop text. A person would then see different text from what
        was checked.
        Remedy: Indent these lines less, or move the nested list to a separate section.

    markdown_too_costly: Reading the document would take too much work
        Some text makes every Markdown parser read the same lines again and again: quotes that never end, link
        definitions over thousands of lines, an enormous number of tiny lines. People do not write such text by hand.
        Remedy: Remove the repeated quote marks, brackets or short lines here, or put them into a code fence.
    """)

TEXT = (
    *_reading("""
    repair_refused: A fix would have changed more than the finding covers
        Before a fixed file is written, it is compared with the original, line by line and as parsed by markdown-it and
        PyYAML. The comparison found a change that no finding covers, or the fix extended beyond the lines of its
        finding. This file was not changed; the other files were fixed.
        Remedy: Fix the finding by hand, and report a bug with the file: the rule should not offer a fix here.

    limit_size: The file is too large
        Limits prevent a single file from blocking a check or exhausting the machine's memory. Governance documents are
        far below
        them: 256 KiB for YAML, JSON, TOML and front matter, 2 MiB for Markdown, 8 MiB for the task board and the
        traceability registry.
        Remedy: Split the document, or move unrelated data to other files.

    limit_depth: Lists and mappings are nested too deeply
        Deep nesting is a common way to crash a parser: 30,000 opening brackets crash a process that reads them with a
        common YAML library. No document in this package needs more than 32 levels.
        Remedy: Flatten the structure.

    limit_nodes: The file contains too many values
        A small file can expand to very many values, which slow down everything that follows. The limit is 20,000, or
        500,000 for the task board and the traceability registry.
        Remedy: Split the document.

    text_not_utf8: Invalid UTF-8
        Bytes in another encoding can be read as different characters on different machines, so their values are not
        reliable.
        Remedy: Save the file as UTF-8; an editor can show and convert its current encoding.

    yaml_character: Character that YAML forbids
        Control characters, a byte order mark inside the text and line endings that exist only in YAML 1.1 are invisible
        in an editor, and parsers differ on their meaning.
        Remedy: Remove the character, or write it as an escape in double quotes.

    yaml_syntax: Invalid YAML
        The rest of the document cannot be read. No part of it is used, because half of a checkpoint or packet would be
        worse than none.
        Remedy: Fix the line; putting the value in double quotes is often enough.

    yaml_duplicate_key: Duplicate key in a mapping
        YAML forbids duplicates, but many parsers silently keep the last value, and some the first.
        Remedy: Keep one of the two lines.

    yaml_key_not_text: Key that is not a string
        Keys are field names. A list, a mapping or an empty key cannot be represented in JSON, and parsers differ on its
        meaning.
        Remedy: Write the key as a string, in quotes if necessary; quote the whole line if it was meant as a value.

    yaml_anchor: YAML anchor
        Anchors and aliases let a small file expand to gigabytes (an alias bomb), and hide from a reviewer what a field
        contains.
        Remedy: Write out the value; put it in quotes if the '&' is part of it.

    yaml_alias: YAML alias
        Anchors and aliases let a small file expand to gigabytes (an alias bomb), and hide from a reviewer what a field
        contains.
        Remedy: Write out the value; put it in quotes if the '*' belongs to it.

    yaml_tag: YAML tag
        Tags tell a parser which type, and in some libraries which class, a value has. Here, the document's schema
        determines that.
        Remedy: Remove the tag; put the value in quotes if the '!' belongs to it.

    yaml_merge_key: YAML merge key
        '<<' is an extension that some parsers apply and others treat as an ordinary key.
        Remedy: Write out the merged entries.

    yaml_directive: YAML directive
        Lines that begin with '%' change how the rest is read. No document in this package needs one, and parsers
        disagree about unknown directives.
        Remedy: Remove the line.

    yaml_several_documents: More than one YAML document in a file
        A file must contain only one document; with several, it would be unclear which one counts.
        Remedy: Remove the '---' line, or move the second document to a separate file.

    yaml_question_mark: Lone question mark
        A lone '?' marks a key, which is never necessary, and parsers differ on its meaning inside brackets.
        Remedy: Write 'key: value'; put text that contains a lone '?' in quotes.

    yaml_bare_block: The whole document is one block of text
        Parsers differ on whether such a block may begin at the left margin, and therefore on where it ends.
        Remedy: Give it a key.

    yaml_unfinished_block: Block of text whose last line is blank and has no newline
        Parsers differ on whether that last line belongs to the text.
        Remedy: Remove the spaces at the end of the file.

    json_syntax: Invalid JSON
        The rest of the document cannot be read. No part of it is used.
        Remedy: Fix the line; RFC 8259 does not allow comments, trailing commas or single quotes.

    json_duplicate_key: Duplicate key in an object
        Some parsers keep the first value and others the last, so two tools can see two documents: a known way to bypass
        signatures and checks.
        Remedy: Keep only one of the two.

    json_not_a_number: NaN or infinity
        JSON does not have these numbers, although some libraries write them.
        Remedy: Write null, or a string.

    json_integer_range: Integer that not every parser reads exactly
        Many parsers round integers beyond 2**53 - 1, so parsers would read different values.
        Remedy: Write it as a string.

    json_number_range: Number too large
        The number is too large for a floating-point value and would become infinity.
        Remedy: Write it as a string.

    json_lone_surrogate: Lone surrogate
        '\\ud800' to '\\udfff' form a character only in pairs. Alone, they cannot be stored as UTF-8, and parsers
        replace, drop or refuse them.
        Remedy: Write the character itself, or both halves.

    json_control_character: Control character inside a string
        JSON requires control characters, including line endings, to be written as escapes.
        Remedy: Write '\\n' for a line ending, '\\t' for a tab.

    json_trailing_data: Data after the JSON value
        A JSON file must contain one value. Some parsers would ignore the rest, and others would read it.
        Remedy: Remove it; a file with one value per line is a different format, with the suffix .jsonl.

    toml_syntax: Invalid TOML
        The rest of the document cannot be read. No part of it is used, because half a policy would be a weaker policy.
        Remedy: Fix the line; https://toml.io/en/v1.0.0 shows each form.

    toml_number_range: Number that not every parser can represent
        Infinity, NaN and integers beyond 2**53 - 1 have no exact representation in JSON, on which the schemas are
        based.
        Remedy: Write a smaller number, or a string.

    front_matter_unclosed: Unclosed front matter
        A file that begins with '---' begins with front matter; without a closing '---' it is unclear where the text
        begins.
        Remedy: Add a line '---' after the last field; if you meant a horizontal rule, write '***'.

    front_matter_not_first: Front matter that does not begin on the first line
        Tools look for front matter only on the very first line; after a blank line, it is read as ordinary text.
        Remedy: Remove the blank lines before the '---'.

    front_matter_not_a_mapping: Front matter that is not a mapping
        Front matter consists of the document's fields. A list, a sentence or an empty block has no fields.
        Remedy: Write 'key: value' lines, or remove the two '---' lines.
    """),
    *_repaired("""
    yaml_tab: Tab where YAML parsers disagree
        YAML forbids tabs as indentation, and parsers disagree about tabs between and inside unquoted values. Tabs are
        allowed in comments, in quotes and inside the lines of a block of text.
        Remedy: Replace the tab with spaces, or put the value in quotes.

    yaml_comment_without_blank: Comment without a space before it
        In YAML, '#' begins a comment only after a space. Some parsers are more lenient, so the rest of the line is text
        for some and a comment for others.
        Remedy: Put a space before the '#'.
    """),
    *_repaired_warning("""
    json_byte_order_mark: The JSON file begins with a byte order mark
        RFC 8259 forbids it, and allows parsers to ignore or reject it.
        Remedy: Save the file as UTF-8 without a byte order mark.
    """),
)

FIELDS = (
    *_document("""
    field_missing: A field is missing
        Gates and reports read this field. Without it, they would have to guess, and might not guess alike.
        Remedy: Add the field; the hint shows an example. `workpacket help schema KIND` lists the fields of the
        document.

    field_unknown: Unknown field
        Fields that this kind of document does not define have no effect. The name is probably misspelled.
        Remedy: Correct the name as the hint says, or remove the field. `workpacket help schema KIND` lists the
        document's fields.

    field_type: A field has the wrong type of value
        A field that expects a string cannot be a list, and one that expects a number cannot be a string.
        Remedy: Write a value of the type that the message names. In YAML, quotes turn a number into a string.

    field_value: A field has an invalid value
        The value has the right type, but is not one of the permitted values, has the wrong form, or has an invalid
        length.
        Remedy: Write one of the values that the message lists, or use the form that it describes.
    """),
    *_document_advice("""
    field_elsewhere: A field is in the wrong place
        The field is in the document, but outside the section or list in which it is read, so it counts as missing.
        Remedy: Move the line to the section that the message names.
    """),
    *_reading_note("""
    rule_not_run: A rule was not run
        Because of another rule's finding, this rule could not judge the document. It did not necessarily pass.
        Remedy: Fix the finding that the message names, then check again.

    file_not_checked: File that is probably a document, but is not read as one
        Its name has a different ending from the documents in its folder, or is spelled differently, so no rule checks
        it. Remedy: Rename the file, or move it to another folder.

    findings_cut: A file has more findings of one kind than are listed
        So many findings usually have one cause, and a complete list would hide other findings.
        Remedy: Fix the cause, then check again to see the rest.
    """),
)

SETTINGS = (
    *_reading("""
    settings_unread: Settings cannot be read
        The defaults apply instead, and may be weaker than the repository's settings.
        Remedy: Fix the file; `workpacket check` reports what is wrong with it.

    baseline_unread: Baseline cannot be read
        The findings listed in it are reported until it can be read.
        Remedy: Restore the file from git, or write a new one: `workpacket check --baseline`.
    """),
    *_document("""
    setting_of_unknown_code: Setting for a code that does not exist
        The setting has no effect, although its author may expect one.
        Remedy: Correct the code; `workpacket explain --all` lists all codes.

    setting_of_protected_code: Setting for a code that cannot be ignored or lowered
        Everything else depends on approvals and on the integrity of the log, so no setting can disable these checks.
        Remedy: Delete the setting, and fix what the code reports.

    ignore_without_reason: Ignore without a reason
        Without a reason, no one can tell later whether the ignore is still needed.
        Remedy: Add the reason to the ignore.
    """),
    *_document_warning("""
    ignore_unused: Unused ignore
        The ignore would hide the next finding of its kind before anyone had looked at it.
        Remedy: Delete the ignore.
    """),
)

FILES = (
    *_document("""
    just_parameter_pasted: Parameter pasted into a command line
        The parameter is substituted before the shell reads the line, so an argument that contains `$(...)` is executed.
        Remedy: Set `positional-arguments` and pass the parameter as `"$@"`, or write `{{ quote(name) }}`.

    starter_missing: A file or section written by init is missing
        Someone removed it, or it is new in this version of workpacket.
        Remedy: Run `workpacket init`, which writes what is missing.

    starter_outdated: A file or section written by init is outdated
        `init` would now write different text, for example because commands were renamed.
        Remedy: Run `workpacket init`, which updates everything that was not edited.
    """),
    *_document_advice("""
    starter_edited: A file or section written by init was edited
        Edited text is left unchanged, even if a newer version of workpacket would write something else.
        Remedy: To get the current version, move the file (or section) out of the way and run `workpacket init`.
    """),
    *_reading("""
    lockfile_malformed: A lock file or manifest cannot be read
        A file that cannot be read cannot be checked, so the check fails.
        Remedy: Fix the file at the place that the message names, or restore it; if the fault is in the commit being
    compared, name a different commit. """),
    *_across_advice("""
    dependencies_many: One change adds an unusually large number of packages
        Each package is other people's code, which will run here.
        Remedy: Review the packages that the new dependency adds; `threshold` in [deps] of the policy sets the limit.
    """),
)

REASONS = (*MARKDOWN, *TEXT, *FIELDS, *SETTINGS, *FILES)
