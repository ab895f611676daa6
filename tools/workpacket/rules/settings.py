"""The settings of a repository for rules: profile, severities, and findings that are ignored for a stated reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from workpacket.model.layout import POLICY_PATH
from workpacket.model.reasons import Reason
from workpacket.problem import Location, Problem
from workpacket.text.source import Node, Source
from workpacket.value import NOTHING, Value

Profile = Literal["adopt", "strict"]
Level = Literal["error", "warning", "info", "off"]
FEWEST_WORDS = 3
# The files that may contain the settings, and where in them; the first file that has them is in force.
PROJECT = "pyproject.toml"
SETTINGS: tuple[tuple[str, tuple[str, ...]], ...] = ((POLICY_PATH, ("check",)), (PROJECT, ("tool", "workpacket")))
LEVELS: tuple[Level, ...] = ("error", "warning", "info", "off")


class Ignore(Value):
    """Findings of `code` in files that match one of `paths` are hidden. `place` is where this setting is written."""

    code: str
    paths: tuple[str, ...]
    reason: str
    place: tuple[int, int] = (0, 0)

    def covers(self, finding: Problem) -> bool:
        return finding.code == self.code and any(fnmatchcase(finding.path, pattern) for pattern in self.paths)


class CheckSettings(Value):
    """The settings of `check`. `where` is their file, or '' for the defaults; `places` gives the positions of
    `severities`.

    `phases` are those of teams that define their own.

    `faults` are the parts that could not be read or do not match the schema, and are therefore not in force.
    """

    profile: Profile = "adopt"
    severities: Mapping[str, Level] = NOTHING
    ignores: tuple[Ignore, ...] = ()
    where: str = ""
    places: Mapping[str, tuple[int, int]] = NOTHING
    faults: tuple[Problem, ...] = ()
    phases: Mapping[str, tuple[str, ...]] = NOTHING


def settings_of(root: Node, source: Source) -> CheckSettings:
    """Return the settings in a policy. Parts that do not match the schema are left out; the check of the policy reports
    them.
    """
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
    findings: Sequence[Problem], reasons: Mapping[str, Reason], settings: CheckSettings
) -> tuple[list[Problem], list[Ignore]]:
    """Return the findings that are not ignored, with the severities in force, and the ignores that matched nothing.

    Reasons that cannot be ignored keep their severity, whatever the settings say.
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
        if reason.ignorable:
            level = settings.severities.get(reason.code, level)
        if level != "off":
            kept.append(finding.with_severity(level))
    return kept, [ignore for index, ignore in enumerate(settings.ignores) if index not in used]


def settings_findings(settings: CheckSettings, reasons: Mapping[str, Reason]) -> Iterator[Problem]:
    """Report faults of the settings themselves: unknown codes, and codes that may not be changed."""
    places = [(code, settings.places.get(code, (0, 0))) for code in settings.severities]
    for code, place in [*places, *((ignore.code, ignore.place) for ignore in settings.ignores)]:
        if code not in reasons:
            message = f"unknown code {code!r}"
            yield Problem("setting_of_unknown_code", message, Location(settings.where, *place))
        elif not reasons[code].ignorable:
            message = f"{code} cannot be ignored or lowered"
            yield Problem("setting_of_protected_code", message, Location(settings.where, *place))
    for ignore in settings.ignores:
        if len(ignore.reason.split()) < FEWEST_WORDS:
            message = f"the ignore for {ignore.code} has no reason"
            yield Problem("ignore_without_reason", message, Location(settings.where, *ignore.place))


def unused_finding(ignore: Ignore, settings: CheckSettings) -> Problem:
    """Report an ignore that matched nothing in the whole repository."""
    message = f"unused ignore: no {ignore.code} finding in {', '.join(ignore.paths)}"
    return Problem("ignore_unused", message, Location(settings.where, *ignore.place), "delete it", severity="warning")


def _ignore_for(finding: Problem, reason: Reason, settings: CheckSettings) -> int | None:
    if not reason.ignorable:
        return None
    return next((index for index, ignore in enumerate(settings.ignores) if ignore.covers(finding)), None)
