"""Scope: the files that a packet may change, according to the patterns in IN_SCOPE_PATHS. The guard: whether an actor
may write a path now, and if not, which command to run next.

A pattern is a path; the path of a folder, which includes everything below it; or a path with `*` (within one folder)
and `**` (any folders). An entry with a space in it is prose and allows nothing.

The guard gives the same answer as coverage, before the file is written. A path may be written by the holder of a packet
that has it in its scope, if the packet still states its approved contract; by anyone within a standing packet; and by
anyone if the policy requires no packet for it. The guard's answer is advice for honest programs. What may be merged is
decided by `check --base`. Agents ask before each write, so this module imports almost nothing.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from functools import cache
from typing import Final

from workpacket.model.lanes import NEAR, NOT_NOW, OPEN
from workpacket.model.layout import APPEND_ONLY_FOLDERS, GOVERNANCE_FOLDER
from workpacket.problem import Problem
from workpacket.value import NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def pattern_of(entry: str) -> str:
    """Return the pattern in a list entry; '' if the entry is prose."""
    text = entry.strip()
    if text[:1] == "`" and "`" in text[1:]:
        return text[1 : text.index("`", 1)].removeprefix("./")
    head = text.partition(" (")[0].rstrip(".,;")
    return head.removeprefix("./") if head and not any(character.isspace() for character in head) else ""


def is_pathlike(entry: str) -> bool:
    """Whether an entry in a stub's scope names files: quoted or not, with a folder or an extension."""
    pattern = pattern_of(entry)
    return bool(pattern) and ("/" in pattern or re.search(r"[\w*]\.\w+\Z", pattern) is not None)


def names_one(entry: str) -> bool:
    """Whether an entry is only a quoted name, such as `justfile`, without a folder or an extension."""
    pattern = pattern_of(entry)
    return bool(pattern) and entry.strip() == f"`{pattern}`" and not is_pathlike(entry)


def outside(paths: Iterable[str], entries: Sequence[str], *, strict: bool = False) -> list[str]:
    """Return the paths that no entry allows. An entry also allows everything below it; with `strict`, only an entry
    like `a/` does. Without `strict`, `*.md`, which is intended for pages, also allows everything below a folder named
    `a.md`.
    """
    patterns = [pattern for entry in entries if (pattern := pattern_of(entry))]
    return [path for path in paths if not any(allows(pattern, path, strict=strict) for pattern in patterns)]


def allows(pattern: str, path: str, *, strict: bool) -> bool:
    return path.startswith(_beginning(pattern)) and _compiled(pattern, strict).fullmatch(path) is not None


@cache
def _beginning(pattern: str) -> str:
    """Return the prefix that all paths allowed by the pattern have in common. It rules out most paths, and compiling
    hundreds of patterns takes longer than starting Python.
    """
    return re.split(r"[*?]", pattern, maxsplit=1)[0].rstrip("/")


@cache
def _compiled(pattern: str, strict: bool) -> re.Pattern[str]:
    parts = []
    for piece in re.split(r"(\*\*/?|\*|\?)", pattern.rstrip("/")):
        if piece.startswith("**"):
            parts.append("(?:.*/)?" if piece.endswith("/") else ".*")
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece)))
    below = ("/.*" if pattern.endswith("/") else "") if strict else "(?:/.*)?"
    return re.compile("".join(parts) + below, re.DOTALL)


# --- the guard ---


class Guarded(NamedTuple):
    """What the guard knows about a packet that is not finished.

    `command` is the one that leads to its next lane. `scope` are the patterns of the stated scope; `until` is the end
    of the lease, or '' if it has none; `last_day` is the last day of a standing packet; `drift` says how the files
    differ from the approved contract.
    """

    id: str
    lane: str
    command: str
    holder: str
    until: str
    scope: Sequence[str]
    last_day: str
    drift: str

    def has(self, path: str) -> bool:
        strict = bool(self.last_day)
        return any(allows(pattern, path, strict=strict) for pattern in self.scope)

    def nearness(self, actor: str) -> tuple[bool, int, str]:
        """Order the packets that nearly cover a path: first the actor's own, then those in the nearest lane."""
        lane = NEAR.index(self.lane) if self.lane in NEAR else len(NEAR)
        return self.holder != actor, lane, self.id


class GuardRules(Value):
    """What the guard needs to know about a repository. `specification` are the files that say what the work is for;
    `exempt` is None if the policy requires no packet at all.
    """

    packets: tuple[Guarded, ...]
    exempt: tuple[str, ...] | None
    specification: tuple[str, ...]


class PathDecision(NamedTuple):
    """`refused` is None if the path may be written; `packet` covers the path, or comes closest; `why` ends a
    sentence."""

    path: str
    packet: str
    why: str
    refused: Problem | None


# Ways in which file systems and git write these names: git's own list for NTFS and HFS+.
_GIT_NAMES: Final = frozenset({".git", "git~1"})


def plain_name(name: str) -> str:
    """Return the name as the most lenient file system compares it."""
    shown = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", shown).casefold().partition(":")[0].rstrip(". ")


def decide(path: str, actor: str, rules: GuardRules, now: str) -> PathDecision:
    """Return whether the actor may write the path, which is relative to the repository and free of links."""
    protected = _protected(path)
    if protected is not None:
        return protected
    free = _free(path, rules)
    if free:
        return PathDecision(path, "", free, None)
    near = [packet for packet in rules.packets if packet.has(path)]
    for packet in near:
        if _standing(packet, now):
            return PathDecision(path, packet.id, f"it is in the scope of standing packet {packet.id}", None)
        if not packet.drift and packet.lane == "IN_PROGRESS" and _holder(packet, now) == actor:
            return PathDecision(path, packet.id, f"it is in the scope of {packet.id}, which {actor} holds", None)
    if near:
        return _nearly(path, actor, min(near, key=lambda packet: packet.nearness(actor)), now)
    return _uncovered(path, actor, rules)


def _protected(path: str) -> PathDecision | None:
    parts = path.split("/")
    if any(plain_name(part) in _GIT_NAMES for part in parts):
        return _no(path, "", "path_protected", "git's own files control what git commands do", "git config --help")
    if plain_name(parts[0]) == GOVERNANCE_FOLDER.casefold() and parts[0] != GOVERNANCE_FOLDER:
        message = f"on some systems, {parts[0]} is the same as {GOVERNANCE_FOLDER}"
        return _no(path, "", "path_protected", message, f"use {GOVERNANCE_FOLDER}")
    if "/".join(map(plain_name, parts[:2])) in map(str.casefold, APPEND_ONLY_FOLDERS):
        message = "only workpacket commands write to it, and changing it by hand causes errors for everyone"
        return _no(path, "", "path_protected", message, "workpacket packet note WP_ID TEXT")
    return None


def _free(path: str, rules: GuardRules) -> str:
    """Return why the path needs no packet, as the end of a sentence; '' if it needs one."""
    if path.startswith(f"{GOVERNANCE_FOLDER}/") and _is_document(path) and path not in rules.specification:
        return "it is a governance document, which `workpacket check` checks"
    if rules.exempt is None:
        return "the policy requires no packet"
    return "" if outside((path,), rules.exempt, strict=True) else "the policy exempts it"


def _is_document(path: str) -> bool:
    from workpacket.lifecycle.coverage import is_governance  # importing it takes as long as the rest of the guard

    return is_governance(path)


def _standing(packet: Guarded, now: str) -> bool:
    return bool(packet.last_day) and packet.lane in OPEN and not packet.drift and now[:10] <= packet.last_day


def _holder(packet: Guarded, now: str) -> str:
    return packet.holder if not packet.until or packet.until > now else ""


def _nearly(path: str, actor: str, packet: Guarded, now: str) -> PathDecision:
    """Refuse the path, and say why this packet does not cover it."""
    name, within = packet.id, f"it is in the scope of {packet.id}"
    why = f"workpacket why {name}"
    if packet.drift:
        message = f"{within}, but {packet.drift}"
        return _no(path, name, "contract_changed", message, f"workpacket packet amend {name}")
    if packet.last_day and packet.lane in OPEN:
        message = f"{within}, a standing packet that expired on {packet.last_day}"
        return _no(path, name, "change_uncovered", message, f"workpacket packet amend {name}")
    if packet.lane != "IN_PROGRESS":
        but = NOT_NOW.get(packet.lane, f"it is {packet.lane}")
        then = packet.command if packet.lane in OPEN else why
        return _no(path, name, "wrong_lane", f"{within}, but {but}", then)
    holder = _holder(packet, now)
    if holder:
        then = f"ask {shlex.quote(holder)} to run: workpacket packet release {name} --reason TEXT"
        return _no(path, name, "not_the_holder", f"{within}, which {holder} holds, not {actor}", then)
    from workpacket.lifecycle.gates import lease_ended  # with what it needs, it takes as long as all of the guard

    message = f"{within}, but the lease of {packet.holder} expired at {packet.until}"
    return _no(path, name, "lease_ended", message, lease_ended(name).hint)


def _uncovered(path: str, actor: str, rules: GuardRules) -> PathDecision:
    own = [packet for packet in rules.packets if packet.holder == actor and packet.lane == "IN_PROGRESS"]
    if path in rules.specification:
        message = "packets are anchored to the specification, so changing its text requires a packet"
        return _no(path, "", "change_uncovered", message, "workpacket new TITLE --requirement TEXT adds a section")
    if own:
        message = f"it is outside the scope of {own[0].id}: {', '.join(own[0].scope[:5])}"
        return _no(path, own[0].id, "outside_scope", message, f"workpacket packet amend {own[0].id}")
    message = "it is not in the scope of any packet in progress"
    return _no(path, "", "change_uncovered", message, f'workpacket next, or: workpacket new "TITLE" --scope {path}')


def _no(path: str, packet: str, code: str, message: str, then: str) -> PathDecision:
    return PathDecision(path, packet, message, Problem(code, message, hint=then).at(path))


def as_text(rules: GuardRules) -> str:
    """Return the rules as JSON, to be cached."""
    import json

    return json.dumps([rules.packets, rules.exempt, rules.specification])


def from_text(text: str) -> GuardRules:
    import json

    packets, exempt, specification = json.loads(text)
    return GuardRules(
        tuple(map(Guarded._make, packets)), None if exempt is None else tuple(exempt), tuple(specification)
    )
