"""The guard: whether an actor may write a path now, and if not, which command to run next.

It gives the same answer as coverage, but before the file is written. A path may be written by the holder of a packet
that has it in its scope, if the packet still states its approved contract; by anyone within a standing packet; and
where the policy requires no packet. The guard is advice for honest programs. What may be merged is decided by
`check --base`.
"""

from __future__ import annotations

import shlex
import unicodedata
from typing import Final, NamedTuple

from workpacket.lifecycle.coverage import is_governance
from workpacket.lifecycle.gates import lease_ended, outside
from workpacket.model.lanes import NEAR, NOT_NOW, OPEN
from workpacket.model.layout import APPEND_ONLY_FOLDERS, GOVERNANCE_FOLDER
from workpacket.problem import Problem
from workpacket.value import Value


class Guarded(Value):
    """What the guard knows about an unfinished packet.

    `command` leads to its next lane. `scope` is the stated scope; `until` is the end of the lease, '' if it has none;
    `last_day` is the last day of a standing packet; `drift` says how the files differ from the approved contract.
    """

    id: str
    lane: str
    command: str
    holder: str
    until: str
    scope: tuple[str, ...]
    last_day: str
    drift: str

    def has(self, path: str) -> bool:
        return bool(self.scope) and not outside((path,), self.scope, strict=bool(self.last_day))

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
        message = "only workpacket commands write to it, and changing it by hand is an error for everyone"
        return _no(path, "", "path_protected", message, "workpacket packet note WP_ID TEXT")
    return None


def _free(path: str, rules: GuardRules) -> str:
    """Return why the path needs no packet, as the end of a sentence; '' if it needs one."""
    if is_governance(path) and path not in rules.specification:
        return "it is a governance document, which `workpacket check` checks"
    if rules.exempt is None:
        return "the policy requires no packet"
    return "" if outside((path,), rules.exempt, strict=True) else "the policy exempts it"


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

    packets = [[getattr(one, name) for name in Guarded._fields] for one in rules.packets]
    return json.dumps([packets, rules.exempt, rules.specification])


def from_text(text: str) -> GuardRules:
    import json

    packets, exempt, specification = json.loads(text)
    found = (Guarded(**dict(zip(Guarded._fields, row, strict=True))) for row in packets)
    return GuardRules(tuple(found), None if exempt is None else tuple(exempt), tuple(specification))
