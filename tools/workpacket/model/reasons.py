"""The type of a reason code, and the registry in which each code occurs once.

Every message that a user can act on has a code: findings of rules, refusals of gates, failures of commands, stops of
runs. A rule's reason is the docstring of its class; all other reasons are text of the same form, in the tables of
`workpacket.model.reason_tables`. `workpacket.report.catalogue` collects them, refuses duplicate names, and is the
source for `explain`, the documentation and exit statuses.

A stop reason is a reason code with the information that resume, reports and hooks need.

Exit statuses follow the family: a script can tell "the work was wrong" from "the disk was full" without reading text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model import exits
from workpacket.problem import Severity
from workpacket.value import Value

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

Family = Literal[
    "reading",
    "text",
    "document",
    "cross-file",
    "approval",
    "integrity",
    "gate",
    "usage",
    "environment",
    "conflict",
    "runtime",
    "internal",
]

# Reasons that cannot be ignored: forged approvals, a damaged log, a file that was not examined or not read.
UNIGNORABLE_FAMILIES: frozenset[Family] = frozenset({"approval", "integrity", "environment", "reading"})

# The exit status of a command that ends with a reason of the family. Other families have reported findings.
_EXIT_CODES: Mapping[Family, int] = {
    "approval": exits.REFUSED,
    "integrity": exits.INTEGRITY,
    "gate": exits.REFUSED,
    "usage": exits.USAGE,
    "environment": exits.ENVIRONMENT,
    "conflict": exits.CONFLICT,
    "internal": exits.INTERNAL,
}

_CODE = lazy_pattern(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")

StopFamily = Literal[
    "constraint", "verification", "review", "worker", "resource", "stale", "integrity", "program", "user", "internal"
]
AutoResume = Literal["never", "with_backoff", "after_confirm"]

EXIT_RANGES: dict[StopFamily, range] = {
    "constraint": range(10, 20),
    "verification": range(20, 30),
    "review": range(30, 40),
    "worker": range(40, 50),
    "resource": range(50, 60),
    "stale": range(60, 70),
    "integrity": range(70, 90),
    "program": range(90, 100),
    "user": range(exits.INTERRUPTED, exits.INTERRUPTED + 1),
    "internal": range(exits.INTERNAL, exits.INTERNAL + 1),
}


class Reason(Value):
    """One code, with its general description."""

    code: str
    title: str
    explanation: str
    remedy: str
    family: Family
    severity: Severity = "error"
    strict_severity: Severity = "error"
    exit_code: int = exits.FINDINGS
    fix: Literal["none", "safe", "unsafe"] = "none"
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _CODE.match(self.code):
            raise ValueError(f"{self.code!r} is not a reason code: lower-case words joined by '_'")
        if not self.title or self.title.endswith("."):
            raise ValueError(f"{self.code}: the title must be a single phrase without a period")
        if SEVERITIES.index(self.strict_severity) > SEVERITIES.index(self.severity):
            raise ValueError(f"{self.code}: the strict profile must not be weaker than the default")

    @property
    def ignorable(self) -> bool:
        return self.family not in UNIGNORABLE_FAMILIES


def reasons(
    family: Family,
    text: str,
    *,
    exit_code: int | None = None,
    severity: Severity = "error",
    strict_severity: Severity = "error",
    fix: Literal["none", "safe", "unsafe"] = "none",
) -> tuple[Reason, ...]:
    """Return the rows of a table; rows are separated by blank lines.

    The first line of a row contains the code and the title. The explanation follows and, after `Remedy:`, what to do.
    """
    status = _EXIT_CODES.get(family, exits.FINDINGS) if exit_code is None else exit_code
    rows = (row.strip().partition("\n") for row in text.strip().split("\n\n"))
    return tuple(
        Reason(code, title, *explanation_and_remedy(rest), family, severity, strict_severity, status, fix)
        for (code, _, title), rest in ((head.partition(": "), rest) for head, _, rest in rows)
    )


def explanation_and_remedy(text: str) -> tuple[str, str]:
    """Return the two parts of the text below a reason's title, in a table or in the docstring of a rule."""
    explanation, _, remedy = text.partition("Remedy:")
    return " ".join(explanation.split()), " ".join(remedy.split())


class Registry(Mapping[str, Reason]):
    """Reasons by code, in the given order; aliases resolve but are not listed."""

    def __init__(self, reasons: Iterable[Reason]) -> None:
        self._by_code: dict[str, Reason] = {}
        self._aliases: dict[str, str] = {}
        for reason in reasons:
            for name in (reason.code, *reason.aliases):
                if name in self._by_code or name in self._aliases:
                    raise ValueError(f"reason code {name!r} is registered twice")
            self._by_code[reason.code] = reason
            self._aliases.update((alias, reason.code) for alias in reason.aliases)

    def __getitem__(self, code: str) -> Reason:
        return self._by_code[self._aliases.get(code, code)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_code)

    def __len__(self) -> int:
        return len(self._by_code)


class StopReason(Reason, kw_only=True):
    """A reason why a run stops. `diagnosis` says how to find out what happened; `remedies` are the options, the usual
    one first.
    """

    stops: StopFamily
    auto_resume: AutoResume
    diagnosis: str
    remedies: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exit_code not in EXIT_RANGES[self.stops]:
            raise ValueError(f"{self.code}: exit status {self.exit_code} is outside the family {self.stops!r}")
        if not self.remedies:
            raise ValueError(f"{self.code}: a stop reason needs at least one remedy")


def stop_reason(
    code: str,
    exit_code: int,
    stops: StopFamily,
    auto_resume: AutoResume,
    title: str,
    explanation: str,
    diagnosis: str,
    *remedies: str,
    aliases: tuple[str, ...] = (),
) -> StopReason:
    """Return a row for the table of stop reasons."""
    return StopReason(
        code=code,
        title=title,
        explanation=explanation,
        remedy=f"{remedies[0]}.",
        family="runtime",
        exit_code=exit_code,
        aliases=aliases,
        stops=stops,
        auto_resume=auto_resume,
        diagnosis=diagnosis,
        remedies=remedies,
    )
