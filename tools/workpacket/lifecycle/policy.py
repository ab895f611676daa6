"""The settings for the lifecycle, and for commands that prove criteria, in `policy.toml`.

[lifecycle]
target_branch = "main"
lease_hours = 72
satisfied_by = ["VALIDATED", "MERGE_PENDING"]
roadmap_headings = ["roadmap"]
branch_pattern = "wp/{id}"

[[lifecycle.checklist]]
item = "threat_model"
section = "THREAT_MODEL"

[lifecycle.gates.security]
on = "merged"

[lifecycle.lanes.QA]
after = "IN_REVIEW"
before = "MERGE_PENDING"

[evidence]
env = ["JAVA_HOME"]
timeout_seconds = 600
output_bytes = 10485760
tests = "required"
proof_paths = ["tests/", "test/", "spec/", "**/*_test.*"]
reports = ["target/surefire-reports/*.xml"]
setup = ["npm ci"]
replay = "second-party"

[coverage]
mode = "required"
exempt = ["translations/*.po"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Literal

from workpacket.model.lanes import BUILT_IN, SATISFYING, AddedLane, LaneTable
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.lifecycle.added_lanes import LaneFault
    from workpacket.text.node import Plain


# What a program needs to be found, to find its files and to write in the person's language; none of it is a secret.
ALWAYS_PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TMP", "TEMP",
    "VIRTUAL_ENV", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA",
    "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
)  # fmt: skip
_LOCALE: Final = "LC_"
LONGEST: Final = 24 * 60 * 60
MOST_OUTPUT: Final = 1024 * 1024 * 1024


PROOF_PATHS: Final = ("tests/", "test/", "spec/", "**/*_test.*")
Tests = Literal["required", "off"]
Replay = Literal["second-party", "off"]


class EvidencePolicy(Value):
    """`env` are variables that proofs get in addition to `ALWAYS_PASSED`.

    `tests`: whether the contract has to name the proof of each criterion. `proof_paths` are where tests lie, `reports`
    where runners leave files of JUnit XML, `setup` the commands that prepare a tree. `replay`: whether another party
    has to replay the proofs before a verdict.
    """

    env: tuple[str, ...] = ()
    timeout_seconds: int = 600
    output_bytes: int = 10 * 1024 * 1024
    tests: Tests = "off"
    proof_paths: tuple[str, ...] = PROOF_PATHS
    reports: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    replay: Replay = "off"

    def environment(self, whole: Mapping[str, str]) -> dict[str, str]:
        """The environment of a proof."""
        passed = {*ALWAYS_PASSED, *self.env}
        return {name: value for name, value in whole.items() if name in passed or name.startswith(_LOCALE)}


EVIDENCE_KEYS: Final = EvidencePolicy.__match_args__


def evidence_policy(root: Node | None) -> EvidencePolicy:
    """The settings for proofs in a loaded `policy.toml`; invalid ones get their default."""
    table = root.get("evidence") if root is not None else None
    if table is None:
        return EvidencePolicy()
    tests, replay = table.get("tests"), table.get("replay")
    return EvidencePolicy(
        _strings(table.get("env")),
        _number(table.get("timeout_seconds"), LONGEST, EvidencePolicy().timeout_seconds),
        _number(table.get("output_bytes"), MOST_OUTPUT, EvidencePolicy().output_bytes),
        # What cannot be read asks for everything.
        "off" if tests is None or tests.text == "off" else "required",
        _strings(table.get("proof_paths")) or PROOF_PATHS,
        _strings(table.get("reports")),
        _strings(table.get("setup")),
        "off" if replay is None or replay.text == "off" else "second-party",
    )


def _strings(node: Node | None) -> tuple[str, ...]:
    return tuple(item.text for item in node.items if item.text) if node is not None else ()


def _number(node: Node | None, most: int, default: int) -> int:
    return node.value if node is not None and type(node.value) is int and 1 <= node.value <= most else default


Mode = Literal["required", "warn", "off"]
_MODES: Final[Mapping[str, Mode]] = {"required": "required", "warn": "warn", "off": "off"}


class CoveragePolicy(Value):
    """`exempt` are patterns of paths that need no packet, as in IN_SCOPE_PATHS. None is exempt unless it is said."""

    mode: Mode = "off"
    exempt: tuple[str, ...] = ()


COVERAGE_KEYS: Final = CoveragePolicy.__match_args__


def coverage_policy(root: Node | None) -> CoveragePolicy:
    """What a loaded `policy.toml` says in `[coverage]`. A policy or a mode that cannot be read asks for everything."""
    if root is None:
        return CoveragePolicy("required")
    table = root.get("coverage")
    if table is None:
        return CoveragePolicy()
    mode, exempt = table.get("mode"), table.get("exempt")
    return CoveragePolicy(_MODES.get((mode.text or "") if mode is not None else "", "required"), _strings(exempt))


DEFAULT: Final = "default"


class ChecklistItem(Value):
    """An item that a repository adds to the activation gate: a section of the refinement that must hold text."""

    item: str
    section: str


class AddedGate(Value):
    """A gate that a repository adds to a move: `gate` is its name in the approvals, `on` the command of the move."""

    gate: str
    on: str


class LifecyclePolicy(Value):
    """The rules in force. `origins` says of each where it comes from: `default`, or a line of the policy.

    `evidence` and `coverage` are the tables of these names beside this one, as are `[actors]` and `[verdict]`.

    `lane_faults` are the errors in added lanes: while there is any, no packet can move.
    """

    target_branch: str = ""
    lease_hours: int = 72
    satisfied_by: tuple[str, ...] = SATISFYING
    roadmap_headings: tuple[str, ...] = ("roadmap",)
    branch_pattern: str = "wp/{id}"
    claim_store: str = ""
    checklist: tuple[ChecklistItem, ...] = ()
    gates: tuple[AddedGate, ...] = ()
    lanes: LaneTable = BUILT_IN
    lane_faults: tuple[LaneFault, ...] = ()
    evidence: EvidencePolicy = EvidencePolicy()
    coverage: CoveragePolicy = CoveragePolicy()
    actor_tables: tuple[Plain, Plain] | None = None
    origins: Mapping[str, str] = NOTHING

    @cached_property
    def actors(self) -> Actors:
        """The tables `[actors]` and `[verdict]`, which most policies do not have."""
        from workpacket.approvals.actors import Actors, read_actors

        return Actors() if self.actor_tables is None else read_actors(*self.actor_tables)

    def origin(self, key: str) -> str:
        return self.origins.get(key, DEFAULT)

    def branch_of(self, packet: str) -> str:
        return self.branch_pattern.replace("{id}", packet)


_NO_KEYS: Final = frozenset({"origins", "lane_faults", "evidence", "coverage", "actor_tables"})
KEYS: Final = tuple(name for name in LifecyclePolicy.__match_args__ if name not in _NO_KEYS)


def lifecycle_policy(root: Node | None, source: Source) -> LifecyclePolicy:
    """The policy in a loaded `policy.toml`. Invalid settings are left out; `check` reports them."""
    if root is None:
        from workpacket.lifecycle.added_lanes import LaneFault

        # Whatever lanes and gates it adds: it cannot be told, so nothing moves.
        what = f"{source.path} cannot be read, so its lanes and gates are unknown"
        unread = LaneFault("lanes_unfit", "", "", what, "workpacket policy test")
        return LifecyclePolicy(lane_faults=(unread,), coverage=coverage_policy(None), actor_tables=_UNREADABLE)
    table = root.get("lifecycle")
    beside: dict[str, Any] = {
        "evidence": evidence_policy(root),
        "coverage": coverage_policy(root),
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


# A table that cannot be read lists no actor, so that no event passes.
_UNREADABLE: Final = ("", None)


def _actor_tables(root: Node) -> tuple[Plain, Plain] | None:
    named, verdict = root.get("actors"), root.get("verdict")
    if named is None and verdict is None:
        return None
    return named.plain() if named is not None else None, verdict.plain() if verdict is not None else None


def _lanes(node: Node | None) -> tuple[LaneTable, tuple[LaneFault, ...]]:
    if node is None:
        return BUILT_IN, ()
    from workpacket.lifecycle.added_lanes import LaneFault, added_lanes

    if not isinstance(node.value, dict):
        return BUILT_IN, (
            LaneFault("lanes_unfit", "", "", "[lifecycle.lanes] is not a table", "add one table for each lane"),
        )
    return added_lanes(declared_lanes(node))


def declared_lanes(table: Node | None) -> tuple[AddedLane, ...]:
    """The lanes that `[lifecycle.lanes]` declares, valid or not; '' for missing settings."""
    return tuple(_declared(name, lane) for name, lane in table.mapping.items()) if table is not None else ()


def _declared(token: str, lane: Node) -> AddedLane:
    from workpacket.lifecycle.added_lanes import title_of

    said = {key: _text(lane.get(key)) for key in ("after", "before", "title", "section", "means")}
    title = said["title"] or title_of(token)
    return AddedLane(token, said["after"], said["before"], title, said["section"] or title, said["means"])


def _text(node: Node | None) -> str:
    return node.value if node is not None and isinstance(node.value, str) else ""


def _value(key: str, node: Node, lanes: LaneTable) -> object:
    if key in {"target_branch", "branch_pattern", "claim_store"}:
        return node.value if isinstance(node.value, str) and node.value else None
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
