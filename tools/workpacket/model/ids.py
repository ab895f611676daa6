"""Ids of work packets: their grammar, how to compare them, and how to find them in prose.

There are two families. A *work packet* is `WP-<phase>-<slug>` with an optional revision `-v<N>`; the id without the
revision is its base, which all revisions share. A *work package* of a mission is `WP07`, which is meaningful only
inside that mission; `<mission>--WP07` is its full form.

An id is used as a file name, a branch name and a table cell, so it is ASCII, short, unique regardless of case, and not
a Windows device name. Ids are compared as a whole, because many real ids are prefixes of others.

Every command imports this module, so it imports nothing larger than `re`, and compiles the patterns for prose only when
prose is first searched.

This module also matches names against patterns, in which `*` stands for any characters.
"""

from __future__ import annotations

from collections.abc import Iterable

from workpacket.lazy_pattern import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, NoReturn, TypeAlias

    _Parts: TypeAlias = tuple[str, str, int | None, str, str]


def matches(pattern: str, name: str) -> bool:
    """Whether the pattern matches the whole name, without backtracking, no matter how many stars it contains."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == name
    first, *middle, last = parts
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:  # the earliest match of each part leaves the most room for those after it
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def covers(wider: str, narrower: str) -> bool:
    """Whether every name that matches `narrower` also matches `wider`: a star can only be matched by a star."""
    return matches(wider, narrower)


MAX_LENGTH = 80

_PACKET = lazy_pattern(
    r"WP-(?P<phase>[0-9]+|[A-Z][A-Z0-9]*)"
    r"-(?P<slug>[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*?)"
    r"(?:-v(?P<revision>[1-9][0-9]*))?\Z"
)
_PACKAGE = lazy_pattern(r"(?:(?P<mission>[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*)--)?(?P<short>WP[0-9]{2,})\Z")

# An id in a field ends at a space, a parenthesis or a tag. Anything else that continues it makes one longer word, which
# is not an id.
_LEADING = lazy_pattern(r"`?(WP-[A-Za-z0-9.-]*[A-Za-z0-9])`?(?=[\s(<]|\Z)")

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))]
)


class InvalidId(ValueError):
    """Raised for an invalid id; the message says why, as the rest of a sentence that begins with the string."""


class WorkPacketId:
    """An id that follows the grammar. Two ids are equal if their text is equal; `key` must be unique in a repository.

    `phase`, `slug` and `revision` belong to work packets, `short` and `mission` to work packages; the fields of the
    other family are empty.
    """

    __slots__ = ("mission", "phase", "revision", "short", "slug", "text")

    text: str
    phase: str
    slug: str
    revision: int | None
    mission: str
    short: str

    def __init__(self, text: str) -> None:
        parts = _parts(text)
        if parts is None:
            raise InvalidId(_complaint(text))
        self._fill(text, parts)

    @classmethod
    def parse(cls, text: str) -> WorkPacketId:
        """Return the id that makes up all of `text`; raise `InvalidId` if it is not an id."""
        return cls(text)

    @classmethod
    def try_parse(cls, text: str) -> WorkPacketId | None:
        """Return the id that makes up all of `text`, or None."""
        parts = _parts(text)
        if parts is None:
            return None
        packet = cls.__new__(cls)
        packet._fill(text, parts)
        return packet

    def _fill(self, text: str, parts: _Parts) -> None:
        put = object.__setattr__
        phase, slug, revision, mission, short = parts
        put(self, "text", text)
        put(self, "phase", phase)
        put(self, "slug", slug)
        put(self, "revision", revision)
        put(self, "mission", mission)
        put(self, "short", short)

    @property
    def kind(self) -> Literal["packet", "short", "scoped"]:
        if not self.short:
            return "packet"
        return "scoped" if self.mission else "short"

    @property
    def base(self) -> str:
        """Return the id without its revision."""
        return self.text if self.revision is None else f"WP-{self.phase}-{self.slug}"

    @property
    def key(self) -> str:
        """Return the id in the form that must be unique: on many file systems `WP-1-Parser` and `wp-1-parser` are the
        same file."""
        return self.text.casefold()

    def scoped(self, mission: str) -> WorkPacketId:
        """Return this short id in the form used outside its mission."""
        if self.kind != "short":
            raise InvalidId(f"{self.text} is a complete id; only a short id such as WP07 can be scoped to a mission")
        return WorkPacketId.parse(f"{mission}--{self.text}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an id cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an id cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, WorkPacketId) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"WorkPacketId({self.text!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return WorkPacketId.parse, (self.text,)


def _parts(text: str) -> _Parts | None:
    if len(text) > MAX_LENGTH:
        return None
    if match := _PACKET.match(text):
        phase, slug, revision = match.groups()
        if _is_device(phase) or _is_device(slug):
            return None
        return phase, slug, int(revision) if revision else None, "", ""
    if match := _PACKAGE.match(text):
        mission, short = match.groups(default="")
        return None if _is_device(mission) else ("", "", None, mission, short)
    return None


def is_packet_id(text: str) -> bool:
    """Whether the whole string is the id of a work packet. Fast, because it is used on ten thousand names."""
    match = _PACKET.match(text) if len(text) <= MAX_LENGTH else None
    return match is not None and not (_is_device(match[1]) or _is_device(match[2]))


def leading_id(value: str) -> str:
    """Return the id at the start of a field's value, without backticks and trailing remarks; if there is no id, the
    whole value.
    """
    return leading_word(value)[0]


def leading_word(value: str) -> tuple[str, int]:
    """Return the result of `leading_id`, and where it ends in the value."""
    match = _LEADING.match(value)
    return (match.group(1), match.end()) if match else (value, len(value))


def next_revision(base: str, known: Iterable[WorkPacketId]) -> WorkPacketId:
    """Return the id of the revision of `base` that follows all `known` ones. A packet without a revision number counts
    as the first.
    """
    key = base.casefold()
    taken = [packet.revision or 1 for packet in known if packet.kind == "packet" and packet.base.casefold() == key]
    return WorkPacketId.parse(f"{base}-v{max(taken, default=0) + 1}")


def nearest(text: str, known: Iterable[WorkPacketId]) -> WorkPacketId | None:
    """Return the known id to which `text` probably refers: one that differs in case, in the revision or by a typo, or
    the shortest one that contains it.
    """
    if len(text) > 2 * MAX_LENGTH:
        return None
    candidates = {packet.key: packet for packet in known}
    folded = text.casefold()
    if folded in candidates:
        return candidates[folded]
    wanted = WorkPacketId.try_parse(text)
    if wanted is not None:
        if wanted.kind != "packet":
            return None  # WP07 and WP08 differ by one letter but are unrelated
        base = wanted.base.casefold()
        siblings = [packet for packet in candidates.values() if packet.base.casefold() == base]
        if siblings:
            return max(siblings, key=lambda packet: packet.revision or 1)
    import difflib

    close = difflib.get_close_matches(folded, candidates, n=1, cutoff=0.8)
    close = close or sorted((key for key in candidates if len(folded) > 2 and folded in key), key=len)
    return candidates[close[0]] if close else None


# Prose. A candidate is taken as a whole or not at all, so everything attached to it is judged too.
_CANDIDATE = lazy_pattern(r"WP(?:-[A-Za-z0-9.-]*|[0-9]{2,})")
_DECLARED_WAIVER = lazy_pattern(r"(?i:waiver[ _]id)\W{1,6}(WP-[A-Za-z0-9.-]*)")
_MISSION_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_EMPHASIS = 3  # underscores around a word, for emphasis in Markdown
# A file of the first kind is about the packet in its name; a file of the second kind is only a by-product.
_DOCUMENT_SUFFIX = lazy_pattern(r"(?i:\.(?:json|markdown|md|toml|ya?ml))\Z")
_ARTEFACT_SUFFIX = lazy_pattern(
    r"(?i:\.(?:bak|csv|diff|err|gz|html|jsonl|lock|log|orig|out|patch|pdf|png|py|rs|sh|tmp|ts|txt|xml|zip))\Z"
)


def find_ids(text: str) -> list[tuple[WorkPacketId, int, int]]:
    """Return every id in prose with its offsets [start, end), in order.

    Look-alikes are left out: a part of a longer word, a placeholder (`WP-{phase}-{name}`, `WP-...`), a glob, the name
    of a log or another artifact (`WP-1-Parser.log`), and an id that the same text declares as the id of a waiver
    (`WAIVER_ID: ...`). The name of a document (`WP-1-Parser.md`) counts as the id it is named after.
    """
    waivers = {match[1].rstrip(".-") for match in _DECLARED_WAIVER.finditer(text)}
    found: list[tuple[WorkPacketId, int, int]] = []
    last = 0
    for match in _CANDIDATE.finditer(text):
        start, end = match.span()
        span = _packet_span(text, start, end) if text[start + 2] == "-" else _package_span(text, start, end, last)
        packet = WorkPacketId.try_parse(text[span[0] : span[1]]) if span else None
        if span and packet and packet.text not in waivers:
            found.append((packet, *span))
            last = span[1]
    return found


def _packet_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of the id within the candidate [start, end), if its context allows one."""
    if not _free_before(text, start) or not _free_after(text, start, end):
        return None
    name = text[start:end].rstrip(".")
    if _ARTEFACT_SUFFIX.search(name):
        return None
    document = _DOCUMENT_SUFFIX.search(name)
    return start, start + (document.start() if document else len(name))


def _package_span(text: str, start: int, end: int, last: int) -> tuple[int, int] | None:
    """Return the span of WP07, including the mission before it and the end of a range such as WP01-WP07.

    `last` is the end of the previous id.
    """
    if not _free_after(text, start, end) or (text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit()):
        return None
    begin = start
    if text.endswith("--", last, start):
        begin -= 2
        while begin > last and text[begin - 1] in _MISSION_CHARACTERS and end - begin <= MAX_LENGTH:
            begin -= 1
    ends_a_range = last == start - 1 > 0 and text[last] == "-"
    return (begin, end) if ends_a_range or _free_before(text, begin) else None


def _free_before(text: str, start: int) -> bool:
    """Whether a name begins at `start`, instead of before it. A few underscores alone count as emphasis."""
    index = start - 1
    while index >= 0 and text[index] == "_" and start - index <= _EMPHASIS:
        index -= 1
    return index < 0 or not (text[index].isalnum() or text[index] in "_-")


def _free_after(text: str, start: int, end: int) -> bool:
    """Whether the name ends at `end`, instead of continuing there, and nothing there makes the candidate a pattern."""
    index = end
    while index < len(text) and text[index] == "_" and index - end < _EMPHASIS:
        index += 1
    if index == len(text):
        return True
    if text[index] == "*":
        return text[start - 1 : start] == "*"  # **WP-1-Parser** is bold, WP-1-Parser* means many
    return not (text[index].isalnum() or text[index] in "_{[$")


def _is_device(name: str) -> bool:
    """Whether Windows opens a device instead of a file of this name, regardless of the suffix."""
    return name.partition(".")[0].lower() in _DEVICES


def _complaint(text: str) -> str:
    faults = (
        (not text, "is empty"),
        (len(text) > MAX_LENGTH, f"has {len(text)} characters; an id can have at most {MAX_LENGTH}"),
        (not text.isascii(), "is not ASCII"),
        (text != text.strip(), "has leading or trailing whitespace"),
        (text[:2].upper() == "WP" != text[:2], "does not begin with `WP` in upper case"),
        (_PACKET.match(text) or _PACKAGE.match(text), "contains a name that Windows reserves for a device"),
    )
    return next(
        (complaint for wrong, complaint in faults if wrong),
        "is not of the form `WP-<phase>-<slug>-v<N>`, such as `WP-1-Parser-v2`",
    )
