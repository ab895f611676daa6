"""Rules about the text of a file, for every kind of document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from workpacket.documents.document import Document
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.rules.rule import DocumentRule, first_lines
from workpacket.text.source import Source, TextRun, fix_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.structured import FrontMatterDocument, StructuredDocument

_LONE_SURROGATES = lazy_pattern("[\udc80-\udcff]+")
# Also characters without a width that no script needs; joiners are part of words and emoji.
_CONTROLS = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u200b\u2060\ufeff]+")
_WITHOUT_WIDTH = frozenset("\u200b\u2060\ufeff")
_CONTROL_CHARACTERS = (
    frozenset(map(chr, (*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)))) | _WITHOUT_WIDTH
)
_WITH_NAMES = frozenset({"stub", "packet", "refinement"})
# PowerShell reads a backtick with a letter as an escape; old code pages draw symbols for control characters.
_MEANT_BY_CONTROLS = {
    "\x00": "`0",
    "\x07": "`a",
    "\x08": "`b",
    "\x0b": "`v",
    "\x0c": "`f",
    "\x1b": "`e",
    "\x14": "\u00b6",
    "\x15": "\u00a7",
}
# What is next to such a character, up to a few letters.
_WORD_BEFORE = lazy_pattern(r"[^\s\x00-\x1f]{1,20}\Z")
_WORD_BEHIND = lazy_pattern(r"[^\s\x00-\x1f]{1,20}")
# Embeddings, overrides and isolates. The marks U+200E, U+200F and U+061C belong to ordinary Hebrew and Arabic text.
_BIDI = lazy_pattern("[\u202a-\u202e\u2066-\u2069]+")
_BIDI_CHARACTERS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CONFLICT = lazy_pattern(r"(?:^|(?<=\r))(?:(<{7}|>{7}|\|{7})(?=[ \r]|$)|={7}(?=\r|$))", re.MULTILINE)
_HOME = lazy_pattern(
    r"(?:(?<=file://)|(?<![\w/.~-]))(/home/[^/\s`'\")]+|/Users/[^/\s`'\")]+|/root(?=/)|[A-Za-z]:\\Users\\[^\\\s`'\")]+)"
)
_DRIVE = lazy_pattern(
    r"(?<![\w:.])[A-Za-z]:[\\/](?!/)(?:Projects|work|dev|src|code|repos?|git)[\\/][^\s`'\")]+",
    re.IGNORECASE,
)
_DRIVE_STARTS = (":\\", ":/")
_HOME_STARTS = ("/home/", "/Users/", "/root/", ":\\Users\\")
# Generic names that identify no one.
_NOBODY = frozenset(
    {"user", "username", "you", "me", "name", "your-name", "<user>", "$user", "runner", "shared", "public", "..."}
)
_YAML = (".yaml", ".yml")
_BLANK_END = lazy_pattern(r"[ \t]*(\r\n|\n|\r(?!\n))([ \t]*(?:\r\n|\n|\r))+[ \t]*\Z")
_OTHER_EOL = lazy_pattern(r"\r\n|\r(?!\n)")
# UTF-8 read as Windows-1252 or Latin-1 and saved again: two or more characters of the upper half in a row, beginning
# with a character that a lead byte looks like.
_MOJIBAKE = lazy_pattern(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2122]+"
)
_WINDOWS_GAPS = {chr(byte): bytes([byte]) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}


def places_of(words: str, text: str, start: int = 0) -> Iterator[int]:
    """Yield the positions of the words: in long texts, this is much faster than a pattern that begins with something
    else."""
    at = text.find(words, start)
    while at >= 0:
        yield at
        at = text.find(words, at + 1)


# What a template says about a part that is written later, alone on a line: `(To be completed after the review)`.
_INSTRUCTION = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t>]*(?:[-*+][ \t]+)?[*_`]*(?P<text>\((?:(?:to|will|must|should) be (?:completed"
    r"|filled(?: in| out)?|populated|provided|added|written|updated|recorded|determined)"
    r"|fill (?:in|this|out)|replace (?:this|with)|complete this|populated (?:at|during|when|once))\b"
    r"[^()\r\n]{0,100}\))[*_`]*[ \t.:]*(?=[\r\n]|\Z)"
)
_INSTRUCTS = (
    *(b"(to be ", b"(will be ", b"(must be ", b"(should be "),
    *(b"(fill ", b"(replace ", b"(complete this", b"(populated "),
)
_ABOUT_OTHER_WORK = lazy_pattern(r"(?i)\bWP-?\d|\bfollow-?up|\blater\b|\bnext\b|\bseparate|\bpost-merge\b")


def instructions_in(document: StructuredDocument | FrontMatterDocument) -> Iterator[re.Match[str]]:
    """Yield the instructions of a template that are left in a text, outside of code."""
    if not document.source.mentions(*_INSTRUCTS):
        return
    code = [(block.start, block.line, block.end_line) for block in document.every_block if block.kind in _CODE]
    for match in _INSTRUCTION.finditer(document.source.text):
        line = document.source.line_and_column(match.start("text"))[0]
        quoted = any(first <= line <= last for _, first, last in code)
        if not quoted and not _ABOUT_OTHER_WORK.search(match["text"]):
            yield match


_CODE = frozenset({"fence", "code", "html"})


def said_already(document: Document, *codes: str) -> bool:
    """Whether the reader refused the text because of the same fault."""
    return any(fault.code in codes for fault in document.faults)


class TextRule(DocumentRule[Document]):
    """A rule about the text alone, for every kind of document."""

    family = "text"
    reads_fields = False


class NotUtf8(TextRule):
    """Invalid UTF-8

    Tools read bytes that are not UTF-8 differently, so two people may approve different text.

    Remedy: save the file as UTF-8.
    """

    def check(self, document: Document) -> Iterator[Problem]:
        lost = any("\udc80" <= character <= "\udcff" for character in document.source.unusual)
        if not lost or said_already(document, "text_not_utf8"):
            return
        for match in _LONE_SURROGATES.finditer(document.source.text):
            shown = " ".join(f"{ord(character) - 0xDC00:02x}" for character in match.group()[:8])
            yield self.fault(match.span(), f"invalid UTF-8: {shown}", hint="save the file as UTF-8")


class ByteOrderMark(TextRule):
    """Byte order mark at the start of the file

    The mark is invisible, breaks tools that look at the first characters, and changes the digest of the text.

    Remedy: `workpacket fmt` removes it.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: Document) -> Iterator[Problem]:
        if document.source.bom:
            fix = fix_of((0, 0), (), safe=True, title="remove it", bom=True)
            yield Problem(self.code(), "the file starts with a byte order mark", Location.span(0, 0), fix=fix)


class LineEnds(TextRule):
    """Line endings other than LF

    The same text gets a different digest on another machine, so approvals and evidence no longer match.

    Remedy: `workpacket fmt` converts the line endings; `* text=auto eol=lf` in `.gitattributes` prevents the problem.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: Document) -> Iterator[Problem]:
        ends = list(_OTHER_EOL.finditer(document.source.text)) if "\r" in document.source.text else []
        if ends:
            number = f"{len(ends)} of {document.source.line_count} lines end" if len(ends) > 1 else "a line ends"
            name = "CRLF" if ends[0].group() == "\r\n" else "CR"
            text = document.source.text
            edits = [TextRun(text, *match.span()).replaced_by("\n") for match in ends]
            span = (ends[0].start(), ends[-1].end())
            yield self.fault(span, f"{number} in {name} instead of LF", edits=edits, fix_title="use LF")


def _block_at_end(document: Document) -> str:
    """Return the YAML block scalar at the end of the file; '' if there is none. Unreadable text counts as a block
    scalar."""
    text = document.source.text
    if document.root is None and document.source.path.endswith(_YAML):
        return "|+"
    content = len(text.rstrip())
    for node in document.root.walk() if document.root is not None and document.source.path.endswith(_YAML) else ():
        if node.text is not None and node.end >= content and text[node.start : node.start + 1] in ("|", ">"):
            return text[node.start : node.end]
    return ""


class BlankLinesAtEnd(TextRule):
    """Blank lines at the end of the file

    Editors add and remove such lines, creating meaningless changes.

    Remedy: `workpacket fmt` removes them.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: Document) -> Iterator[Problem]:
        text = document.source.text
        content = text.rstrip(" \t\r\n")
        match = _BLANK_END.match(text, len(content))
        if document.kind == "stub" and match and match.group() == "\n\n":
            return  # the founding template, from which people copy stubs, ends with one
        # In a YAML block that keeps them, blank lines are part of the value.
        if match and "+" not in _block_at_end(document)[: len("|2+")]:
            first_end = match.end(1)
            edits = [TextRun(text, first_end, match.end()).deleted()]
            yield self.fault((first_end, match.end()), "blank lines at the end of the file", edits=edits)


class NoFinalNewline(TextRule):
    """No newline at end of file

    Text appended to the file would continue its last line.

    Remedy: `workpacket fmt` adds it.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: Document) -> Iterator[Problem]:
        text = document.source.text
        if text and not text.endswith(("\n", "\r")):
            end = len(text)
            # A YAML block would get a line end that its value does not have.
            edits = [] if _block_at_end(document) else [TextRun(text, end, end).replaced_by(document.source.eol)]
            yield self.fault((end, end), "the last line has no newline", edits=edits)


class ControlCharacter(TextRule):
    """Control character in the text

    The character can hide text from a reader, control a terminal, or truncate a value in another tool.

    Remedy: write the intended text, such as a backtick and a letter that a shell interpreted as an escape; otherwise
    delete the character.
    """

    def check(self, document: Document) -> Iterator[Problem]:
        there = not _CONTROL_CHARACTERS.isdisjoint(document.source.unusual)
        if not there or said_already(document, "yaml_character", "json_control_character"):
            return
        garbled = [match.span() for match in mojibake(document.source)]
        alike: dict[str, list[re.Match[str]]] = {}
        for match in _CONTROLS.finditer(document.source.text):
            if any(start <= match.start() < end for start, end in garbled) or _is_in_a_name(document, match):
                continue
            alike.setdefault(match[0], []).append(match)
        for characters, found in alike.items():
            if _WITHOUT_WIDTH.issuperset(characters):
                continue
            names = ", ".join(f"U+{ord(character):04X}" for character in characters[:4])
            message = f"control character {names}{_repeated(document, found)}"
            yield self.fault(found[0].span(), message, hint=_what_was_meant(found[0]))


def _is_in_a_name(document: Document, match: re.Match[str]) -> bool:
    """Whether a zero-width character is in an id, a key or a heading, where `look_alike_character` reports it."""
    if match[0] not in _WITHOUT_WIDTH or document.kind not in _WITH_NAMES:
        return False
    start, end = document.source.line_span(document.source.line_and_column(match.start())[0])
    line, at = document.source.text[start:end], match.start() - start
    word = line[line.rfind(" ", 0, at) + 1 :].split(" ", 1)[0]
    return line.startswith("#") or ":" in line[at:].split(" ", 1)[0] or "WP" in word


def _repeated(document: Document, found: Sequence[re.Match[str]]) -> str:
    """Return how often a fault occurs, and on which lines; '' if it occurs only once."""
    lines = dict.fromkeys(document.source.line_and_column(match.start())[0] for match in found)
    return f", {len(found)} times ({first_lines([*lines])})" if len(found) > 1 else ""


def _what_was_meant(match: re.Match[str]) -> str:
    """Return the restored form of the word that a control character most often corrupts; without the character, the
    word would be incomplete.
    """
    meant = _MEANT_BY_CONTROLS.get(match[0])
    if meant is None:
        return "write the intended text"
    before, behind = _WORD_BEFORE.search(match.string, 0, match.start()), _WORD_BEHIND.match(match.string, match.end())
    start, rest = (before[0] if before is not None else ""), (behind[0] if behind is not None else "")
    word = f"{start}{meant}{rest}"
    if meant.startswith("`") and start in {"`", "``"}:  # of the marks of a fence, the shell reads some as escapes
        word = f"```{meant[1:]}{rest}"
    if meant == "\u00a7" and start.endswith("A"):  # of two characters for one sign, the first may be left
        word = f"{start[:-1]}{meant}{rest}, or {word} if the 'A' is part of the word"
    why = (
        "a shell probably interpreted {} as an escape"
        if meant.startswith("`")
        else "an old code page displays it as {}"
    )
    return f"{why.format(meant)}: write {word}"


class InvisibleCharacter(TextRule):
    """Invisible character in a sentence

    A search for the word on the screen does not find it. Copied text often contains such characters.

    Remedy: delete the character.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, document: Document) -> Iterator[Problem]:
        if _WITHOUT_WIDTH.isdisjoint(document.source.unusual) or said_already(document, "yaml_character"):
            return
        garbled = [match.span() for match in mojibake(document.source)]
        alike: dict[str, list[re.Match[str]]] = {}
        for match in _CONTROLS.finditer(document.source.text):
            inside = any(start <= match.start() < end for start, end in garbled)
            if _WITHOUT_WIDTH.issuperset(match[0]) and not inside and not _is_in_a_name(document, match):
                alike.setdefault(match[0][0], []).append(match)
        for character, found in alike.items():
            message = f"invisible character U+{ord(character):04X}{_repeated(document, found)}"
            yield self.fault(found[0].span(), message, hint="delete it")


class BidiControl(TextRule):
    """Character that changes the text direction

    People and tools read different text, so a reviewer can be tricked into approving unseen text.

    Remedy: if the text is about the character, write its escape, such as `\\u202e`; otherwise delete the character.
    """

    def check(self, document: Document) -> Iterator[Problem]:
        if _BIDI_CHARACTERS.isdisjoint(document.source.unusual):
            return
        on_line: dict[int, list[re.Match[str]]] = {}
        for match in _BIDI.finditer(document.source.text):
            on_line.setdefault(document.source.line_and_column(match.start())[0], []).append(match)
        for found in on_line.values():
            characters = [*dict.fromkeys("".join(match[0] for match in found))][:_FEW_CHARACTERS]
            names = ", ".join(f"U+{ord(character):04X}" for character in characters)
            escaped = " ".join(f"\\u{ord(character):04x}" for character in characters)
            which = (
                "the characters; otherwise delete them" if len(characters) > 1 else "the character; otherwise delete it"
            )
            hint = f"write {escaped} if the text is about {which}"
            yield self.fault(found[0].span(), f"direction control {names}", hint=hint)


_FEW_CHARACTERS = 4


class ConflictMarker(TextRule):
    """Merge conflict marker

    The document contains both sides of the conflict, and tools read whichever comes first.

    Remedy: resolve the conflict and delete the markers.
    """

    def check(self, document: Document) -> Iterator[Problem]:
        text = document.source.text
        markers = list(_CONFLICT.finditer(text)) if "<<<<<<<" in text or ">>>>>>>" in text else []
        # A line of seven '=' alone underlines a heading; it is a conflict marker only between the other two.
        if any(match.group()[0] in "<>" for match in markers):
            # One finding for each conflict: the markers up to the next beginning.
            first = next((at for at, match in enumerate(markers) if match.group()[0] == "<"), len(markers))
            begins = [*range(first), *(at for at, match in enumerate(markers) if match.group()[0] == "<")]
            for at, after in zip(begins, [*begins[1:], len(markers)], strict=True):
                drawn = document.kind in {"task_board", "registry"}
                also = "; afterwards, run `workpacket board sync`" if drawn else ""
                lines = [document.source.line_and_column(match.start())[0] for match in markers[at:after]]
                others = f" ({first_lines(lines)})" if len(lines) > 1 else ""
                message = f"conflict marker {markers[at].group()}{others}"
                yield self.fault(markers[at].span(), message, hint=f"resolve the merge conflict{also}")


class HomePath(TextRule):
    """Absolute path specific to one machine

    The path leads into a home folder or names a drive, so it may reveal a name, and does not exist on other machines.

    Remedy: write the path relative to the repository.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, document: Document) -> Iterator[Problem]:
        text = document.source.text
        drives = sorted(_paths_on_drives(text), key=re.Match.start)
        if drives:
            shown = f"an absolute path: {drives[0][0][:80]}{_repeated(document, drives)}"
            yield self.fault(drives[0].span(), shown, hint="write it relative to the repository")
        if not any(start in text for start in _HOME_STARTS):
            return
        for match in _HOME.finditer(text):
            if re.split(r"[/\\]", match.group())[-1].casefold() in _NOBODY:
                continue
            hint = "write it relative to the repository"
            yield self.fault(match.span(), f"a path into a home folder: {match.group()}", hint=hint)


def _paths_on_drives(text: str) -> Iterator[re.Match[str]]:
    for start in _DRIVE_STARTS:
        for at in places_of(start, text):
            # Most colons before a slash are those of addresses.
            if text[at + 2 : at + 3] != "/" and text[at - 1 : at].isalpha():
                found = _DRIVE.match(text, at - 1)
                if found is not None:
                    yield found


class Mojibake(TextRule):
    """Garbled characters from incorrectly decoded UTF-8

    The text is no longer what its author wrote, and searches do not find it.

    Remedy: `workpacket fmt --unsafe-fixes` restores the intended characters; review the result.
    """

    severity = "warning"
    fix = "unsafe"
    confidence = "likely"

    def check(self, document: Document) -> Iterator[Problem]:
        found = list(mojibake(document.source))
        if not found:
            return
        first, meant = found[0], _meant(found[0].group())
        runs = [(TextRun.on_line(document.source.text, *match.span()), _meant(match.group())) for match in found]
        message = f"garbled characters {first.group()!r}, probably {meant!r}{_repeated(document, found)}"
        title = f"write {meant!r}" if len(found) == 1 else "write the intended characters"
        edits = [run.replaced_by(text) for run, text in runs if run is not None]
        yield self.fault((first.start(), found[-1].end()), message, edits=edits, fix_title=title)


_LOST = lazy_pattern(
    r"(?m)(?:(?<=[\w)] )|(?<=[\r\n]# )|(?<=[\r\n]## )|(?<=[*-] ))\?{3,}(?= [\w`(])|(?<=\w)\?{3}(?=\w)"
    r"|(?<=[ (])\?\?(?=\d+\.\d)"
    r"|(?:^|(?<=[\r\n]))[ \t]*[-*][ \t]+(?=\?\. )|(?:^|(?<=[\r\n]))\?(?= [A-Z]{3,}[ :])|\ufffd+"
)


class CharactersLost(TextRule):
    """Question marks, U+FFFD or letters in place of characters that a program could not write

    The original character, such as an arrow, a dash or a section sign, is lost.

    Remedy: write the intended characters.
    """

    severity = "warning"
    confidence = "likely"
    kinds = (
        "stub",
        "packet",
        "refinement",
        "task_board",
        "registry",
        "signature_audit",
        "role_progress",
        "work_package",
    )

    def check(self, document: Document) -> Iterator[Problem]:
        text = document.source.text
        signs = list(_lost_signs(document.source))
        if signs:
            number = signs[0][0][1:]
            hint = f"write \u00a7{number}, or `section {number}` where only ASCII is allowed"
            message = (
                f"{signs[0][0]!r} is probably a section number whose \u00a7 became an A{_repeated(document, signs)}"
            )
            yield self.fault(signs[0].span(), message, hint=hint)
        asked = "?" in text and ("???" in text or " ?. " in text or "\n? " in text)
        for match in _LOST_FENCE.finditer(text) if "`ash" in text else ():
            if not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip(" \t`"):
                yield self.fault((match.start(), match.start() + 1), "fence marks were lost", hint="write ```bash")
        found = list(_LOST.finditer(text)) if asked or "\ufffd" in document.source.unusual else []
        if found:
            what = "U+FFFD" if found[0][0].startswith("\ufffd") else "question marks"
            message = f"{what} in place of other characters{_repeated(document, found)}"
            start = found[0].start() if found[0][0].startswith(("?", "\ufffd")) else found[0].end()
            yield self.fault((start, max(start + 1, found[0].end())), message)


# A shell read the escape in "```bash" as a character, which was lost later.
_LOST_FENCE = lazy_pattern(r"`ash(?=[ \t]*(?:[\r\n]|\Z))")
# A section number after an A, and words that are used on the same line as section numbers.
_LOST_SIGN = lazy_pattern(r"A(?<![\w.-]A)\d{1,2}(?:(?:\.\d{1,3})+|\.\d{1,2}\.x|-\d{1,2})(?![\w-])")
_ABOUT_SECTIONS = lazy_pattern(r"(?i)\b(?:main body|roadmap|spec_anchor|master spec)|_spec_v\d")


def _lost_signs(source: Source) -> Iterator[re.Match[str]]:
    """Yield section numbers that begin with an A, on lines about sections."""
    for match in _LOST_SIGN.finditer(source.text):  # fast, because it begins with a letter
        if _ABOUT_SECTIONS.search(source.line(source.line_and_column(match.start())[0])):
            yield match


def mojibake(source: Source) -> Iterator[re.Match[str]]:
    """Yield runs of characters that change when the wrong decoding is undone."""
    if any("\u00c2" <= character <= "\u00f4" for character in source.unusual):
        yield from (match for match in _MOJIBAKE.finditer(source.text) if _meant(match.group()))


def _meant(garbled: str) -> str:
    """Return the intended characters, or '' if there are none. Windows-1252 leaves five bytes unchanged."""
    try:
        data = b"".join(_WINDOWS_GAPS.get(character) or character.encode("cp1252") for character in garbled)
        return data.decode("utf-8")
    except UnicodeError:
        return ""


_MARKS = frozenset({"---", "..."})
_KEY_LINE = lazy_pattern(r"[A-Za-z_]\w*:")


_WITH_FRONT_MATTER = frozenset({"work_package", "role_progress"})
_ONLY_BLOCK = lazy_pattern(
    r"(---)[ \t]*\r?\n[A-Za-z_]\w*:[^\r\n]*\r?\n(?:[^\r\n]*\r?\n){0,200}?(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE
)


class FrontMatterTwice(TextRule):
    """Front matter that is not read

    In documents with front matter, only the first block is read; in other documents, none is. The rest counts as
    ordinary text.

    Remedy: merge the two blocks, or move the fields of the only block into the document's sections.
    """

    kinds = ("work_package", "role_progress", "stub", "packet", "refinement")

    def check(self, document: Document) -> Iterator[Problem]:
        if document.kind not in _WITH_FRONT_MATTER:
            text = document.source.text
            only = _ONLY_BLOCK.match(text) if text.startswith("---") else None
            if only is not None:
                yield self.fault(only.span(1), f"documents of kind {document.kind} have no front matter")
            return
        second = _second_block(document.source)
        if second is not None:
            yield self.fault(second, "a second block of front matter begins here, and is ignored")


def _second_block(source: Source) -> tuple[int, int] | None:
    """Return where a second block begins. The search is line by line, because a pattern for both blocks would rescan
    long lines."""
    spans = map(source.line_span, range(1, source.line_count + 1))
    lines = ((start, source.text[start:end].strip("\ufeff \t\r\n")) for start, end in spans)
    if next(lines, (0, ""))[1] != "---" or all(line not in _MARKS for _, line in lines):
        return None
    start, mark = next(((start, line) for start, line in lines if line), (0, ""))
    if mark != "---" or not _KEY_LINE.match(next(lines, (0, ""))[1]):
        return None
    return (start, start + len(mark)) if any(line == "---" for _, line in lines) else None
