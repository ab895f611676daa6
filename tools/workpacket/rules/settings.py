"""A repository's settings for rules: profile, severities, findings that are ignored for a stated reason, and findings
that are known.

A repository that adopts the tool has findings that no one will fix this week. `check --baseline` records them, and from
then on only new ones are reported. A finding is recognized by its file, its code and the text of its line, so that it
remains known when lines move, and is new when the line changes.

Findings about approvals, the log and contracts are never recorded: they are claims to verify, not habits to tolerate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from workpacket.digests import sha256
from workpacket.model.layout import BASELINE_PATH, POLICY_PATH
from workpacket.model.reasons import Reason
from workpacket.problem import Location, Problem
from workpacket.rules.rule import LogRule, rules_across
from workpacket.text.json_strict import load_json
from workpacket.text.schema import SchemaSet
from workpacket.text.source import BASELINE, Node, Source
from workpacket.value import NOTHING, NamedTuple, Value

Profile = Literal["adopt", "strict"]
Level = Literal["error", "warning", "info", "off"]
FEWEST_WORDS = 3
# The files that may contain the settings, and where in them; the first file that has them is in force.
PROJECT = "pyproject.toml"
SETTINGS: tuple[tuple[str, tuple[str, ...]], ...] = ((POLICY_PATH, ("check",)), (PROJECT, ("tool", "workpacket")))
LEVELS: tuple[Level, ...] = ("error", "warning", "info", "off")


class Ignore(Value):
    """Findings with `code` in files that match one of `paths` are hidden. `place` is where this setting is written."""

    code: str
    paths: tuple[str, ...]
    reason: str
    place: tuple[int, int] = (0, 0)

    def covers(self, finding: Problem) -> bool:
        return finding.code == self.code and any(fnmatchcase(finding.path, pattern) for pattern in self.paths)


class CheckSettings(Value):
    """The settings of `check`. `where` is their file, or '' for the defaults; `places` gives the positions of
    `severities`.

    `phases` are the phases of teams that define their own.

    `faults` are the parts that could not be read or do not match the schema, and therefore have no effect.
    """

    profile: Profile = "adopt"
    severities: Mapping[str, Level] = NOTHING
    ignores: tuple[Ignore, ...] = ()
    where: str = ""
    places: Mapping[str, tuple[int, int]] = NOTHING
    faults: tuple[Problem, ...] = ()
    phases: Mapping[str, tuple[str, ...]] = NOTHING


def settings_of(root: Node, source: Source) -> CheckSettings:
    """Return the settings in a policy. Parts that do not match the schema are left out; the policy check reports
    them."""
    severities = root.mapping_at("severity")
    levels = {level: level for level in LEVELS}
    return CheckSettings(
        profile="strict" if root.string_at("profile") == "strict" else "adopt",
        severities={code: levels[said] for code, node in severities.items() if (said := node.text) in levels},
        ignores=tuple(_ignore(node, source) for node in root.items_at("ignore")),
        where=source.path,
        places={code: source.line_and_column(node.start) for code, node in severities.items()},
        phases=phases_of(root),
    )


def phases_of(root: Node) -> dict[str, tuple[str, ...]]:
    """Return the phase vocabularies in a policy, by team."""
    teams = root.mapping_at("phases")
    said = {team: tuple(item.text for item in node.items if item.text) for team, node in teams.items() if node.items}
    return {team: words for team, words in said.items() if words}


def _ignore(node: Node, source: Source) -> Ignore:
    paths = node.get("paths")
    patterns = tuple(item.text for item in paths.items if item.text is not None) if paths is not None else ("*",)
    return Ignore(node.string_at("code"), patterns, node.string_at("reason"), source.line_and_column(node.start))


def grade(
    findings: Sequence[Problem],
    reasons: Mapping[str, Reason],
    settings: CheckSettings,
    archived: Collection[str] = frozenset(),
) -> tuple[list[Problem], list[Ignore]]:
    """Return the findings that are not ignored, with their effective severities, and the ignores that matched nothing.

    Reasons that cannot be ignored keep their severity, whatever the settings say. `archived` are the paths of
    superseded and abandoned work, which no longer changes: something missing there is not an error.
    """
    kept: list[Problem] = []
    used: set[int] = set()
    for finding in findings:
        reason = reasons[finding.code]
        ignore = _ignore_for(finding, reason, settings)
        if ignore is not None:
            used.add(ignore)
            continue
        level: Level = reason.strict_severity if settings.profile == "strict" else reason.severity
        if level == "error" and reason.family == "document" and finding.path in archived:
            level = "warning"
        if reason.ignorable:
            level = settings.severities.get(reason.code, level)
        if level != "off":
            kept.append(finding.with_severity(level))
    return kept, [ignore for index, ignore in enumerate(settings.ignores) if index not in used]


def settings_findings(settings: CheckSettings, reasons: Mapping[str, Reason]) -> Iterator[Problem]:
    """Report faults in the settings themselves: unknown codes, and codes that must not be changed."""
    places = [(code, settings.places.get(code, (0, 0))) for code in settings.severities]
    for code, place in [*places, *((ignore.code, ignore.place) for ignore in settings.ignores)]:
        if code not in reasons:
            message = f"unknown code {code!r}"
            yield Problem("setting_of_unknown_code", message, Location(settings.where, *place))
        elif not reasons[code].ignorable:
            message = f"{code} cannot be ignored or downgraded"
            yield Problem("setting_of_protected_code", message, Location(settings.where, *place))
    for ignore in settings.ignores:
        if len(ignore.reason.split()) < FEWEST_WORDS:
            message = f"the ignore for {ignore.code} has no reason"
            yield Problem("ignore_without_reason", message, Location(settings.where, *ignore.place))


def unused_finding(ignore: Ignore, settings: CheckSettings) -> Problem:
    """Report an ignore entry that matched nothing in the whole repository."""
    message = f"unused ignore: no {ignore.code} finding in {', '.join(ignore.paths)}"
    return Problem("ignore_unused", message, Location(settings.where, *ignore.place), "delete it", severity="warning")


def _ignore_for(finding: Problem, reason: Reason, settings: CheckSettings) -> int | None:
    if not reason.ignorable:
        return None
    return next((index for index, ignore in enumerate(settings.ignores) if ignore.covers(finding)), None)


VERSION = 1
_RECORDABLE = frozenset({"text", "document", "cross-file"})
_DIGITS = 16

SourceLine: TypeAlias = Callable[[str, int], "str | None"]


class KnownPlace(NamedTuple):
    """What identifies a known finding. `line` is the digest of the line's text, or '' for a finding about the file."""

    path: str
    code: str
    line: str


# The number of known findings for each place.
Baseline: TypeAlias = Mapping[KnownPlace, int]


class ComparedWithBaseline(NamedTuple):
    """The findings that are not in the baseline, the number of findings that are, and the baseline's entries that
    matched nothing.
    """

    new: list[Problem]
    known: int
    gone: Counter[KnownPlace]


def read_baseline(data: bytes | None, schemas: SchemaSet) -> Baseline | Problem:
    """Return the baseline in a file, or an empty one if there is no file; return a problem if the file is not a
    baseline."""
    if data is None:
        return {}
    if len(data) > BASELINE.size:
        return _unread(f"it is larger than {BASELINE.size:,} bytes")
    source = Source.from_bytes(BASELINE_PATH, data)
    loaded = load_json(source, BASELINE)
    if loaded.root is None:
        return _unread(loaded.faults[0].message)
    violation = next(iter(schemas.violations("baseline", loaded.root.plain())), None)
    if violation is not None:
        return _unread(violation.message)
    known: Counter[KnownPlace] = Counter()
    for entry in loaded.root.items_at("findings"):
        count = entry.get("count")
        place = KnownPlace(entry.string_at("path"), entry.string_at("code"), entry.string_at("line"))
        known[place] += count.value if count is not None and isinstance(count.value, int) else 0
    return known


def recorded(findings: Iterable[Problem], reasons: Mapping[str, Reason], line: SourceLine) -> Counter[KnownPlace]:
    """Return the baseline of these findings, without those that cannot be recorded."""
    against_log = _against_log()
    return Counter(_place(finding, line) for finding in findings if _recordable(reasons[finding.code], against_log))


def compare(
    findings: Sequence[Problem], known: Baseline, reasons: Mapping[str, Reason], line: SourceLine
) -> ComparedWithBaseline:
    """Separate new findings from known ones. If a line has more findings with a code than the baseline, the surplus
    ones are new.
    """
    if not known:
        return ComparedWithBaseline([*findings], 0, Counter())
    against_log = _against_log()
    left = Counter(known)
    new: list[Problem] = []
    for finding in findings:
        place = _place(finding, line)
        if left[place] > 0 and _recordable(reasons[finding.code], against_log):
            left[place] -= 1
        else:
            new.append(finding)
    return ComparedWithBaseline(new, len(findings) - len(new), +left)


def baseline_text(known: Baseline) -> str:
    """Return the file, with one line for each entry, so that git can merge removals on two branches."""
    rows = (
        json.dumps({"path": place.path, "code": place.code, "line": place.line, "count": count}, ensure_ascii=False)
        for place, count in sorted(known.items())
        if count > 0
    )
    entries = ",\n".join(f"    {row}" for row in rows)
    findings = f"[\n{entries}\n  ]" if entries else "[]"
    return f'{{\n  "version": {VERSION},\n  "findings": {findings}\n}}\n'


def _place(finding: Problem, line: SourceLine) -> KnownPlace:
    text = line(finding.path, finding.line) if finding.line else None
    return KnownPlace(finding.path, finding.code, _digest(text) if text is not None else "")


def _digest(text: str) -> str:
    return sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _recordable(reason: Reason, against_log: frozenset[str]) -> bool:
    return reason.ignorable and reason.family in _RECORDABLE and reason.code not in against_log


def _against_log() -> frozenset[str]:
    """Return the codes of rules that compare documents with the log."""
    return frozenset(rule.code() for rule in rules_across() if issubclass(rule, LogRule))


def _unread(why: str) -> Problem:
    return Problem("baseline_unread", f"its entries are not applied: {why}", Location(BASELINE_PATH))
