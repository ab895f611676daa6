"""Why a text cannot be read, and what is wrong with a document, its settings, or a file that `init` wrote."""

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
    markdown_too_large: The document is larger than a document may be
        Governed documents are read whole, on every check. A file beyond the limit is almost always a log or an export
        that was pasted in, and reading it would slow down every command for everybody.
        Remedy: Move the bulk into a file of its own outside .GOV and link to it, or delete it.

    markdown_too_many_blocks: The document has more blocks than a document may have
        Headings, list items, paragraphs and table cells are counted, because each costs time and memory in every check.
        Files with so many are generated, and can be made to exhaust the machine that checks them.
        Remedy: Split the document, or keep generated lists and tables in files outside .GOV.

    markdown_too_deep: Lists and quotes are nested too deep
        Below a certain depth Markdown readers drop text silently. What a person sees in the file would then not be what
        was checked.
        Remedy: Indent the lines at this place less, or take the inner list out into a section of its own.

    markdown_too_costly: Reading the document would take too much work
        Some texts make every Markdown reader go over the same lines again and again: quotes that never end, link
        definitions over thousands of lines, an enormous number of tiny lines. Such texts are not written by hand.
        Remedy: Remove the repeated quote marks, brackets or short lines at this place, or put them into a code fence.
    """)

TEXT = (
    *_reading("""
    repair_refused: A repair would have changed more than its finding
        Before a repaired file is written, it is compared with what it was by readers that are not ours: line by line,
        by markdown-it and by PyYAML. They saw a change that no finding names, or the repair reached beyond the lines of
        its finding. Nothing was written to the file; the other files were repaired.
        Remedy: Mend the finding by hand, and report the file: a rule offers a repair here that it should not.

    limit_size: The file is too large
        Readers have limits, so that one file cannot stop a check or exhaust a machine. Governance documents are far
        below them: 256 KiB for YAML, JSON, TOML and front matter, 2 MiB for Markdown, 8 MiB for the task board and the
        traceability registry.
        Remedy: Split the document, or move data that is not governance out of it.

    limit_depth: Lists and mappings are nested too deeply
        Deep nesting is the usual way to crash a parser: 30,000 opening brackets end a process that reads them with a
        common YAML library. No document of this package needs more than 32 levels.
        Remedy: Flatten the structure.

    limit_nodes: The file holds too many values
        A small text can unfold to very many values, and all later work grows with them. The limit is 20,000, for the
        task board and the traceability registry 500,000.
        Remedy: Split the document.

    text_not_utf8: Bytes that are not UTF-8 in a file that is read strictly
        Bytes in another encoding read as other characters on every machine, so no value made of them can be relied on.
        Remedy: Save the file as UTF-8; an editor can show and convert its present encoding.

    yaml_character: Character that YAML forbids
        Control characters, a byte order mark inside the text and the line ends that only YAML 1.1 knows do not show in
        an editor, and parsers differ on what they mean.
        Remedy: Remove the character, or write it as an escape in double quotes.

    yaml_syntax: Text that is not YAML
        The document breaks off here. It is never used in part: a half-read checkpoint or packet would be worse than
        none.
        Remedy: Correct the line; quoting the value with double quotes settles most cases.

    yaml_duplicate_key: Key occurs twice in one mapping
        YAML forbids it, many readers silently keep the last value, and some the first.
        Remedy: Keep one of the two lines.

    yaml_key_not_text: Key that is not text
        Keys are names of fields. A list, a mapping or nothing at all as a key has no form in JSON and means different
        things to different readers.
        Remedy: Write the key as text, in quotes if need be; quote the whole line if it was meant as a value.

    yaml_anchor: Anchor
        Anchors and aliases let a small file unfold to gigabytes (an alias bomb), and hide from a reviewer what a field
        contains.
        Remedy: Write the value out; put it in quotes if the '&' belongs to it.

    yaml_alias: Alias
        Anchors and aliases let a small file unfold to gigabytes (an alias bomb), and hide from a reviewer what a field
        contains.
        Remedy: Write the value out; put it in quotes if the '*' belongs to it.

    yaml_tag: Tag
        Tags tell a reader which type, and in some libraries which class, to make of a value. Here the schema of the
        document decides.
        Remedy: Remove the tag; put the value in quotes if the '!' belongs to it.

    yaml_merge_key: Merge key
        '<<' is an extension that some readers apply and others take for an ordinary key.
        Remedy: Write the merged entries out.

    yaml_directive: Directive
        Lines that begin with '%' change how the rest is read; no document of this package needs one, and readers treat
        unknown ones differently.
        Remedy: Remove the line.

    yaml_several_documents: More than one YAML document in a file
        A file is one document: which of several would count is anybody's guess.
        Remedy: Remove the '---' line, or move the second document to a file of its own.

    yaml_question_mark: Lone question mark
        A '?' on its own marks a key, which is never needed, and inside brackets parsers disagree on whether it
        does.
        Remedy: Write 'key: value'; put a text that contains a lone '?' in quotes.

    yaml_bare_block: The whole document is one block of text
        Readers differ on whether such a block may begin at the margin, and so on where it ends.
        Remedy: Give it a key.

    yaml_unfinished_block: Block of text ends with a blank line that has no line end
        Readers differ on whether that last line belongs to the text.
        Remedy: Remove the blanks at the end of the file.

    json_syntax: Text that is not JSON
        The document breaks off here. It is never used in part.
        Remedy: Correct the place named; RFC 8259 allows no comments, no trailing commas and no single quotes.

    json_duplicate_key: Key occurs twice in one object
        Readers keep the first or the last value as they like, so two tools can see two documents: a known way around
        signatures and checks.
        Remedy: Keep one of the two.

    json_not_a_number: NaN or infinity
        JSON has no such numbers, although some libraries write them.
        Remedy: Write null, or a string.

    json_integer_range: Integer that not every reader holds exactly
        Beyond 2**53 - 1 many readers round, so one document has several values.
        Remedy: Write it as a string.

    json_number_range: Number that is too large
        The number is larger than any a reader can hold, and would become infinity.
        Remedy: Write it as a string.

    json_lone_surrogate: Escape for half a character
        '\\ud800' to '\\udfff' make a character only in pairs. Alone they cannot be stored as UTF-8, and readers
        replace, drop or refuse them.
        Remedy: Write the character itself, or both halves.

    json_control_character: Control character inside a string
        JSON wants control characters, line ends included, written as escapes.
        Remedy: Write '\\n' for a line end, '\\t' for a tab.

    json_trailing_data: Something follows the JSON value
        A JSON file is one value. What follows would be ignored by some readers and read by others.
        Remedy: Remove it; one value to a line is a different format, with the suffix .jsonl.

    toml_syntax: Text that is not TOML
        The document breaks off here. It is never used in part: half a policy would be a milder one.
        Remedy: Correct the line; https://toml.io/en/v1.0.0 shows each form.

    toml_number_range: Number that not every reader holds
        Infinity, NaN and integers beyond 2**53 - 1 have no exact form in JSON, which schemas speak of.
        Remedy: Write a smaller number, or a string.

    front_matter_unclosed: Front matter without an end
        A file that begins with '---' begins with front matter, and without a closing '---' it is not known where its
        text begins.
        Remedy: Put a line '---' after the last field; if a ruled line was meant, write '***'.

    front_matter_not_first: Front matter that does not begin on the first line
        Tools look for front matter on the very first line only; after a blank line it is ordinary text.
        Remedy: Remove the blank lines before the '---'.

    front_matter_not_a_mapping: Front matter that is not made of keys and values
        Front matter holds the fields of a document. A list, a sentence or nothing at all has none.
        Remedy: Write 'key: value' lines, or remove the two '---' lines.
    """),
    *_repaired("""
    yaml_tab: Tab where YAML readers disagree
        YAML forbids tabs as indentation, and parsers differ about them between and inside unquoted values. They are
        allowed in comments, in quotes and inside the lines of a block of text.
        Remedy: Replace the tab by blanks, or put the value in quotes.

    yaml_comment_without_blank: Comment without a blank before it
        To YAML a '#' begins a comment only after a blank; some readers are more generous, so the rest of the line is
        text to one and comment to another.
        Remedy: Put a blank before the '#'.
    """),
    *_repaired_warning("""
    json_byte_order_mark: The JSON file begins with a byte order mark
        RFC 8259 forbids to write one and lets readers ignore or refuse it.
        Remedy: Save the file as UTF-8 without a byte order mark.
    """),
)

FIELDS = (
    *_document("""
    field_missing: A field is missing
        Gates and reports read this field. Without it they would have to guess, and two readers would guess differently.
        Remedy: Add the field; the hint shows an example. `workpacket schema KIND` prints what the document needs.

    field_unknown: A field is not known here
        Nothing reads a field that this kind of document does not have, so what it says has no effect. Most often it is
        a misspelling of one that would have.
        Remedy: Correct the name as the hint says, or remove the field. `workpacket schema KIND` lists the fields.

    field_type: A field holds the wrong kind of value
        A list where text belongs, or text where a number belongs, is of no use to anything that reads the field.
        Remedy: Write a value of the kind that the message names. Quotes make text of what YAML takes for a number.

    field_value: A field holds a value that it may not have
        The value has the right kind, but is none of the permitted ones, has another form, or is too long or too short.
        What reads the field would take it for something else or for nothing.
        Remedy: Write one of the values, or the form, that the message names.
    """),
    *_reading_note("""
    rule_not_run: A rule was not run
        What another rule found in this document leaves it nothing to judge. That it found nothing says nothing.
        Remedy: Correct the finding that the message names, then check again.

    findings_cut: A file has more findings of a kind than are listed
        So many findings come from one cause, and listing them all would bury what else is wrong.
        Remedy: Correct the cause, then check again: the rest is listed then.
    """),
)

SETTINGS = (
    *_reading("""
    settings_unread: Settings that could not be read
        The defaults are in force instead, which may be milder than what the repository decided.
        Remedy: Correct the file; `workpacket check` of it says what is wrong.
    """),
    *_document("""
    setting_of_unknown_code: Setting for a code that does not exist
        It has no effect, although its author thinks that it has.
        Remedy: Correct the code; `workpacket explain --all` lists them.

    setting_of_protected_code: Setting for a code that cannot be ignored or lowered
        Approvals and the integrity of the log are what everything else rests on; no setting may talk them away.
        Remedy: Delete the setting and mend what the code complains of.

    ignore_without_reason: Ignore without a written reason
        Without one, it cannot be judged later whether it is still wanted.
        Remedy: Write the reason into the ignore.
    """),
    *_document_warning("""
    ignore_unused: Ignore that ignores nothing
        It hides the next finding of its kind, which no one has looked at.
        Remedy: Delete the ignore.
    """),
)

FILES = (
    *_document("""
    just_parameter_pasted: Parameter pasted into a command line
        It is replaced before the shell reads the line, so an argument with `$(...)` in it is carried out.
        Remedy: Set `positional-arguments` and hand it on as `"$@"`, or write `{{ quote(name) }}`.

    starter_missing: A file or section of init is missing
        Someone removed it, or a newer version of the tool brings it along.
        Remedy: Run `workpacket init`, which writes what is missing.

    starter_outdated: A file or section of init is of an older version
        It was not edited, and the present version says something else: of commands that were renamed, for instance.
        Remedy: Run `workpacket init`, which brings up to date what was not edited.
    """),
    *_document_advice("""
    starter_edited: A file or section of init was edited
        It is left as it is, also when a newer version of the tool has another text for it.
        Remedy: To take the present version over, move the file (or section) away and run `workpacket init`.
    """),
    *_reading("""
    lockfile_malformed: A lock file or manifest cannot be read
        What cannot be read cannot be judged, and a check that did not run has failed.
        Remedy: Repair the place that is named, or restore the file; if the commit compared with is at fault, name
        another.
    """),
    *_across_advice("""
    dependencies_many: One change brings very many new packages
        Each of them is code of someone else that runs here, no matter who asked for the first of them.
        Remedy: Look at what the new dependency brings; `threshold` in [deps] of the policy says how many are many.
    """),
)

REASONS = (*MARKDOWN, *TEXT, *FIELDS, *SETTINGS, *FILES)
