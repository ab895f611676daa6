"""The settings for the lifecycle, and for commands that prove criteria, in `policy.toml`.

[lifecycle] target_branch = "main" lease_hours = 72 satisfied_by = ["VALIDATED", "MERGE_PENDING"] roadmap_headings =
["roadmap"] branch_pattern = "wp/{id}"

[[lifecycle.checklist]] item = "threat_model" section = "THREAT_MODEL"

[lifecycle.gates.security] on = "merged"

[lifecycle.lanes.QA] after = "IN_REVIEW" before = "MERGE_PENDING"

[evidence] env = ["JAVA_HOME"] timeout_seconds = 600 output_bytes = 10485760 tests = "required" proof_paths = ["tests/",
"test/", "spec/", "**/*_test.*"] reports = ["target/surefire-reports/*.xml"] setup = ["npm ci"] replay = "second-party"

[evidence.ci] issuer = "https://…" identity = "https://…" certificates = "…" log_key = "…"

[coverage] mode = "required" exempt = ["translations/*.po"]

[packets]
form = "light"
approvals = "none"
phase = "1"
commit = true

[board]
commit = "never"

[notify] webhook = "https://…"

[temporal] ui = "https://…"

A lane that a repository adds is inserted between two adjacent lanes. The command that used to lead from one to the
other now leads to the added lane, through the same gate, and `advance` leads on from there. An added lane never removes
a gate. It cannot come before IN_PROGRESS, because activation and claim each lead directly to their lane. A table with
an error has no effect, and no packet can move until it is fixed, so that a typo opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import ACTIVE_TOKEN, BUILT_IN, SATISFYING, WAY, AddedLane, LaneTable, section_key, words_of
from workpacket.text.source import Node, Source
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.approvals.sigstore import TrustedCi
    from workpacket.text.source import Plain


# What a program needs to be found, to find its files and to use the person's language; none of it is secret.
ALWAYS_PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TMP", "TEMP",
    "VIRTUAL_ENV", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA",
    "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
)  # fmt: skip
_LOCALE: Final = "LC_"
LONGEST: Final = 24 * 60 * 60
MOST_OUTPUT: Final = 1024 * 1024 * 1024

TOKEN: Final = lazy_pattern(r"[A-Z]+(?:_[A-Z]+)*\Z")
TITLE: Final = lazy_pattern(r"[A-Za-z]+(?:[ -][A-Za-z]+)*\Z")
LONGEST_NAME: Final = 40
# The lanes in order, and the pairs between which a lane can be added.
_STEPS: Final = tuple(pairwise(WAY))
_ROOM: Final = _STEPS[2:]
# Board sections of built-in lanes with work in progress; an added lane may share them.
_SHARED: Final = frozenset({"in progress", "in review"})
_BUILT_IN_HEADINGS: Final = frozenset(words_of(section.key) for section in BUILT_IN.sections)
_SHORT: Final = 3


PROOF_PATHS: Final = ("tests/", "test/", "spec/", "**/*_test.*")
Tests = Literal["required", "off"]
Replay = Literal["ci", "second-party", "off"]
_REPLAYS: Final[Mapping[str, Replay]] = {"ci": "ci", "off": "off"}


class EvidencePolicy(Value):
    """The settings for proofs. `env` are variables that proofs get in addition to `ALWAYS_PASSED`.

    `tests`: whether the contract must specify the proof of each criterion. `proof_paths` are the paths of tests,
    `reports` are the JUnit XML files that test runners write, and `setup` are the commands that prepare a tree.
    `replay`: whether another party, or CI, must replay the proofs before a verdict; `ci` is the table that says whose
    attestations count.
    """

    env: tuple[str, ...] = ()
    timeout_seconds: int = 600
    output_bytes: int = 10 * 1024 * 1024
    tests: Tests = "off"
    proof_paths: tuple[str, ...] = PROOF_PATHS
    reports: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    replay: Replay = "off"
    ci: Plain = None

    @cached_property
    def trusted_ci(self) -> TrustedCi | None:
        """Return whose replay attestations count; None if the policy does not say."""
        if self.ci is None:
            return None
        from workpacket.approvals.sigstore import read_trusted_ci

        return read_trusted_ci(self.ci)

    def environment(self, whole: Mapping[str, str]) -> dict[str, str]:
        """Return the environment for a proof."""
        passed = {*ALWAYS_PASSED, *self.env}
        return {name: value for name, value in whole.items() if name in passed or name.startswith(_LOCALE)}


EVIDENCE_KEYS: Final = EvidencePolicy.__match_args__


def evidence_policy(root: Node | None) -> EvidencePolicy:
    """Return the settings for proofs in a loaded `policy.toml`; invalid settings get their defaults."""
    table = root.get("evidence") if root is not None else None
    if table is None:
        return EvidencePolicy()
    tests, replay, ci = table.get("tests"), table.get("replay"), table.get("ci")
    return EvidencePolicy(
        _strings(table.get("env")),
        _number(table.get("timeout_seconds"), LONGEST, EvidencePolicy().timeout_seconds),
        _number(table.get("output_bytes"), MOST_OUTPUT, EvidencePolicy().output_bytes),
        # An unreadable policy requires everything.
        "off" if tests is None or tests.text == "off" else "required",
        _strings(table.get("proof_paths")) or PROOF_PATHS,
        _strings(table.get("reports")),
        _strings(table.get("setup")),
        "off" if replay is None else _REPLAYS.get(replay.text or "", "second-party"),
        ci.plain() if ci is not None else None,
    )


def _strings(node: Node | None) -> tuple[str, ...]:
    return tuple(item.text for item in node.items if item.text) if node is not None else ()


def _number(node: Node | None, most: int, default: int) -> int:
    return node.value if node is not None and type(node.value) is int and 1 <= node.value <= most else default


Mode = Literal["required", "warn", "off"]
_MODES: Final[Mapping[str, Mode]] = {"required": "required", "warn": "warn", "off": "off"}


class CoveragePolicy(Value):
    """The settings for coverage. `exempt` are patterns for paths that need no packet, as in IN_SCOPE_PATHS; empty by
    default.
    """

    mode: Mode = "off"
    exempt: tuple[str, ...] = ()


COVERAGE_KEYS: Final = CoveragePolicy.__match_args__


def coverage_policy(root: Node | None) -> CoveragePolicy:
    """Return the `[coverage]` settings in a loaded `policy.toml`. If the policy or the mode cannot be read, coverage is
    required.
    """
    if root is None:
        return CoveragePolicy("required")
    table = root.get("coverage")
    if table is None:
        return CoveragePolicy()
    mode, exempt = table.get("mode"), table.get("exempt")
    return CoveragePolicy(_MODES.get((mode.text or "") if mode is not None else "", "required"), _strings(exempt))


Form = Literal["light", "full"]
BoardCommit = Literal["branch", "base", "never", ""]


class PacketsPolicy(Value):
    """The `[packets]` and `[board]` tables.

    `form` is the form of new packets. `approvals`: whether the activation of a light packet needs an approval. `phase`
    is the second part of ids made from titles. `commit`: whether commands commit what they wrote. `board` says where
    board and registry are written: on every branch, only on the target branch, or nowhere. '' means every branch for
    full packets, and nowhere for light ones.
    """

    form: Form = "full"
    approvals: Literal["signed", "none"] = "signed"
    phase: str = "1"
    commit: bool = False
    board: BoardCommit = ""


_BOARD: Final[Mapping[str, BoardCommit]] = {"branch": "branch", "base": "base", "never": "never"}
_PHASE: Final = lazy_pattern(r"(?:[0-9]+|[A-Z][A-Z0-9]*)\Z")


def packets_policy(root: Node | None) -> PacketsPolicy:
    """Return the packet settings in a loaded `policy.toml`. Unreadable settings require an approval."""
    if root is None:
        return PacketsPolicy()
    form: Form = "light" if root.string_at("packets", "form") == "light" else "full"
    # A gate that names approvers is not switched off by this setting.
    approved = any(root.get("approvals", "gates", gate) is not None for gate in ("activation", "amendment"))
    phase, commit = root.string_at("packets", "phase"), root.get("packets", "commit")
    return PacketsPolicy(
        form,
        "none" if root.string_at("packets", "approvals") == "none" and not approved else "signed",
        phase if _PHASE.match(phase) else "1",
        commit is not None and commit.value is True,
        _BOARD.get(root.string_at("board", "commit"), ""),
    )


# The tables that say whom and what the required check trusts.
_GUARDING: Final = (("actors",), ("approvals",), ("verdict",), ("evidence", "ci"))


def unguarded_changes(before: Node | None, after: Node | None) -> list[str]:
    """Return the policy tables that a change weakens, if the policy names no one who could approve the change.

    A policy with approvers is approved as a whole, and a policy without requirements has nothing to weaken.
    """
    coverage = coverage_policy(before)
    guards = before is not None and (before.get("actors") is not None or coverage.mode == "required")
    if before is None or before.get("approvals") is not None or not guards:
        return []
    found = [".".join(names) for names in _GUARDING if _plain(before, *names) != _plain(after, *names)]
    if packets_policy(before).approvals != "none" and packets_policy(after).approvals == "none":
        found.append("packets")
    wanted = coverage_policy(after)
    weaker = wanted.mode != "required" or not set(wanted.exempt) <= set(coverage.exempt)
    return [*found, *(["coverage"] if coverage.mode == "required" and weaker else [])]


def _plain(root: Node | None, *names: str) -> Plain:
    table = root.get(*names) if root is not None else None
    return table.plain() if table is not None else None


DEFAULT: Final = "default"


class ChecklistItem(Value):
    """An item that a repository adds to the activation gate: a section of the refinement that must contain text."""

    item: str
    section: str


class AddedGate(Value):
    """A gate that a repository adds to a move: `gate` is its name in the approvals, and `on` is the command of the
    move."""

    gate: str
    on: str


class LifecyclePolicy(Value):
    """The current rules. `origins` gives the source of each: `default`, or a line of the policy.

    `evidence`, `coverage` and `packets` are the policy tables of the same names; `[actors]` and `[verdict]` are
    included in the same way. `judged`: whether the approvals have a gate for verdicts. `webhook` is called when a
    person is needed; `temporal_ui` is the address of Temporal's pages.

    `lane_faults` are the errors in added lanes: while there are any, no packet can move.
    """

    target_branch: str = ""
    lease_hours: int = 72
    satisfied_by: tuple[str, ...] = SATISFYING
    roadmap_headings: tuple[str, ...] = ("roadmap",)
    branch_pattern: str = "wp/{id}"
    claim_store: str = ""
    claims: str = "local"
    claim_ref: str = "refs/workpacket/claims/{id}"
    checklist: tuple[ChecklistItem, ...] = ()
    gates: tuple[AddedGate, ...] = ()
    lanes: LaneTable = BUILT_IN
    lane_faults: tuple[LaneFault, ...] = ()
    evidence: EvidencePolicy = EvidencePolicy()
    coverage: CoveragePolicy = CoveragePolicy()
    packets: PacketsPolicy = PacketsPolicy()
    judged: bool = False
    webhook: str = ""
    temporal_ui: str = ""
    actor_tables: tuple[Plain, Plain] | None = None
    origins: Mapping[str, str] = NOTHING

    @cached_property
    def actors(self) -> Actors:
        """Return the `[actors]` and `[verdict]` tables, which most policies do not have."""
        from workpacket.approvals.actors import Actors, read_actors

        return Actors() if self.actor_tables is None else read_actors(*self.actor_tables)

    def origin(self, key: str) -> str:
        return self.origins.get(key, DEFAULT)

    def branch_of(self, packet: str) -> str:
        return self.branch_pattern.replace("{id}", packet)

    def named_by(self, branch: str) -> str:
        """Return the text for which `branch_of` returns this branch; '' if there is none, or if any text would do."""
        start, *rest = self.branch_pattern.split("{id}")
        length = (len(branch) - len(start) - sum(map(len, rest))) // len(rest) if rest else 0
        name = branch[len(start) : len(start) + max(length, 0)]
        return name if name and self.branch_of(name) == branch else ""


_TEXTS: Final = {
    **dict.fromkeys(("target_branch", "branch_pattern", "claim_store"), lazy_pattern(r"(?s).+")),
    "claims": lazy_pattern("local|remote"),
    "claim_ref": lazy_pattern(r"refs/[A-Za-z0-9._/-]+/\{id\}"),
}
_NO_KEYS: Final = frozenset(
    {"origins", "lane_faults", "evidence", "coverage", "packets", "judged", "webhook", "temporal_ui", "actor_tables"}
)
KEYS: Final = tuple(name for name in LifecyclePolicy.__match_args__ if name not in _NO_KEYS)


def lifecycle_policy(root: Node | None, source: Source) -> LifecyclePolicy:
    """Return the policy in a loaded `policy.toml`. Invalid settings are left out; `check` reports them."""
    if root is None:
        # Its lanes and gates are unknown, so nothing moves.
        what = f"{source.path} cannot be read, so its lanes and gates are unknown"
        unread = LaneFault("lanes_unfit", "", "", what, "workpacket policy test")
        return LifecyclePolicy(lane_faults=(unread,), coverage=coverage_policy(None), actor_tables=_UNREADABLE)
    table = root.get("lifecycle")
    beside: dict[str, Any] = {
        "evidence": evidence_policy(root),
        "coverage": coverage_policy(root),
        "packets": packets_policy(root),
        "judged": root.get("approvals", "gates", "verdict") is not None,
        "webhook": root.string_at("notify", "webhook"),
        "temporal_ui": root.string_at("temporal", "ui"),
        "actor_tables": _actor_tables(root),
    }
    if table is None:
        return LifecyclePolicy(**beside)
    lanes, lane_faults = _lanes(table.get("lanes"))
    said: dict[str, Any] = {"lanes": lanes, "lane_faults": lane_faults, **beside}
    origins: dict[str, str] = {}
    for key, node in table.mapping.items():
        value = lanes if key == "lanes" else _value(key, node, lanes)
        if value is not None:
            said[key] = value
            origins[key] = f"{source.path}:{source.line_and_column(node.start)[0]}"
    return LifecyclePolicy(**said, origins=origins)


# An unreadable table lists no actor, so no event passes.
_UNREADABLE: Final = ("", None)


def _actor_tables(root: Node) -> tuple[Plain, Plain] | None:
    named, verdict = root.get("actors"), root.get("verdict")
    if named is None and verdict is None:
        return None
    return named.plain() if named is not None else None, verdict.plain() if verdict is not None else None


def _lanes(node: Node | None) -> tuple[LaneTable, tuple[LaneFault, ...]]:
    if node is None:
        return BUILT_IN, ()

    if not isinstance(node.value, dict):
        return BUILT_IN, (
            LaneFault("lanes_unfit", "", "", "[lifecycle.lanes] is not a table", "add one table for each lane"),
        )
    return added_lanes(declared_lanes(node))


def declared_lanes(table: Node | None) -> tuple[AddedLane, ...]:
    """Return the lanes that `[lifecycle.lanes]` declares, valid or not; '' for missing settings."""
    return tuple(_declared(name, lane) for name, lane in table.mapping.items()) if table is not None else ()


def _declared(token: str, lane: Node) -> AddedLane:

    said = {key: _text(lane.get(key)) for key in ("after", "before", "title", "section", "means")}
    title = said["title"] or title_of(token)
    return AddedLane(token, said["after"], said["before"], title, said["section"] or title, said["means"])


def _text(node: Node | None) -> str:
    return node.value if node is not None and isinstance(node.value, str) else ""


def _value(key: str, node: Node, lanes: LaneTable) -> object:
    if key in _TEXTS:
        return node.value if isinstance(node.value, str) and _TEXTS[key].fullmatch(node.value) else None
    if key == "lease_hours":
        return node.value if type(node.value) is int and node.value > 0 else None
    if key == "satisfied_by":
        return tuple(text for text in _texts(node) if lanes.lane(text) is not None) or None
    if key == "roadmap_headings":
        return tuple(text.casefold() for text in _texts(node))
    added = {"checklist": _items, "gates": _gates}.get(key)
    return tuple(added(node)) if added is not None else None


def _texts(node: Node) -> Iterator[str]:
    return (item.value for item in node.items if isinstance(item.value, str) and item.value)


def _items(node: Node) -> Iterator[ChecklistItem]:
    for row in node.items:
        name, section = (row.get(key) for key in ("item", "section"))
        if name is not None and section is not None and isinstance(name.value, str) and isinstance(section.value, str):
            yield ChecklistItem(name.value, section.value)


def _gates(node: Node) -> Iterator[AddedGate]:
    for name, table in node.mapping.items():
        on = table.get("on")
        yield AddedGate(name, on.value if on is not None and isinstance(on.value, str) else "")


class LaneFault(Value):
    """A fault in a declared lane; `key` is the setting, or '' for the lane itself."""

    code: str
    token: str
    key: str
    message: str
    hint: str


def title_of(token: str) -> str:
    """Return the title of a lane that sets none: `SECURITY_REVIEW` becomes `Security Review`, and `QA` remains `QA`."""
    return " ".join(word if len(word) <= _SHORT else word.capitalize() for word in token.split("_"))


def added_lanes(declared: Sequence[AddedLane]) -> tuple[LaneTable, tuple[LaneFault, ...]]:
    """Return the table of the valid lanes, and everything that is wrong with the invalid ones."""
    faults = tuple(lane_faults(declared))
    broken = {fault.token for fault in faults}
    by_after = {lane.after: lane for lane in declared if lane.token not in broken}
    added: list[AddedLane] = []
    for start in WAY:
        # Only whole chains count: in a chain with a fault, no lane leads anywhere.
        chain, lane = [], by_after.get(start)
        while lane is not None and lane not in chain:
            chain.append(lane)
            lane = by_after.get(lane.token)
        if chain and chain[-1].before in WAY:
            added += chain
    return LaneTable(tuple(added)), faults


def lane_faults(declared: Sequence[AddedLane]) -> Iterator[LaneFault]:
    by_token = {lane.token: lane for lane in declared if BUILT_IN.lane(lane.token) is None}
    taken: dict[str, str] = {}
    headings: dict[str, str] = {}
    for lane in declared:
        yield from _name_faults(lane, taken, headings)
        if lane.token not in by_token:
            continue
        neighbors = tuple(_neighbour_faults(lane, by_token))
        yield from neighbors
        if not neighbors:
            yield from _place_faults(lane, declared, by_token)


def _name_faults(lane: AddedLane, taken: dict[str, str], headings: dict[str, str]) -> Iterator[LaneFault]:
    token = lane.token
    if not TOKEN.match(token) or len(token) > LONGEST_NAME:
        message = f"{token!r} is not a valid lane name"
        hint = f"use up to {LONGEST} capital letters, with _ between words, such as QA or SECURITY_REVIEW"
        yield LaneFault("lane_name_malformed", token, "", message, hint)
    elif BUILT_IN.lane(token) is not None:
        message = f"{token} is a built-in lane, which a policy cannot change"
        yield LaneFault("lane_built_in", token, "", message, "choose a different name, or remove the table")
    else:
        yield from _taken(lane, "", token, taken)
    for key, text in (("title", lane.title), ("section", lane.section))[: 1 if lane.section == lane.title else 2]:
        if not TITLE.match(text) or len(text) > LONGEST_NAME:
            message = f"the {key} {text!r} of {token} is not a valid name on a board"
            hint = f"use up to {LONGEST} letters, with a space or a hyphen between words"
            yield LaneFault("lane_name_malformed", token, key, message, hint)
    if words_of(lane.title) != words_of(token):
        yield from _taken(lane, "title", lane.title, taken)
    yield from _section_faults(lane, headings)


def _section_faults(lane: AddedLane, headings: dict[str, str]) -> Iterator[LaneFault]:
    """Report a heading that the board uses for something else, or that would appear in two different spellings."""
    words = words_of(lane.section)
    if lane.section == lane.title and words in BUILT_IN.names:
        return  # reported for the title
    before = headings.setdefault(words, section_key(lane.section))
    own = words not in _BUILT_IN_HEADINGS or section_key(lane.section) in _SHARED
    if not own or before != section_key(lane.section):
        message = f"the {lane.section} section already exists on the board, so lane {lane.token} cannot use it"
        yield LaneFault("lane_name_taken", lane.token, "section", message, f"write `section = {_quoted(lane.title)}`")


def _taken(lane: AddedLane, key: str, name: str, taken: dict[str, str]) -> Iterator[LaneFault]:
    """Report a name that already means a different lane, ignoring case and markup."""
    words = words_of(name)
    others = [other.token for other in BUILT_IN.names.get(words, ())]
    if words == words_of(ACTIVE_TOKEN):
        others = ["the entries in the Active section"]
    if not others and words in taken:
        others = [taken[words]]
    if others:
        message = f"{name} is already used as a name for {' or '.join(others)}"
        yield LaneFault("lane_name_taken", lane.token, key, message, "choose another name")
    taken.setdefault(words, lane.token)


def _neighbour_faults(lane: AddedLane, by_token: Mapping[str, AddedLane]) -> Iterator[LaneFault]:
    for key, name in (("after", lane.after), ("before", lane.before)):
        if name == lane.token:
            message = f"{lane.token} lies {key} itself"
            yield LaneFault("lane_cycle", lane.token, key, message, "give the name of the adjacent lane")
        elif name not in by_token and BUILT_IN.lane(name) is None:
            message = f"{lane.token} is placed {key} {name or '(nothing)'}, which is not a lane"
            yield LaneFault("lane_neighbour_unknown", lane.token, key, message, _meant(name, lane.token, by_token))
        elif name not in by_token and name not in WAY:
            message = f"{lane.token} is placed {key} {name}, which is not between stub and done"
            hint = f"give two of {', '.join(WAY[2:])}, or an added lane"
            yield LaneFault("lane_unreachable", lane.token, key, message, hint)


def _meant(name: str, token: str, by_token: Mapping[str, AddedLane]) -> str:
    from difflib import get_close_matches  # needed only for a fault, but every command reads the policy

    known = [*WAY[2:], *(other for other in by_token if other != token)]
    close = [*_named_within(name), *get_close_matches(name.upper(), known, n=1)]
    return f"did you mean {close[0]}?" if close else f"name one of {', '.join(known)}"


def _named_within(name: str) -> Iterator[str]:
    """Yield the lanes that consecutive words of the name refer to, most words first: READY_FOR_REVIEW contains `for
    review`.
    """
    words = words_of(name).split()
    for count in range(len(words), 0, -1):
        for start in range(len(words) - count + 1):
            named = BUILT_IN.names.get(" ".join(words[start : start + count]), ())
            yield from (lane.token for lane in named[:1] if lane.token in WAY)


def _place_faults(
    lane: AddedLane, declared: Sequence[AddedLane], by_token: Mapping[str, AddedLane]
) -> Iterator[LaneFault]:
    token = lane.token
    first = next(other for other in declared if other.after == lane.after)
    if first is not lane:
        message = f"{token} and {first.token} both come after {lane.after}, but packets can move to only one of them"
        hint = f"write `after = {_quoted(first.token)}`, and in {first.token} `before = {_quoted(token)}`"
        yield LaneFault("lane_place_taken", token, "after", message, hint)
        return
    start, end = _ends(lane, by_token)
    if start in by_token or end in by_token:
        message = f"{token} is in a cycle of added lanes that packets cannot reach"
        yield LaneFault("lane_cycle", token, "after", message, f"start the chain after one of {', '.join(WAY[2:-1])}")
    elif start not in WAY or end not in WAY:
        return  # the fault is reported for the lane next to it
    elif (start, end) in _STEPS and (start, end) not in _ROOM:
        message = f"the gate to {end} is between {start} and {end}, so no lane can be added between them"
        hint = f"put {token} after one of {', '.join(WAY[2:-1])}, or add a gate or a checklist item instead"
        yield LaneFault("lane_before_gate", token, "after", message, hint)
    elif (start, end) not in _ROOM:
        message = f"{token} is placed after {start} and before {end}, which are not adjacent"
        hint = f"{start} is followed by {BUILT_IN.onward(start)}" if start != WAY[-1] else f"{start} is the end"
        yield LaneFault("lane_unreachable", token, "before", message, hint)
    else:
        yield from _one_sided(lane, by_token)


def _ends(lane: AddedLane, by_token: Mapping[str, AddedLane]) -> tuple[str, str]:
    """Return the lanes at both ends of the chain that contains the lane; if the chain is a cycle, an added lane."""
    start, end = lane.after, lane.before
    for _ in by_token:
        start = by_token[start].after if start in by_token else start
        end = by_token[end].before if end in by_token else end
    return start, end


def _one_sided(lane: AddedLane, by_token: Mapping[str, AddedLane]) -> Iterator[LaneFault]:
    """Report one-sided neighbors: unless both refer to each other, work might be unable to leave or reach a lane."""
    for key, name, back in (("after", lane.after, "before"), ("before", lane.before, "after")):
        other = by_token.get(name)
        said = getattr(other, back) if other is not None else lane.token
        if other is not None and said != lane.token:
            message = f"{lane.token} lies {key} {name}, but {name} lies {back} {said}"
            hint = f"write `{back} = {_quoted(lane.token)}` in [lifecycle.lanes.{name}]"
            yield LaneFault("lane_unreachable", lane.token, key, message, hint)


def _quoted(name: str) -> str:
    return f'"{name}"'
