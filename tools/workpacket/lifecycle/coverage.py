"""Coverage: whether a packet accounts for each path in a change. Work is covered by a held packet, and only within its
scope. After the verdict, only the judged work is covered: at every path, the merged content must be what git makes of
the judged commit and the base. A standing packet covers its scope until its last day, without a claim or a verdict for
each change. The documents in the governance folder need no packet, except those that change what the current
specification says. All facts from git are gathered in advance; this module only makes the decisions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date
from typing import Final, Literal, cast

from workpacket.documents.spec_pointer import passages
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.log import Log
from workpacket.lifecycle.contract import ContractUnreadable, contract_of
from workpacket.lifecycle.gates import standing_until
from workpacket.lifecycle.scope import names_one, outside, pattern_of
from workpacket.model.events import LogEvent
from workpacket.model.lanes import LaneTable
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.packet import Packet
    from workpacket.documents.stub import Stub

# How a packet covers its scope: by held work, by judged work, or for a time. A `ready` packet covers it only if it is a
# standing packet.
Kind = Literal["work", "verdict", "standing", "ready", ""]


class Cover(Value):
    """What a packet covers. A path must be in each of `scopes`, the approved one and the current one.

    `why` says, as the end of a sentence, why a packet covers nothing.
    """

    packet: str
    kind: Kind
    scopes: tuple[tuple[str, ...], ...]
    why: str = ""

    def has(self, path: str) -> bool:
        strict = self.kind == "standing"
        return bool(self.scopes) and not any(outside((path,), scope, strict=strict) for scope in self.scopes)


class StatedScope(Value):
    """The scope that a document states, and its last day if it is a standing packet."""

    entries: tuple[str, ...]
    until: date | None


def stated_scope(document: Stub | Packet) -> StatedScope:
    try:
        approved = contract_of(document, None).scope
    except ContractUnreadable:
        # An ambiguous text cannot be approved.
        return StatedScope((), None)
    # A quoted name such as `justfile` is approved with the scope of the stub, and packets made before that was known do
    # not have it among their paths.
    named = (pattern_of(entry) for entry in approved if document.kind == "stub" or names_one(entry))
    listed = cast("Packet", document).in_scope_paths if document.kind == "packet" else ()
    return StatedScope((*(entry.value for entry in listed), *filter(None, named)), standing_until(approved))


class Landing(Value):
    """What a change does to the tree outside the governance folder.

    `changed` are the paths that differ from the base; `otherwise` are those that differ from what the judged commits
    make of the base, and `conflicts` are those among them that git could not merge. `brought` maps each packet to the
    paths, with their content, that its judged commit changes in the base. `reports` are files whose digest a verdict
    records, and programs below the governance folder as `init` writes them; `special` are paths that become a program,
    a link or a submodule; `anchors` are documents that change what the current specification says.
    """

    changed: frozenset[str]
    otherwise: frozenset[str] = frozenset()
    conflicts: frozenset[str] = frozenset()
    brought: Mapping[str, Mapping[str, str]] = NOTHING
    reports: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()
    anchors: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[str]:
        return self.changed | self.otherwise


class Uncovered(Value):
    """A path that no packet covers; `packet` is the closest match, or '' if no scope contains it."""

    code: str
    path: str
    packet: str
    message: str


# Files that are read and never run. Anything else below the folder is a program, and needs a packet like any other
# program.
_DOCUMENTS: Final = (
    ".md", ".markdown", ".rst", ".txt", ".json", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".xml", ".log", ".html",
    ".svg", ".png", ".jpg", ".pdf", ".sshsig",
)  # fmt: skip
_NAMED: Final = frozenset({"allowed_signers", "revoked_keys", ".gitattributes", ".gitignore", ".gitkeep"})
# Pages that an agent follows as it would a program: AGENTS.md, CLAUDE.local.md, CODER_PROTOCOL.md, review.prompt.md.
_INSTRUCTIONS: Final = lazy_pattern(
    r"(?:agents?|claude|crush|gemini|qwen|skill|warp|copilot-instructions)(?:\..*)?\.md"
    r"|.*(?:_protocol|\.(?:agent|chatmode|instructions|prompt))\.md",
    re.IGNORECASE,
)


def instructs_agents(path: str) -> bool:
    """Whether agents follow the file: by its name, or as a tool keeps its commands and rules in a hidden folder."""
    *folders, name = path.split("/")
    return any(folder.startswith(".") for folder in folders[1:]) or _INSTRUCTIONS.fullmatch(name) is not None


def is_governance(path: str) -> bool:
    """Whether the path is one of the governance documents. Other checks judge these documents, except for the
    specification."""
    name = path.rpartition("/")[2]
    data = name in _NAMED or name.casefold().endswith(_DOCUMENTS)
    return path.startswith(f"{GOVERNANCE_FOLDER}/") and data and not instructs_agents(path)


def uncovered(landing: Landing, covers: Sequence[Cover], exempt: Sequence[str]) -> Iterator[Uncovered]:
    """Yield the paths of a merge that no packet covers, in order."""
    # Without a held packet for each change, only plain files pass: a program, a link or a submodule needs one.
    exempted = landing.paths - landing.special - frozenset(outside(landing.paths, exempt, strict=True))
    for path in sorted(landing.paths):
        document = is_governance(path) and path not in landing.special | landing.anchors
        if document or path in exempted or path in landing.reports:
            continue
        having = [cover for cover in covers if cover.has(path)]
        if any(cover.kind == "work" or (cover.kind == "standing" and path not in landing.special) for cover in having):
            continue
        judged = [cover for cover in having if cover.kind == "verdict"]
        if path not in landing.otherwise and _arrived(path, landing, judged):
            continue
        yield _objection(path, landing, judged, having)


def _arrived(path: str, landing: Landing, judged: Sequence[Cover]) -> bool:
    """Whether each judged commit that changes the path belongs to a packet with the path in its scope.

    Work based on another packet's work also contains that packet's changes, but accounts only for its own.
    """
    scoped = {cover.packet for cover in judged}
    states = {packet: states[path] for packet, states in landing.brought.items() if path in states}
    answered = {state for packet, state in states.items() if packet in scoped}
    return bool(states) and answered.issuperset(states.values())


def _objection(path: str, landing: Landing, judged: Sequence[Cover], having: Sequence[Cover]) -> Uncovered:
    if not judged or path not in landing.otherwise:
        return _without_packet(path, having)
    packet = judged[0].packet
    if path in landing.conflicts:
        message = f"the judged commit of {packet} and the base conflict here, and the resolution was not judged"
        return Uncovered("landed_otherwise", path, packet, message)
    message = f"it differs from the result of merging the judged commit of {packet} into the base"
    return Uncovered("changed_after_verdict", path, packet, message)


def _without_packet(path: str, having: Sequence[Cover]) -> Uncovered:
    if not having:
        return Uncovered("change_uncovered", path, "", "it is not in the scope of any packet in progress")
    near = having[0]
    why = "its judged commit does not change the path" if near.kind == "verdict" else near.why
    return Uncovered("change_uncovered", path, near.packet, f"it is in the scope of {near.packet}, but {why}")


def judging(log: Log) -> tuple[LogEvent, str] | None:
    """Return the last verdict of a log if it is PASS, with the last commit submitted before it; else None."""
    verdicts = [event for event in log.events if event.type == "verdict.given"]
    if not verdicts or verdicts[-1].text("verdict") != "PASS":
        return None
    submitted = log.submission_before(verdicts[-1])
    return (verdicts[-1], str(submitted.data["commit"])) if submitted is not None else None


def kind_of(lane: str, lanes: LaneTable) -> Kind:
    """Return how a packet in this lane covers its scope, to the extent that this depends on the lane."""
    way = lanes.way
    if lane == "READY_FOR_DEV":
        return "ready"
    if lane not in way or way.index(lane) < way.index("IN_PROGRESS"):
        return ""
    return "work" if way.index(lane) <= way.index("IN_REVIEW") else "verdict"


# What could hide the sections below it from a reader, outside of a quoted name: raw HTML, a comment, a code fence.
_QUOTED = lazy_pattern(r"(?<![`\\])(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_HIDING = lazy_pattern(r"<[A-Za-z!/?]|^ {0,3}(?:```|~~~)", re.MULTILINE)
# A name in brackets; with a colon, the target of the links of this name in the whole document, if it is the first.
_NAMED_LINK = lazy_pattern(r"\[((?:\\.|[^\[\]\\])+)\](:?)", re.DOTALL)


def only_adds(before: Source, after: Source) -> bool:
    """Whether the second text has every section of the first unchanged, in the same order below the same titles, and
    adds only sections that contain nothing that could hide another section, pass for it, or redirect its links.
    """
    old, new = _sections(before), _sections(after)
    if new[0] != old[0]:
        return False
    taken, linked = {titles for titles, _ in old}, {name for name, _ in _link_names(before.text)}
    remaining = iter(old[1:])
    wanted = next(remaining, None)
    for each in new[1:]:
        if each == wanted:
            wanted = next(remaining, None)
        elif each[0] in taken or _misleads(each[1], linked):
            return False
    return wanted is None


def _misleads(section: str, linked: Set[str]) -> bool:
    """Whether a new section could hide those below it, or defines where their links lead."""
    redirects = any(target and name in linked for name, target in _link_names(section))
    return redirects or _HIDING.search(_QUOTED.sub("", section)) is not None


def _link_names(text: str) -> Iterator[tuple[str, str]]:
    """Yield link labels as Markdown compares them, with the colon if they define a target."""
    return ((" ".join(name.casefold().split()), colon) for name, colon in _NAMED_LINK.findall(text))


def _sections(specification: Source) -> list[tuple[tuple[str, ...], str]]:
    """Return each heading with all titles above it and the text up to the next heading, preceded by the text before the
    first heading.
    """
    found = list(passages(specification))
    ends = [each.first for each in found] + [specification.line_count + 1]
    texts = [
        "\n".join(specification.line(number) for number in range(start, end)).rstrip()
        for start, end in zip([1, *ends], ends, strict=False)
    ]
    return list(zip([(), *(each.titles for each in found)], texts, strict=True))
